# SPDX-License-Identifier: Apache-2.0
"""What goes into a step of a state machine and what comes out of it: values, nothing else."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from kohort.records.causes import Cause
from kohort.terms import GroupId, MemberId

Request = TypeVar("Request")

ANONYMOUS = "User:ANONYMOUS"  # upstream's name for a client that has not had to authenticate


class Client(Struct, frozen=True):
    """Who sent a request. `host` is written as Kafka writes it: `/127.0.0.1`, without a port.

    `principal` is the identity that the client has proved.
    """

    id: str
    host: str
    principal: str = ANONYMOUS


BROKER = Client("", "")
"""The broker itself, whose machines have something to say to each other."""


class Call(Struct, Generic[Request], eq=False):
    """A request on its way in. The token is the caller's own; it comes back in the reply."""

    token: Any
    request: Request
    version: int
    client: Client


class Reply(Struct, eq=False):
    """An answer on its way out. The token says which call it answers, perhaps an earlier one."""

    token: Any
    response: Any


class Producer(NamedTuple):
    """The producer whose transaction the records belong to (KIP-98)."""

    id: int
    epoch: int


class Marker(NamedTuple):
    """The end of a producer's transaction, as written in a control batch."""

    commit: bool
    coordinator_epoch: int


class Transaction(NamedTuple):
    """The transaction that the records of a step are part of. With an `end` there are no records,
    and it ends.
    """

    producer: Producer
    end: Marker | None = None


class GroupEvent(NamedTuple):
    """What has happened to a group, in words for the log of the broker, and why."""

    group_id: GroupId
    text: str
    cause: Cause | None = None
    member_id: MemberId | None = None  # whose doing it is
    reason: str | None = None  # that the member has given (KIP-800)
    ends_rebalance: bool = False  # of a classic group: its members get their assignments


class BackgroundTask:
    """Work that would hold up others. It is done beside the machine, and its outcome comes back by
    `Machine.finished`.

    `work` makes an iterator that does a part of the work at each step and returns the result. It
    knows values alone, so any thread may run it. One task with the same `key` is out at a time;
    others are dropped. `about` is for whoever takes the outcome. One that is `plugin` runs code of
    others, named there, which may never end.
    """

    __slots__ = ("about", "key", "plugin", "work")

    def __init__(
        self,
        key: tuple[Any, ...],
        work: Callable[[], Generator[None, None, Any]],
        about: Any,
        *,
        plugin: str = "",
    ) -> None:
        self.key = key
        self.work = work
        self.about = about
        self.plugin = plugin


class Continuation(Struct, frozen=True, eq=False):
    """What comes after a step. With `again` its call is taken once more: the records make the group
    which the call wants to join. A `long_task` has more steps, which come in the next turns.

    A step with `then` makes a group of one kind into one of another. Its records fit into one
    batch, or it is refused: half of them would be another group, or none. `then` is asked once they
    are true, and nothing comes in between: it does with the new group what no record tells. It
    refuses nothing.
    """

    again: bool = False
    then: "Callable[[], Effects] | None" = None
    long_task: "Iterator[Effects] | None" = None


TAKE_AGAIN = Continuation(again=True)


class Effects(Struct, eq=False):
    """What one step asks of the world: append these records, and only then send these replies.

    Records are of the machine's own kind. Replay makes them true before the machine is asked
    anything else. The `tasks` begin once the records are in the log. A long task, and what comes of
    a background task, may have `warnings`: lines for whoever runs the broker.
    """

    records: list[Any] = []
    replies: list[Reply] = []
    events: list[GroupEvent] = []
    tasks: list[BackgroundTask] = []
    warnings: Sequence[str] = ()
    transaction: Transaction | None = None
    continuation: Continuation | None = None

    def extend(self, other: "Effects") -> None:
        """Take in the effects of another part of the same step."""
        self.records += other.records
        self.replies += other.replies
        self.events += other.events
        self.tasks += other.tasks

    def take_again(self) -> None:
        """Have the call taken once more, after what follows in any case."""
        before = self.continuation
        after = TAKE_AGAIN if before is None else Continuation(True, before.then, before.long_task)
        self.continuation = after


def answered(call: Call[Any], response: Any, records: Iterable[Any] = ()) -> Effects:
    """The usual outcome of a handler: some records, and the answer to the call that caused them."""
    return Effects(list(records), [Reply(call.token, response)])
