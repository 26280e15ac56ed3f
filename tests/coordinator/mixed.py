# SPDX-License-Identifier: Apache-2.0
"""Members of both protocols in one group, each doing as a good client does."""

from collections.abc import Iterable
from typing import Any

from tests.coordinator.classics import heartbeat, join_request, sync_request
from tests.coordinator.consumers import Consumer, Partitions, beat
from tests.coordinator.desk import Asked, Desk

from kohort.errors import ErrorCode
from kohort.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode,
)

REJOIN = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)


def payload(partitions: Partitions) -> list[TopicPartition]:
    return [
        TopicPartition(topic=topic, partitions=list(indices))
        for topic, indices in partitions.items()
    ]


def subscribed(
    *topics: str, owned: Partitions | None = None, version: int = 2, **fields: Any
) -> bytes:
    """The bytes of a subscription."""
    subscription = ConsumerProtocolSubscription(
        topics=list(topics or ("orders",)), owned_partitions=payload(owned or {}), **fields
    )
    return encode(subscription, version)


def assigned(partitions: Partitions, **fields: Any) -> bytes:
    """The bytes of an assignment."""
    return encode(ConsumerProtocolAssignment(payload(partitions), **fields), 1)


def unpacked(data: bytes) -> Partitions:
    """What an assignment gives."""
    if not data:
        return {}
    return {one.topic: list(one.partitions) for one in decode_assignment(data).assigned_partitions}


class Classic:
    """A client of the classic protocol. An eager one gives up all that it has before it joins."""

    def __init__(
        self,
        desk: Desk,
        *protocols: str,
        eager: bool = True,
        version: int = 9,
        topics: Iterable[str] = ("orders",),
        **fields: Any,
    ) -> None:
        self.desk, self.eager, self.version, self.fields = desk, eager, version, fields
        self.protocols = protocols or ("range",)
        self.topics = list(topics)
        self.id = ""
        self.generation = -1
        self.owned: Partitions = {}
        self.protocol: str | None = None
        self.joining: Asked | None = None
        self.syncing: Asked | None = None

    @property
    def instance(self) -> str | None:
        name: str | None = self.fields.get("group_instance_id")
        return name

    def join(self) -> "Classic":
        if self.eager:
            self.owned = {}
        metadata = subscribed(*self.topics, owned=self.owned)
        offered = dict.fromkeys(self.protocols, metadata)
        request = join_request(self.id, protocols=offered, **self.fields)
        self.joining, self.syncing = self.desk.ask(request, self.version), None
        return self.go_on()

    def go_on(self) -> "Classic":
        """Take what has been answered."""
        if self.joining is not None and self.joining.answer is not None:
            self._joined()
        if self.syncing is not None and self.syncing.answer is not None:
            self._synced()
        return self

    def reconnect(self) -> "Classic":
        """The broker was away: what was asked has no answer, and is asked again."""
        if self.joining is not None or self.syncing is not None:
            self.join()
        return self

    def beat(self) -> "Classic":
        """What a client does now and then."""
        if self.joining is not None or self.syncing is not None:
            return self.go_on()
        if self.generation < 0:
            return self.join()
        extra = {} if self.instance is None else {"group_instance_id": self.instance}
        code = heartbeat(self.desk, self.id, self.generation, **extra)
        if code in REJOIN:
            return self.join()
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.id, self.generation, self.owned = "", -1, {}
            return self.join()
        assert code == ErrorCode.NONE, code
        return self

    def _joined(self) -> None:
        assert self.joining is not None
        answer, self.joining = self.joining.answer, None
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            self.join()
            return
        if answer.error_code in REJOIN:
            self.join()
            return
        if answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.id, self.owned = "", {}  # fenced: as an application that is started anew
            self.join()
            return
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        self.id, self.generation = answer.member_id, answer.generation_id
        self.protocol = answer.protocol_name
        gives = {}
        if answer.leader == self.id and not answer.skip_assignment:
            gives = self._assignments({one.member_id: one.metadata for one in answer.members})
        request = sync_request(
            self.id,
            self.generation,
            gives,
            protocol_name=answer.protocol_name,
            group_instance_id=self.instance,
        )
        self.syncing = self.desk.ask(request, 5)
        self.go_on()

    def _synced(self) -> None:
        assert self.syncing is not None
        answer, self.syncing = self.syncing.answer, None
        if answer.error_code in REJOIN:
            self.join()
            return
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        given = unpacked(answer.assignment)
        gives_up = any(set(self.owned.get(one, ())) - set(given.get(one, ())) for one in self.owned)
        self.owned = given
        if gives_up and not self.eager:
            self.join()  # as a cooperative client does, so that others get what it gave up

    def _assignments(self, members: dict[str, bytes]) -> dict[str, bytes]:
        """In turn, as leaders do; a cooperative one takes nothing from whom has it yet."""
        says = {one: decode_subscription(data) for one, data in members.items()}
        holders = {
            (part.topic, index): member
            for member, said in says.items()
            for part in said.owned_partitions
            for index in part.partitions
        }
        wants: dict[str, Partitions] = {one: {} for one in says}
        for name in sorted({topic for said in says.values() for topic in said.topics}):
            readers = sorted(one for one, said in says.items() if name in said.topics)
            for index in range(self.desk.known.by_name[name].partitions):
                member = readers[index % len(readers)]
                if self.eager or holders.get((name, index), member) == member:
                    wants[member].setdefault(name, []).append(index)
        return {one: assigned(partitions) for one, partitions in wants.items()}


def owners(members: Iterable["Classic | Consumer"]) -> dict[tuple[str, int], str]:
    """Who reads what. Nothing is read by two."""
    found: dict[tuple[str, int], str] = {}
    for member in members:
        for topic, indices in member.owned.items():
            for index in indices:
                assert (topic, index) not in found, f"{topic}-{index} is read by two"
                found[topic, index] = member.id
    return found


def go_on(members: Iterable["Classic | Consumer"], rounds: int = 12) -> None:
    """Everybody does what it has to, in turn."""
    members = list(members)
    for _ in range(rounds):
        for member in members:
            member.beat()
            owners(members)


def together(desk: Desk, *members: "Classic | Consumer") -> None:
    """Let members go on until all of a topic is read, each partition by one."""
    go_on(members)
    topic = desk.known.by_name["orders"]
    read = {index for name, index in owners(members) if name == "orders"}
    assert read == set(range(topic.partitions))
    assert desk.shard.groups.get("g").state == "Stable"


def classic_group(desk: Desk, size: int = 2, **fields: Any) -> list[Classic]:
    """A classic group at rest."""
    members = [Classic(desk, **fields) for _ in range(size)]
    for member in members:
        member.join()
    together(desk, *members)
    assert desk.shard.groups.classic("g") is not None
    return members


def mixed_group(desk: Desk, size: int = 2, **fields: Any) -> tuple[list[Classic], Consumer]:
    """A consumer group at rest, of classic members and one of the consumer protocol."""
    members = classic_group(desk, size, **fields)
    consumer = Consumer(desk, "new").join()
    together(desk, *members, consumer)
    assert desk.shard.groups.consumer("g") is not None
    return members, consumer


def leaves(desk: Desk, consumer: Consumer) -> None:
    assert beat(desk, consumer.id, -1).error_code == ErrorCode.NONE
