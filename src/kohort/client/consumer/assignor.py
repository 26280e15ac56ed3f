# SPDX-License-Identifier: Apache-2.0
"""What an application writes that computes the assignments of its group itself.

This needs a broker with client-side assignors (docs/client-assignors.md). Everything here is plain
values, so that an assignor can be tested without a broker.
"""

import inspect
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kohort.client.topic_partitions import topic_partitions_of
from kohort.terms import TopicPartition

MOST_METADATA = 1 << 20  # bytes for one member; a broker takes as much as fits into a record
MOST_METADATA_OF_ALL = 4 << 20  # they travel in one request


@dataclass(frozen=True)
class GroupMember:
    """A member as its group sees it. `partitions` is what it was last meant to have.

    `metadata` is what its assignor says to the one that computes, and `reason` why it wants another
    assignment: 0 for no reason of its own. A `metadata_version` of -1 is a classic member's.
    """

    member_id: str
    topics: frozenset[str]
    partitions: frozenset[TopicPartition] = frozenset()
    metadata: bytes = b""
    metadata_version: int = 0
    reason: int = 0
    instance_id: str | None = None
    rack: str | None = None


@dataclass(frozen=True)
class GroupToAssign:
    """All that an assignor needs: the members by id, and how many partitions each topic has.

    `version` is the highest version of metadata that every member reads.
    """

    members: Mapping[str, GroupMember]
    topics: Mapping[str, int]
    version: int = 0

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """All partitions of a topic, ascending."""
        return [TopicPartition(topic, index) for index in range(self.topics[topic])]

    def readers_of(self, topic: str) -> list[GroupMember]:
        """The members that want a topic, by id."""
        return [member for _, member in sorted(self.members.items()) if topic in member.topics]

    def owners(self) -> dict[TopicPartition, str]:
        """Who was last meant to have each partition that still exists."""
        return {
            partition: member_id
            for member_id, member in self.members.items()
            for partition in member.partitions
            if partition.partition < self.topics.get(partition.topic, 0)
        }


@dataclass(frozen=True)
class Share:
    """What one member gets, and what its assignor is told with it."""

    partitions: Collection[TopicPartition]
    metadata: bytes = b""


Shares = Mapping[str, Share | Iterable[TopicPartition]]
"""By member id. Who is not named gets nothing."""


@dataclass(frozen=True)
class AssignmentTold:
    """An assignment as a member hears of it. `error` is not 0 where the assignor has failed, and
    the assignment is the one before. `assignor` is the name of the one that wrote the metadata.
    """

    partitions: tuple[TopicPartition, ...]
    metadata: bytes = b""
    metadata_version: int = 0
    error: int = 0
    assignor: str = ""


class ShareError(ValueError):
    """What `assign` returned has not the form of shares."""


class Assignor:
    """Give it a `name`, and write `assign`. The rest has defaults.

    All members of a group have to offer an assignor of this name. One of them is asked to compute.
    `minimum_version` and `maximum_version` say which versions of metadata this code reads.
    """

    name = ""
    minimum_version = 0
    maximum_version = 0

    def metadata(self) -> bytes:
        """What this member tells the one that computes, 1 MiB at most. Asked for when the consumer
        joins, and at `Consumer.ask_for_assignment`.
        """
        return b""

    def assign(self, group: GroupToAssign) -> Shares | Awaitable[Shares]:
        """Who gets what. Each partition goes to one member at most, that wants its topic.

        A plain function runs in a thread of its own. When it raises, or takes longer than the
        consumer's `assignor_timeout_ms`, the group keeps the assignment that it has.
        """
        raise NotImplementedError

    def on_assignment(self, told: AssignmentTold) -> None:
        """This member has heard of an assignment, computed by an assignor of this name."""


def checked_assignors(assignors: Iterable[Assignor]) -> list[Assignor]:
    """The assignors of a member. Raises TypeError for what is none, and ValueError for names that
    the coordinator could not tell apart.
    """
    if isinstance(assignors, Assignor | str) or not isinstance(assignors, Iterable):
        raise TypeError(f"assignors is {assignors!r}, expected a list of them")
    own = list(assignors)
    for assignor in own:
        if not isinstance(assignor, Assignor):
            raise TypeError(f"assignors has {assignor!r}, expected an instance of an Assignor")
        if not isinstance(assignor.name, str) or not assignor.name:
            kind = type(assignor).__name__
            raise ValueError(f"assignor {kind} has the name {assignor.name!r}, expected a text")
        if inspect.iscoroutinefunction(assignor.on_assignment):
            raise TypeError(f"on_assignment of {assignor.name} is a coroutine, expected a function")
    names = [assignor.name for assignor in own]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"assignors has {name!r} more than once, expected different names")
    return own


def shares_of(given: Shares) -> dict[str, Share]:
    """What each member gets, in one form. Raises ShareError for what has none of the two."""
    if not isinstance(given, Mapping):
        raise ShareError(
            f"assign returned {given!r}, expected a mapping of partitions by member id"
        )
    return {member_id: _share_of(member_id, share) for member_id, share in given.items()}


def _share_of(member_id: str, given: Share | Iterable[TopicPartition]) -> Share:
    metadata = given.metadata if isinstance(given, Share) else b""
    partitions = given.partitions if isinstance(given, Share) else given
    if isinstance(partitions, Iterator):  # of the application: what that raises is its own
        partitions = list(partitions)
    try:
        share = Share(tuple(topic_partitions_of(partitions)), metadata)
    except TypeError as error:
        raise ShareError(f"{member_id} gets what is no share: {error}") from None
    if not isinstance(metadata, bytes):
        raise ShareError(f"{member_id} gets the metadata {metadata!r}, expected bytes")
    return share


def faults(group: GroupToAssign, shares: Mapping[str, Share]) -> list[str]:
    """What is wrong with an assignment, a sentence each; nothing for a good one."""
    found: list[str] = []
    owner: dict[TopicPartition, str] = {}
    all_metadata = 0
    for member_id, share in shares.items():
        member = group.members.get(member_id)
        if member is None:
            found.append(f"{member_id} is no member of the group")
            continue
        size = len(share.metadata)
        all_metadata += size
        if size > MOST_METADATA:
            found.append(f"{member_id} gets {size} bytes of metadata, expected {MOST_METADATA}")
        for partition in share.partitions:
            if partition.topic not in member.topics:
                found.append(f"{member_id} gets {partition}, and does not want this topic")
            elif not 0 <= partition.partition < group.topics.get(partition.topic, 0):
                found.append(f"{member_id} gets {partition}, which does not exist")
            elif partition in owner:
                found.append(f"{member_id} and {owner[partition]} both get {partition}")
            else:
                owner[partition] = member_id
    if all_metadata > MOST_METADATA_OF_ALL:
        found.append(
            f"the members get {all_metadata} bytes of metadata, expected {MOST_METADATA_OF_ALL}"
        )
    return found
