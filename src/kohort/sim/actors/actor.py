# SPDX-License-Identifier: Apache-2.0
"""What every client of a simulated cluster has: a name, its own chance, and a way to ask.

A kind of actor is a class with `kind` and `live`, and a row in `actors.table.KINDS`. `live` is an
ordinary coroutine: it asks, waits and tells facts, until `over` is true. It must expect that any
answer is None, because connections break, and any error code that a broker may give. Only what a
broker must never do is an alarm; most of that is found by the checkers from the facts.
"""

from random import Random
from typing import Any, ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.facts import Fact
from kohort.sim.network_client import NetworkClient
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest

COORDINATOR_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
GROUP, TRANSACTION = 0, 1  # what a coordinator is one of


class Actor:
    """A client. `number` counts those of its kind."""

    kind: ClassVar[str]

    def __init__(self, stage: ActorContext, number: int) -> None:
        self.stage = stage
        self.number = number
        self.name = f"{self.kind}-{number}"
        self.random: Random = stage.stream(self.name)
        self.caller = NetworkClient(
            stage.loop, stage.network, self.name, stage.alarm, stage.failed_inside
        )
        self._coordinators: dict[tuple[int, str], int] = {}

    async def live(self) -> None:
        """The life of the client, until `over`."""
        raise NotImplementedError

    @property
    def over(self) -> bool:
        """Whether clients should come to an end."""
        return self.stage.over

    @property
    def calm(self) -> bool:
        """Whether nothing fails any more."""
        return self.stage.calm

    def tell(self, fact: Fact) -> None:
        self.stage.tell(fact)

    def alarm(self, text: str) -> None:
        """Something that no broker may ever do."""
        self.stage.alarm(f"{self.kind}: {self.name} {text}")

    async def pause(self, ms: float) -> None:
        """Wait. Clients of one kind should not all do the same at the same time."""
        future = self.stage.loop.create_future()
        self.stage.loop.call_later(ms / 1000, future.set_result, None)
        await future

    async def ask(
        self, request: Any, version: int, *, node: int | None = None, patience_ms: int = 5000
    ) -> Any | None:
        """The answer of a node, of any one without `node`; None when there is none."""
        if node is None:
            node = self.random.randrange(self.stage.nodes)
        return await self.caller.ask(request, version, node=node, patience_ms=patience_ms)

    async def coordinator(self, name: str, of: int = GROUP) -> int | None:
        """The node of the coordinator of a group, or of a transactional id, as far as anybody says;
        it is remembered.
        """
        known = self._coordinators.get((of, name))
        if known is not None:
            return known
        request = FindCoordinatorRequest(key_type=of, coordinator_keys=[name])
        answer = await self.ask(request, 4)
        if answer is None or answer.coordinators[0].error_code:
            return None
        node: int = answer.coordinators[0].node_id
        self._coordinators[of, name] = node
        return node

    def coordinator_moved(self, name: str, code: int, of: int = GROUP) -> None:
        """Forget a coordinator when an error says that it is another one."""
        if code in COORDINATOR_MOVED:
            self._coordinators.pop((of, name), None)

    async def ask_coordinator(
        self, name: str, request: Any, version: int, *, patience_ms: int = 5000, of: int = GROUP
    ) -> Any | None:
        """The answer of the coordinator of a group, or of a transactional id; None when there is
        none. Forgets a coordinator that does not answer.
        """
        node = await self.coordinator(name, of)
        if node is None:
            return None
        answer = await self.ask(request, version, node=node, patience_ms=patience_ms)
        if answer is None:
            self._coordinators.pop((of, name), None)
        return answer
