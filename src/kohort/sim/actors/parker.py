# SPDX-License-Identifier: Apache-2.0
"""Has requests parked that wait for other clients, with more behind them, and hangs up.

A request that waits holds the room that it takes, until it is answered or its connection has gone.
"""

from typing import ClassVar

from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.raw_lines import RawLines
from kohort.sim.actors.topics import topics_of
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.metadata import MetadataRequest

TOPIC = "home"
LARGE_BYTES = 6000  # of a request that needs room
LINES_MAX = 6
BEHIND_MAX = 5
WAIT_MS = 25_000
SESSION_MS, REBALANCE_MS = 6000, 10_000
LEAST_PAUSE_MS, MOST_PAUSE_MS = 1000, 10_000
HOLDS_MS = (0, 300, 4000)


class Parker(RawLines):
    """`number` names its group: whose members come and are never heard of again."""

    kind: ClassVar[str] = "parker"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.lines = []
        self.group = f"parked-{number}"

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.randrange(LEAST_PAUSE_MS, MOST_PAUSE_MS))
            if self.calm:
                continue
            if random.random() < 0.6:
                topic = (await topics_of(self) or {}).get(TOPIC)
                if topic is None or not topic.leaders:
                    continue
                node, frame = topic.leaders[0], self._fetch(topic.topic_id)
            else:
                found = await self.coordinator(self.group)
                if found is None:
                    continue
                node, frame = found, self._join()
                self._coordinators.clear()  # it may move, and nobody reads the answers
            self.open(node, random.randint(1, LINES_MAX))
            behind = self.frame(MetadataRequest(topics=[]), 12)
            for line in self.lines:
                line.send(frame + behind * random.randint(0, BEHIND_MAX))
            await self.pause(random.choice(HOLDS_MS))
            self.close()
        self.close()
        self.caller.hang_up()

    def _fetch(self, topic_id: bytes) -> bytes:
        """For more than there is."""
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1 << 30,
            rack_id="r" * LARGE_BYTES,
            topics=[FetchTopic(topic_id=topic_id, partitions=[part])],
        )
        return self.frame(request, 13)

    def _join(self) -> bytes:
        protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(LARGE_BYTES))
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id="",
            protocol_type="consumer",
            protocols=[protocol],
        )
        return self.frame(request, 3)  # of which each is a member at once
