"""What the log is told about a classic group: the outcome of each rebalance, and nothing in
between.
"""

from collections.abc import Mapping

from kohort.coordinator.classic.group import ClassicGroup
from kohort.records.codec import Record
from kohort.records.schemas import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kohort.terms import GroupId, MemberId, Millis


def outcome_record(
    group: ClassicGroup, assignments: Mapping[MemberId, bytes], now: Millis
) -> Record:
    """The outcome of a rebalance as the log is to know it: who is in the group, and who has
    what.
    """
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=now,
        members=[
            MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client.id,
                client_host=member.client.host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=group.metadata_of(member),
                assignment=assignments.get(member.id, b""),
            )
            for member in group.members.values()
        ],
    )
    return Record(GroupMetadataKey(group=group.id), value)


def creation_record(group_id: GroupId, now: Millis) -> Record:
    """A group that exists and that nobody has joined yet."""
    return Record(
        GroupMetadataKey(group=group_id),
        GroupMetadataValue(
            protocol_type="",
            generation=0,
            protocol=None,
            leader=None,
            current_state_timestamp=now,
            members=[],
        ),
    )


def tombstone(group_id: GroupId) -> Record:
    """The end of a classic group, or of one that only holds offsets."""
    return Record(GroupMetadataKey(group=group_id), None)
