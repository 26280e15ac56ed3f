# SPDX-License-Identifier: Apache-2.0
"""Records of share groups (KIP-932) and streams groups (KIP-1071), as far as they tell a state.

Other brokers write them, and only they know all of them. Here the beginning of a value is read,
where its epochs are.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from kohort.errors import WireError
from kohort.records.schemas import ConsumerGroupMemberMetadataKey, ConsumerGroupMetadataKey
from kohort.terms import GroupId, GroupType
from kohort.wire import codec
from kohort.wire.schema import Int8, Int32, Int64, at, record


class RecordPart(Enum):
    """What a record is about. GROUP makes and ends a group."""

    GROUP = "group"
    MEMBER = "member"
    TARGET = "target"
    CURRENT = "current"
    TOPOLOGY = "topology"


@record(flexible="0+")
class ShareOrStreamsGroupValue:
    """The tag is of streams groups: the topology that was found to have all of its topics."""

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Int32 = at(tag=0, default=-1)


@record()
class ShareOrStreamsMemberValue:
    """That a member is there is enough."""


@record()
class ShareOrStreamsTargetValue:
    assignment_epoch: Int32


@record()
class ShareOrStreamsCurrentValue:
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8


@record()
class ShareOrStreamsTopologyValue:
    epoch: Int32


class ShareOrStreamsRecord(NamedTuple):
    """`value` is None for a tombstone; `readable` says whether its layout is known."""

    type: GroupType
    group_id: GroupId
    member_id: str
    part: RecordPart
    value: Any
    readable: bool = True


_VALUES: Mapping[RecordPart, type[Any]] = {
    RecordPart.GROUP: ShareOrStreamsGroupValue,
    RecordPart.MEMBER: ShareOrStreamsMemberValue,
    RecordPart.TARGET: ShareOrStreamsTargetValue,
    RecordPart.CURRENT: ShareOrStreamsCurrentValue,
    RecordPart.TOPOLOGY: ShareOrStreamsTopologyValue,
}
_TYPES: Mapping[int, tuple[GroupType, RecordPart]] = {
    10: (GroupType.SHARE, RecordPart.MEMBER),
    11: (GroupType.SHARE, RecordPart.GROUP),
    12: (GroupType.SHARE, RecordPart.TARGET),
    14: (GroupType.SHARE, RecordPart.CURRENT),
    17: (GroupType.STREAMS, RecordPart.GROUP),
    19: (GroupType.STREAMS, RecordPart.MEMBER),
    20: (GroupType.STREAMS, RecordPart.TARGET),
    22: (GroupType.STREAMS, RecordPart.CURRENT),
    23: (GroupType.STREAMS, RecordPart.TOPOLOGY),
}
_OF_MEMBERS = (RecordPart.MEMBER, RecordPart.CURRENT)


def share_or_streams_record_or_none(key: bytes, value: bytes | None) -> ShareOrStreamsRecord | None:
    """What a record says about a share or streams group; None for every other type, and for those
    that say nothing about its state. Raises WireError for a key that names no group.
    """
    known = _TYPES.get(int.from_bytes(key[:2]))
    if known is None:
        return None
    kind, part = known
    member_id = ""
    if part in _OF_MEMBERS:
        of_member = codec.decode(ConsumerGroupMemberMetadataKey, 0, key, 2)
        group_id, member_id = GroupId(of_member.group_id), of_member.member_id
    else:
        group_id = GroupId(codec.decode(ConsumerGroupMetadataKey, 0, key, 2).group_id)
    if value is None:
        return ShareOrStreamsRecord(kind, group_id, member_id, part, None)
    told = _read_or_none(_VALUES[part], value)
    if told is None:
        return ShareOrStreamsRecord(kind, group_id, member_id, part, value, readable=False)
    return ShareOrStreamsRecord(kind, group_id, member_id, part, told)


def _read_or_none(cls: type[Any], value: bytes) -> Any:
    if value[:2] != b"\0\0":  # a version that is not known
        return None
    try:
        return codec.decode_from(cls, 0, value, 2)[0]
    except WireError:
        return None
