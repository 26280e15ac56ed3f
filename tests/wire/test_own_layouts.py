# SPDX-License-Identifier: Apache-2.0
"""What is ours on the wire and in the log: other peers skip it, and the bytes stay as they are."""

from typing import Any

import pytest
from tests.wire.layouts import OWN_TAGS, facts_of

from kohort.records import schemas
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.messages import consumer_group_describe as describe
from kohort.wire.messages import consumer_group_heartbeat as heartbeat
from kohort.wire.messages import consumer_group_install_assignment as install
from kohort.wire.messages import consumer_group_prepare_assignment as prepare
from kohort.wire.schema import Field, Primitive, Versions, fields_of

pytestmark = pytest.mark.usefixtures("each_codec")

V0 = Versions.of("0")


def shape(cls: type[Any]) -> list[str]:
    """The fields of a message of ours: name, type, `?` where it may be null, and its tag."""
    lines = []
    for field in fields_of(cls):
        lines.append(_line(field))
        if not isinstance(field.of, Primitive):
            lines += [f"  {line}" for line in shape(field.of)]
    return lines


def _line(field: Field) -> str:
    kind = field.of.name if isinstance(field.of, Primitive) else "struct"
    many = "[]" if field.array else ""
    null = "?" if 0 in field.nullable else ""
    tag = "" if field.tag is None else f" @{field.tag}"
    return f"{field.name} {many}{kind}{null}{tag}"


REFUSAL = ["throttle_time_ms int32", "error_code int16", "error_message string?"]
PARTITIONS = ["  topic_id uuid", "  partitions []int32"]
LAYOUTS = {
    prepare.ConsumerGroupPrepareAssignmentRequest: [
        "group_id string",
        "member_id string",
        "member_epoch int32",
    ],
    prepare.ConsumerGroupPrepareAssignmentResponse: [
        *REFUSAL,
        "group_epoch int32",
        "assignor_name string",
        "members []struct",
        "  member_id string",
        "  member_epoch int32",
        "  instance_id string?",
        "  rack_id string?",
        "  subscribed_topic_ids []uuid",
        "  assignor struct",
        "    reason int8",
        "    metadata_version int16",
        "    metadata_bytes bytes",
        "  topic_partitions []struct",
        *(f"  {line}" for line in PARTITIONS),
        "topics []struct",
        "  topic_id uuid",
        "  topic_name string",
        "  num_partitions int32",
        "metadata_version int16 @20000",
    ],
    install.ConsumerGroupInstallAssignmentRequest: [
        "group_id string",
        "member_id string",
        "member_epoch int32",
        "group_epoch int32",
        "error int8",
        "members []struct",
        "  member_id string",
        "  partitions []struct",
        *(f"  {line}" for line in PARTITIONS),
        "  metadata_version int16",
        "  metadata_bytes bytes",
    ],
    install.ConsumerGroupInstallAssignmentResponse: REFUSAL,
}


@pytest.mark.parametrize("cls", LAYOUTS, ids=lambda cls: cls.__name__)
def test_the_apis_are_laid_out_as_in_the_proposal(cls):
    """K848-142, K848-143, K848-144, K848-146, K848-147, K848-148, K848-149."""
    assert shape(cls) == LAYOUTS[cls]
    assert str(cls.flexible) == "0+"


def test_the_apis_have_keys_far_from_upstream_s():
    """K848-075."""
    own = {api.key: (api.name, str(api.versions)) for api in APIS.values() if api.key >= OWN_TAGS}
    assert own == {
        20070: ("ConsumerGroupPrepareAssignment", "0"),
        20071: ("ConsumerGroupInstallAssignment", "0"),
    }


