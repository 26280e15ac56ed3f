# SPDX-License-Identifier: Apache-2.0
"""The rows of a history: members, assignments and rebalances, as the tables have them.

A row is open while it may still change. Times are in microseconds since 1970, durations in seconds.
"""

from typing import Any, NamedTuple

from msgspec import Struct

JOIN = "join"
LEAVE = "leave"
SESSION_TIMEOUT = "session timeout"
REBALANCE_TIMEOUT = "rebalance timeout"
SUBSCRIPTION_CHANGE = "subscription change"
METADATA_CHANGE = "metadata change"
ASSIGNOR_CHANGE = "assignor change"
MIGRATION = "migration"
FOLLOW_UP = "cooperative follow-up"
REJOIN = "rejoin"
UNKNOWN = "unknown"
TRIGGERS = (
    MIGRATION,
    REBALANCE_TIMEOUT,
    SESSION_TIMEOUT,
    LEAVE,
    UNKNOWN,
    SUBSCRIPTION_CHANGE,
    ASSIGNOR_CHANGE,
    JOIN,
    METADATA_CHANGE,
    FOLLOW_UP,
    REJOIN,
)
"""The triggers in the order in which they name a rebalance that had several. `unknown` stands for a
member that is gone while the log does not say why: that is then the most important news.
"""

WENT_SILENT = "went silent"
LEFT_AT_WORK = "left at work"
COORDINATOR_AWAY = "coordinator away"


class Who(NamedTuple):
    """A member."""

    member_id: str
    client_id: str | None
    group_instance_id: str | None
    client_host: str | None

    @property
    def in_words(self) -> str:
        """The client that people know, where it runs, and the id."""
        host = f" at {self.client_host}" if self.client_host else ""
        known = f"{self.client_id or ''}{host}".strip()
        return f"{known} ({self.member_id})" if known else self.member_id


class Move(NamedTuple):
    """A partition that got an owner."""

    topic_id: str | None
    topic: str | None
    topic_partition: int
    from_member_id: str | None
    to_member_id: str


class OwnershipGap(NamedTuple):
    """A partition that lost its owner, and for how long it had none; null: it has none yet."""

    topic_id: str | None
    topic: str | None
    topic_partition: int
    seconds: float | None


class Unread(NamedTuple):
    """A partition that lost its owner, and for how long nobody read it, or why that is unknown."""

    topic_id: str | None
    topic: str | None
    topic_partition: int
    seconds: float | None
    since: int | None
    until: int | None
    unknown: str | None
    error_seconds: float | None
    """How far the commits of the owner were apart: neither the length nor the place is known better
    than that. Null where nothing is known.
    """


class Likely(NamedTuple):
    """A member that is gone, its likely fate, and what that rests on."""

    member_id: str
    client_id: str | None
    client_host: str | None
    likely: str | None
    silent_seconds: float | None
    usual_seconds: float | None


class AssignmentComputation(NamedTuple):
    """Who has computed an assignment: a member, or the broker, and then the reason."""

    assignor: str
    member_id: str | None
    seconds: float | None
    """How long it took from when the member was asked; null for the broker."""
    error: int | None
    """The error that the member's assignor told; 0 for none."""
    reason: int | None
    """The reason that a member had given for a new assignment; 0 for none."""
    why: str | None


class MemberRow(Struct, array_like=True):
    """A member, as long as what it says of itself stays the same."""

    group_type: str
    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    rack_id: str | None
    protocol: str
    assignors: list[str | None] | None
    subscribed_topics: list[str] | None
    subscribed_topic_regex: str | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int
    is_leader: bool | None
    valid_from: int | None
    from_offset: int
    valid_to: int | None = None
    to_offset: int | None = None


class AssignmentRow(Struct, array_like=True):
    """A partition and its owner."""

    group_type: str
    member_id: str
    topic_id: str | None
    topic: str | None
    topic_partition: int
    epoch: int
    last_epoch: int
    valid_from: int | None
    from_offset: int
    valid_to: int | None = None
    revoked_at: int | None = None
    to_offset: int | None = None
    gained_by: int | None = None
    lost_by: int | None = None


class RebalanceRow(Struct, array_like=True):
    """What a rebalance cost and what it was about."""

    group_type: str
    epoch: int
    offset: int
    started_at: int | None
    started_after: int | None
    started_before: int | None
    assigned_at: int | None
    ended_at: int | None
    seconds: float | None
    seconds_at_least: float | None
    seconds_at_most: float | None
    outcome: str
    trigger: str
    triggers: list[str]
    possible: list[str]
    likely: list[Likely]
    evidence: str
    joined: list[Who]
    gone: list[Who]
    changed: list[Who]
    members: int
    members_involved: int
    partitions_moved: int
    moves: list[Move]
    unowned: list[OwnershipGap]
    unread: list[Unread]
    unread_seconds: float | None
    longest_unread_seconds: float | None
    computed: AssignmentComputation | None = None


Row = MemberRow | AssignmentRow | RebalanceRow


def null_first(row: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    """A key by which rows are sorted as databases do: what is null comes first."""
    return tuple((value is not None, value) for value in row)


def distinct(members: list[Who]) -> list[Who]:
    """Each once, in the order in which they come."""
    return list(dict.fromkeys(members))


def seconds(begin: int | None, end: int | None) -> float | None:
    """From one time to another; null where one of them is."""
    return None if begin is None or end is None else (end - begin) / 1_000_000.0
