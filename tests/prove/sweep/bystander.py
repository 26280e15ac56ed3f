# SPDX-License-Identifier: Apache-2.0
"""A member of a group in a process of its own: it heartbeats all the time, and notes its waits."""

import gc
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_double, c_int
from typing import Any

from tests.serve.talk import Talk, frame
from tests.waiting import SOON_S

from kohort.wire.codec import decode
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

PAUSE_S = 0.005
PATIENCE_S = 120.0
KEPT = 10_000  # waits: of about a minute


class Bystander:
    """What the process has seen, from outside of it."""

    def __init__(self, context: Any) -> None:
        self._longest = context.Value(c_double, 0.0)
        self._beats = context.Value(c_int, 0)
        self._waits = context.Array(c_double, KEPT, lock=False)
        self._begun = 0  # the beat

    def run(self, address: tuple[str, int]) -> None:
        """The process."""
        gc.disable()
        with Talk(address, PATIENCE_S) as talk:
            epoch = 0
            while True:
                begun = time.perf_counter()
                epoch = _beat(talk, epoch)
                waited = time.perf_counter() - begun
                with self._longest.get_lock():
                    self._longest.value = max(self._longest.value, waited)
                self._waits[self._beats.value % KEPT] = waited
                self._beats.value += 1
                time.sleep(PAUSE_S)

    def begin(self) -> None:
        """Forget what was."""
        self.rest()
        self._longest.value = 0.0
        self._begun = self._beats.value

    def rest(self) -> None:
        """Return once it has been answered twice from now on: a wait that is under way counts."""
        goal = self._beats.value + 2
        deadline = time.monotonic() + PATIENCE_S
        while self._beats.value < goal:
            if time.monotonic() > deadline:
                raise AssertionError("the member beside is not answered any more")
            time.sleep(0.002)

    def longest_s(self) -> float:
        """Its longest wait since `begin`."""
        self.rest()
        return float(self._longest.value)

    def p99_s(self) -> float:
        """Of 100 waits since `begin` one is longer; of the last ones, where these are many."""
        self.rest()
        count = min(self._beats.value - self._begun, KEPT)
        last = self._beats.value
        waits = sorted(self._waits[number % KEPT] for number in range(last - count, last))
        return waits[int(0.99 * (len(waits) - 1))]


def _beat(talk: Talk, epoch: int) -> int:
    """One heartbeat. The epoch for the next one; 0 to join."""
    joins = epoch == 0
    request = ConsumerGroupHeartbeatRequest(
        group_id="bystander",
        member_id="bystander",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if joins else -1,
        subscribed_topic_names=["narrow-8"] if joins else None,
        topic_partitions=[] if joins else None,
    )
    talk.socket.sendall(frame(request, 1))
    answer = decode(ConsumerGroupHeartbeatResponse, 1, talk.answer(), 5)
    return 0 if answer.error_code else answer.member_epoch


@contextmanager
def bystander(address: tuple[str, int]) -> Iterator[Bystander]:
    context = multiprocessing.get_context("spawn")
    beside = Bystander(context)
    process = context.Process(target=beside.run, args=(address,), daemon=True)
    process.start()
    try:
        beside.rest()
        yield beside
    finally:
        process.kill()
        process.join(SOON_S)
