# SPDX-License-Identifier: Apache-2.0
"""What waits inside the broker is bounded, and when nobody is there any more nothing waits.

This checker looks into the broker.
"""

from typing import ClassVar

from kohort.server.broker import Broker
from kohort.server.network.connection import PENDING_ANSWERS_MAX
from kohort.sim.checkers.checker import Checker


class Bounds(Checker):
    name: ClassVar[str] = "bounds"

    def look(self, broker: Broker, connections: int) -> None:
        """While clients are there, `connections` of them."""
        memory = broker.sockets.memory
        largest = broker.config.socket_request_max_bytes  # one request may pass the limit
        if memory.requests.used > memory.requests.limit + largest:
            self.alarm(f"requests take {memory.requests.used} of {memory.requests.limit} bytes")
        if memory.requests.used < 0 or memory.answers.used < 0:
            self.alarm(f"more is given back than taken: {memory.requests.used} for requests,"
                       f" {memory.answers.used} for answers")  # fmt: skip
        parked = self.parked(broker)
        if parked > connections * PENDING_ANSWERS_MAX + self.own(broker):
            self.alarm(f"{parked} answers are parked for {connections} connections")

    def look_at_rest(self, broker: Broker) -> None:
        """Every client has hung up, some time ago."""
        memory = broker.sockets.memory
        if memory.requests.used or memory.answers.used:
            self.alarm(f"nobody is there, and requests take {memory.requests.used} bytes,"
                       f" answers {memory.answers.used}")  # fmt: skip
        if self.parked(broker):
            self.alarm(f"nobody is there, and {self.parked(broker)} answers are parked")
        cluster = broker.cluster
        if cluster is not None and cluster.fetch_purgatory:
            self.alarm("nobody is there, and fetches wait")

    @staticmethod
    def own(broker: Broker) -> int:
        """At most so many answers are to the broker itself: about each transaction, that it is
        decided or over, and about each marker that is under way.
        """
        cluster = broker.cluster
        machines = (
            []
            if cluster is None
            else [driver.machine for driver in cluster.transaction_coordinators.values()]
        )
        return sum(
            2 * len(machine.transactions)
            + sum(len(ending.left) for ending in machine.pending_markers.values())
            for machine in machines
        )

    @staticmethod
    def parked(broker: Broker) -> int:
        """Answers that wait for the disk."""
        cluster = broker.cluster
        if cluster is None:
            return 0
        waiting = sum(map(len, cluster.durability._waiting_replies.values()))  # noqa: SLF001
        return waiting + sum(len(driver._parked) for driver in cluster.drivers.values())  # noqa: SLF001
