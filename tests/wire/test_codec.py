# SPDX-License-Identifier: Apache-2.0
"""Round trips of every message in every version, and what hostile bytes may not do."""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.golden import all_frames
from tests.wire.strategies import messages

from kohort.errors import UnsupportedVersionError, WireError
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.frames import decode_request_header
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.offset_commit import OffsetCommitRequest
from kohort.wire.schema import fields_of

pytestmark = pytest.mark.usefixtures("each_codec")


def _versions(cls):
    return range(cls.versions.first, cls.versions.last + 1)


def _has(field, version):
    return version in field.versions and version not in field.tagged


# Each case of a property is a link of a chain of settings that Hypothesis goes through, so a test
# has a few hundred cases at most: the versions of a message are one case.
MESSAGES = [cls for api in APIS.values() for cls in (api.request, api.response)]
VERSIONED = [(cls, version) for cls in MESSAGES for version in _versions(cls)]


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda one: one.__name__)
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_message_survives_its_own_bytes(cls, data):
    """decode(encode(m)) is m, and takes exactly what encode gave."""
    for version in _versions(cls):
        message = data.draw(messages(cls, version))

        encoded = codec.encode(message, version)
        decoded, end = codec.decode_from(cls, version, encoded, 0)

        assert decoded == message, version
        assert end == len(encoded), version


ARRAYS = [
    (api.response, field)
    for api in APIS.values()
    for field in fields_of(api.response)
    if field.array and any(_has(field, version) for version in _versions(api.response))
]


@pytest.mark.parametrize(
    ("cls", "field"), ARRAYS, ids=lambda one: getattr(one, "__name__", None) or one.name
)
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_pieces_of_a_message_are_its_bytes(cls, field, data):
    for version in _versions(cls):
        if _has(field, version):
            _compare_pieces(cls, version, field.name, data)


def _compare_pieces(cls, version, array, data):
    message = data.draw(messages(cls, version).filter(lambda one: getattr(one, array) is not None))
    whole = codec.encode(message, version)
    encoder = codec.piecewise_encoder(cls, version, array)
    elements = getattr(message, array)
    pieces = []
    for part in (elements[:1], elements[1:]):
        setattr(message, array, part)
        pieces.append(encoder.elements(message))
    setattr(message, array, [])
    before, behind = encoder.around(message, len(elements))
    assert before + b"".join(pieces) + behind == whole


def shortest_frames() -> list[dict]:
    """One golden request and answer per API and version: the shortest, since each
    byte is cut once.
    """
    best: dict[tuple[int, int], dict] = {}
    for frame in all_frames():
        key = (frame["api_key"], frame["version"])
        if (
            frame["api_key"] in APIS
            and frame["response_hex"]
            and frame["response"].get("ErrorCode") != 35
        ):
            size = len(frame["request_hex"]) + len(frame["response_hex"])
            known = best.get(key)
            if known is None or size < len(known["request_hex"]) + len(known["response_hex"]):
                best[key] = frame
    return list(best.values())


@pytest.mark.parametrize(
    "frame", shortest_frames(), ids=lambda one: f"{one['api']}-{one['version']}"
)
def test_a_message_cut_at_any_byte_is_refused(frame):
    """Never half a message, never another exception."""
    api, version = APIS[frame["api_key"]], frame["version"]
    raw = bytes.fromhex(frame["request_hex"])
    _, start = decode_request_header(raw, flexible=api.flexible(version))
    answer = bytes.fromhex(frame["response_hex"])
    behind = 5 if api.flexible(version) and api.name != "ApiVersions" else 4
    for cls, data, first in ((api.request, raw, start), (api.response, answer, behind)):
        for stop in range(first, len(data)):
            with pytest.raises(WireError):
                codec.decode(cls, version, data[:stop], first)


