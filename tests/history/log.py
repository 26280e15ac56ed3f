# SPDX-License-Identifier: Apache-2.0
"""A group's log as tests write it, and what its history tells."""

from typing import Any

from kohort.history import AssignmentRow, Commits, History, HistoryInputs, MemberRow, Names, Record
from kohort.history.events import (
    CLASSIC,
    CURRENT,
    EPOCH,
    EXPRESSION,
    MEMBER,
    STABLE,
    TARGET_EPOCH,
    TOPICS,
    ById,
    ByName,
    ClassicMember,
    Current,
    Epoch,
    Expression,
    Generation,
    Member,
    OtherRecord,
    TargetEpoch,
)

START = 1_790_000_000_000_000
NAMES = {"orders-id": "orders", "payments-id": "payments"}
SECOND = 1_000_000


def epoch(number, metadata_hash=1, **more):
    """The record of an epoch; None ends the group."""
    value = None if number is None else Epoch(number, metadata_hash)
    return Record(0, 0, EPOCH, None, value, **more)


def topics(*, there=True):
    return Record(0, 0, TOPICS, None, OtherRecord() if there else None)


def member(name, **fields):
    given = {"client_id": f"{name}-client", "client_host": "/10.0.0.1", **fields}
    given.setdefault("subscribed_topic_names", ["orders"])
    given.setdefault("rebalance_timeout_ms", 60_000)
    return Record(0, 0, MEMBER, name, Member(**given))


def end_of(name, **more):
    return Record(0, 0, MEMBER, name, None, **more)


def target(number, computation=None):
    return Record(0, 0, TARGET_EPOCH, None, TargetEpoch(number, computation))


def has(name, number, *orders, before=None, state=STABLE, giving_up=(), **more):
    """What a member has at an epoch; `before` is the one before, 0 for a new member."""
    owned = [ById("orders-id", [*orders])] if orders else []
    revoked = [ById("orders-id", [*giving_up])] if giving_up else []
    last = number - 1 if before is None else before
    value = Current(number, last, state, owned, revoked)
    return Record(0, 0, CURRENT, name, value, **more)


def has_nothing(name, **more):
    return Record(0, 0, CURRENT, name, None, **more)


def expression(text, *matched):
    return Record(0, 0, EXPRESSION, text, Expression([*matched]))


def classic(name, *orders, session_ms=10_000, claims=(), topics=("orders",), instance=None):
    return ClassicMember(
        name,
        instance,
        f"{name}-client",
        "/10.0.0.1",
        60_000,
        session_ms,
        [*topics],
        [ByName("orders", [*claims])] if claims else [],
        None,
        [ByName("orders", [*orders])] if orders else [],
    )


def generation(number, *members, protocol="range", joined_at=None, **more):
    """The record of a generation; its first member leads, and all had joined by that second."""
    at = None if joined_at is None else START + int(joined_at * SECOND)
    leader = members[0].member_id if members else None
    value = Generation(number, protocol, leader, at, [*members])
    return Record(0, 0, CLASSIC, None, value, **more)


def end_of_classic(**more):
    return Record(0, 0, CLASSIC, None, None, **more)


class Log:
    """Events in the order in which they are written, at the second that the log is at."""

    def __init__(self) -> None:
        self.events: list[Record | Commits] = []
        self.offset = 0
        self.seconds = 0.0
        self.leader_epoch: int | None = 0

    @property
    def now(self):
        return START + int(self.seconds * SECOND)

    def at(self, seconds):
        self.seconds = seconds
        return self

    def write(self, *records):
        """Records of one write; a hole in the offsets parts it from the next."""
        for record in records:
            record.offset, record.at, record.leader_epoch = self.offset, self.now, self.leader_epoch
            self.events.append(record)
            self.offset += 1
        self.offset += 1
        return records[-1].offset

    def commit(self, committed, topic_partition=0, topic="orders", *, plain=True):
        self.events.append(
            Commits(
                self.offset,
                self.now,
                self.now,
                topic,
                topic_partition,
                1,
                plain,
                committed,
                committed,
                self.leader_epoch,
            )
        )
        self.offset += 1

    def commits(self, begin, end, every=1.0, per_second=10, partitions=(0,)):
        """Commits from one second to another, of what was read so far."""
        at = begin
        while at <= end + 1e-9:
            self.at(at)
            for index in partitions:
                self.commit(round(at * per_second), index)
            at += every


class Tables:
    """The rows of a history: those that are over, and those that may still change."""

    def __init__(self, rows):
        self.members, self.assignments, self.rebalances = [], [], []
        for row in rows:
            if isinstance(row, MemberRow):
                self.members.append(row)
            elif isinstance(row, AssignmentRow):
                self.assignments.append(row)
            else:
                self.rebalances.append(row)
        for rows_of_table in (self.members, self.assignments):
            rows_of_table.sort(key=lambda row: row.from_offset)
        self.rebalances.sort(key=lambda row: row.offset)

    def epoch(self, number):
        """The one rebalance to an epoch."""
        found = [row for row in self.rebalances if row.epoch == number]
        assert len(found) == 1, found
        return found[0]


def told(session_timeout_ms=None, complete_offset: Any = 0):
    return HistoryInputs(Names(NAMES), session_timeout_ms, complete_offset)


def tables(log, session_timeout_ms=None, complete_offset=0):
    history = History(told(session_timeout_ms, complete_offset))
    history.feed(log.events)
    return Tables([*history.closed, *history.open_rows()])


def at(micros):
    """A time of a row in seconds since the log began."""
    return None if micros is None else (micros - START) / SECOND
