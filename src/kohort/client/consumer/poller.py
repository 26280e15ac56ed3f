# SPDX-License-Identifier: Apache-2.0
"""Asking for records: how long the application waits for them, and how long it stays away."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kohort.client.consumer.in_flight_records import InFlightRecords
from kohort.client.consumer.ownership import Ownership
from kohort.client.fetcher import AnyRecord, Fetcher
from kohort.client.network.environment import environment
from kohort.client.settings import check_time
from kohort.terms import TopicPartition

_TURN_S = 0.02  # how long records are handed out before others on the loop have a turn
_FOR_EVER_S = 3600.0


CallerTask = asyncio.Task[Any] | None
"""The task that made a call; None where there was none, as outside of an event loop."""


def caller_task() -> CallerTask:
    """The task that makes a call at this moment."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # the coroutine is handed to a loop that begins with it
        return None


class Poller:
    """`turn_at` is when others on the event loop have to have a turn, by `time.monotonic`:
    heartbeats are among them, and an application that never waits for anything would keep them out.

    `on_ask` is called whenever the application asks and nothing is ready at hand, and before it is
    handed what has come. `reader` is the task that asked last: the one that made the call, which
    may have it awaited by another one, as `asyncio.wait_for` does below Python 3.12.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        in_flight: InFlightRecords,
        ownership: Ownership,
        max_poll_records: int,
        on_ask: Callable[[], None],
    ) -> None:
        self.turn_at = 0.0
        self.reader: asyncio.Task[Any] | None = None
        self._fetcher = fetcher
        self._in_flight = in_flight
        self._ownership = ownership
        self._most = max_poll_records
        self._on_ask = on_ask
        self._monotonic = environment().clock.monotonic
        self._asked_at: float | None = None  # None before the first time
        self._waits = False
        self._asks = False
        self._ended = False

    @property
    def waits(self) -> bool:
        """Whether the application waits for records."""
        return self._waits

    @property
    def is_processed(self) -> bool:
        """Whether what was handed out last counts as processed, now that the task of this moment
        ends something: it is the reader itself, or the reader has come to its end.
        """
        reader = self.reader
        if not self._in_flight.in_work or reader is asyncio.current_task():
            return True
        return reader is not None and reader.done() and not _broke(reader)

    def end(self) -> None:
        """The consumer is closed: whoever asks, or waits, is told by ValueError."""
        self._ended = True
        self._fetcher.nudge()

    def away_s(self, now: float) -> float:
        """For how long the application has not asked for records, 0 while it waits for some."""
        return 0.0 if self._waits or self._asked_at is None else now - self._asked_at

    def start(self, now: float) -> None:
        """The application could ask from now on."""
        self._asked_at = now

    async def one(self, caller_task: CallerTask = None) -> AnyRecord:
        """The next record; waits for it."""
        with self._alone(caller_task):
            await self.back()
            record = self._in_flight.take()
            while record is None:
                self._in_flight.line_up(await self._wait(self._most, _FOR_EVER_S))
                record = self._in_flight.take()
            return record

    async def many(
        self, most: int | None, timeout_ms: float, caller_task: CallerTask = None
    ) -> dict[TopicPartition, list[AnyRecord]]:
        """Some records, or none after this time. Raises TypeError and ValueError for no time."""
        timeout_s = check_time("timeout_ms", timeout_ms, "milliseconds") / 1000
        with self._alone(caller_task):
            await self.back()
            # What was lined up to be handed out one by one comes first, by being read once more.
            self._ownership.put_back(self._ownership.owned)
            records = await self._wait(self._most if most is None else most, timeout_s)
            self._in_flight.note(records)
            return records

    @contextmanager
    def _alone(self, caller_task: CallerTask) -> Iterator[None]:
        """A second task that asked would say that the first one has done its work."""
        if self._asks:
            raise RuntimeError("another task is asking this consumer for records")
        self._take_over(caller_task)
        self._asks = True
        try:
            yield
        finally:
            self._asks = False

    def _take_over(self, caller_task: CallerTask) -> None:
        """Make this task the reader. What a former reader has broken off comes again."""
        former, self.reader = self.reader, caller_task or asyncio.current_task()
        if former is self.reader:
            return
        if former is not None and self._in_flight.in_work:
            if not former.done():
                self.reader = former
                raise RuntimeError(
                    f"another task, {former.get_name()}, works on records of this consumer: "
                    "asking for more would say that they are processed"
                )
            if _broke(former):
                self._ownership.hand_out_again()

    async def back(self) -> None:
        """The application has come back from its records. Other tasks have a turn."""
        now = asyncio.get_running_loop().time()
        self._in_flight.mark_processed()
        self._ownership.mark_processed()
        self._on_ask()
        self._asked_at = now
        self.turn_at = self._monotonic() + _TURN_S
        await asyncio.sleep(0)

    async def _wait(self, most: int, timeout_s: float) -> dict[TopicPartition, list[AnyRecord]]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        self._waits = True
        try:
            while True:
                if self._ended:
                    raise ValueError("the consumer is closed")
                self._on_ask()
                self._ownership.raise_trouble()
                records = self._fetcher.take(most)
                if records or not await self._fetcher.wait(deadline):
                    return records
        finally:
            self._waits = False
            self._asked_at = loop.time()
            self.turn_at = self._monotonic() + _TURN_S


def _broke(task: "asyncio.Task[Any]") -> bool:
    """Whether a task that is done has not come to its end."""
    return task.cancelled() or task.exception() is not None
