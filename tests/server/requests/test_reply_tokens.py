# SPDX-License-Identifier: Apache-2.0
"""An answer reaches the one that asked; what goes wrong on the way is that one's alone."""

import gc
from itertools import count as count_from

import pytest
from tests.prove.sweep.requests import Filler
from tests.server.apis.reads import READS, asked_desk
from tests.server.mutations import CASES
from tests.server.refusals import base, opened

from kohort.server.requests.reply_tokens import GatherToken, MappingToken, ask_in_sequence
from kohort.server.scheduler import CLIENTS_NS, Scheduler
from kohort.wire.apis import APIS


class Asked:
    """What came of a request."""

    def __init__(self):
        self.told = []

    def answer(self, response):
        self.told.append(response)

    def fail(self, error):
        self.told.append(repr(error))


def test_an_answer_may_change_its_shape_on_the_way():
    asked = Asked()
    MappingToken(asked, str.upper).answer("done")
    MappingToken(asked, str.upper).fail(ValueError("bad"))

    assert asked.told == ["DONE", "ValueError('bad')"]


def test_an_answer_that_cannot_be_changed_ends_the_request():
    asked = Asked()
    MappingToken(asked, lambda _: 1 / 0).answer("done")

    assert asked.told == ["ZeroDivisionError('division by zero')"]


def test_the_last_part_releases_the_whole_in_the_order_of_the_question():
    asked = Asked()
    gather = GatherToken(asked, 3, "".join)
    for index in (2, 0):
        gather.part(index).answer("abc"[index])
    before = list(asked.told)
    gather.part(1).answer("b")

    assert (before, asked.told) == ([], ["abc"])


def test_a_part_that_fails_fails_the_whole():
    asked = Asked()
    gather = GatherToken(asked, 2, "".join)
    gather.part(0).answer("a")
    gather.part(1).fail(OSError("gone"))

    assert asked.told == ["OSError('gone')"]


def at_leisure():
    """A scheduler whose time stands still: no slice is ever over."""
    scheduler = Scheduler(lambda: 0)
    scheduler.admits(None)
    return scheduler


@pytest.mark.parametrize("count", [0, 1, 3])
def test_parts_are_asked_for_one_after_the_other(count):
    asked, waiting, scheduler = Asked(), [], at_leisure()

    def ask(part, number):
        waiting.append((part, number))

    ask_in_sequence(scheduler, asked, count, ask, tuple)
    for number in range(count):
        ((part, index),) = waiting
        waiting.clear()
        assert (index, asked.told) == (number, [])
        part.answer(number * 10)
        assert not waiting  # others come first
        scheduler.run_round()

    assert (waiting, asked.told) == ([], [tuple(range(0, count * 10, 10))])


def test_very_many_parts_may_be_answered_at_once():
    asked = Asked()
    ask_in_sequence(at_leisure(), asked, 5_000, lambda part, at: part.answer(at), sum)

    assert asked.told == [sum(range(5_000))]


def test_parts_that_are_answered_at_once_let_others_in_when_a_slice_is_over():
    asked, clock = Asked(), count_from(0, CLIENTS_NS)
    scheduler = Scheduler(lambda: next(clock))
    ask_in_sequence(scheduler, asked, 20, lambda part, number: part.answer(number), list)
    rounds = 0
    while scheduler.waiting:
        scheduler.run_round()
        rounds += 1

    assert rounds > 5
    assert asked.told == [[*range(20)]]


def test_no_more_parts_are_asked_for_where_the_client_has_gone():
    asked, waiting, gone, scheduler = Asked(), [], [], at_leisure()
    ask = lambda part, number: waiting.append((part, number))  # noqa: E731
    ask_in_sequence(scheduler, asked, 3, ask, tuple, lambda: bool(gone))
    for number in range(2):
        part, index = waiting.pop()
        assert index == number
        if number:
            gone.append(True)
        part.answer(number)
        scheduler.run_round()
    assert (waiting, asked.told) == ([], [])


def test_a_part_that_cannot_be_asked_for_fails_the_whole():
    asked, scheduler = Asked(), at_leisure()

    def ask(part, number):
        if number:
            raise OSError("gone")
        part.answer("x")

    def fail(part, number):
        part.answer("x") if number == 0 else part.fail(OSError("gone"))

    ask_in_sequence(scheduler, asked, 2, fail, tuple)
    assert asked.told == ["OSError('gone')"]
    with pytest.raises(OSError, match="gone"):  # nothing is parked yet: the caller tells
        ask_in_sequence(scheduler, Asked(), 2, ask, tuple)


def test_a_later_part_that_cannot_be_asked_for_fails_the_whole():
    asked, parts, scheduler = Asked(), [], at_leisure()

    def ask(part, number):
        if number:
            raise OSError("gone")
        parts.append(part)

    ask_in_sequence(scheduler, asked, 2, ask, tuple)
    parts[0].answer("x")
    scheduler.run_round()
    assert asked.told == ["OSError('gone')"]


@pytest.fixture(scope="module", autouse=True)
def what_was_there_is_not_looked_at():
    """Other tests of the process may have left a gigabyte."""
    gc.collect()
    gc.freeze()  # for good, as tests/conftest.py has it: no collection looks at it again


def in_cycles(act):
    """What is ours and only Python's look for cycles finds after that."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        act()
        gc.collect()
        ours = [one for one in gc.garbage if type(one).__module__.startswith("kohort")]
        return {type(one).__name__ for one in ours}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_what_is_in_cycles_is_found():
    def act():
        mapped = MappingToken(None, lambda _: mapped)

    assert in_cycles(act) == {"MappingToken"}


@pytest.mark.parametrize("what", READS)
def test_a_question_and_its_answer_are_gone_when_it_was_read(what):
    """A tool that polls would hold many answers otherwise, and an idle broker keeps them."""
    desk = asked_desk()
    version, asked = READS[what]
    desk.ask(asked(2), version)
    assert in_cycles(lambda: desk.ask(asked(2), version)) == set()


@pytest.mark.parametrize("what", CASES)
def test_a_change_and_its_answer_are_gone_when_it_was_read(what):
    disk, now, _ = base()
    desk = opened(disk.after_crash(), now)

    def act():
        CASES[what](desk)
        desk.settle()

    assert in_cycles(act) == set()


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_what_a_refusal_went_through_is_not_kept_with_it(api):
    """A caught error has the frames that raised it, and these have all that they worked on."""
    desk = asked_desk()
    filler = Filler(api, [])
    found = {}
    for way in filler.ways():
        few = way._replace(count=min(way.count, 3), inner=2)

        def act(few=few):
            desk.send(filler.request(few), filler.version)
            desk.settle()

        act()
        found[way.name] = in_cycles(act)
    assert {name: kept for name, kept in found.items() if kept} == {}
