# SPDX-License-Identifier: Apache-2.0
"""What an actor sees of the simulated world, and no more."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kohort.sim.events import EPOCH_SECONDS, VirtualLoop
from kohort.sim.facts import Fact
from kohort.sim.network import Network


@dataclass
class ActorContext:
    """`calm`: nothing fails any more. `over`: clients must come to an end."""

    loop: VirtualLoop
    network: Network
    nodes: int
    stream: Callable[[str], Random]
    tell: Callable[[Fact], None]
    alarm: Callable[[str], None]
    failed_inside: Callable[[str], None]  # an answer says that the broker itself has failed
    calm: bool = False
    over: bool = False
    programs: list[Any] = field(default_factory=list)  # that were started in this run
    session_ms: int = 45_000  # the longest of a member by KIP-848; clients are told it
    offsets_retention_us: int = 7 * 24 * 3600 * 1_000_000  # of groups without members
    clock_set_at: int = -(1 << 62)  # when the clock of the machine was set last
    loading_at: int = -(1 << 62)  # when groups were last found being read from their log
    topics: dict[str, int] = field(default_factory=dict)  # those that every run has: partitions

    def was_loading_since(self, sent: int) -> bool:
        """Whether groups were being read from their log at that instant or later. A classic
        heartbeat succeeds then, whoever sends it: its answer says nothing of the member.
        """
        return self.loading_at >= sent

    @property
    def wall_ms(self) -> int:
        """The time of day, in milliseconds since 1970, as a client stamps its records."""
        return EPOCH_SECONDS * 1000 + self.loop.now // 1000