ATTACHMENT = ["error int8", "metadata_version int16", "metadata_bytes bytes"]
NAMED = [*ATTACHMENT, "assignor_name string @0"]
STORED = [*ATTACHMENT[:-1], "metadata bytes", "assignor string @0"]
ASSIGNOR = [
    "name string",
    "minimum_version int16",
    "maximum_version int16",
    "reason int8",
    "metadata_version int16",
    "metadata_bytes bytes",
]
TAGGED = [
    (heartbeat.ConsumerGroupHeartbeatRequest, "client_assignors", 20000, ASSIGNOR),
    (heartbeat.Assignment, "attachment", 20000, NAMED),
    (describe.Assignment, "attachment", 20000, NAMED),
    (describe.Member, "client_assignors", 20001, ASSIGNOR),
    (
        describe.DescribedGroup,
        "client_side",
        20000,
        [
            "selected string",
            "computing_member string?",
            "last_reason int8",
            "last_error int8",
            "why string",
        ],
    ),
    (
        schemas.ConsumerGroupMemberMetadataValue,
        "client_assignors",
        20000,
        [*ASSIGNOR[:-1], "metadata bytes"],
    ),
    (
        schemas.ConsumerGroupTargetAssignmentMemberValue,
        "attachment",
        20000,
        STORED,
    ),
    (
        schemas.ConsumerGroupCurrentMemberAssignmentValue,
        "attachment",
        20000,
        STORED,
    ),
    (
        schemas.ConsumerGroupTargetAssignmentMetadataValue,
        "computation",
        20000,
        [
            "assignor string",
            "member_id string?",
            "reason int8",
            "error int8",
            "took_ms int32",
            "why string",
        ],
    ),
]


@pytest.mark.parametrize(
    ("cls", "name", "tag", "fields"), TAGGED, ids=lambda one: getattr(one, "__name__", "")
)
def test_what_upstream_s_messages_carry_for_us_is_tagged(cls, name, tag, fields):
    """K848-076, K848-077, K848-078."""
    [field] = [one for one in fields_of(cls) if one.tag is not None and one.tag >= OWN_TAGS]
    assert (field.name, field.tag) == (name, tag)
    assert shape(field.of) == fields
    assert name not in [one["name"] for one in facts_of(cls, V0)]


def test_bytes_of_a_heartbeat_with_assignors():
    """K848-076: all of it stands behind the fields that everybody reads."""
    request = heartbeat.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    plain = codec.encode(request, 1)
    request.client_assignors = [
        heartbeat.ClientAssignor(
            name="x",
            minimum_version=-1,
            maximum_version=2,
            reason=7,
            metadata_version=1,
            metadata_bytes=b"ab",
        )
    ]
    one = b"\x02x" + b"\xff\xff\0\2" + b"\7" + b"\0\1" + b"\3ab" + b"\0"
    size = (len(one) + 1).to_bytes(1)
    assert codec.encode(request, 1) == plain[:-1] + b"\1\xa0\x9c\1" + size + b"\2" + one
    assert codec.encode(request, 0) == plain[:-1]  # v0 has neither the expression nor the tag


def test_without_client_assignors_the_bytes_are_upstream_s():
    """K848-123."""
    answer = heartbeat.ConsumerGroupHeartbeatResponse(assignment=heartbeat.Assignment())
    assert codec.encode(answer, 1).endswith(b"\1" + b"\1" + b"\0" + b"\0")
    group = describe.DescribedGroup(members=[describe.Member()])
    described = codec.encode(describe.ConsumerGroupDescribeResponse(groups=[group]), 1)
    assert described.endswith(b"\1\0" + b"\1\0" + b"\xff" + b"\0" + b"\x80\0\0\0" + b"\0" + b"\0")
    assert codec.encode(schemas.ConsumerGroupTargetAssignmentMemberValue(), 0) == b"\1\0"
    assert codec.encode(schemas.ConsumerGroupTargetAssignmentMetadataValue(), 0) == bytes(5)


@pytest.mark.parametrize(("name", "tagged"), [("", b"\0"), ("x", b"\1\0\2\2x")])
def test_an_attachment_on_the_wire(name, tagged):
    """K848-077."""
    given = heartbeat.Assignment(
        attachment=heartbeat.Attachment(
            error=3, metadata_version=2, metadata_bytes=b"m", assignor_name=name
        )
    )
    answer = heartbeat.ConsumerGroupHeartbeatResponse(assignment=given)
    inside = b"\1" + b"\3" + b"\0\2" + b"\2m" + tagged
    expected = b"\1" + b"\1" + b"\1\xa0\x9c\1" + len(inside).to_bytes(1) + inside + b"\0"
    assert codec.encode(answer, 1).endswith(expected)
    assert codec.decode(type(answer), 1, codec.encode(answer, 1)) == answer
