"""The records that begin and end a classic group; what comes between is `ClassicGroup.outcome`."""

from kohort.records.codec import Record
from kohort.records.schemas import GroupMetadataKey, GroupMetadataValue
from kohort.terms import GroupId, Millis


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
