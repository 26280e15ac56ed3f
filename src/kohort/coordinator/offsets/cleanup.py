# SPDX-License-Identifier: Apache-2.0
"""Offsets that a topic leaves behind when it is deleted, or made anew.

There may be very many of them, so they are ended a slice at a time, and calls are answered between
two slices. Each slice looks at the state of that moment: an offset that was committed meanwhile,
for the next topic of that name, stays.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from kohort.coordinator.offsets.records import tombstone
from kohort.coordinator.offsets.store import NamedPartition
from kohort.coordinator.state import State
from kohort.machines.effects import Effects
from kohort.records.codec import Record
from kohort.terms import GroupId, Millis, TopicId

SLICE_RECORDS = 2000
SLICE_TOPICS = 50_000  # of groups, looked at
_COST_OF_A_GROUP = 20  # as many of its topics could be looked at in its time


def of_deleted_topics(
    state: State, deleted: Mapping[str, TopicId], at: Millis
) -> Iterator[Effects]:
    """End the offsets for topics that were deleted at `at`; `deleted` has the ids by name."""
    return _in_slices(state, lambda group_id: state.offsets.of_topics(group_id, deleted, at))


def of_former_topics(state: State, names: Iterable[str]) -> Iterator[Effects]:
    """End the offsets that were committed for former topics of these names.

    An offset names its topic's id. If the topic now has another id, it was deleted and made anew
    while no broker was running to write the tombstones. Offsets whose topic name does not exist
    here are kept: the directory may hold only part of a cluster.
    """
    by_name = state.topics.by_name
    ids = {name: by_name[name].id for name in names if name in by_name}
    if not ids:
        return iter(())
    return _in_slices(state, lambda group_id: state.offsets.of_other_ids(group_id, ids))


def _in_slices(
    state: State, partitions_of: Callable[[GroupId], Iterable[NamedPartition]]
) -> Iterator[Effects]:
    """A group is never split: nothing else happens until all its records are written."""
    records: list[Record] = []
    looked_at = 0
    for group_id in state.offsets.group_ids():
        records += [tombstone(group_id, *partition) for partition in partitions_of(group_id)]
        looked_at += _COST_OF_A_GROUP + len(state.offsets.of(group_id))
        if len(records) >= SLICE_RECORDS or looked_at >= SLICE_TOPICS:
            yield Effects(records)
            records, looked_at = [], 0
    if records:
        yield Effects(records)
