# SPDX-License-Identifier: Apache-2.0
"""Groups whose members come and go by both protocols, a client by one and then by the other.

Who gets what goes by member ids, and most of those that a broker makes up are drawn by chance. Here
all assign by range, which takes them in the order of texts: ids of a classic group begin with a
name that the client chose. Those of a consumer group are nothing but chance, so a classic member
that joins one brings an id of its own, which Kafka takes. The other way round it is refused, and
asks for one the next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.prove.differential.drawing import ADMIN, LONG_MS, Draw
from tests.prove.differential.steps import (
    ConsumerOf,
    EpochOf,
    GenerationOf,
    MemberOf,
    Memory,
    Name,
    ProtocolOf,
    Ref,
    Step,
    label_of,
)

from kohort.errors import WireError
from kohort.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_subscription,
    encode,
)

ACTORS = ("a", "b", "c", "d")
PARTITIONS = {"t1": 3, "t2": 2, "t3": 1}
GROUP = Name("g1")
CLASSIC, CONSUMER = "classic", "consumer"
ASKS_SINCE = 4  # a join without an id is sent back for one
STATIC_SINCE = 5
NAMED_SINCE = {"SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7}


@dataclass(frozen=True)
class JoiningId(Ref):
    """The id that a classic client joins with: the one it has, or one of its own. After a refusal
    none, as a client does, where that only asks for one.
    """

    actor: str
    asks: bool = True

    def on(self, memory: Memory) -> str:
        membership = memory.of(self.actor)
        if membership.unknown and self.asks:
            return ""
        return membership.member_id or f"m-{self.actor}"


@dataclass(frozen=True)
class Consumes(Ref):
    """What a classic consumer says: the topics it reads, and partitions that it goes on reading.

    `how` is `all` for a cooperative client, `none` for an eager one, `first` for one that has given
    up the others.
    """

    actor: str
    topics: tuple[str, ...]
    version: int
    how: str = "all"

    def on(self, memory: Memory) -> bytes:
        membership = memory.of(self.actor)
        keep = {"all": None, "none": 0, "first": 1}[self.how]
        owned = [
            TopicPartition(topic=name, partitions=indices[:keep])
            for name, indices in sorted(membership.read.items())
            if indices[:keep]
        ]
        said = ConsumerProtocolSubscription(
            topics=[memory.prefix + one for one in self.topics],
            owned_partitions=owned if self.version else [],
            generation_id=membership.generation if self.version > 1 else -1,
        )
        return encode(said, self.version)


@dataclass(frozen=True)
class SharedOut(Ref):
    """What the leader of a classic group hands out: real partitions, and followers nothing.

    `how` is `fair`, or a fault of the leader: `twice` (everybody gets everything), `some` (half of
    it), `user data`, `junk`, `nothing` (empty bytes).
    """

    actor: str
    how: str = "fair"

    def on(self, memory: Memory) -> list[dict[str, Any]]:
        membership = memory.of(self.actor)
        if not membership.leads:
            return []
        says = dict(zip(membership.members, membership.says, strict=True))
        names = sorted(membership.members, key=lambda one: label_of(memory, one))
        places = [(name, index) for name, count in PARTITIONS.items() for index in range(count)]
        handed = []
        for at, one in enumerate(names):
            reads = _topics(says[one])
            mine = [
                place
                for number, place in enumerate(places)
                if memory.prefix + place[0] in reads
                and (self.how == "twice" or number % len(names) == at)
            ]
            handed.append({"member_id": one, "assignment": self._bytes(memory, mine)})
        return handed

    def _bytes(self, memory: Memory, places: Sequence[tuple[str, int]]) -> bytes:
        if self.how in ("junk", "nothing"):
            return b"\0\1\0\0\0\x09junk" if self.how == "junk" else b""
        if self.how == "some":
            places = places[: len(places) // 2]
        topics = [
            TopicPartition(
                topic=memory.prefix + name,
                partitions=[index for known, index in places if known == name],
            )
            for name in dict.fromkeys(name for name, _ in places)
        ]
        user_data = b"mine" if self.how == "user data" else None
        given = ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data)
        return encode(given, 1)


def _topics(subscription: bytes) -> list[str]:
    try:
        return list(decode_subscription(subscription).topics)
    except WireError:
        return []


class DrawMigrations(Draw):
    """One request of a member of either kind. What each client is by now is kept while drawing, so
    that most requests fit.
    """

    def __init__(self, seed: str, *, odd: float = 0.12) -> None:
        super().__init__(seed, odd=odd * 0.7)
        self.assignor = self.one(None, None, "range")
        self.alike = None if self.chance(0.4) else self.topics()
        self.starts = 0
        self.kinds = dict.fromkeys(ACTORS, CLASSIC)
        self.static = {one for one in ACTORS if self.chance(0.25)}
        eager, cooperative = ["range"], ["cooperative-sticky", "range"]
        shared = self.one(eager, eager, cooperative, ["range", "roundrobin"], ["roundrobin"])
        self.offered = {one: self.but(shared, eager, cooperative) for one in ACTORS}
        self.cooperates = {one: "cooperative-sticky" in self.offered[one] for one in ACTORS}

    def actor(self, kind: str = "") -> str:
        """A client, where one is to be had of this kind."""
        known = [one for one in ACTORS if not kind or self.kinds[one] == kind]
        return self.one(*(known or ACTORS))

    def instance(self, actor: str, version: int, since: int) -> dict[str, Any]:
        if version < since:
            return {}
        mine = f"i-{actor}" if actor in self.static else None
        return {
            "group_instance_id": self.but(mine, None, f"i-{self.one(*ACTORS)}", odd=self.odd / 3)
        }

    # --- the classic protocol

    def classic_join(self, actor: str, **more: Any) -> Step:
        self.kinds[actor] = CLASSIC
        version = max(self.version("JoinGroup"), self.but(ASKS_SINCE, 0))
        if actor in self.static and not self.chance(0.15):
            version = max(version, STATIC_SINCE)
        chosen = list(self.alike or self.topics())
        owns = self.one("all", "all", "none", "first") if self.cooperates[actor] else "none"
        said = Consumes(actor, tuple(chosen), self.one(0, 1, 1, 2, 3), owns)
        metadata = self.but(said, b"", b"\xff", b"\0\1\0", odd=self.odd / 4)
        names = self.but(self.offered[actor], ["x"], [], ["range", "x"], odd=self.odd / 2)
        asks = version >= ASKS_SINCE
        others = ("",) if asks else ()
        member = self.but(JoiningId(actor, asks), MemberOf(self.one(*ACTORS)), "nobody", *others)
        if actor in self.static and version >= STATIC_SINCE and self.chance(0.4):
            member = ""  # it has started again
        return self.step(
            actor,
            "JoinGroup",
            version,
            group_id=GROUP,
            session_timeout_ms=self.but(LONG_MS, 0, 5999, odd=self.odd / 6),
            rebalance_timeout_ms=LONG_MS,
            member_id=member,
            protocol_type=self.but("consumer", "connect", "", odd=self.odd / 4),
            protocols=[{"name": name, "metadata": metadata} for name in names],
            **{"reason": "because"} if version >= 8 and self.chance(0.2) else {},
            **self.instance(actor, version, STATIC_SINCE),
            **more,
        )

    def classic_sync(self, actor: str) -> Step:
        version = self.version("SyncGroup")
        how = self.but("fair", "twice", "some", "user data", "junk", "nothing", odd=self.odd)
        return self.step(
            actor,
            "SyncGroup",
            version,
            group_id=GROUP,
            generation_id=self.generation(actor),
            member_id=self.member(actor),
            protocol_type=self.but("consumer", None, "connect", odd=self.odd / 3),
            protocol_name=self.but(ProtocolOf(actor), None, "range", odd=self.odd / 3),
            assignments=SharedOut(actor, how),
            **self.instance(actor, version, NAMED_SINCE["SyncGroup"]),
        )

    def classic_beat(self, actor: str) -> Step:
        version = self.version("Heartbeat")
        return self.step(
            actor,
            "Heartbeat",
            version,
            group_id=GROUP,
            generation_id=self.generation(actor),
            member_id=self.member(actor),
            **self.instance(actor, version, NAMED_SINCE["Heartbeat"]),
        )

    def classic_leave(self, actor: str) -> Step:
        """By its id, or an administrator takes it out by its instance; of either kind."""
        leaving = []
        for one in (actor, *(self.one(*ACTORS) for _ in range(self.but(0, 1, 2)))):
            instance = f"i-{one}" if one in self.static else None
            entry = {"member_id": self.member(one), "group_instance_id": instance}
            if instance and self.chance(0.4):
                entry["member_id"] = ""
            leaving.append(entry)
        version = self.version("LeaveGroup")
        return self.step(
            self.but(actor, ADMIN),
            "LeaveGroup",
            max(version, 3) if len(leaving) > 1 or actor in self.static else version,
            group_id=GROUP,
            member_id=leaving[0]["member_id"],
            members=leaving,
        )

    def follows(self, actor: str) -> list[Step]:
        """What a classic client does that is told to join again."""
        steps = [self.classic_beat(actor)] if self.chance(0.6) else []
        return [*steps, self.classic_join(actor), self.classic_sync(actor)]

    def gathers(self) -> list[Step]:
        """The classic members join and sync, one after the other."""
        members = [one for one in ACTORS if self.kinds[one] == CLASSIC][: self.one(1, 2, 2, 3)]
        joins = [self.classic_join(one) for one in members]
        return joins + [self.classic_sync(one) for one in members]

    # --- the consumer protocol

    def consumer_of(self, actor: str) -> Any:
        """Under the id that it has, or a new one."""
        return self.one(ConsumerOf(actor), ConsumerOf(actor), f"m-{actor}")

    def new_consumer(self, actor: str) -> Step:
        was, self.kinds[actor] = self.kinds[actor], CONSUMER
        joined = self.consumer_join(actor, GROUP)
        fields = {**joined.fields, "group_id": GROUP, "member_id": self.consumer_of(actor)}
        if actor in self.static:
            fields["instance_id"] = f"i-{actor}"
            if was == CONSUMER or self.chance(0.6):  # Kafka locks out one that has its old id
                self.starts += 1
                fields["member_id"] = f"m-{actor}{self.starts}"
        return self.step(actor, joined.api, joined.version, **fields)

    def named(self, step: Step) -> Step:
        """The heartbeat of a static member names its instance."""
        if step.actor not in self.static or self.chance(self.odd / 2):
            return step
        fields = {**step.fields, "instance_id": f"i-{step.actor}"}
        return self.step(step.actor, step.api, step.version, **fields)

    def stays(self) -> Step:
        actor = self.actor(CONSUMER)
        if self.chance(0.7):
            return self.named(self.consumer_ack(actor, GROUP))
        return self.named(self.consumer_beat(actor, GROUP))

    def goes(self) -> Step:
        actor = self.actor(CONSUMER)
        left = self.named(self.consumer_leave(actor, GROUP))
        if actor in self.static and self.chance(0.4):
            return self.step(actor, left.api, left.version, **left.fields | {"member_epoch": -2})
        return left

    # --- both

    def rolls(self) -> list[Step]:
        """A client is restarted with the other protocol."""
        actor = self.actor()
        steps: list[Step] = []
        if self.kinds[actor] == CLASSIC:
            if actor not in self.static:
                steps += [self.classic_leave(actor)] if self.chance(0.8) else []
            return [*steps, self.new_consumer(actor), self.named(self.consumer_ack(actor, GROUP))]
        if actor not in self.static or self.chance(0.5):
            epoch = -2 if actor in self.static else -1
            left = self.named(self.consumer_leave(actor, GROUP))
            steps.append(
                self.step(actor, left.api, left.version, **left.fields | {"member_epoch": epoch})
            )
        return [*steps, self.classic_join(actor), self.classic_sync(actor)]

    def settles(self) -> list[Step]:
        """Everybody takes part once, as it should."""
        steps: list[Step] = []
        for one in ACTORS:
            if self.kinds[one] == CONSUMER:
                steps.append(self.named(self.consumer_ack(one, GROUP)))
            else:
                steps += self.follows(one)
        return steps

    def commits(self) -> Step:
        actor = self.actor()
        at = EpochOf(actor) if self.kinds[actor] == CONSUMER else GenerationOf(actor)
        made = self.commit(actor, GROUP, self.but(at, self.generation(actor), self.epoch(actor)))
        named = self.instance(actor, made.version, NAMED_SINCE["OffsetCommit"])
        return self.step(actor, made.api, made.version, **made.fields | named)
