# SPDX-License-Identifier: Apache-2.0
"""One life of the broker: the real one, on a virtual loop, on a disk that outlives it."""

from collections.abc import Callable
from pathlib import Path
from random import Random

from kohort.config import BrokerConfig
from kohort.runtime.driver import INTERNAL, LOADED_AGAIN
from kohort.server.broker import Broker
from kohort.server.clock import Clock
from kohort.server.descriptors import Limit
from kohort.server.environment import BrokerEnvironment
from kohort.sim import costs
from kohort.sim.disk import SimulatedFiles
from kohort.sim.events import EPOCH_SECONDS, MICROS, Events, virtual_loop
from kohort.sim.network import Network
from kohort.sim.threads import DiskDelays, VirtualPool
from kohort.terms import uuid_text

HOST = "127.0.0.1"
PORT = 9092
SECURE_PORT = 9192  # of the listener with SASL, in runs that have one
DATA = "/data"


def addresses_of(node: int) -> tuple[tuple[str, int], ...]:
    """Where the node with this number may listen, counted from 0."""
    return (HOST, PORT + node), (HOST, SECURE_PORT + node)


class OperatorLog:
    """What the broker has told its operator, over all lives. `failure` takes the lines that tell of
    a fault of the broker's own. `loaded_again` hears of each machine that is read from its log
    while the broker goes on.
    """

    def __init__(self, failure: Callable[[str], None], loaded_again: Callable[[], None]) -> None:
        self.warnings: list[str] = []
        self.errors: list[str] = []
        self._failure = failure
        self._loaded_again = loaded_again

    def info(self, text: str, /) -> None:
        """Nobody asks what happened to the groups: their clients know."""

    def warning(self, text: str, /) -> None:
        self.warnings.append(text)

    def error(self, text: str, /) -> None:
        self.errors.append(text)
        if LOADED_AGAIN in text:
            self._loaded_again()
        if text.startswith(INTERNAL):
            lines = text.removeprefix(INTERNAL).strip().splitlines()
            self._failure(lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1]}")


class Process:
    """One process. `started` and `broker.cluster` say how far it is; it ends with `die`.

    `skew` tells by how many seconds the wall clock of the machine is wrong.
    """

    def __init__(
        self,
        events: Events,
        network: Network,
        disk: SimulatedFiles,
        config: BrokerConfig,
        random: Random,
        *,
        nodes: int,
        operator_log: OperatorLog,
        skew: Callable[[], float],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.loop = virtual_loop(events, failed, network)
        self.disk = disk
        self.pauses = DiskDelays(random)
        self.started = False
        self.stopping = False
        self.stopped = False
        self._random = random
        self._network = network
        loop = self.loop
        self.broker = Broker(
            config,
            listen=None if "listeners" in config.given else (HOST, PORT),
            data_dir=Path(DATA),
            nodes=nodes,
            environment=BrokerEnvironment(
                clock=lambda: Clock(lambda: EPOCH_SECONDS + loop.time() + skew(), loop.time),
                files=disk,
                limit=Limit,
                new_id=self._new_id,
                stopwatch=self._stopwatch,
                threads=lambda count, _: VirtualPool(loop, count, self.pauses),
                observe=operator_log,
                bounded=False,  # checkers count them
            ),
        )

    def _stopwatch(self) -> int:
        """Looked at between two steps, each of which takes a while."""
        self.loop.spend(costs.PER_STEP_US)
        return self.loop.now * 1000

    def _new_id(self) -> bytes:
        while True:
            value = self._random.randbytes(16)
            if not uuid_text(value).startswith("-"):
                return value

    async def start(self) -> None:
        """Raises what `Broker.start` raises."""
        await self.broker.start()
        self.started = True

    def stop_soon(self) -> None:
        """Stop in order; `stopped` is true when that is done."""
        self.loop.begin(self._stop())

    async def _stop(self) -> None:
        await self.broker.stop()
        self.stopped = True

    def die(self, *, silently_us: int | None = None) -> None:
        """It is gone in the middle of whatever it did."""
        self.loop.alive = False
        self._network.process_died(self.loop, silently_us=silently_us)

    def stand_still(self, ms: int) -> None:
        self.loop.stand_still(ms * MICROS // 1000)
