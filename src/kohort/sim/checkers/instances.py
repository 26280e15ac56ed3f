# SPDX-License-Identifier: Apache-2.0
"""An instance id has one member: who has lost it to another is never served again (KIP-345)."""

from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import InstanceConfirmed


class Instances(Checker):
    """A member takes an instance id by joining. From the answer that tells it so on, no heartbeat
    of the one before it may be accepted that was sent later; it would have to join again.
    """

    name: ClassVar[str] = "instances"
    hears: ClassVar = {InstanceConfirmed: "named"}

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._holders: dict[tuple[str, str], InstanceConfirmed] = {}

    def named(self, fact: InstanceConfirmed) -> None:
        holder = self._holders.get((fact.group, fact.instance))
        if holder is None or holder.member == fact.member or fact.anew:
            self._holders[fact.group, fact.instance] = fact
        elif fact.sent > holder.at:
            self.alarm(
                f"{fact.instance} of {fact.group} belongs to {holder.member} since {holder.at} or"
                f" before, and {fact.member} is served with it at {fact.sent}"
            )
