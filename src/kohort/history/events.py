# SPDX-License-Identifier: Apache-2.0
"""The events of a group's history: the records that the coordinator wrote about it, and runs of
commits in between.

A group has few records and may have millions of commits. So commits come folded: the commits of one
partition between two records of the group are one event. A history needs no more.
"""

from msgspec import Struct

from kohort.records.causes import Because

CLASSIC, EPOCH, TOPICS, MEMBER, TARGET_EPOCH, TARGET, CURRENT, EXPRESSION = 2, 3, 4, 5, 6, 7, 8, 16
RECORD_TYPES = (CLASSIC, EPOCH, TOPICS, MEMBER, TARGET_EPOCH, TARGET, CURRENT, EXPRESSION)
AWAY = -2
"""The epoch of a static member that has left for a while."""
GIVES_UP = "unrevoked_partitions"
STABLE = "stable"


class ByName(Struct):
    """Partitions of a topic that is named."""

    topic: str
    partitions: list[int]


class ById(Struct):
    """Partitions of a topic, which is named by its id as text."""

    topic_id: str
    partitions: list[int]


class ClassicMember(Struct):
    """A member of a generation. Fields that a client has written are null where they cannot be
    read.
    """

    member_id: str
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = 0
    subscribed_topics: list[str] | None = None
    owned_partitions: list[ByName] | None = None
    rack_id: str | None = None
    assigned_partitions: list[ByName] | None = None


class Generation(Struct, tag=CLASSIC):
    """A classic group after a rebalance. Times are in microseconds, here and everywhere."""

    generation: int
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp: int | None = None
    members: list[ClassicMember] | None = None


class Epoch(Struct, tag=EPOCH):
    """The epoch of a consumer group."""

    epoch: int
    metadata_hash: int | None = None


class Member(Struct, tag=MEMBER):
    """What a member of a consumer group says of itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_session_timeout_ms: int | None = None
    classic_protocols: list[str] | None = None


class Computation(Struct):
    """How a target was made: see `kohort.records.schemas.Computation`."""

    assignor: str
    member_id: str | None = None
    reason: int = 0
    error: int = 0
    took_ms: int = 0
    why: str = ""


class TargetEpoch(Struct, tag=TARGET_EPOCH):
    """The epoch of the target assignment, and how it was made, where that is written."""

    assignment_epoch: int
    computation: Computation | None = None


class Current(Struct, tag=CURRENT):
    """What a member has, and what it has to give up."""

    member_epoch: int
    previous_member_epoch: int | None = None
    state: str | None = None
    assigned_partitions: list[ById] | None = None
    partitions_pending_revocation: list[ById] | None = None


class Expression(Struct, tag=EXPRESSION):
    """The topics that a regular expression matches."""

    topics: list[str] | None = None


class OtherRecord(Struct, tag=0):
    """A value of a record that matters only by being there."""


Value = Generation | Epoch | Member | TargetEpoch | Current | Expression | OtherRecord


class Record(Struct, tag_field="event", tag="record"):
    """A record, in the order of the log. Without a value it is a tombstone."""

    offset: int
    at: int | None
    type: int
    key: str | None = None
    """The member, or the regular expression, that the record is about; null for the group."""
    value: Value | None = None
    leader_epoch: int | None = None
    """Of the log's partition when it was written; null where the source does not tell."""
    causes: list[Because] = []
    """The causes that the coordinator has written; only Kohort's own writes any."""


class Commits(Struct, tag_field="event", tag="commits"):
    """Commits of a partition between two records of the group, or some of them."""

    offset: int
    """The offset in the log of the first of them. Of several runs, the one that began first ends a
    silence.
    """
    first_at: int | None
    at: int | None
    """When the last of them was written."""
    topic: str
    topic_partition: int
    count: int
    plain: bool = True
    """Outside of transactions: sent by the member itself, in the epoch that it is in."""
    first_committed: int | None = None
    """The offset that the first of them committed."""
    last_committed: int | None = None
    leader_epoch: int | None = None
    rest_since: int | None = None
    """The last time before its last commit in which nothing was written about the group, if it was
    longer than `outages.SHORTEST_REST_US`: from the latest time of any row before it on. Where
    commits come folded null is for: none since the first row that was read with them."""
    rest_until: int | None = None


Event = Record | Commits
