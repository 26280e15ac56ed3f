# SPDX-License-Identifier: Apache-2.0
"""What the leader of a classic group does: it reads what every member wants, and gives to each.

A protocol is an assignor under the name that clients know. With an eager one every member gives up
all that it has before it joins. With a cooperative one members keep what they have. There a
partition that moves is given to nobody at first, its owner gives it up and joins again, and the
next generation has it at its new owner (KIP-429).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kohort.assignors import ASSIGNORS, Assign, Assignment, Subscription
from kohort.client.members import round_robin
from kohort.errors import WireError
from kohort.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode,
)
from kohort.records.consumer_protocol import TopicPartition as PartitionsOfTopic
from kohort.terms import MemberId, PartitionIndex, TopicId, TopicPartition, by_topic
from kohort.wire.messages.join_group import JoinGroupResponseMember


class ClientProtocol(NamedTuple):
    """An assignor that runs in the leader. `cooperative` members keep what they have meanwhile."""

    assign: Assign
    cooperative: bool


PROTOCOLS = {
    "range": ClientProtocol(ASSIGNORS["range"], cooperative=False),
    "roundrobin": ClientProtocol(round_robin.assign, cooperative=False),
    "cooperative-sticky": ClientProtocol(ASSIGNORS["uniform"], cooperative=True),
}

Owners = dict[TopicPartition, MemberId]
_UNREADABLE = ConsumerProtocolSubscription(topics=[], owned_partitions=[])


def subscriptions(
    members: Iterable[JoinGroupResponseMember],
) -> dict[MemberId, ConsumerProtocolSubscription]:
    """What each member says that it wants and has; one whose bytes say nothing wants nothing."""
    return {MemberId(member.member_id): _read(member.metadata) for member in members}


def topics_of(wanted: Mapping[MemberId, ConsumerProtocolSubscription]) -> tuple[str, ...]:
    """The names that anybody wants, ascending: the leader must know their partitions."""
    return tuple(sorted({name for subscription in wanted.values() for name in subscription.topics}))


def assign(
    protocol: ClientProtocol,
    wanted: Mapping[MemberId, ConsumerProtocolSubscription],
    partitions: Mapping[str, int],
) -> dict[MemberId, frozenset[TopicPartition]]:
    """What each member gets. `partitions` has how many each topic has; others get no owner.

    Raises AssignorError.
    """
    names = [name for name in topics_of(wanted) if partitions.get(name)]
    ids = {name: TopicId(number.to_bytes(16)) for number, name in enumerate(names)}
    owners = _owners(wanted, partitions) if protocol.cooperative else {}
    plan = protocol.assign(
        {
            member: Subscription(
                topics=tuple(ids[name] for name in sorted(set(partitions.topics)) if name in ids),
                previous=_previous(member, owners, ids),
                alike=len({frozenset(each.topics) for each in wanted.values()}) == 1,
            )
            for member, partitions in wanted.items()
        },
        {ids[name]: partitions[name] for name in names},
    )
    by_id = dict(zip(ids.values(), names, strict=True))
    given = {
        member: frozenset(
            TopicPartition(by_id[topic], index)
            for topic, indexes in mine.items()
            for index in indexes
        )
        for member, mine in plan.items()
    }
    return _without_moves(given, wanted, owners) if protocol.cooperative else given


def assignment_of(partitions: Iterable[TopicPartition]) -> bytes:
    """An assignment as SyncGroup carries it."""
    return encode(ConsumerProtocolAssignment(assigned_partitions=partitions_by_topic(partitions)))


def read_assignment(data: bytes) -> frozenset[TopicPartition]:
    """What SyncGroup gives. No bytes give nothing. Raises WireError for what cannot be read."""
    if not data:
        return frozenset()
    return frozenset(
        TopicPartition(topic.topic, index)
        for topic in decode_assignment(data).assigned_partitions
        for index in topic.partitions
        if index >= 0
    )


def partitions_by_topic(partitions: Iterable[TopicPartition]) -> list[PartitionsOfTopic]:
    """Partitions as messages name them."""
    return [
        PartitionsOfTopic(topic=topic, partitions=indexes)
        for topic, indexes in by_topic(sorted(partitions)).items()
    ]


def _read(metadata: bytes) -> ConsumerProtocolSubscription:
    try:
        return decode_subscription(metadata)
    except WireError:
        return _UNREADABLE


def _claims(said: ConsumerProtocolSubscription) -> list[TopicPartition]:
    return [
        TopicPartition(topic.topic, PartitionIndex(index))
        for topic in said.owned_partitions
        for index in topic.partitions
    ]


def _owners(
    wanted: Mapping[MemberId, ConsumerProtocolSubscription], partitions: Mapping[str, int]
) -> Owners:
    """Who had which partition last: of several that say so, the one of the newest generation."""
    owners: Owners = {}
    generations: dict[TopicPartition, int] = {}
    for member, said in wanted.items():
        for place in _claims(said):
            if not 0 <= place.partition < partitions.get(place.topic, 0):
                continue
            if place not in owners or said.generation_id > generations[place]:
                owners[place] = member
                generations[place] = said.generation_id
    return owners


def _previous(member: MemberId, owners: Owners, ids: Mapping[str, TopicId]) -> Assignment:
    mine: dict[TopicId, list[int]] = {}
    for place in sorted(owners):
        if owners[place] == member and place.topic in ids:
            mine.setdefault(ids[place.topic], []).append(place.partition)
    return {topic: tuple(indices) for topic, indices in mine.items()}


def _without_moves(
    given: Mapping[MemberId, frozenset[TopicPartition]],
    wanted: Mapping[MemberId, ConsumerProtocolSubscription],
    owners: Owners,
) -> dict[MemberId, frozenset[TopicPartition]]:
    """Keep back what somebody else still has.

    A claim of an old generation counts as well: who makes it has not heard yet that it is to give
    the partition up.
    """
    claimed = {member: set(_claims(said)) for member, said in wanted.items()}
    by_anybody = set().union(*claimed.values())
    return {
        member: frozenset(
            place for place in mine if place not in by_anybody or owners.get(place) == member
        )
        for member, mine in given.items()
    }
