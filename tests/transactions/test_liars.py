# SPDX-License-Identifier: Apache-2.0
"""Producers that lie: foreign ids, epochs that are past or never were, ends of what is not theirs,
and markers that are told of late, twice or for another decision.
"""

from random import Random

import pytest
from tests.transactions.desk import P0, P1, Desk

from kohort.runtime.loader import load
from kohort.sim.checkers.transaction_replay import differences
from kohort.terms import TopicPartition
from kohort.transactions.messages import Markers, MarkersWritten, Ticket
from kohort.transactions.transaction import TransactionState

NAMES = ["t", "t", "u", "v"]
DONE = ("", "Empty", "CompleteCommit", "CompleteAbort")


class World:
    """A desk, and what was true before of each producer id."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.desk = Desk()
        self.epochs: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.markers: list[Markers] = []  # all that were ever given out
        self.decided: dict[str, TransactionState] = {}
        self.tickets: dict[str, Ticket] = {}  # of the markers that are being written
        self.unwritten: dict[str, set[TopicPartition]] = {}  # which of these are not told of

    def producer(self, name: str) -> tuple[int, int]:
        known = self.desk.driver.machine.transactions.get(name)
        theirs = [(known.producer_id, known.epoch)] * 6 if known else []
        other = self.random.choice([*self.epochs, 1, 999])
        near = self.random.choice([-1, 1, 2])
        theirs += [(one, max(epoch + near, -1)) for one, epoch in theirs[:2]]
        return self.random.choice([*theirs, (other, self.random.randrange(-1, 4)), (-1, -1)])

    def act(self) -> None:
        random, desk = self.random, self.desk
        name = random.choice(NAMES)
        what = random.choice(["init", "enrol", "enrol", "end", "end", "told", "told", "wait"])
        if what == "init":
            self.init(name)
        elif what == "enrol":
            places = random.choice([(P0,), (P1,), (P0, P1)])
            producer, own = self.producer(name), self.own(name)
            if desk.enrol(producer, *places, name=name).code == 0:
                assert producer == own, "a stranger's partitions"
        elif what == "end":
            self.end(name, commit=random.random() < 0.5, version=random.choice([3, 4, 5]))
        elif what == "wait":
            desk.wait(random.choice([0, 10, 1000, 70_000]))
        elif random.random() < 0.5:
            self.written(*random.choice([(), (), (P0,), (P0, P1)]))
        elif self.markers:  # late, twice, for another id, for another decision
            one, other = random.choice(self.markers), random.choice(self.markers)
            name = random.choice([one.transactional_id, other.transactional_id])
            ticket = random.choice([one.ticket, Ticket()])
            written = random.choice([(), other.partitions])
            self.told(name, ticket, set(written))
            desk.tell(MarkersWritten(name, ticket, written, ()))
        if random.random() < 0.05:
            desk.restart()

    def own(self, name: str) -> tuple[int, int] | None:
        """The producer that may act."""
        known = self.desk.known(name)
        return None if known is None else (known.producer_id, known.epoch)

    def init(self, name: str) -> None:
        producer = self.random.choice([(-1, -1), self.producer(name)])
        timeout = self.random.choice([1, 1000, 60_000])
        known = self.desk.known(name)
        answer = self.desk.init(name, producer=producer, timeout=timeout)
        if answer.error_code or producer == (-1, -1) or known is None:
            return
        assert producer[0] in (known.producer_id, known.previous_producer_id), "a stranger's id"
        assert producer[1] in (known.epoch, known.epoch - 1), "a stranger's epoch"
        again = self.desk.init(name, producer=producer, timeout=timeout)
        assert (again.producer_id, again.producer_epoch) == (
            answer.producer_id,
            answer.producer_epoch,
        ), "the answer that got lost was another"

    def end(self, name: str, *, commit: bool, version: int) -> None:
        producer, own = self.producer(name), self.own(name)
        former = self.desk.known(name)
        if self.desk.end(producer, commit=commit, version=version, name=name).error_code == 0:
            lately = {own}
            if version >= 5 and former is not None and former.state.value.startswith("Complete"):
                lately.add((former.producer_id, former.epoch - 1))
            assert producer in lately, "a stranger's end"

    def note(self) -> None:
        """The markers that are asked for."""
        for one in self.desk.sent:
            if one in self.markers:
                continue
            self.markers.append(one)
            if self.tickets.get(one.transactional_id) is not one.ticket:
                self.tickets[one.transactional_id] = one.ticket
                self.unwritten[one.transactional_id] = set(one.partitions)

    def written(self, *failed: TopicPartition) -> None:
        self.note()
        for one in self.desk.sent:
            self.told(one.transactional_id, one.ticket, set(one.partitions) - set(failed))
        self.desk.written(*failed)

    def told(self, name: str, ticket: Ticket, written: set[TopicPartition]) -> None:
        if self.tickets.get(name) is ticket:
            self.unwritten[name] -= written

    def look(self) -> None:
        live = self.desk.driver.machine
        for name, known in live.transactions.items():
            assert self.names.setdefault(known.producer_id, name) == name, "an id has two names"
            assert known.epoch >= self.epochs.get(known.producer_id, -1), "an epoch went back"
            self.epochs[known.producer_id] = known.epoch
            former = self.decided.pop(name, None)
            if former is not None:
                assert known.state.commits is former.commits, "another decision"
            if known.state.decided:
                self.decided[name] = known.state
            if known.state.value.startswith("Complete"):
                assert not self.unwritten.get(name), "over before its markers are written"
        self.note()
        fresh = self.desk.driver._new_machine()
        for _ in load(self.desk.log, fresh):
            pass
        assert list(differences(live, fresh)) == []


@pytest.mark.parametrize("seed", range(40))
def test_a_transactional_id_keeps_its_promises(seed: int) -> None:
    world = World(seed)
    for _ in range(80):
        world.act()
        world.look()
    desk = world.desk
    desk.restart()
    for _ in range(10):
        world.written()
        desk.wait(70_000)
        world.look()
    for name in sorted(set(NAMES)):
        assert desk.state(name) in DONE
        answer = desk.init(name)
        assert answer.error_code == 0
        producer = answer.producer_id, answer.producer_epoch
        assert desk.enrol(producer, P0, name=name).code == 0
        assert desk.end(producer, name=name).error_code == 0
        desk.written()
        assert desk.state(name) == "CompleteCommit"
