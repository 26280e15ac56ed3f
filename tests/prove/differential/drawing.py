# SPDX-License-Identifier: Apache-2.0
"""What sequences are drawn from: a source of chance, and the requests with their edge values.

Each method of `Draw` is one request of one sender, right more often than wrong: a sequence of
nonsense is refused at the door and never gets anywhere. `odd` says how often something else than
the plain value is taken.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

from tests.prove.differential.steps import (
    API_BY_NAME,
    AssignedBy,
    ConsumerOf,
    EpochOf,
    GenerationOf,
    IdOf,
    MemberOf,
    Name,
    OwnedBy,
    ProtocolOf,
    Ref,
    Step,
)

from kohort.records.consumer_protocol import ConsumerProtocolSubscription, encode

ACTORS = ("a", "b", "c", "d", "e")
TOPICS = ("t1", "t2", "t3")
LONG_MS = 600_000
ADMIN = "admin"
LONG_METADATA = "m" * 4097
DOUBLE_UNITS = "\U0001f600" * 2049  # 4,098 units of UTF-16 in 2,049 characters

One = TypeVar("One")


def subscription(prefix_topics: Sequence[str], version: int) -> bytes:
    return encode(ConsumerProtocolSubscription(topics=list(prefix_topics)), version)


class Subscribed(Ref):
    """The metadata of a consumer that reads these topics."""

    def __init__(self, topics: Sequence[str], version: int) -> None:
        self.topics = tuple(topics)
        self.version = version

    def on(self, memory: Any) -> bytes:
        return subscription([memory.prefix + one for one in self.topics], self.version)

    def __repr__(self) -> str:
        return f"Subscribed({','.join(self.topics)} v{self.version})"


class Draw:
    """Chance, and what it chooses from."""

    def __init__(self, seed: str, *, odd: float = 0.12) -> None:
        self.random = random.Random(seed)
        self.odd = odd
        # One for all members: every change of it ends a sequence, as the brokers differ there.
        self.assignor = self.one(None, None, "range", "uniform")
        # Only range is exact where members read different topics.
        self.alike = None if self.assignor == "range" or self.chance(0.15) else self.topics()

    def one(self, *choices: One) -> One:
        return self.random.choice(choices)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def but(self, usual: One, *others: One, odd: float | None = None) -> One:
        """The usual value, and now and then one of the others."""
        if self.chance(self.odd if odd is None else odd):
            return self.random.choice(others)
        return usual

    def version(self, api: str) -> int:
        versions = API_BY_NAME[api].versions
        if self.chance(0.25):
            return versions.last
        return self.random.randint(versions.first, versions.last)

    def step(self, actor: str, api: str, version: int | None = None, **fields: Any) -> Step:
        return Step(actor, api, self.version(api) if version is None else version, fields)

    # --- names

    def group(self, *mine: str) -> Any:
        return self.but(Name(self.one(*mine)), "", Name("ghost"), Name("g2"), odd=self.odd / 3)

    def stored_group(self, *mine: str) -> Any:
        """A group that a request may make: never the empty one, which all runs would share."""
        return self.but(Name(self.one(*mine)), Name("ghost"), Name("simple"), odd=self.odd / 2)

    def member(self, actor: str) -> Any:
        other = self.one(*ACTORS)
        return self.but(MemberOf(actor), "", "nobody", MemberOf(other))

    def topic(self) -> Any:
        return self.but(Name(self.one(*TOPICS)), Name("t9"), "", "no/topic")

    def partition(self) -> int:
        return self.but(self.one(0, 1, 2), 3, 7, -1, 2**31 - 1)

    def topics(self, few: int = 3) -> list[str]:
        count = self.random.randint(1, few)
        return self.random.sample(TOPICS, count)

    # --- the classic protocol

    def join(self, actor: str, group: Any) -> Step:
        version = self.version("JoinGroup")
        topics = self.topics()
        names = self.but(
            self.one(["range"], ["range", "roundrobin"], ["roundrobin", "range"]),
            *(["sticky"], ["cooperative-sticky", "range"], ["range", "sticky", "roundrobin"]),
            *(["x", "range"], [""], []),
            odd=0.3,
        )
        metadata = self.but(
            Subscribed(topics, self.one(0, 1, 2, 3)), b"", b"\xff", b"\0\0", odd=self.odd / 3
        )
        return self.step(
            actor,
            "JoinGroup",
            version,
            group_id=group,
            session_timeout_ms=self.but(LONG_MS, 0, 5999, 1_800_001, odd=self.odd / 4),
            rebalance_timeout_ms=LONG_MS,
            member_id=self.member(actor),
            protocol_type=self.but("consumer", "connect", "", odd=self.odd / 2),
            protocols=[{"name": name, "metadata": metadata} for name in names],
            reason=self.one(None, "", "because"),
        )

    def sync(self, actor: str, group: Any) -> Step:
        return self.step(
            actor,
            "SyncGroup",
            group_id=group,
            generation_id=self.generation(actor),
            member_id=self.member(actor),
            protocol_type=self.but("consumer", None, "connect", ""),
            protocol_name=self.but(ProtocolOf(actor), None, "other", ""),
            assignments=AssignedBy(actor, self.but("leader", "always", "partly")),
        )

    def generation(self, actor: str) -> Any:
        return self.but(
            GenerationOf(actor),
            *(GenerationOf(actor, plus) for plus in (-2, -1, 1, 2)),
            *(-2, -1, 0, 2**31 - 1),
        )

    def beat(self, actor: str, group: Any) -> Step:
        return self.step(
            actor,
            "Heartbeat",
            group_id=group,
            generation_id=self.generation(actor),
            member_id=self.member(actor),
        )

    def leave(self, actor: str, group: Any) -> Step:
        members = [self.member(actor)]
        while self.chance(0.25):
            members.append(self.member(self.one(actor, *ACTORS)))
        if self.chance(self.odd / 4):
            members = []
        return self.step(
            self.but(actor, ADMIN),
            "LeaveGroup",
            group_id=group,
            member_id=members[0] if members else "",
            members=[{"member_id": one, "reason": self.one(None, "bye")} for one in members],
        )

    # --- the consumer protocol

    def epoch(self, actor: str) -> Any:
        return self.but(
            EpochOf(actor),
            *(EpochOf(actor, plus) for plus in (-2, -1, 1, 2)),
            *(-3, -2, -1, 0, 2**31 - 1),
        )

    def consumer_join(self, actor: str, group: Any) -> Step:
        """Epoch 0, with everything that a first heartbeat needs.

        Who gets what depends on the order of member ids. So who asks the broker for one is alone in
        its group.
        """
        version = self.version("ConsumerGroupHeartbeat")
        generated = self.chance(self.odd / 4)
        return self.step(
            actor,
            "ConsumerGroupHeartbeat",
            version,
            group_id=Name(f"own-{actor}") if generated else group,
            member_id="" if generated else f"m-{actor}",
            member_epoch=0,
            rack_id=self.but(None, "r1", "", odd=self.odd / 3),
            rebalance_timeout_ms=self.but(LONG_MS, -1, odd=self.odd / 3),
            subscribed_topic_names=self.subscribed(),
            server_assignor=self.but(self.assignor, "range", "uniform", "", "best", odd=0.06),
            topic_partitions=self.but([], None, OwnedBy(actor), odd=self.odd / 3),
        )

    def subscribed(self) -> Any:
        """What a member reads, or null: often the same as all others, in any order."""
        chosen = self.topics() if self.alike is None else list(self.alike)
        names: list[Any] = [Name(one) for one in self.random.sample(chosen, len(chosen))]
        if self.chance(self.odd / 2):
            names.append(names[0])
        if self.alike is None and self.chance(self.odd):
            names.append(self.one(Name("t9"), "", Name("t4")))
        return self.but(names, [], None, odd=self.odd / 3)

    def consumer_id(self, actor: str) -> Any:
        return self.but(ConsumerOf(actor), "nobody", ConsumerOf(self.one(*ACTORS)))

    def consumer_beat(self, actor: str, group: Any) -> Step:
        """A member that goes on: it says what it owns, or nothing, or changes its mind."""
        full = self.chance(0.35)
        changes = self.chance(0.12)
        return self.step(
            actor,
            "ConsumerGroupHeartbeat",
            group_id=group,
            member_id=self.consumer_id(actor),
            member_epoch=self.epoch(actor),
            rack_id=self.but(None, "r2", odd=0.03),
            rebalance_timeout_ms=LONG_MS if full else -1,
            subscribed_topic_names=self.subscribed() if full or changes else None,
            server_assignor=self.one(None, None, None, self.assignor, self.but(None, "worst")),
            topic_partitions=self.one(
                *(OwnedBy(actor),) * 5,
                *(OwnedBy(actor, "none"), OwnedBy(actor, "first"), OwnedBy(actor, "less")),
                *(None, None, OwnedBy(actor, "foreign")),
            ),
        )

    def consumer_ack(self, actor: str, group: Any) -> Step:
        """What a well-behaved client sends."""
        return self.step(
            actor,
            "ConsumerGroupHeartbeat",
            group_id=group,
            member_id=ConsumerOf(actor),
            member_epoch=EpochOf(actor),
            topic_partitions=OwnedBy(actor),
        )

    def consumer_leave(self, actor: str, group: Any) -> Step:
        return self.step(
            actor,
            "ConsumerGroupHeartbeat",
            group_id=group,
            member_id=self.consumer_id(actor),
            member_epoch=self.but(-1, -2, -3, odd=self.odd / 2),
        )

    # --- offsets

    def commit(self, actor: str, group: Any, epoch: Any) -> Step:
        version = self.version("OffsetCommit")
        return self.step(
            actor,
            "OffsetCommit",
            version,
            group_id=group,
            generation_id_or_member_epoch=epoch,
            member_id=self.member(actor),
            topics=self._places(self._committed, by_id=version >= 10),
        )

    def commit_from_outside(self, group: Any) -> Step:
        version = self.version("OffsetCommit")
        return self.step(
            ADMIN,
            "OffsetCommit",
            version,
            group_id=group,
            generation_id_or_member_epoch=self.but(-1, -2, 0, 1),
            member_id=self.but("", "nobody"),
            topics=self._places(self._committed, by_id=version >= 10),
        )

    def _committed(self) -> dict[str, Any]:
        return {
            "partition_index": self.partition(),
            "committed_offset": self.but(self.random.randint(0, 99), -1, -2, 2**62),
            "committed_leader_epoch": self.but(-1, 0, 5, -2),
            "committed_metadata": self.but("", None, "note", LONG_METADATA, DOUBLE_UNITS),
        }

    def _places(self, one: Any, *, by_id: bool) -> list[dict[str, Any]]:
        """Topics with partitions; some twice, some that are not there, some without partitions."""
        topics = []
        for _ in range(self.but(self.one(1, 1, 2), 0, 3)):
            name = self.topic()
            count = self.but(self.one(1, 2), 0, 3)
            partitions = [one() for _ in range(count)]
            if partitions and self.chance(self.odd / 2):
                partitions.append(partitions[0])
            if by_id:
                known = self.but(self.one(*TOPICS), "t9", "")
                topics.append({"topic_id": IdOf(known), "partitions": partitions})
            else:
                topics.append({"name": name, "partitions": partitions})
        if topics and self.chance(self.odd / 2):
            topics.append(dict(topics[0], partitions=[one()]))
        return topics

    def fetch_offsets(self, actor: str, *groups: str) -> Step:
        version = self.version("OffsetFetch")
        stable = self.chance(0.3)
        if version < 8:
            topics: Any = self._asked(by_id=False)
            if version >= 2 and self.chance(0.3):
                topics = None
            return self.step(
                actor,
                "OffsetFetch",
                version,
                group_id=self.group(*groups),
                topics=topics,
                require_stable=stable,
            )
        asked = []
        for _ in range(self.but(1, 0, 2, 3)):
            topics = self.one(None, self._asked(by_id=version >= 10))
            entry: dict[str, Any] = {"group_id": self.group(*groups), "topics": topics}
            if version >= 9 and self.chance(0.3):
                entry |= {"member_id": self.member(actor), "member_epoch": self.epoch(actor)}
                if entry["member_epoch"] == -1:
                    entry["member_id"] = None
            asked.append(entry)
        return self.step(actor, "OffsetFetch", version, groups=asked, require_stable=stable)

    def _asked(self, *, by_id: bool) -> list[dict[str, Any]]:
        topics = []
        for _ in range(self.but(self.one(1, 2), 0)):
            indexes = [self.partition() for _ in range(self.but(2, 0, 1, 4))]
            if by_id:
                known = self.but(self.one(*TOPICS), "t9", "")
                topics.append({"topic_id": IdOf(known), "partition_indexes": indexes})
            else:
                topics.append({"name": self.topic(), "partition_indexes": indexes})
        return topics

    def delete_offsets(self, *groups: str) -> Step:
        def place() -> dict[str, Any]:
            return {"partition_index": self.partition()}

        return self.step(
            ADMIN,
            "OffsetDelete",
            group_id=self.group(*groups),
            topics=self._places(place, by_id=False),
        )

    # --- looking at groups

    def list_groups(self) -> Step:
        states = ["Stable", "empty", "PREPARINGREBALANCE", "Reconciling", "Dead", "nonsense", ""]
        types = ["classic", "Consumer", "share", "nonsense", ""]
        return self.step(
            ADMIN,
            "ListGroups",
            states_filter=self.but([], *([one] for one in states), states[:3]),
            types_filter=self.but([], *([one] for one in types), types[:2]),
        )

    def describe_groups(self, *groups: str) -> Step:
        return self.step(
            ADMIN,
            "DescribeGroups",
            groups=[self.group(*groups) for _ in range(self.but(1, 0, 2, 3))],
            include_authorized_operations=self.chance(0.2),
        )

    def describe_consumers(self, *groups: str) -> Step:
        return self.step(
            ADMIN,
            "ConsumerGroupDescribe",
            group_ids=[self.group(*groups) for _ in range(self.but(1, 0, 2, 3))],
            include_authorized_operations=self.chance(0.2),
        )

    def delete_groups(self, *groups: str) -> Step:
        return self.step(
            ADMIN,
            "DeleteGroups",
            groups_names=[self.group(*groups) for _ in range(self.but(1, 0, 2, 3))],
        )

    def find_coordinator(self, *groups: str) -> Step:
        version = self.version("FindCoordinator")
        return self.step(
            ADMIN,
            "FindCoordinator",
            version,
            key=self.group(*groups),
            key_type=self.but(0, 3, -1),
            coordinator_keys=[self.group(*groups) for _ in range(self.but(1, 0, 2))],
        )
