# SPDX-License-Identifier: Apache-2.0
"""What a script may say. Names of groups and topics are local; the player makes them unique."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["consumer", "classic", "cooperative", "aiokafka"]
Offsets = dict[int, int]  # partition -> offset


@dataclass(frozen=True)
class Topic:
    """Create a topic."""

    topic: str
    partitions: int


@dataclass(frozen=True)
class Grow:
    """Raise the number of a topic's partitions."""

    topic: str
    partitions: int


@dataclass(frozen=True)
class DropTopic:
    topic: str


@dataclass(frozen=True)
class Produce:
    """So many records into each of these partitions; noted with their offsets and times."""

    topic: str
    counts: Offsets


@dataclass(frozen=True)
class Start:
    """A client joins. Its client id is `member`; a topic that begins with ^ is an expression."""

    member: str
    group: str
    topics: tuple[str, ...]
    kind: Kind = "consumer"
    instance_id: str | None = None
    rebalance_timeout_ms: int = 60_000


@dataclass(frozen=True)
class Stable:
    """Wait until the group has these members, no other, and each partition one owner."""

    group: str
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Commit:
    """A member commits these offsets. Neither protocol asks whether it owns the partitions."""

    member: str
    topic: str
    offsets: Offsets


@dataclass(frozen=True)
class Transaction:
    """The same in a transaction of a producer of the member's. `open` leaves it so."""

    member: str
    topic: str
    offsets: Offsets
    end: Literal["commit", "abort", "open"] = "commit"


@dataclass(frozen=True)
class Finish:
    """The member's open transaction ends."""

    member: str
    end: Literal["commit", "abort"] = "commit"


@dataclass(frozen=True)
class AdminCommit:
    """Offsets for a group without members, as a reset by an operator does."""

    group: str
    topic: str
    offsets: Offsets


@dataclass(frozen=True)
class Leave:
    """The client closes. One with an instance id only goes away for a while."""

    member: str


@dataclass(frozen=True)
class Kill:
    """kill -9: the coordinator notices when the session has timed out."""

    member: str


@dataclass(frozen=True)
class Subscribe:
    """The member changes what it subscribes."""

    member: str
    topics: tuple[str, ...]


@dataclass(frozen=True)
class Stall:
    """The member takes this long the next time it has to give up partitions; its heart beats on."""

    member: str
    seconds: float


@dataclass(frozen=True)
class DeleteGroup:
    group: str


@dataclass(frozen=True)
class DeleteOffsets:
    group: str
    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class Crash:
    """The broker is killed and started again on the same directory."""


@dataclass(frozen=True)
class Sleep:
    seconds: float


Step = (
    Topic
    | Grow
    | DropTopic
    | Produce
    | Start
    | Stable
    | Commit
    | Transaction
    | Finish
    | AdminCommit
    | Leave
    | Kill
    | Subscribe
    | Stall
    | DeleteGroup
    | DeleteOffsets
    | Crash
    | Sleep
)


@dataclass(frozen=True)
class Script:
    """A history to be: its steps."""

    name: str
    steps: tuple[Step, ...]
