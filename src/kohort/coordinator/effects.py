"""What goes into a step of the coordinator and what comes out of it: values, nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from kohort.records.codec import Record
from kohort.terms import GroupId

Request = TypeVar("Request")


class Client(NamedTuple):
    """Who sent a request. `host` is written as Kafka writes it: `/127.0.0.1`, without a port."""

    id: str
    host: str


@dataclass(slots=True)
class Call(Generic[Request]):
    """A request on its way in. The token is the caller's own; it comes back in the reply."""

    token: Any
    request: Request
    version: int
    client: Client


@dataclass(slots=True)
class Reply:
    """An answer on its way out. It may answer an earlier step's call: the token says which one."""

    token: Any
    response: Any


@dataclass(slots=True)
class Effects:
    """What one step asks of the world: append these records, and only then send these replies."""

    records: list[Record] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    groups: list[GroupId] = field(default_factory=list)  # whose deadlines were met

    def extend(self, other: "Effects") -> None:
        self.records += other.records
        self.replies += other.replies
        self.groups += other.groups


def answered(call: Call[Any], response: Any, records: Iterable[Record] = ()) -> Effects:
    """The usual outcome of a handler: some records, and the answer to the call that caused them."""
    return Effects(list(records), [Reply(call.token, response)])
