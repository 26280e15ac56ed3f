"""Producers that lie: foreign ids, epochs that are past or never were, ends of what is not theirs,
and markers that are told of late, twice or for another decision.
"""

from random import Random

import pytest
from tests.transactions.desk import P0, P1, Desk

from kohort.runtime.loader import load
from kohort.sim.checkers.replayed_transactions import differences
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
            producer = random.choice([(-1, -1), self.producer(name)])
            desk.init(name, producer=producer, timeout=random.choice([1, 1000, 60_000]))
        elif what == "enrol":
            places = random.choice([(P0,), (P1,), (P0, P1)])
            desk.enrol(self.producer(name), *places, name=name)
        elif what == "end":
            commit, version = random.random() < 0.5, random.choice([3, 4, 5])
            desk.end(self.producer(name), commit=commit, version=version, name=name)
        elif what == "wait":
            desk.wait(random.choice([0, 10, 1000, 70_000]))
        elif random.random() < 0.5:
            desk.written(*random.choice([(), (), (P0,), (P0, P1)]))
        elif self.markers:  # late, twice, for another id, for another decision
            one, other = random.choice(self.markers), random.choice(self.markers)
            name = random.choice([one.transactional_id, other.transactional_id])
            ticket = random.choice([one.ticket, Ticket()])
            written = random.choice([(), other.partitions])
            desk.tell(MarkersWritten(name, ticket, written, ()))
        if random.random() < 0.05:
            desk.restart()

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
        for one in self.desk.sent:
            if one not in self.markers:
                self.markers.append(one)
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
        desk.written()
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
