# SPDX-License-Identifier: Apache-2.0
"""One owner: no two members that are not fenced own a partition of their group at the same time.

A member owns a partition from the answer that gives it to it. That the coordinator still counted it
as a member at some later instant is proven by a heartbeat that left at that instant and was
accepted. Two such spans of two members must not overlap.

And a member that was told nothing else goes on as an owner until its session ends, counted from the
last heartbeat that was accepted. Until then nobody may be given what it need not give up.
"""

from collections import defaultdict
from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import (
    HeartbeatAccepted,
    MemberExpelled,
    MemberLeft,
    OwnershipBelief,
    PartitionId,
)

KEPT = 6  # spans of a partition that are looked at: older ones have ended long ago


class Owners(Checker):
    name: ClassVar[str] = "owners"
    hears: ClassVar = {
        HeartbeatAccepted: "accepted",
        OwnershipBelief: "believes",
        MemberLeft: "ended",
        MemberExpelled: "ended",
    }

    def __init__(self, alarm: Alarm, session_us: int = 6_000_000) -> None:
        super().__init__(alarm)
        self.session_us = session_us  # the shortest of the run
        self._beliefs: dict[tuple[str, str], OwnershipBelief] = {}
        self._spans: dict[tuple[str, PartitionId], dict[tuple[str, int], int]] = defaultdict(dict)

    def accepted(self, fact: HeartbeatAccepted) -> None:
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

    def believes(self, fact: OwnershipBelief) -> None:
        """An answer that was on its way for longer than a session gives nothing: others may have
        been given the same meanwhile.
        """
        is_late = fact.at >= self._until(fact)
        for (group, other), belief in self._beliefs.items():
            if is_late or group != fact.group or other == fact.member:
                continue
            until = self._until(belief)
            for place in sorted(fact.owned & belief.owned) if fact.at < until else ():
                self.alarm(
                    f"{place[0].hex()[:8]}-{place[1]} of {group} is given to {fact.member} by"
                    f" {fact.at}, and {other} was accepted with it at {belief.sent} and told"
                    " nothing since"
                )
        self._beliefs[fact.group, fact.member] = fact

    def _until(self, belief: OwnershipBelief) -> int:
        """When its session ends, unless the member is heard of again."""
        return belief.sent + (belief.session_us or self.session_us)

    def ended(self, fact: MemberLeft | MemberExpelled) -> None:
        self._beliefs.pop((fact.group, fact.member), None)
