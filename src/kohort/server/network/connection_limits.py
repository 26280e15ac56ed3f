# SPDX-License-Identifier: Apache-2.0
"""How many connections there may be: in all, of a listener, from an address, for the descriptors.

A connection beyond what its listener or the broker may have waits until another one ends, and is
served then: its client has connected to the system already, and upstream leaves it there as well.
One beyond what its address may have, or beyond the descriptors, is closed.
"""

from collections import Counter
from collections.abc import Sequence

from kohort.config import BROKER_SETTINGS, BrokerConfig
from kohort.config.listeners import Listener
from kohort.server.descriptors import WAITING_MAX, Shares

MAX_CONNECTIONS = "max.connections"
_OF_DESCRIPTORS = 8  # those who wait leave most of few descriptors to those who can be served


def _most_of(config: BrokerConfig, prefix: str) -> int:
    """How many connections a listener may have: without a limit of its own that of the broker."""
    text = config.prefixed.get(f"{prefix}{MAX_CONNECTIONS}")
    if text is None:
        return config.max_connections
    most = BROKER_SETTINGS[MAX_CONNECTIONS].parse(text)
    assert isinstance(most, int)
    return most


class ConnectionLimits:
    """Counts the connections that are served, by their addresses and the numbers of listeners."""

    def __init__(self, config: BrokerConfig, listeners: Sequence[Listener]) -> None:
        self._names = [listener.prefix for listener in listeners]
        self.reconfigure(config)
        self._served = 0
        self._of_listener: Counter[int] = Counter()
        self._of_address: Counter[str] = Counter()

    def reconfigure(self, config: BrokerConfig) -> None:
        """Other limits count from now on, for connections to come."""
        self._most = config.max_connections
        self._most_of_address = config.max_connections_per_ip
        self._most_of_listener = [_most_of(config, prefix) for prefix in self._names]

    def most_waiting(self, shares: Shares) -> int:
        """How many connections of one listener may wait. Each listener has places of its own."""
        return max(1, min(WAITING_MAX, shares.limit // (_OF_DESCRIPTORS * len(self._names))))

    def refusal(self, waiting: int, shares: Shares) -> str | None:
        """Why a new connection is closed beside `waiting` ones of all listeners; None where there
        is a descriptor for it.
        """
        if self._served + waiting >= shares.connections:
            return (
                f"a connection is refused: {self._served + waiting} are open, and"
                f" {shares.connections} is their share of the limit of open files, {shares.limit}"
                " (`ulimit -n`)"
            )
        return None

    def too_many_of(self, address: str) -> str | None:
        """Why a connection is closed instead of served: its address has as many as it may."""
        if self._of_address[address] < self._most_of_address:
            return None
        return (
            f"a connection from {address} is refused:"
            f" max.connections.per.ip={self._most_of_address}"
        )

    def full(self, listener: int) -> str | None:
        """The setting that makes a new connection of a listener wait; None where it is served."""
        if self._served >= self._most:
            return f"{MAX_CONNECTIONS}={self._most}"
        most = self._most_of_listener[listener]
        if self._of_listener[listener] >= most:
            return f"{self._names[listener]}{MAX_CONNECTIONS}={most}"
        return None

    def enter(self, address: str, listener: int) -> None:
        """Serve one more."""
        self._served += 1
        self._of_listener[listener] += 1
        self._of_address[address] += 1

    def leave(self, address: str, listener: int) -> None:
        """One that was served has ended."""
        self._served -= 1
        self._of_listener[listener] -= 1
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]
