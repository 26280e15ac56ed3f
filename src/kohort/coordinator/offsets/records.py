# SPDX-License-Identifier: Apache-2.0
"""Offsets and the log: the record that ends an offset, and the replay of records about offsets."""

from kohort.coordinator.state import State
from kohort.machines.effects import Producer
from kohort.records.codec import Record
from kohort.records.schemas import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kohort.terms import NO_TOPIC_ID, GroupId, Millis


def tombstone(group_id: GroupId, topic: str, partition: int) -> Record:
    """The end of an offset."""
    return Record(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def replay(
    state: State,
    key: OffsetCommitKey | LegacyOffsetCommitKey,
    value: OffsetCommitValue | LegacyOffsetCommitValue | None,
    offset: int,
    producer: Producer | None,
) -> None:
    """Make true what the record at `offset` says. A record of a transaction counts when that ends.

    Offsets without a group make one: tools and standalone consumers begin like this.
    """
    group_id = key.group
    if value is None:
        state.offsets.remove(group_id, key.topic, key.partition)
        return
    if not isinstance(value, OffsetCommitValue):
        value = OffsetCommitValue(
            offset=value.offset,
            metadata=value.metadata,
            commit_timestamp=value.commit_timestamp,
            topic_id=NO_TOPIC_ID,
        )
    if state.groups.get(group_id) is None:
        state.groups.add_for_offsets(group_id, Millis(value.commit_timestamp))
    partition = key.topic, key.partition
    if producer is None:
        state.offsets.put(group_id, partition, value, offset)
    else:
        state.offsets.put_pending(
            group_id, partition, value, producer_id=producer.id, offset=offset
        )
