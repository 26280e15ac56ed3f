# SPDX-License-Identifier: Apache-2.0
"""What has a lifetime is there until it is over, and not for ever.

The offsets of a group live as long as somebody in it reads their topic, and for
offsets.retention.minutes from then on (KIP-211). Records live for retention.ms.
"""

from typing import ClassVar

from kohort.sim.checkers.checker import Checker
from kohort.sim.lasting_facts import (
    LifetimeSeen,
)


class Lifetimes(Checker):
    name: ClassVar[str] = "lifetimes"
    hears: ClassVar = {LifetimeSeen: "seen"}

    def seen(self, fact: LifetimeSeen) -> None:
        if not fact.there and fact.at < fact.lives_until:
            left = (fact.lives_until - fact.at) / 1e6
            self.alarm(f"{fact.thing} is gone {left:.1f} s before its time is over")
        if fact.there and fact.gone_by <= fact.sent:
            late = (fact.sent - fact.gone_by) / 1e6
            self.alarm(f"{fact.thing} is there {late:.1f} s after it should be gone")
