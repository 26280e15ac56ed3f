# SPDX-License-Identifier: Apache-2.0
"""How groups are described, as bytes that are kept until the group changes (KIP-40, KIP-848).

Programs that watch groups describe all of them again and again, and few have changed. What depends
on the caller is not in these bytes: what it may do with the group has its place in them, and which
topics it must be allowed to see stands beside them.
"""

from struct import Struct
from typing import Any

from kohort.coordinator.group import Group
from kohort.machines.bounded_cache import BoundedCache
from kohort.machines.topics import Topics
from kohort.terms import GroupId
from kohort.wire.codec import piecewise_encoder
from kohort.wire.messages import consumer_group_describe as consumer
from kohort.wire.messages import describe_groups as classic

LIMIT_BYTES = 1 << 26
"""Of all shards together: some 25,000 groups of ten members."""
_ENTRY_BYTES = 400  # of a description beside its bytes
_OPERATIONS = Struct(">i")


class Description:
    """A group in a version of an answer (its `response`), as one of the groups there.

    The authorised operations are the four bytes at `operations_at`, unset in `body`. `topics` are
    the names of all that its members have or should have.
    """

    __slots__ = (
        "_group",
        "_revision",
        "body",
        "operations_at",
        "response",
        "size",
        "topics",
        "used",
        "version",
    )

    def __init__(self, group: Group, response: Any, version: int, message: Any) -> None:
        self._group = group
        self._revision = group.revision
        self.response = response
        self.version = version
        cls: Any = type(message)
        encoder = piecewise_encoder(cls, version, "members", response)
        before, behind = encoder.around(message, len(message.members))
        members = encoder.elements(message)
        self.body = b"".join((before, members, behind))
        self.operations_at = len(before) + len(members)
        self.topics = _topics_of(message) if response is not classic.DescribeGroupsResponse else ()
        self.size = len(self.body) + _ENTRY_BYTES
        self.used = False

    @property
    def group_id(self) -> GroupId:
        return self._group.id

    def holds(self) -> bool:
        return self._group.revision == self._revision

    def with_operations(self, operations: int) -> bytes:
        """The bytes for a caller that has asked what it may do with the group."""
        at = self.operations_at
        return b"".join((self.body[:at], _OPERATIONS.pack(operations), self.body[at + 4 :]))


class Descriptions:
    """The answer of a shard: descriptions, and messages where a group cannot be described."""

    __slots__ = ("groups",)

    def __init__(self, groups: list[Any]) -> None:
        self.groups = groups


class ShardDescriptions:
    """The descriptions of one shard that are kept: of a group the one that was asked for last."""

    __slots__ = ("kept",)

    def __init__(self, limit_bytes: int) -> None:
        self.kept: BoundedCache[GroupId, Description] = BoundedCache(limit_bytes)

    def of_classic(self, group: Group, version: int) -> Description:
        """As DescribeGroups tells it. Raises ApiError for a group of another kind (KIP-1043)."""
        response = classic.DescribeGroupsResponse
        known = self._known(group, response, version)
        if known is None:
            known = Description(group, response, version, group.described_classic())
            self.kept.put(group.id, known)
        return known

    def of_consumer(
        self, group: Group, version: int, topics: Topics, computing: str | None
    ) -> Description:
        """As ConsumerGroupDescribe tells it. Raises ApiError for a group of another kind.

        `computing` is the member that computes for the group just now, which no change of the group
        tells: a group whose members offer assignors is described anew each time.
        """
        response = consumer.ConsumerGroupDescribeResponse
        known = self._known(group, response, version)
        if known is not None:
            return known
        message = group.described_consumer(topics)
        if message.client_side is not None:
            message.client_side.computing_member = computing
            return Description(group, response, version, message)
        known = Description(group, response, version, message)
        self.kept.put(group.id, known)
        return known

    def topics_changed(self, before: Topics, after: Topics) -> None:
        """The names of topics are in descriptions: one is new, or has gone."""
        if before.by_id.keys() != after.by_id.keys():
            self.kept.clear()

    def _known(self, group: Group, response: Any, version: int) -> Description | None:
        known = self.kept.get(group.id)
        if (
            known is None
            or not known.holds()
            or known.version != version
            or known.response is not response
        ):
            return None
        known.used = True
        return known


def _topics_of(message: consumer.DescribedGroup) -> tuple[str, ...]:
    names = {
        topic.topic_name: None
        for member in message.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    return tuple(names)
