# SPDX-License-Identifier: Apache-2.0
"""The epoch of a member never goes back while it is the same member."""

from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import HeartbeatAccepted, MemberExpelled, MemberJoined, MemberLeft


class Epochs(Checker):
    """A member that joins anew is another one: it begins where the group is then, which is never
    before where it has been, as long as the group has members or offsets.
    """

    name: ClassVar[str] = "epochs"
    hears: ClassVar = {
        HeartbeatAccepted: "accepted",
        MemberJoined: "anew",
        MemberLeft: "anew",
        MemberExpelled: "anew",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._epochs: dict[tuple[str, str], int] = {}

    def anew(self, fact: MemberJoined | MemberLeft | MemberExpelled) -> None:
        self._epochs.pop((fact.group, fact.member), None)

    def accepted(self, fact: HeartbeatAccepted) -> None:
        before = self._epochs.get((fact.group, fact.member), fact.epoch)
        if fact.epoch < before:
            self.alarm(f"{fact.member} of {fact.group} goes from {before} back to {fact.epoch}")
        self._epochs[fact.group, fact.member] = fact.epoch
