# SPDX-License-Identifier: Apache-2.0
"""Members that subscribe by regular expressions, with topics that come and go.

Kafka resolves an expression beside the heartbeat that brings it, and looks for new topics at the
next heartbeat of anybody; Kohort does so as soon as there are any. So after every request members
send heartbeats until nothing changes (`SETTLE`). What a request is answered is compared in full,
what the heartbeats meanwhile are answered is not, and the group is compared where it has come to
rest. Kafka's pause of ten seconds between two resolutions is taken out (see `impatience`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.prove.differential.drawing import ADMIN, LONG_MS, TOPICS, Draw
from tests.prove.differential.steps import (
    SETTLE,
    ConsumerOf,
    EpochOf,
    Memory,
    Name,
    OwnedBy,
    Ref,
    Step,
)

ACTORS = ("a", "b", "c")
GROUP = Name("g1")
VALID = (
    *("{}t.*", "{}t.*", "{}t1", "{}t[12]", "{}(t1|t4)", "{}t[45]", "{}x.*", "{}t", "(?i){}T[13]"),
    *("\\Q{}t1\\E", "{}t\\d", "^{}t2$", "{}t[^1]", "(?:{}t)(?P<n>2|3)", "{}t{{1,2}}3", "{}.+4"),
)
INVALID = (
    *("[", "*a", "a**", "(?=a)b", "\\1", "a{{1001}}", "(?>a)", "\\h", "a++", "(", ")", "\\"),
    *("a{{2,1}}", "(?P<n", "[z-a]", "\\pX", "(?#c)", "(?P<n>a)(?P<n>b)"),
)


@dataclass(frozen=True)
class Pattern(Ref):
    """An expression, with the prefix of the run in the place of `{}`."""

    text: str

    def on(self, memory: Memory) -> str:
        return self.text.format(memory.prefix)


class DrawPatterns(Draw):
    """One request, and what follows from it."""

    def __init__(self, seed: str, *, odd: float = 0.12) -> None:
        super().__init__(seed, odd=odd)
        self.known = [Pattern(self.one(*VALID)) for _ in range(self.one(1, 2, 2, 3))]
        self.joined: set[str] = set()

    def pattern(self) -> Any:
        return self.but(self.one(*self.known), *(Pattern(one) for one in INVALID))

    def subscription(self) -> dict[str, Any]:
        """A pattern, names, or both."""
        names: list[Any] = [Name(one) for one in self.topics(2)]
        return self.one(
            *({"subscribed_topic_regex": self.pattern()},) * 4,
            {"subscribed_topic_regex": self.pattern(), "subscribed_topic_names": []},
            {"subscribed_topic_regex": self.pattern(), "subscribed_topic_names": names},
            {"subscribed_topic_regex": "", "subscribed_topic_names": names},
            {"subscribed_topic_names": names},
            {"subscribed_topic_regex": self.but("", None)},
        )

    def beat(self, actor: str, **fields: Any) -> list[Step]:
        known = {"group_id": GROUP, "member_id": ConsumerOf(actor), **fields}
        return [self.step(actor, "ConsumerGroupHeartbeat", 1, **known), SETTLE]

    def join(self) -> list[Step]:
        actor = self.one(*ACTORS)
        self.joined.add(actor)
        return self.beat(
            actor,
            member_epoch=0,
            rebalance_timeout_ms=LONG_MS,
            topic_partitions=[],
            **{"subscribed_topic_names": None, **self.subscription()},
        )

    def present(self) -> str:
        return self.one(*(sorted(self.joined) or ACTORS))

    def change(self) -> list[Step]:
        actor = self.present()
        return self.beat(
            actor,
            member_epoch=EpochOf(actor),
            topic_partitions=OwnedBy(actor),
            rebalance_timeout_ms=self.one(-1, LONG_MS),
            **{"subscribed_topic_names": None, **self.subscription()},
        )

    def leave(self) -> list[Step]:
        actor = self.present()
        self.joined.discard(actor)
        return self.beat(actor, member_epoch=-1)

    def create(self) -> list[Step]:
        topic = {
            "name": Name(self.one("t4", "t5", "x1")),
            "num_partitions": self.one(1, 2),
            "replication_factor": 1,
        }
        return [self.step(ADMIN, "CreateTopics", topics=[topic], timeout_ms=60000), SETTLE]

    def delete(self) -> list[Step]:
        name = Name(self.one(*TOPICS, "t4", "x1"))
        step = self.step(
            ADMIN, "DeleteTopics", self.random.randint(1, 5), topic_names=[name], timeout_ms=60000
        )
        return [step, SETTLE]

    def grow(self) -> list[Step]:
        topic = {"name": Name(self.one(*TOPICS)), "count": self.one(3, 4, 5), "assignments": None}
        return [self.step(ADMIN, "CreatePartitions", topics=[topic], timeout_ms=60000), SETTLE]

    def describe(self) -> Step:
        return self.step(ADMIN, "ConsumerGroupDescribe", group_ids=[GROUP])

    def commits(self) -> Step:
        actor = self.present()
        return self.commit(actor, GROUP, EpochOf(actor))
