# SPDX-License-Identifier: Apache-2.0
"""Client-side assignors in a story: what members offer, and what they compute.

An assignor is written `x:1-3@2!7=data`: its name, the versions that it reads, the version of its
metadata, a reason, and the metadata. Only the name must be there. What an assignor attaches to the
partitions of a member is written `/2:data`, with `!7` behind it for an error.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.coordinator.desk import Desk

from kohort.errors import ErrorCode
from kohort.records import schemas
from kohort.wire.messages.consumer_group_heartbeat import ClientAssignor
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
    Member,
    TopicPartition,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)

GROUP = "g"
_OFFER = re.compile(
    r"(?P<name>\w*)(:(?P<low>-?\d+)-(?P<high>\d+|-\d+))?(@(?P<version>-?\d+))?(!(?P<reason>\d+))?"
    r"(=(?P<data>\w+))?"
)
Parsed = Callable[[str], dict[str, list[int]]]
Shown = Callable[[Mapping[Any, Any]], str]


def offered(text: str) -> list[ClientAssignor]:
    """`x:1-3@2!7=data,y` as a heartbeat has it; a dash for none."""
    return [] if text == "-" else [_offer(one) for one in text.split(",")]


def _offer(text: str) -> ClientAssignor:
    match = _OFFER.fullmatch(text)
    assert match is not None, text
    low, high = int(match["low"] or 0), int(match["high"] or 0)
    return ClientAssignor(
        name=match["name"],
        minimum_version=low,
        maximum_version=high,
        reason=int(match["reason"] or 0),
        metadata_version=int(match["version"] or low),
        metadata_bytes=(match["data"] or "").encode(),
    )


def told(offer: schemas.ClientAssignor) -> str:
    """An assignor as a record has it."""
    text = offer.name
    if (offer.minimum_version, offer.maximum_version) != (0, 0):
        text += f":{offer.minimum_version}-{offer.maximum_version}"
    if offer.metadata_version != offer.minimum_version:
        text += f"@{offer.metadata_version}"
    text += f"!{offer.reason}" if offer.reason else ""
    return text + (f"={offer.metadata.decode()}" if offer.metadata else "")


def attached(attachment: Any) -> str:
    """What is attached to partitions, of a record or an answer."""
    if attachment is None:
        return ""
    data = getattr(attachment, "metadata", None)
    data = attachment.metadata_bytes if data is None else data
    if not (attachment.error or attachment.metadata_version or data):
        return ""
    error = f"!{attachment.error}" if attachment.error else ""
    return f" /{attachment.metadata_version}:{data.decode()}{error}"


def computed_by(computation: schemas.Computation | None) -> str:
    """How targets came about, of a record."""
    if computation is None:
        return ""
    if computation.member_id is None:
        return f" by {computation.assignor}, for {computation.why}"
    text = f" by {computation.assignor} of {computation.member_id} in {computation.took_ms} ms"
    text += f", reason {computation.reason}" if computation.reason else ""
    return text + (f", error {computation.error}" if computation.error else "")


def prepare(
    desk: Desk, member_id: str, fields: dict[str, str], names: Mapping[Any, str], shown: Shown
) -> list[str]:
    request = ConsumerGroupPrepareAssignmentRequest(
        group_id=GROUP, member_id=member_id, member_epoch=int(fields["epoch"])
    )
    answer = desk.told(request, 0)
    if answer.error_code:
        return [_refusal(answer)]
    topics = ", ".join(f"{one.topic_name} {one.num_partitions}" for one in answer.topics) or "-"
    by = f"by {answer.assignor_name} in version {answer.metadata_version}"
    lines = [f"> epoch {answer.group_epoch} {by}, topics {topics}"]
    for one in answer.members:
        said = one.assignor
        reads = ",".join(names[topic] for topic in one.subscribed_topic_ids) or "-"
        target = shown({part.topic_id: part.partitions for part in one.topic_partitions})
        extra = f" as {one.instance_id}" if one.instance_id else ""
        extra += f" rack {one.rack_id}" if one.rack_id else ""
        extra += f" reason {said.reason}" if said.reason else ""
        lines.append(
            f"> {one.member_id} epoch {one.member_epoch} reads {reads}{extra}, says "
            f"{said.metadata_version}:{said.metadata_bytes.decode() or '-'}, target {target}"
        )
    return lines


def install(
    desk: Desk,
    member_id: str,
    fields: dict[str, str],
    ids: Mapping[str, bytes],
    parsed: Parsed,
) -> list[str]:
    epoch, of = int(fields.pop("epoch")), int(fields.pop("of"))
    error = int(fields.pop("error", "0"))
    members = []
    for name, text in fields.items():
        partitions, _, attachment = text.partition("/")
        version, _, data = attachment.partition(":")
        members.append(
            Member(
                member_id=name,
                partitions=[
                    TopicPartition(
                        topic_id=ids.get(topic, topic.encode().ljust(16, b"?")), partitions=ones
                    )
                    for topic, ones in parsed(partitions).items()
                ],
                metadata_version=int(version or 0),
                metadata_bytes=data.encode(),
            )
        )
    request = ConsumerGroupInstallAssignmentRequest(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        group_epoch=of,
        error=error,
        members=members,
    )
    answer = desk.told(request, 0)
    return [_refusal(answer) if answer.error_code else "> installed"]


def _refusal(answer: Any) -> str:
    return f"> {ErrorCode(answer.error_code).name}: {answer.error_message}"
