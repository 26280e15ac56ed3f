# SPDX-License-Identifier: Apache-2.0
"""What a consumer hands out: only of partitions that it has, in order, nothing left out, and not
for long beside somebody else.

A consumer has a partition from the instant at which the application is told so, until it is told
otherwise. While it does, each record comes after the one before, and between two of them there is
none that it should have been given too; a seek begins anew. Two consumers of a group may both
believe that they have a partition: one was silent and does not know yet. That has to end within the
session and a heartbeat after the other one was given its first record.
"""

from collections import defaultdict
from typing import ClassVar

from kohort.sim.checkers.checker import Alarm
from kohort.sim.checkers.final_records import HEARS, FinalRecords
from kohort.sim.programs.facts import (
    ClientGone,
    CommitRefused,
    ConsumerSeek,
    Part,
    PartitionPause,
    PartitionsAssigned,
    PartitionsUnassigned,
    RecordHandedOut,
)

HEARTBEAT_US = 3_000_000  # the longest
SLACK_US = (
    12_000_000  # an answer on its way when the network is at its worst, and a new coordinator
)


class Span:
    """One consumer and one partition, from beginning to end."""

    def __init__(self, fact: PartitionsAssigned) -> None:
        self.client = fact.client
        self.committed_only = fact.committed_only
        self.session_us = fact.session_us
        self.next: int | None = None  # the first offset that may come
        self.paused = False
        self.began: int | None = None  # when it was handed the first record
        self.disowned: int | None = None
        self.rival: tuple[int, str] | None = None  # who else has begun since, and when


class ConsumptionChecker(FinalRecords):
    name: ClassVar[str] = "handed"
    hears: ClassVar = {
        **HEARS,
        PartitionsAssigned: "assigned",
        PartitionsUnassigned: "unassigned",
        RecordHandedOut: "handed",
        ConsumerSeek: "sought",
        PartitionPause: "paused",
        CommitRefused: "disowned",
        ClientGone: "gone",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self.session_us = 45_000_000  # of members whose broker decides: the longest of the run
        self._spans: dict[tuple[str, Part], dict[str, Span]] = defaultdict(dict)
        self._of: dict[str, dict[Part, Span]] = defaultdict(dict)  # by client
        self._given: dict[tuple[Part, bool], dict[int, bytes]] = defaultdict(dict)
        self._left_out: dict[tuple[Part, bool], dict[tuple[int, int], str]] = defaultdict(dict)

    def assigned(self, fact: PartitionsAssigned) -> None:
        for part in fact.parts:
            span = Span(fact)
            self._of[fact.client][part] = span
            self._spans[fact.group, part][fact.client] = span

    def unassigned(self, fact: PartitionsUnassigned) -> None:
        for part in fact.parts:
            self._end(fact.client, part)

    def gone(self, fact: ClientGone) -> None:
        for part in list(self._of[fact.client]):
            self._end(fact.client, part)

    def _end(self, client: str, part: Part) -> None:
        self._of[client].pop(part, None)
        for (_, other), spans in self._spans.items():
            if other == part:
                spans.pop(client, None)

    def handed(self, fact: RecordHandedOut) -> None:
        span = self._of[fact.client].get(fact.part)
        shown = f"{fact.client} gets offset {fact.offset} of {_shown(fact.part)}"
        if span is None:
            self.alarm(f"{shown}, which it does not have")
            return
        if span.paused:
            self.alarm(f"{shown}, which it has paused")
        if span.next is not None and fact.offset < span.next:
            self.alarm(f"{shown} after {span.next - 1}")
        if span.next is not None and fact.offset > span.next:
            gaps = self._left_out[fact.part, span.committed_only]
            gaps.setdefault((span.next, fact.offset), fact.client)
        given = self._given[fact.part, span.committed_only]
        if given.setdefault(fact.offset, fact.value) != fact.value:
            self.alarm(f"{shown}, {fact.value!r}, which was {given[fact.offset]!r} before")
        span.next = fact.offset + 1
        if span.began is None:
            span.began = fact.at
            for other in self._spans[fact.group, fact.part].values():
                if other is not span and other.began is not None and other.rival is None:
                    other.rival = fact.at, fact.client
        self._judge_time(span, fact, shown)

    def _judge_time(self, span: Span, fact: RecordHandedOut, shown: str) -> None:
        if span.disowned is not None and fact.at > span.disowned:
            late_s = (fact.at - span.disowned) / 1e6
            self.alarm(f"{shown}, {late_s:.1f} s after its group has refused a commit of it")
        if span.rival is not None:
            since, other = span.rival
            session_us = self.session_us if span.session_us is None else span.session_us
            if fact.at > since + session_us + HEARTBEAT_US + SLACK_US:
                late_s = (fact.at - since) / 1e6
                self.alarm(f"{shown}, {late_s:.1f} s after {other} has begun with it")

    def sought(self, fact: ConsumerSeek) -> None:
        span = self._of[fact.client].get(fact.part)
        if span is not None:
            span.next = fact.offset

    def paused(self, fact: PartitionPause) -> None:
        span = self._of[fact.client].get(fact.part)
        if span is not None:
            span.paused = fact.on

    def disowned(self, fact: CommitRefused) -> None:
        for span in self._of[fact.client].values():
            if span.disowned is None:
                span.disowned = fact.at

    def at_the_end(self) -> None:
        """What was handed out is there, and between two of its records there is no other one."""
        for (part, committed), given in self._given.items():
            found = self.records(part, committed=committed)
            if found is None:
                continue
            for offset, value in given.items():
                if found.get(offset) != value:
                    self.alarm(
                        f"{value!r} was handed out as offset {offset} of {_shown(part)},"
                        f" which is {found.get(offset)!r} for such a reader"
                    )
        for (part, committed), gaps in self._left_out.items():
            there = self.records(part, committed=committed)
            if there is None:
                continue
            for (start, end), client in gaps.items():
                lost = [offset for offset in range(start, end) if offset in there]
                if lost:
                    self.alarm(
                        f"{client} gets offset {end} of {_shown(part)} and was not given"
                        f" {len(lost)} records before it, from {lost[0]} on"
                    )


def _shown(part: Part) -> str:
    return f"{part[0]}-{part[1]}"
