# SPDX-License-Identifier: Apache-2.0
"""Plays one sequence on both brokers, step by step, and stops at the first difference.

**When is a request parked?** No clock can tell, and a comparison that guesses is worthless on a
busy machine. So: after a request that may be parked, a barrier is sent through the same shard on
another connection (see `Barrier`). What has not been answered when it comes back waits for another
request to happen, on both brokers alike. Where the two disagree, they are given `GRACE_SECONDS`;
only then is it a difference. One kind of waiting ends by itself, by a timer of zero milliseconds
(group.initial.rebalance.delay.ms is 0): after a JoinGroup a short rest is added, and a difference
is only believed when a second, slower run shows it too (see `campaign`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.prove.differential import calming
from tests.prove.differential.brokers import Barrier, Pair, shard_of
from tests.prove.differential.comparing import Difference, alike, differences
from tests.prove.differential.drawing_transactions import IDS
from tests.prove.differential.known_differences import Occasion, explanation_of
from tests.prove.differential.lines import ClosedError, Lines, PendingRequest
from tests.prove.differential.steps import (
    API_BY_NAME,
    PAUSE,
    RESTART,
    SETTLE,
    Memory,
    Step,
    learn,
    learn_topics,
    message,
    on,
    plain,
)

from kohort.errors import WireError
from kohort.wire.codec import encode
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest

GRACE_SECONDS = 4.0
REST_SECONDS = 0.015
SLOW_REST_SECONDS = 0.3
PAUSE_SECONDS = 5.0
STRETCH_SECONDS = 1.4  # a pause and two of them are shorter than a session, see drawing_sessions
CALM_ROUNDS = 4
CALM_SECONDS = 0.1  # for a pattern to be resolved beside the heartbeats
SLOW_CALM_SECONDS = 0.4
ANSWER_SECONDS = 25.0
PARKABLE = {"JoinGroup", "SyncGroup", "LeaveGroup"}
TIMED = {"LeaveGroup"}  # a group without members waits for joins for zero milliseconds
CHANGING = {
    *("CreateTopics", "DeleteTopics", "CreatePartitions"),
    *("IncrementalAlterConfigs", "AlterConfigs"),
}
ENDING = {"EndTxn", "InitProducerId"}
LOADING = {14, 15}  # COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE
CLOSED = "the connection was closed"
UNREADABLE = "the answer cannot be read"


@dataclass
class StepOutcome:
    """What happened to one step: for the comparison, and for the story."""

    step: Step
    requests: list[dict[str, Any]] = field(default_factory=list)
    sent: list[PendingRequest] = field(default_factory=list)
    answers: list[Any] = field(default_factory=lambda: [None, None])
    after: list[int | None] = field(default_factory=lambda: [None, None])

    @property
    def came(self) -> list[bool]:
        return [one.came for one in self.sent]


@dataclass
class Outcome:
    """`differences` is empty when both brokers agreed to the end, or as far as is explained."""

    pairs: int = 0
    told: list[StepOutcome] = field(default_factory=list)
    at: int | None = None  # the step that was answered differently
    seen_at: int = 0  # the step after which that was so
    differences: list[Difference] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    apis: Counter[str] = field(default_factory=Counter)

    @property
    def signature(self) -> tuple[str, str] | None:
        """What a second run has to show to be the same difference."""
        if not self.differences or self.at is None:
            return None
        return self.told[self.at].step.api, self.differences[0].path


class Play:
    """One sequence on its way. `prefix` must be new to the brokers."""

    def __init__(
        self,
        pair: Pair,
        steps: Sequence[Step],
        *,
        slow: bool = False,
        restarted: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.pair = pair
        self.steps = steps
        self.rest_seconds = SLOW_REST_SECONDS if slow else REST_SECONDS
        self.calm_seconds = SLOW_CALM_SECONDS if slow else CALM_SECONDS
        self.restarted = restarted
        prefix, ids = pair.take()
        now = int(time.time() * 1000)
        self.memories = [Memory(prefix, started_ms=now) for _ in range(2)]
        for memory in self.memories:
            learn_topics(memory, ids)
        self.lines = [Lines(port) for port in pair.ports]
        self.open: list[int] = []  # steps that are not answered yet
        self.outcome = Outcome()
        self.strict = True
        self.relative = SETTLE in steps
        # When the present stretch has begun, in a sequence that is cut by pauses.
        self.began = time.monotonic() if PAUSE in steps else None

    async def run(self) -> Outcome:
        try:
            for index, step in enumerate(self.steps):
                self.outcome.told.append(StepOutcome(step))
                if step is RESTART:
                    await self._restart()
                elif step is SETTLE:
                    await asyncio.gather(*(self._calm(side) for side in range(2)))
                elif step is PAUSE:
                    if not await self._pause(index):
                        break
                elif not await self._step(index, step):
                    break
        finally:
            for lines in self.lines:
                lines.close()
        return self.outcome

    async def _restart(self) -> None:
        """Both brokers go and come back. Who waited for an answer will not get it."""
        for lines in self.lines:
            lines.close()
        self.open.clear()
        if self.restarted is None:
            await self.pair.restart()
        else:
            await self.restarted()
        self.lines = [Lines(port) for port in self.pair.ports]

    async def _calm(self, side: int) -> None:
        """Members of consumer groups send heartbeats, until nothing has changed for some rounds."""
        members = calming.members(self.outcome.told, side)
        quiet = 0
        async with asyncio.timeout(ANSWER_SECONDS):
            while quiet < CALM_ROUNDS:
                changed = False
                for one in members:
                    line = await self.lines[side].of(one.actor)
                    changed |= await calming.beat(line, one, self.memories[side])
                quiet = 0 if changed else quiet + 1
                await asyncio.sleep(self.calm_seconds)

    async def _pause(self, index: int) -> bool:
        """Sessions end meanwhile. Whether the stretch before was short enough to tell which."""
        now = time.monotonic()
        if self.began is not None and now - self.began > STRETCH_SECONDS:
            return False
        await asyncio.sleep(PAUSE_SECONDS)
        self.began = time.monotonic()
        await asyncio.gather(*(self._barrier(side) for side in range(2)))
        return self._take_arrived(index)

    async def _step(self, index: int, step: Step) -> bool:
        """Send one request to both and compare what is answered now. Whether to go on."""
        told = self.outcome.told[index]
        api = API_BY_NAME[step.api]
        for memory, lines in zip(self.memories, self.lines, strict=True):
            told.requests.append(on(step.fields, memory))
            request = message(api.request, told.requests[-1])
            encode(request, step.version)  # what cannot be said is a fault of the generator
            line = await lines.of(step.actor, idle=not step.queued)
            told.sent.append(await line.send(request, step.version, answered=step.answered))
        self.outcome.pairs += 1
        self.outcome.apis[step.api] += 1
        if step.answered:
            self.open.append(index)
        await self._settle(index)
        return self._take_arrived(index) and await self._catch_up(step, told)

    def _take_arrived(self, index: int) -> bool:
        """Compare what has been answered behind this step. Whether to go on."""
        if self.began is not None and time.monotonic() - self.began > STRETCH_SECONDS:
            return False
        arrived = [one for one in self.open if any(self.outcome.told[one].came)]
        for one in arrived:
            self.outcome.seen_at = index
            if not self._compare(one, index):
                return False
        self.open = [one for one in self.open if one not in arrived]
        return True

    # --- waiting

    async def _settle(self, index: int) -> None:
        """Wait until nothing more comes of itself, and both brokers have answered the same."""
        told = self.outcome.told[index]
        if told.step.api in TIMED:
            await self._wait(lambda: all(told.came), ANSWER_SECONDS)
            await asyncio.sleep(self.rest_seconds)
        stuck = self.open[:-1] and told.step.queued  # behind one that waits
        if told.step.api not in PARKABLE and not stuck:
            await self._wait(lambda: all(told.came), ANSWER_SECONDS)
        elif not all(told.came):
            await self._wait(lambda: all(told.came), 0.002)
        # Kafka answers these before what they write can be read, so there is always a barrier.
        behind = told.step.api not in PARKABLE
        while not behind or not all(all(self.outcome.told[one].came) for one in self.open):
            behind = True
            before = self._arrived()
            rest = self.rest_seconds if self._waits_for_a_timer() else 0.0
            await asyncio.gather(*(self._barrier(side) for side in range(2)))
            if rest:
                await asyncio.sleep(rest)
                await asyncio.gather(*(self._barrier(side) for side in range(2)))
            if self._arrived() != before:
                continue
            if self._agreed():
                return
            if not await self._wait(self._agreed, GRACE_SECONDS):
                return

    def _waits_for_a_timer(self) -> bool:
        waiting = (self.outcome.told[one] for one in self.open)
        return any(one.step.api == "JoinGroup" for one in waiting if not all(one.came))

    def _agreed(self) -> bool:
        return all(len(set(self.outcome.told[one].came)) == 1 for one in self.open)

    def _arrived(self) -> list[list[bool]]:
        return [self.outcome.told[one].came for one in self.open]

    async def _ended(self, side: int) -> None:
        """No transaction of this run is between its end and its markers."""
        line = await self.lines[side].of("barrier")
        request = DescribeTransactionsRequest(transactional_ids=on(list(IDS), self.memories[side]))
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                answer = await line.ask(request, 0)
                if not any(
                    one.transaction_state.startswith("Prepare") or one.error_code in LOADING
                    for one in answer.transaction_states
                ):
                    return
                await asyncio.sleep(0.003)

    async def _barrier(self, side: int) -> None:
        line = await self.lines[side].of("barrier")
        barrier = Barrier(line)
        groups = {self.outcome.told[one].requests[0].get("group_id", "") for one in self.open}
        for shard in sorted({shard_of(group) for group in groups}):
            await barrier.passed(shard)

    async def _wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait for answers. Whether it came to that in time."""
        end = time.monotonic() + seconds
        while not done():
            left = end - time.monotonic()
            if left <= 0:
                return False
            events = [lines.news for lines in self.lines]
            for event in events:
                event.clear()
            waits = [asyncio.ensure_future(event.wait()) for event in events]
            try:
                await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waits:
                    one.cancel()
        return True

    # --- comparing

    def _compare(self, index: int, now: int) -> bool:
        """Compare both answers to one step. Whether the brokers are still in the same state."""
        told = self.outcome.told[index]
        for side in range(2):
            if told.sent[side].came:
                told.after[side] = now
                told.answers[side] = self._decoded(side, told)
        if told.after[0] != told.after[1]:
            names = ["waits" if one is None else "answered" for one in told.after]
            found = [Difference("(when)", *names)]
        else:
            found = list(differences(*(self._alike(side, told) for side in range(2))))
        return not found or self._explained(index, found)

    def _decoded(self, side: int, told: StepOutcome) -> Any:
        try:
            answer = plain(told.sent[side].decoded(), told.step.version)
        except ClosedError:
            return CLOSED
        except WireError as error:
            return f"{UNREADABLE}: {error}"
        learn(self.memories[side], told.step, told.requests[side], answer)
        return answer

    def _alike(self, side: int, told: StepOutcome) -> Any:
        answer = told.answers[side]
        if isinstance(answer, str):
            return {"answer": answer}
        memory = self.memories[side]
        return alike(told.step, answer, memory, strict=self.strict, relative=self.relative)

    def _explained(self, index: int, found: list[Difference]) -> bool:
        """Whether all that differs is known and leaves the state as it is."""
        told = self.outcome.told[index]
        kafka, kohort = (self._alike(side, told) for side in range(2))
        goes_on = True
        unknown = []
        for one in found:
            occasion = Occasion(
                *(told.step, told.requests[0], kafka, kohort, one, self.outcome.told),
                by_range=self.pair.by_range,
            )
            known = explanation_of(occasion)
            if known is None:
                unknown.append(one)
            else:
                self.outcome.explained[known.name] += 1
                goes_on = goes_on and known.goes_on
        if unknown:
            self.outcome.at = index
            self.outcome.differences = unknown
        return goes_on and not unknown

    # --- topics

    async def _catch_up(self, step: Step, told: StepOutcome) -> bool:
        """After a change of topics, wait until Kafka lives by it, and learn the new ids. After the
        end of a transaction, wait until its markers are written.
        """
        if step.api in ENDING:
            await asyncio.gather(*(self._ended(side) for side in range(2)))
        if step.api not in CHANGING:
            return True
        await self.pair.settle_metadata()
        if step.api == "CreateTopics":
            prefix = self.memories[0].prefix
            made = [one["name"] for one in told.requests[0]["topics"]]
            wanted = [name for name in dict.fromkeys(made) if name.startswith(prefix)]
            found = await self.pair.topic_ids(wanted)
            for memory, ids in zip(self.memories, found, strict=True):
                learn_topics(memory, {name.removeprefix(prefix): one for name, one in ids.items()})
            same = found[0].keys() == found[1].keys()
            self.strict = self.strict and same and (self.pair.by_range or not found[0])
        return True
