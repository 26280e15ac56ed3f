# SPDX-License-Identifier: Apache-2.0
"""One process of an application: a loop of its own, on which the clients of this package run.

It can stand still, and it can be gone in the middle of anything. When it comes to its end by itself
nothing may be left of it: no task, no connection, no exception that nobody has seen.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from kohort.client.network.environment import ENVIRONMENT, Environment
from kohort.sim.actor_context import ActorContext
from kohort.sim.events import EPOCH_SECONDS, MICROS, VirtualLoop
from kohort.sim.network import Address, Network
from kohort.sim.programs.transport import open_connection

THREAD_S = 0.01  # how long a thread works


class ProgramLoop(VirtualLoop):
    """Also opens connections, as clients do."""

    network: Network

    def time(self) -> float:
        """Late in the microsecond: a timer, which is rounded to one, never rings before its time.
        Whoever looks at the clock then and goes on waiting would do so for ever, as no time passes.
        """
        return (self.now + 0.75) / MICROS

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int, **_: Any
    ) -> Any:
        address: Address = host, port
        return await open_connection(self.network, self, protocol_factory, address)


class _Clock(NamedTuple):
    """The clock of the program's machine, which nobody sets."""

    loop: VirtualLoop

    def time(self) -> float:
        return EPOCH_SECONDS + self.loop.time()

    def time_ns(self) -> int:
        return round(self.time() * 1000) * 1_000_000

    def monotonic(self) -> float:
        return self.loop.time()


class Program:
    """`work` is its main coroutine. `ended` once that is over, or the process is gone; `failure` is
    what it has left behind then.
    """

    def __init__(
        self, stage: ActorContext, random: Random, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self.failure = ""
        self.stopping = False  # it was asked to come to its end
        self._network = stage.network
        loop = self.loop = ProgramLoop(stage.loop.events, self._failed, None)  # type: ignore[abstract]
        loop.network = stage.network
        environment = Environment(
            clock=_Clock(loop),
            chance=random,
            new_uuid=lambda: UUID(int=random.getrandbits(128), version=4),
            start_thread=self._start_thread,
        )
        context = copy_context()
        context.run(ENVIRONMENT.set, environment)
        self._main: asyncio.Task[None] = asyncio.Task(
            self._run(work), loop=loop, context=context, name="main"
        )
        self._left: set[asyncio.Task[Any]] = set()
        stage.programs.append(self)

    def _start_thread(self, work: Callable[[], None], _name: str) -> None:
        self.loop.call_later(THREAD_S, work)

    @property
    def ended(self) -> bool:
        return not self.loop.alive

    async def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001  (an application that nobody expected to fail)
            self.failure = f"fails by {type(error).__name__}: {error}"
        left = sorted(
            str(task.get_coro()) for task in asyncio.all_tasks(self.loop) if task is not self._main
        )
        lines = [line for line in self._network.lines() if line.client_loop is self.loop]
        if not self.failure and left:
            self.failure = f"leaves {len(left)} tasks, the first is {left[0].split(' at ')[0]}"
        if not self.failure and any(not line.hung_up for line in lines):
            self.failure = "leaves a connection"
        self.die()

    def _failed(self, error: BaseException) -> None:
        """Something has come out of a task or a callback that nobody has looked at."""
        self.failure = self.failure or f"leaves {type(error).__name__}: {error}"

    def stop_soon(self) -> None:
        """It is asked to come to its end; it looks at `stopping`."""
        self.stopping = True

    def stand_still(self, ms: int) -> None:
        """It is frozen for a while."""
        self.loop.stand_still(ms * 1000)

    def die(self) -> None:
        """The process is gone; the broker hears of its connections as of any that hang up."""
        if self.loop.alive:
            self._left = asyncio.all_tasks(
                self.loop
            )  # so that none of it runs when it is forgotten
            self.loop.alive = False
            self._network.client_died(self.loop)

    def bury(self) -> None:
        """Forget it, when the run is over."""
        self.die()
        for task in self._left:
            with suppress(BaseException):  # whatever it would have done next
                task.get_coro().close()
        self._left.clear()
