# SPDX-License-Identifier: Apache-2.0
"""Members that fall silent: their sessions, and the time they have for a rebalance, come to an end.

A sequence is cut into stretches by pauses (`PAUSE`). A stretch takes less than `STRETCH_SECONDS`,
or the sequence ends there (see `player`): a busy machine only makes it shorter. So who was heard in
a stretch is alive in the next one, since a pause and two stretches are shorter than a session, and
who is silent for a whole stretch is gone in the one behind it, since two pauses are longer.
"""

from __future__ import annotations

from typing import Any

from tests.prove.differential.drawing import TOPICS, Draw, Subscribed
from tests.prove.differential.drawing_migrations import SharedOut
from tests.prove.differential.steps import (
    ConsumerOf,
    EpochOf,
    GenerationOf,
    MemberOf,
    Name,
    OwnedBy,
    ProtocolOf,
    Step,
)

SESSION_MS = 8000
GROUP = Name("g1")
ACTORS = ("a", "b", "c")


class DrawSessions(Draw):
    """Requests of members that live as long as they are heard."""

    def __init__(self, seed: str, *, odd: float = 0.12) -> None:
        super().__init__(seed, odd=0.0)
        self.modern = self.chance(0.5)
        self.static = {one for one in ACTORS if self.chance(0.3)}
        self.starts = 0

    def named(self, actor: str) -> dict[str, Any]:
        name = "instance_id" if self.modern else "group_instance_id"
        return {name: f"i-{actor}"} if actor in self.static else {}

    def joins(self, actor: str) -> list[Step]:
        if not self.modern:
            asked = [] if actor in self.static else [self.classic_join(actor)]
            return [*asked, self.classic_join(actor)]
        self.starts += 1
        member = f"m-{actor}{self.starts}" if actor in self.static else ConsumerOf(actor)
        return [
            self.step(
                actor,
                "ConsumerGroupHeartbeat",
                1,
                group_id=GROUP,
                member_id=member,
                member_epoch=0,
                rebalance_timeout_ms=self.one(SESSION_MS, 600_000),
                subscribed_topic_names=[Name(one) for one in TOPICS],
                topic_partitions=[],
                **self.named(actor),
            )
        ]

    def classic_join(self, actor: str) -> Step:
        return self.step(
            actor,
            "JoinGroup",
            self.random.randint(5, 9),
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id="" if actor in self.static else MemberOf(actor),
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": Subscribed(TOPICS, 1)}],
            **self.named(actor),
        )

    def sync(self, actor: str) -> Step:
        return self.step(
            actor,
            "SyncGroup",
            5,
            group_id=GROUP,
            generation_id=GenerationOf(actor),
            member_id=MemberOf(actor),
            protocol_type="consumer",
            protocol_name=ProtocolOf(actor),
            assignments=SharedOut(actor),
            **self.named(actor),
        )

    def beats(self, actor: str) -> list[Step]:
        """A sign of life; sometimes of a member that does not give up what it should."""
        if self.modern:
            return [
                self.step(
                    actor,
                    "ConsumerGroupHeartbeat",
                    1,
                    group_id=GROUP,
                    member_id=ConsumerOf(actor),
                    member_epoch=EpochOf(actor),
                    topic_partitions=self.one(OwnedBy(actor), OwnedBy(actor), None),
                    **self.named(actor),
                )
            ]
        beat = self.step(
            actor,
            "Heartbeat",
            4,
            group_id=GROUP,
            generation_id=GenerationOf(actor),
            member_id=MemberOf(actor),
            **self.named(actor),
        )
        return [beat] if self.chance(0.6) else [beat, self.classic_join(actor), self.sync(actor)]

    def leaves(self, actor: str) -> list[Step]:
        if self.modern:
            epoch = -2 if actor in self.static and self.chance(0.6) else -1
            return [
                self.step(
                    actor,
                    "ConsumerGroupHeartbeat",
                    1,
                    group_id=GROUP,
                    member_id=ConsumerOf(actor),
                    member_epoch=epoch,
                    **self.named(actor),
                )
            ]
        member = {"member_id": MemberOf(actor), "group_instance_id": None}
        return [self.step(actor, "LeaveGroup", 5, group_id=GROUP, members=[member])]

    def commits(self, actor: str) -> Step:
        """Of a classic member it is a sign of life, of a consumer it is none."""
        epoch = EpochOf(actor) if self.modern else GenerationOf(actor)
        place = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
        return self.step(
            actor,
            "OffsetCommit",
            9,
            group_id=GROUP,
            generation_id_or_member_epoch=epoch,
            member_id=MemberOf(actor),
            topics=[{"name": Name("t1"), "partitions": [place]}],
        )
