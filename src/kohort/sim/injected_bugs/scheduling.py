# SPDX-License-Identifier: Apache-2.0
"""Bugs in who runs next: one client takes the broker from the others."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from kohort.server import broker, scheduler
from kohort.server.network import sockets
from kohort.server.scheduler import Scheduler, never
from kohort.sim.injected_bugs.replace_attribute import replace_attribute

SECOND_NS = 1_000_000_000


def endless_slice() -> Iterator[None]:
    """Whoever runs goes on until it has nothing more to do."""
    with replace_attribute(Scheduler, "over", lambda _self: False):
        yield


def endless_round() -> Iterator[None]:
    """The sockets are not read while anybody has something to do."""
    with ExitStack() as stack:
        for name in ("MACHINES_NS", "CLIENTS_NS", "CLIENTS_BUSY_NS", "BACKGROUND_NS"):
            stack.enter_context(replace_attribute(scheduler, name, SECOND_NS))
        yield


def endless_arrivals() -> Iterator[None]:
    """What arrives runs at once, however much that is."""

    def admit(self: Scheduler, runnable: Any) -> bool:
        self._until = 1 << 62
        return runnable not in self.waiting

    with replace_attribute(Scheduler, "admits", admit):
        yield


def turns_in_a_row() -> Iterator[None]:
    """The next turn does not wait for what has arrived."""
    turn = broker.Broker._turn  # noqa: SLF001

    def turns(self: broker.Broker, queued: bool = False) -> None:  # noqa: FBT001, FBT002
        turn(self, queued)
        while self.cluster is not None and self.cluster.has_more:
            turn(self)

    with replace_attribute(broker.Broker, "_turn", turns):
        yield


def worked_off() -> Iterator[None]:
    """What was held back behind an answer is handled as soon as that has left."""
    flush = sockets.ClientProtocol.flush

    def flush_all(self: sockets.ClientProtocol) -> None:
        flush(self)
        self.run(never)

    with replace_attribute(sockets.ClientProtocol, "flush", flush_all):
        yield
