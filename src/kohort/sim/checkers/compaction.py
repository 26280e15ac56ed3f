# SPDX-License-Identifier: Apache-2.0
"""Cleaning leaves of each key its last value, and everything of a transaction that is open. Readers
of committed records do not pass where an open transaction begins.
"""

from typing import ClassVar

from kohort.sim.actors.holder import key_of
from kohort.sim.checkers.checker import Checker
from kohort.sim.lasting_facts import (
    CompactedRead,
    HeldRead,
)


class CompactionChecker(Checker):
    """Judged by what is read from the begin of a partition to its end."""

    name: ClassVar[str] = "compacted"
    hears: ClassVar = {CompactedRead: "read", HeldRead: "held"}

    def read(self, fact: CompactedRead) -> None:
        ends: dict[bytes, int] = {}
        for offset, value in fact.values.items():
            ends[key_of(value)] = max(offset, ends.get(key_of(value), -1))
        for key, offset in fact.last.items():
            if ends.get(key, -1) < offset:
                self.alarm(
                    f"key {key!r} of {fact.place[0].hex()[:8]} ends at {ends.get(key, -1)}, its"
                    f" record at {offset} is acknowledged and was replaced by none"
                )

    def held(self, fact: HeldRead) -> None:
        for offset, value in fact.opened.items():
            if fact.values.get(offset) != value:
                self.alarm(
                    f"{value!r} at {offset} of {fact.place[0].hex()[:8]} is in an open transaction,"
                    f" and {fact.values.get(offset)!r} is there"
                )
        first = min(fact.opened)
        if fact.stopped > first:
            self.alarm(
                f"a reader of committed records of {fact.place[0].hex()[:8]} has come to"
                f" {fact.stopped}, an open transaction begins at {first}"
            )
