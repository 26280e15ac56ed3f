# SPDX-License-Identifier: Apache-2.0
"""What a membership tells the consumer that owns it, each once, in the order to act on.

A partition's way is `PartitionsAssigned`, then `PartitionsRevoked` or `PartitionsLost`, then the
consumer's own word that it has let go: `released`. Between the last two the consumer still has the
partition, so nobody else may. Each partition is named by one of the two, never by both, and is not
assigned again before its release. So each of these events is answered by one release, whatever
happens in between.
"""

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from kohort.errors import ApiError
from kohort.terms import PartitionIndex, TopicId, uuid_text


class TopicIdPartition(NamedTuple):
    """One partition of a topic, by the id of the topic (KIP-516)."""

    topic_id: TopicId
    partition: PartitionIndex

    def __str__(self) -> str:
        return f"{uuid_text(self.topic_id)}:{self.partition}"

    def __repr__(self) -> str:
        return f"TopicIdPartition({self})"


Partition = TypeVar("Partition")  # by topic id (KIP-848) or by topic name (classic)


class PartitionsAssigned(NamedTuple, Generic[Partition]):
    """Begin to consume these, from the committed offsets on.

    `returned` are those of them that the member gave up for this rebalance alone, so that nobody
    else had them meanwhile.
    """

    partitions: tuple[Partition, ...]
    returned: tuple[Partition, ...] = ()


class PartitionsRevoked(NamedTuple, Generic[Partition]):
    """Stop consuming these, commit what has been processed, then call `released`.

    A commit is possible only while the membership's `commits_as` is not None. The member may be put
    out meanwhile; the release is still to be told then.
    """

    partitions: tuple[Partition, ...]


class PartitionsLost(NamedTuple, Generic[Partition]):
    """Drop these and commit nothing, then call `released`: others may have them already.

    All that the member has is lost together. A partition of an earlier `PartitionsRevoked` is not
    named again, and there is no event when that is all of them. `error` is why the coordinator has
    put the member out.
    """

    partitions: tuple[Partition, ...]
    error: ApiError


class CoordinatorWanted(NamedTuple):
    """Look up the group's coordinator, then call `coordinator_found`. Nothing is sent meanwhile."""


class HangUp(NamedTuple):
    """Close the connection to the coordinator, and send the next request on a new one.

    The member has given up the request under way. A broker holds back what comes after a join or a
    sync on the same connection until that is answered, which may take as long as a rebalance.
    `connection_lost` is not to be called for this.
    """


class TopicsWanted(NamedTuple):
    """Look up how many partitions these topics have, then call `topics_known`.

    Only the leader of a classic group is told so. It should look again now and then.
    """

    topics: tuple[str, ...]


class ComputeWanted(NamedTuple):
    """The coordinator asks this member to compute the assignment of the group, by one of the
    assignors that it offers. It repeats that with every heartbeat, until the assignment is there.
    """


class AssignmentMetadata(NamedTuple, Generic[Partition]):
    """What a member's assignor added to the assignment of this member, with all its partitions.

    `error` is not 0 when that assignor has failed: then the assignment is the one before.
    `assignor` is its name, empty where the broker does not tell.
    """

    partitions: tuple[Partition, ...]
    metadata_version: int
    metadata: bytes
    error: int
    assignor: str = ""


class RequestRefused(NamedTuple):
    """The coordinator says no, and the member goes on asking. The application may want to know."""

    error: ApiError


class GroupLeft(NamedTuple):
    """The member is out, and the coordinator knows it."""


class MembershipFailed(NamedTuple):
    """The coordinator says no for good. The member is out until it joins again."""

    error: ApiError


Event = (
    PartitionsAssigned[Partition]
    | PartitionsRevoked[Partition]
    | PartitionsLost[Partition]
    | CoordinatorWanted
    | HangUp
    | TopicsWanted
    | ComputeWanted
    | AssignmentMetadata[Partition]
    | RequestRefused
    | GroupLeft
    | MembershipFailed
)


def in_order(partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    """Partitions as events and requests name them: ascending, each once."""
    return tuple(sorted(set(partitions)))  # type: ignore[type-var]
