# SPDX-License-Identifier: Apache-2.0
"""What the log of the groups says about one group: who owned what at which epoch, and its commits.

Pure: from decoded records to values.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kohort.client.admin.group_views import Assignment
from kohort.errors import WireError
from kohort.records import consumer_protocol, schemas
from kohort.records.causes import Because, causes_in
from kohort.terms import TopicId, TopicPartition, uuid_text

_OF_A_MEMBER = (
    schemas.ConsumerGroupMemberMetadataKey,
    schemas.ConsumerGroupTargetAssignmentMemberKey,
    schemas.ConsumerGroupCurrentMemberAssignmentKey,
    schemas.ConsumerGroupRegularExpressionKey,
)


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A record of the group's log, decoded; `value` is None for a tombstone.

    `key` and `value` are the classes of `kohort.records.schemas`.
    """

    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def causes(self) -> tuple[Because, ...]:
        """Why it was written, where Kohort's own broker wrote it: others write no headers here."""
        return tuple(causes_in(self.headers))


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owned what from this moment on: member id -> topic -> partitions.

    `epoch` is the group epoch (KIP-848), or the generation of a classic group. While a rebalance of
    a KIP-848 group is under way, members are at different epochs and there are several moments with
    one epoch. `causes` says why the epoch began, as far as the broker has written it down.
    """

    epoch: int
    timestamp_ms: int
    owners: Mapping[str, Assignment]
    causes: tuple[Because, ...] = ()

    def __str__(self) -> str:
        owners = ", ".join(
            f"{member}: {assignment_text(owned)}" for member, owned in self.owners.items()
        )
        why = ", ".join(
            cause.cause if cause.member_id is None else f"{cause.cause}: {cause.member_id}"
            for cause in self.causes
        )
        return f"epoch {self.epoch}{why and f' ({why})'}: {owners or 'nobody'}"


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
    causes: tuple[Because, ...] = ()
    owners: dict[str, Assignment] = {}
    last = Ownership(0, 0, {})
    for record in _epochs_first(records):
        match record.key, record.value:
            case schemas.ConsumerGroupMetadataKey(), None:
                continue
            case schemas.ConsumerGroupMetadataKey(), value:
                epoch, causes = value.epoch, record.causes
                continue
            case schemas.ConsumerGroupCurrentMemberAssignmentKey(member_id=member), None:
                owners.pop(member, None)
            case schemas.ConsumerGroupCurrentMemberAssignmentKey(member_id=member), value:
                owners[member] = _owned(value.assigned_partitions, names)
            case schemas.GroupMetadataKey(), None:
                owners = {}
            case schemas.GroupMetadataKey(), value:
                epoch, causes = value.generation, record.causes
                owners = {member.member_id: _classic(member.assignment) for member in value.members}
            case _:
                continue
        now = Ownership(epoch, record.timestamp_ms, dict(sorted(owners.items())), causes)
        if now.owners != last.owners or (now.owners and now.epoch != last.epoch):
            yield now
            last = now


def _epochs_first(records: Iterable[GroupRecord]) -> Iterator[GroupRecord]:
    """The records, but those that end a member behind the epoch that comes of its departure: in
    the log they stand before it.
    """
    gone: list[GroupRecord] = []
    for record in records:
        if record.value is None and isinstance(record.key, _OF_A_MEMBER):
            gone.append(record)
            continue
        if isinstance(record.key, schemas.ConsumerGroupMetadataKey):
            yield record
            yield from gone
        else:
            yield from gone
            yield record
        gone = []
    yield from gone


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
        names.get(TopicId(topic.topic_id)) or uuid_text(topic.topic_id): tuple(
            sorted(topic.partitions)
        )
        for topic in partitions
    }
    return dict(sorted(named.items()))


def _classic(data: bytes) -> Assignment:
    if not data:
        return {}
    try:
        assigned = consumer_protocol.decode_assignment(data).assigned_partitions
    except WireError:
        return {}
    return dict(sorted((topic.topic, tuple(sorted(topic.partitions))) for topic in assigned))
