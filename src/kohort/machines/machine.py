# SPDX-License-Identifier: Apache-2.0
"""What the runtime drives: a state machine that is told everything and remembers only by a log.

The groups of a partition are the first such machine. The runtime does not know what a machine does;
this contract has everything that the order of the log decides.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Protocol

from kohort.machines.effects import BackgroundTask, Call, Effects, Producer
from kohort.machines.topics import Topics
from kohort.terms import Millis

Headers = list[tuple[str, bytes | None]]


class Machine(Protocol):
    """A machine never reads a clock and never waits. The records of a step become true when they
    are replayed, which happens before the machine is asked anything else.

    Live and after a restart, replay gets the same arguments: the record, its offset in the log, and
    the producer whose transaction it belongs to.
    """

    running_tasks: Container[tuple[Any, ...]]
    """The keys of tasks that are out already, set by the driver: those need not be asked for."""

    def call(self, call: Call[Any], now: Millis) -> Effects:
        """Answer a request or park it. An expected refusal is an answer. Any other error concerns
        this call alone, and has changed nothing that a log can bring back.
        """

    def reads(self, call: Call[Any]) -> bool:
        """Whether this call changes nothing, as far as can be said before `call` is asked: it is
        served while the log refuses to be written.
        """

    def tick(self, now: Millis) -> Iterator[Effects]:
        """Do what is due, a step at a time. The caller may stop after any step and come again."""

    def put_off(self, now: Millis) -> None:
        """The last step of `tick` has failed or could not be written: meet its deadline again, a
        while after `now`.
        """

    def wake_at(self) -> Millis | None:
        """When `tick` has something to do; it may be asked too early, never too late."""

    def clock_jumped(self, by_ms: int) -> None:
        """The clock has jumped forward or back by this much: deadlines move with it."""

    def topics_changed(self, topics: Topics, now: Millis) -> Iterator[Effects]:
        """Take the next image of the cluster's topics. The consequences may be many steps, and
        other calls may come between two of them. While the log is being read there are none.
        """

    def finished(self, task: BackgroundTask, outcome: Any, now: Millis) -> Effects:
        """A background task that this machine has asked for is done: its result, or the exception
        that has ended it. Much may have happened meanwhile.
        """

    def start(self, now: Millis) -> Iterator[Effects]:
        """The log has been read. The consequences may be many steps, as with `topics_changed`; the
        machine is ready for calls once the first of them has been asked for.
        """

    def replay(self, record: Any, offset: int, producer: Producer | None) -> None:
        """Make a record true."""

    def replay_marker(self, producer: Producer, *, commit: bool) -> None:
        """A producer's transaction has ended."""

    def headers(self, step: Effects) -> Mapping[int, Headers]:
        """The headers of a step's records, by their place among them: what is not in the records
        and no state depends on. It is asked once, for each step that has notes.
        """

    def encode(self, record: Any) -> tuple[bytes, bytes | None]:
        """The key and the value of a record. Raises WireError where no log has room."""

    def decode(self, key: bytes, value: bytes | None) -> Any:
        """The record. Raises WireError for an unknown version: half a log is worse than none."""

    def log_lines(self, calls: Iterable[Call[Any]], steps: Iterable[Effects]) -> Iterable[str]:
        """What the log of the broker should say about a turn, a line for each thing. It is called
        once for each turn that has written records or has events, so a machine may count here. A
        step that changes anything has one or the other.
        """
