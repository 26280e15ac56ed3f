"""What the runtime drives: a state machine that is told everything and remembers by a log alone.

The groups of a partition are the first such machine. Nothing in the runtime knows what a machine
does; everything that the order of the log decides is in this contract.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from kohort.coordinator.effects import Call, Effects, Producer
from kohort.coordinator.topics import Topics
from kohort.terms import Millis


class Machine(Protocol):
    """A machine never reads a clock and never waits. What a step describes in records becomes true
    when the records are replayed, which happens before the machine is asked anything else.

    Live and after a restart, replay gets the same arguments: the record, the offset that it has in
    the log, and whose transaction it belongs to.
    """

    def call(self, call: Call[Any], now: Millis) -> Effects:
        """Answer a request or park it. An expected refusal is an answer; whatever is raised
        concerns this call alone, and nothing that a log can bring back has changed.
        """

    def tick(self, now: Millis) -> Iterator[Effects]:
        """Do what is due, a step at a time. The caller may stop after any step and come again."""

    def wake_at(self) -> Millis | None:
        """When `tick` has something to do; it may be asked too early, never too late."""

    def clock_jumped(self, by_ms: int) -> None:
        """The clock has gone forward, or back, by so much in no time: deadlines go along."""

    def topics_changed(self, topics: Topics, now: Millis) -> Iterator[Effects]:
        """Take the next image of the cluster's topics. What follows from it is long: other calls
        may come between two of its steps. While the log is being read, nothing follows.
        """

    def start(self, now: Millis) -> Iterator[Effects]:
        """The log has been read. What follows is long, as with `topics_changed`; the machine is
        ready for calls when its first step has been asked for.
        """

    def replay(self, record: Any, offset: int, producer: Producer | None) -> None:
        """Make a record true."""

    def replay_marker(self, producer: Producer, *, commit: bool) -> None:
        """A producer's transaction has ended."""

    def encode(self, record: Any) -> tuple[bytes, bytes | None]:
        """The key and the value of a record. Raises WireError for one that no log has room for."""

    def decode(self, key: bytes, value: bytes | None) -> Any:
        """The record. Raises WireError for one whose version is not known: half a log is worse than
        none.
        """

    def told(self, calls: Iterable[Call[Any]], steps: Iterable[Effects]) -> Iterator[str]:
        """What the log of the broker should say about a turn, a line for each thing."""
