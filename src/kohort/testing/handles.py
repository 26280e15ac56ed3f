# SPDX-License-Identifier: Apache-2.0
"""What a test has in its hand: the clock of its broker, and each node of it."""

from datetime import timedelta
from typing import Any, Protocol

from kohort.testing.arguments import check_bool, check_seconds

__tracebackhide__ = True  # pytest shows the line of the test that has asked


class Commands(Protocol):
    """Who gives commands to the broker."""

    moved_ms: int

    @property
    def bootstrap(self) -> str: ...
    def command(self, command: str, *arguments: Any, **named: Any) -> Any: ...


class ClockHandle:
    """The time of the broker. Clients stay in real time."""

    def __init__(self, broker: Commands) -> None:
        self._broker = broker

    def __repr__(self) -> str:
        return f"<clock of {self._broker!r}, moved by {self._broker.moved_ms} ms>"

    def advance(self, seconds: float | timedelta) -> None:
        """Let time pass at once. Sessions that end by then have ended on return, their members are
        out, and what retention drops is gone. Raises KohortError for more than ten years at once.
        """
        if isinstance(seconds, timedelta):
            seconds = seconds.total_seconds()
        check_seconds("advance", seconds)
        ms = round(seconds * 1000)
        self._broker.command("advance", ms)
        self._broker.moved_ms += ms

    @property
    def now_ms(self) -> int:
        """Milliseconds since 1970, as the broker counts them."""
        found: int = self._broker.command("time_ms")
        return found


class NodeHandle:
    """One node of a cluster of several, by its index."""

    def __init__(self, broker: Commands, index: int) -> None:
        self.index = index
        self._broker = broker

    def __repr__(self) -> str:
        return f"<node {self.index} of {self._broker!r}>"

    @property
    def address(self) -> str:
        """Its `host:port`, which it keeps."""
        return self._broker.bootstrap.split(",")[self.index]

    def stop(self, *, takeover: bool = True) -> None:
        """It leaves in order: the others take over, its clients are told, its port closes.

        Without `takeover`, only the other replicas of a partition lead that in its place. Nobody
        leads what has none, as groups have, until the node starts: Metadata says
        LEADER_NOT_AVAILABLE, FindCoordinator COORDINATOR_NOT_AVAILABLE. Raises KohortError for the
        last node that serves.
        """
        check_bool("takeover", takeover)
        self._broker.command("stop_node", self.index, notify_clients=True, replaced=takeover)

    def kill(self, *, takeover: bool = True) -> None:
        """It is gone at once: its connections are cut with no answer. The rest is as in `stop`."""
        check_bool("takeover", takeover)
        self._broker.command("stop_node", self.index, notify_clients=False, replaced=takeover)

    def start(self) -> None:
        """It comes back to its address, and leads what it has led before."""
        self._broker.command("start_node", self.index)

    def restart(self) -> None:
        """Stop and start it."""
        self.stop()
        self.start()
