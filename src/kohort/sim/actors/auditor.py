"""Looks at everything once all has come to rest: what is there, and what still gets an error."""

from typing import ClassVar

from kohort.server.placement import coordinator_partition
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.reading import fetch
from kohort.sim.actors.topics import TopicKnown, topics_of
from kohort.sim.facts import AllRead, NotServed, Place, TopicsAtEnd
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

TRIES = 20


class Auditor(Actor):
    """Asks as any client would. Not a kind of its own: each run has one, at its end."""

    kind: ClassVar[str] = "auditor"

    async def live(self) -> None:
        known = None
        for _ in range(TRIES):
            known = await topics_of(self)
            if known is not None:
                break
            await self.pause(500)
        if known is None:
            self.alarm("gets no answer to Metadata")
            return
        self.tell(
            TopicsAtEnd({one.name: (one.topic_id, len(one.leaders)) for one in known.values()})
        )
        for topic in known.values():
            if topic.ours:
                for index in range(len(topic.leaders)):
                    await self._read_all(topic, (topic.topic_id, index))
        await self._look_at_shards(known)
        self.caller.hang_up()

    async def _read_all(self, topic: TopicKnown, place: Place) -> None:
        values: dict[int, bytes] = {}
        offset = 0
        left = TRIES
        while left:
            piece = await fetch(self, place, topic.leaders[place[1]], offset)
            if piece is None or piece.code:
                left -= 1
                await self.pause(500)
                if piece is not None and not left:
                    self.tell(NotServed(f"{topic.name}-{place[1]}", piece.code))
                continue
            if not piece.values and piece.next_offset == offset:
                self.tell(AllRead(place, values))
                return
            values.update(piece.values)
            offset = piece.next_offset

    async def _look_at_shards(self, known: dict[str, TopicKnown]) -> None:
        """Ask about one group of each shard, by groups that nobody has."""
        offsets = known.get("__consumer_offsets")
        if offsets is None:
            return
        shards = len(offsets.leaders)
        for shard in range(shards):
            group = next(
                one
                for one in (f"nobody-{number}" for number in range(10_000))
                if coordinator_partition(one, shards) == shard
            )
            code = -1
            for _ in range(TRIES):
                request = OffsetFetchRequest(
                    groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]
                )
                answer = await self.ask_coordinator(group, request, 8)
                if answer is not None:
                    code = answer.groups[0].error_code
                    self.coordinator_moved(group, code)
                    if not code:
                        break
                await self.pause(500)
            if code:
                self.tell(NotServed(f"__consumer_offsets-{shard}", code))
