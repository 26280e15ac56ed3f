"""One owner: no two members that are not fenced own a partition of their group at the same time.

A member owns a partition from the answer that gives it to it. That the coordinator still counted it
as a member at some later instant is proven by a heartbeat that left at that instant and was
accepted. Two such spans of two members must not overlap.
"""

from collections import defaultdict
from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import Accepted, Place

KEPT = 6  # spans of a partition that are looked at: older ones have ended long ago


class Owners(Checker):
    name: ClassVar[str] = "owners"
    hears: ClassVar = {Accepted: "accepted"}

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._spans: dict[tuple[str, Place], dict[tuple[str, int], int]] = defaultdict(dict)

    def accepted(self, fact: Accepted) -> None:
        for place, since in fact.owned.items():
            spans = self._spans[fact.group, place]
            spans[fact.member, since] = fact.sent
            for (other, start), end in spans.items():
                if other != fact.member and start < fact.sent and since < end:
                    self.alarm(
                        f"{place[0].hex()[:8]}-{place[1]} of {fact.group} is owned by"
                        f" {fact.member} from {since} to {fact.sent}"
                        f" and by {other} from {start} to {end}"
                    )
            while len(spans) > KEPT:
                del spans[next(iter(spans))]
