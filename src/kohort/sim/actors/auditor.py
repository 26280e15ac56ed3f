# SPDX-License-Identifier: Apache-2.0
"""Looks at everything once all has come to rest: what is there, and what still gets an error."""

from typing import ClassVar

from kohort.errors import ErrorCode
from kohort.java import coordinator_partition
from kohort.sim.actors.actor import TRANSACTION, Actor
from kohort.sim.actors.reading import fetch
from kohort.sim.actors.topics import TopicInfo, topics_of
from kohort.sim.facts import (
    AllCommittedRead,
    AllRead,
    PartitionId,
    StillUnavailable,
    TopicsAtEnd,
    TransactionAtEnd,
)
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.list_transactions import ListTransactionsRequest
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

TRIES = 20
OPEN = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})
NO_ANSWER = -1


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
            TopicsAtEnd(
                {topic.name: (topic.topic_id, len(topic.leaders)) for topic in known.values()}
            )
        )
        for topic in known.values():
            if topic.audited:
                for index in range(len(topic.leaders)):
                    place = topic.topic_id, index
                    await self._read_all(topic.name, place)
                    await self._read_committed(topic.name, place)
        await self._look_at_shards(known)
        await self._look_at_transactions(known)
        self.caller.hang_up()

    async def _leader(self, name: str, place: PartitionId) -> int:
        """The node that leads a partition as Metadata has it now; -1 without one."""
        known = await topics_of(self)
        topic = known.get(name) if known is not None else None
        return -1 if topic is None or topic.topic_id != place[0] else topic.leaders[place[1]]

    async def _read_all(self, name: str, place: PartitionId) -> None:
        """Tell AllRead or, after so many tries, NotServed. Neither is true where there is more that
        does not come: then this goes on until the audit has no time left.
        """
        values: dict[int, bytes] = {}
        offset = 0
        left = TRIES
        code = NO_ANSWER
        leader = await self._leader(name, place)
        while left:
            piece = await fetch(self, place, leader, offset) if leader >= 0 else None
            if piece is None or piece.code:
                left -= 1
                code = piece.code if piece is not None else NO_ANSWER
                await self.pause(500)
                leader = await self._leader(name, place)
                continue
            values.update(piece.values)
            if piece.next_offset >= piece.end:
                self.tell(AllRead(place, values))
                return
            if piece.next_offset <= offset:
                await self.pause(500)
            offset = piece.next_offset
        self.tell(StillUnavailable(f"{name}-{place[1]}", code))

    async def _read_committed(self, name: str, place: PartitionId) -> None:
        """Tell AllCommittedRead, also where readers are stopped before the end of the log."""
        values: dict[int, bytes] = {}
        offset, left = 0, TRIES
        while left:
            leader = await self._leader(name, place)
            piece = await fetch(self, place, leader, offset, committed=True)
            if piece is None or piece.code or piece.next_offset <= offset < piece.end:
                left -= 1
                await self.pause(500)
            if piece is not None and not piece.code:
                values.update(piece.values)
                offset = piece.next_offset
                if offset >= piece.end or not left:
                    self.tell(AllCommittedRead(place, values, offset, piece.end))
                    return

    async def _look_at_shards(self, known: dict[str, TopicInfo]) -> None:
        """Ask about one group of each shard, by groups that nobody has."""
        offsets = known.get("__consumer_offsets")
        if offsets is None:
            return
        shards = len(offsets.leaders)
        for shard in range(shards):
            group = _key_of(shard, shards)
            code = NO_ANSWER
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
                self.tell(StillUnavailable(f"__consumer_offsets-{shard}", code))

    async def _look_at_transactions(self, known: dict[str, TopicInfo]) -> None:
        """Ask about a transactional id of each shard that nobody has, and how the others stand."""
        states = known.get("__transaction_state")
        if states is None:
            return
        shards = len(states.leaders)
        for shard in range(shards):
            code = await self._described(
                _key_of(shard, shards), ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            )
            if code:
                self.tell(StillUnavailable(f"__transaction_state-{shard}", code))
        for node in range(self.stage.nodes):
            listed = await self.ask(
                ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 0, node=node
            )
            for transaction in [] if listed is None else listed.transaction_states:
                if transaction.transactional_id.startswith("work-"):
                    await self._described(transaction.transactional_id, 0)

    async def _described(self, transactional_id: str, expected: int) -> int:
        """Ask until the answer is the expected one, and no transaction is open; 0, or the code.
        Tells how it stands.
        """
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        code, state = NO_ANSWER, ""
        for _ in range(TRIES):
            answer = await self.ask_coordinator(transactional_id, request, 0, of=TRANSACTION)
            if answer is not None:
                (transaction,) = answer.transaction_states
                code, state = transaction.error_code, transaction.transaction_state
                self.coordinator_moved(transactional_id, code, TRANSACTION)
                if code == expected and state not in OPEN:
                    break
            await self.pause(500)
        if state:
            self.tell(TransactionAtEnd(transactional_id, state))
        return 0 if code == expected else code


def _key_of(shard: int, shards: int) -> str:
    """A name that nobody has, and that belongs to this shard."""
    return next(
        name
        for name in (f"nobody-{number}" for number in range(10_000))
        if coordinator_partition(name, shards) == shard
    )
