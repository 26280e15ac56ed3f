# SPDX-License-Identifier: Apache-2.0
"""How long the loop of a broker is away, in virtual time: requests, records, bytes and syncs cost
something.

Real processors are faster or slower; what counts is that what grows with the work takes longer.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kohort.coordinator.shard import Shard
from kohort.server.network.dispatcher import RequestDispatcher
from kohort.sim.events import VirtualLoop
from kohort.sim.injected_bugs.replace_attribute import replace_attribute
from kohort.transactions.machine import TransactionCoordinator

PER_PIECE_US = 50  # that arrives or leaves
BYTES_PER_US = 20  # read or written
PER_STEP_US = 10  # of what the scheduler runs
SYNC_US = 1000  # on the loop, not on a thread

PER_CALL_US: dict[tuple[type[Any], str], int] = {
    (RequestDispatcher, "take"): 500,
    (Shard, "call"): 250,
    (Shard, "replay"): 5,
    (TransactionCoordinator, "call"): 250,
    (TransactionCoordinator, "replay"): 5,
}


def of_bytes(size: int) -> int:
    """Microseconds for a piece that arrives or leaves."""
    return PER_PIECE_US + size // BYTES_PER_US


@contextmanager
def charged() -> Iterator[None]:
    """What a broker does on its loop takes time, whoever runs it and in whatever order."""
    with ExitStack() as stack:
        for (owner, name), cost_us in PER_CALL_US.items():
            stack.enter_context(
                replace_attribute(owner, name, _dear(owner.__dict__[name], cost_us))
            )
        yield


def _dear(function: Callable[..., Any], cost_us: int) -> Callable[..., Any]:
    def dear(*arguments: Any) -> Any:
        loop = asyncio._get_running_loop()  # noqa: SLF001  (None where there is none)
        if isinstance(loop, VirtualLoop):
            loop.spend(cost_us)
        return function(*arguments)

    return dear
