# SPDX-License-Identifier: Apache-2.0
"""A group that goes over to another protocol loses no commit, and forgets no member."""

from collections import defaultdict
from typing import ClassVar

from kohort.sim.actors.classic_member import SESSION_MS
from kohort.sim.checkers.checker import Alarm
from kohort.sim.checkers.commits import Commits
from kohort.sim.facts import (
    CommitRead,
    MemberCommitLost,
    MemberCommitSent,
    MemberCommitted,
    MemberForgotten,
    MemberLooked,
)

KEPT = 100  # commits of a partition that are remembered: the older ones are smaller


class MigrationChecker(Commits):
    """As `Commits`, for what members commit: whoever looks finds at least what anybody had been
    told is committed before. A classic member whose heartbeat was accepted is known for as long as
    its session from then on.
    """

    name: ClassVar[str] = "migrated"
    hears: ClassVar = {
        MemberCommitSent: "sent",
        MemberCommitLost: "lost",
        MemberCommitted: "committed",
        MemberLooked: "looked",
        MemberForgotten: "forgotten",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._committed: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)

    def committed(self, fact: MemberCommitted) -> None:
        known = self._committed[fact.group, fact.partition]
        known.append((fact.at, fact.offset))
        del known[:-KEPT]

    def looked(self, fact: MemberLooked) -> None:
        known = self._committed[fact.group, fact.partition]
        floor = max((offset for at, offset in known if at <= fact.sent), default=-1)
        self.read(CommitRead(fact.group, fact.partition, fact.offset, floor, fact.sent))

    def forgotten(self, fact: MemberForgotten) -> None:
        silent_us = fact.at - fact.heard
        if silent_us < SESSION_MS * 1000:
            self.alarm(
                f"{fact.member} of {fact.group} is forgotten {silent_us / 1e6:.1f} s after a"
                f" heartbeat that was accepted, its session has {SESSION_MS / 1e3:.1f} s"
            )
