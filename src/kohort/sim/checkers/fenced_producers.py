# SPDX-License-Identifier: Apache-2.0
"""Who has lost a transactional id to another producer is never served again (KIP-98)."""

from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import ProducerServed, ProducerTaken


class FencedProducers(Checker):
    """From the answer on that tells a producer its id and epoch nobody may be served at an earlier
    one who asks later. A producer id is no other transactional id's, and its successor is larger.
    """

    name: ClassVar[str] = "fenced producers"
    hears: ClassVar = {ProducerTaken: "taken", ProducerServed: "served"}

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._last: dict[str, ProducerTaken] = {}
        self._owners: dict[int, str] = {}

    def taken(self, fact: ProducerTaken) -> None:
        owner = self._owners.setdefault(fact.producer_id, fact.transactional_id)
        if owner != fact.transactional_id:
            self.alarm(
                f"producer id {fact.producer_id} belongs to {owner}, and to {fact.transactional_id}"
            )
        last = self._last.get(fact.transactional_id)
        if last is None or (last.producer_id, last.epoch) < (fact.producer_id, fact.epoch):
            self._last[fact.transactional_id] = fact
        elif (last.producer_id, last.epoch) == (fact.producer_id, fact.epoch):
            self.alarm(
                f"{fact.transactional_id} is given epoch {fact.epoch} of producer"
                f" {fact.producer_id} twice"
            )

    def served(self, fact: ProducerServed) -> None:
        last = self._last.get(fact.transactional_id)
        if last is None or (fact.producer_id, fact.epoch) >= (last.producer_id, last.epoch):
            return
        if fact.sent > last.at:
            self.alarm(
                f"{fact.transactional_id} is at epoch {last.epoch} of producer {last.producer_id}"
                f" since {last.at}, and {fact.what} is served at epoch {fact.epoch} of"
                f" {fact.producer_id} at {fact.sent}"
            )
