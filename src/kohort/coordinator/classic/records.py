# SPDX-License-Identifier: Apache-2.0
"""The records that begin and end a classic group; what comes between is `ClassicGroup.outcome`."""

from kohort.records import codec
from kohort.records.codec import Record
from kohort.records.schemas import GroupMetadataKey, GroupMetadataValue
from kohort.terms import GroupId, Millis
from kohort.wire import batch


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


def size_of(record: Record) -> int:
    """How many bytes a record takes in a batch of its own. Raises WireError where it cannot be
    written at all.
    """
    key, value = codec.encode(record)
    return batch.HEADER_SIZE + batch.RECORD_SIZE + len(key) + len(value or b"")
