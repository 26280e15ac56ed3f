# SPDX-License-Identifier: Apache-2.0
"""A member that has left is none, as soon as it is told so."""

from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.lasting_facts import (
    BrokerStarted,
    LogReloaded,
    MemberDeparted,
    MembersSeen,
)


class DepartedMembers(Checker):
    """Judged by descriptions that were asked for after the leave was acknowledged. Nobody comes
    back under the same member id.
    """

    name: ClassVar[str] = "departed"
    hears: ClassVar = {
        MemberDeparted: "departed",
        MembersSeen: "seen",
        BrokerStarted: "read_again",
        LogReloaded: "read_again",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._departed: dict[tuple[str, str], MemberDeparted] = {}

    def departed(self, fact: MemberDeparted) -> None:
        self._departed[fact.group, fact.member] = fact

    def read_again(self, _fact: BrokerStarted | LogReloaded) -> None:
        self._departed = {member: fact for member, fact in self._departed.items() if fact.for_good}

    def seen(self, fact: MembersSeen) -> None:
        for member in fact.members:
            left = self._departed.get((fact.group, member))
            if left is not None and left.at < fact.sent:
                self.alarm(
                    f"{member} has left {fact.group} at {left.at}, and is a member at {fact.sent}"
                )