@settings(max_examples=300)
@given(
    st.sampled_from(VERSIONED),
    st.binary(max_size=200) | st.binary(max_size=30).map(lambda head: head + b"\xff" * 40),
)
def test_any_bytes_are_a_message_or_a_wire_error(versioned, data):
    cls, version = versioned
    with contextlib.suppress(WireError):
        codec.decode(cls, version, data)


@settings(max_examples=300)
@given(st.sampled_from(shortest_frames()), st.data())
def test_a_damaged_message_is_a_message_or_a_wire_error(frame, data):
    """Real frames with some bytes changed reach further than random ones."""
    api, version = APIS[frame["api_key"]], frame["version"]
    raw = bytearray.fromhex(frame["request_hex"])
    _, start = decode_request_header(bytes(raw), flexible=api.flexible(version))
    if start == len(raw):
        return
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(start, len(raw) - 1))
        raw[where] = data.draw(st.sampled_from([0, 1, 2, 127, 128, 255]))
    with contextlib.suppress(WireError):
        codec.decode(api.request, version, bytes(raw), start)


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        pytest.param(MetadataRequest, 0, b"\x7f\xff\xff\xff", id="two billion topics"),
        pytest.param(MetadataRequest, 0, b"\xff\xff\xff\xfe", id="minus two topics"),
        pytest.param(MetadataRequest, 0, b"\x00\x00\x00\x01\xff\xff", id="null where none may be"),
        pytest.param(MetadataRequest, 12, b"\xff\xff\xff\xff\x0f\0\0\0", id="four billion topics"),
        pytest.param(ListGroupsRequest, 4, b"\x02\xff\xff\xff\xff\x0fx\0", id="a huge string"),
        pytest.param(
            ListGroupsRequest, 4, b"\x02\xff\xff\xff\xff\xff\x0fx\0", id="six-byte varint"
        ),
        pytest.param(ListGroupsRequest, 4, b"\x01\xff\xff\xff\xff\x0f", id="four billion tags"),
        pytest.param(ListGroupsRequest, 4, b"\x01\x01\x00\xff\xff\xff\xff\x0f", id="a huge tag"),
        pytest.param(ListGroupsRequest, 4, b"\x00\x00", id="null list where none may be"),
    ],
)
def test_wrong_lengths_are_refused(cls, version, data):
    with pytest.raises(WireError):
        codec.decode(cls, version, data)


def test_what_a_version_has_no_room_for_is_left_out():
    """K518-03: the state of a group came with v4."""
    listed = ListedGroup(group_id="g", protocol_type="p", group_state="Stable")
    answer = ListGroupsResponse(groups=[listed])

    v3 = codec.encode(answer, 3)
    assert v3 == bytes(6) + b"\x02\x02g\x02p\x00\x00"
    assert codec.encode(answer, 4) == bytes(6) + b"\x02\x02g\x02p\x07Stable\x00\x00"
    assert codec.decode(ListGroupsResponse, 3, v3).groups[0].group_state == ""


def test_a_tag_of_the_version_before_a_filter_filters_nothing():
    """K518-25."""
    assert codec.decode(ListGroupsRequest, 3, b"\x01\x05\x02ab") == ListGroupsRequest()


def test_unknown_tags_are_skipped():
    """Unsorted and repeated ones too: upstream accepts them."""
    data = b"\x01" + b"\x03" + b"\x09\x02ab" + b"\x05\x00" + b"\x09\x01c"

    assert codec.decode(ListGroupsRequest, 4, data) == ListGroupsRequest()


def test_text_that_is_not_utf8_is_read_with_replacements():
    data = b"\x02\x04a\xffb\x00"

    assert codec.decode(ListGroupsRequest, 4, data).states_filter == ["a\ufffdb"]


def test_a_version_that_does_not_exist_is_refused():
    with pytest.raises(UnsupportedVersionError, match="2-10"):
        codec.encode(OffsetCommitRequest(group_id="g", member_id="", topics=[]), 1)
