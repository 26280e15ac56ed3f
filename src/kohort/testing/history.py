"""What the log of the groups says about one group: who owned what at which epoch, and its commits.

Pure: from decoded records to values.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kohort.client.admin.views import Assignment
from kohort.errors import WireError
from kohort.records import consumer_protocol, schemas
from kohort.terms import TopicId, TopicPartition, uuid_text


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A record of the group's log, decoded; `value` is None for a tombstone.

    `key` and `value` are the classes of `kohort.records.schemas`.
    """

    offset: int
    timestamp_ms: int
    key: Any
    value: Any


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owned what from this moment on: member id -> topic -> partitions.

    `epoch` is the group epoch (KIP-848), or the generation of a classic group. While a rebalance of
    a KIP-848 group is under way, members are at different epochs and there are several moments with
    one epoch.
    """

    epoch: int
    timestamp_ms: int
    owners: Mapping[str, Assignment]

    def __str__(self) -> str:
        owners = ", ".join(
            f"{member}: {assignment_text(owned)}" for member, owned in self.owners.items()
        )
        return f"epoch {self.epoch}: {owners or 'nobody'}"


@dataclass(frozen=True, slots=True)
class Commit:
    """An offset that was committed; `offset` is None where it was deleted."""

    place: TopicPartition
    offset: int | None
    metadata: str
    timestamp_ms: int


def assignment_text(assignment: Assignment | None) -> str:
    """`orders 0 1, payments 2`, or `nothing`."""
    parts = [
        f"{topic} {' '.join(map(str, numbers))}" for topic, numbers in (assignment or {}).items()
    ]
    return ", ".join(parts) or "nothing"


def group_of(key: Any) -> str | None:
    """The group that a record is about; None for a record that nobody here knows."""
    if hasattr(key, "group_id"):
        return str(key.group_id)
    return str(key.group) if hasattr(key, "group") else None


def ownerships(records: Iterable[GroupRecord], names: Mapping[TopicId, str]) -> Iterator[Ownership]:
    """Each change of owners or epoch. `names` has the topics; others go by the text of their id."""
    epoch = 0
    owners: dict[str, Assignment] = {}
    last = Ownership(0, 0, {})
    for record in records:
        match record.key, record.value:
            case schemas.ConsumerGroupMetadataKey(), value:
                epoch = epoch if value is None else value.epoch
                continue
            case schemas.ConsumerGroupCurrentMemberAssignmentKey(member_id=member), None:
                owners.pop(member, None)
            case schemas.ConsumerGroupCurrentMemberAssignmentKey(member_id=member), value:
                owners[member] = _owned(value.assigned_partitions, names)
            case schemas.GroupMetadataKey(), None:
                owners = {}
            case schemas.GroupMetadataKey(), value:
                epoch = value.generation
                owners = {one.member_id: _classic(one.assignment) for one in value.members}
            case _:
                continue
        now = Ownership(epoch, record.timestamp_ms, dict(sorted(owners.items())))
        if now.owners != last.owners or (now.owners and now.epoch != last.epoch):
            yield now
            last = now


def commits(records: Iterable[GroupRecord]) -> Iterator[Commit]:
    """Each committed offset, in order."""
    for record in records:
        if isinstance(record.key, schemas.OffsetCommitKey):
            place = TopicPartition(record.key.topic, record.key.partition)
            value = record.value
            if value is None:
                yield Commit(place, None, "", record.timestamp_ms)
            else:
                yield Commit(place, value.offset, value.metadata, record.timestamp_ms)


def _owned(
    partitions: Iterable[schemas.TopicPartitions], names: Mapping[TopicId, str]
) -> Assignment:
    named = {
        names.get(TopicId(one.topic_id)) or uuid_text(one.topic_id): tuple(sorted(one.partitions))
        for one in partitions
    }
    return dict(sorted(named.items()))


def _classic(data: bytes) -> Assignment:
    if not data:
        return {}
    try:
        assigned = consumer_protocol.decode_assignment(data).assigned_partitions
    except WireError:
        return {}
    return dict(sorted((one.topic, tuple(sorted(one.partitions))) for one in assigned))
