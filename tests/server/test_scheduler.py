# SPDX-License-Identifier: Apache-2.0
"""Who runs next, and for how long: with a stopwatch that each step moves."""

from collections.abc import Callable

import pytest

from kohort.server.scheduler import (
    ARRIVAL_NS,
    BACKGROUND,
    BACKGROUND_NS,
    CLIENTS,
    CLIENTS_BUSY_NS,
    CLIENTS_NS,
    MACHINES,
    MACHINES_NS,
    NEW,
    SAVED_NS,
    SLICE_NS,
    Over,
    Scheduler,
)

STEP_NS = SLICE_NS[CLIENTS] // 10


class Watch:
    def __init__(self) -> None:
        self.ns = 1

    def __call__(self) -> int:
        return self.ns


class Work:
    """Has so many steps to take, each of which takes a tenth of a client's slice."""

    def __init__(self, world: "World", name: str, steps: int, line: int) -> None:
        self.world, self.name, self.steps, self.line = world, name, steps, line
        self.had_ns = NEW
        self.step_ns = STEP_NS
        self.then: Callable[[], None] = lambda: None

    def run(self, over: Over) -> bool:
        self.world.taken.append(self.name)
        while self.steps:
            self.steps -= 1
            self.world.watch.ns += self.step_ns
            self.world.used_ns[self.line] += self.step_ns
            self.then()
            if over():
                break
        return self.steps > 0


class World:
    def __init__(self) -> None:
        self.watch = Watch()
        self.taken: list[str] = []
        self.used_ns = [0, 0, 0]
        self.scheduler = Scheduler(self.watch)

    def work(self, name: str, steps: int, line: int = CLIENTS) -> Work:
        return Work(self, name, steps, line)

    def enter(self, name: str, steps: int, line: int = CLIENTS) -> Work:
        work = self.work(name, steps, line)
        self.scheduler.enter(work)
        return work

    def round(self) -> list[str]:
        """Who ran in it, in order."""
        self.taken.clear()
        self.scheduler.run_round()
        return list(self.taken)

    def served(self, work: Work) -> None:
        """Have somebody served so that it is not new any more."""
        work.steps = 1
        self.scheduler.enter(work)
        while work.steps:
            self.scheduler.run_round()


@pytest.fixture
def world():
    return World()


def test_those_who_have_more_to_do_get_a_slice_in_turn(world):
    for name in "abc":
        world.enter(name, 25)
    short = world.enter("short", 1)

    assert world.round() == ["a", "b", "c", "short", *"abcabc"]
    assert short not in world.scheduler.waiting


def test_a_round_ends_with_the_share_of_its_line_and_the_rest_keep_their_places(world):
    names = [f"{number:02}" for number in range(30)]
    for name in names:
        world.enter(name, 1000)
    in_a_round = CLIENTS_NS // SLICE_NS[CLIENTS]

    assert world.round() == names[:in_a_round]
    assert world.round() == [*names[in_a_round:], *names[: 2 * in_a_round - 30]]


def test_who_has_entered_again_keeps_its_place_though_its_slice_fails(world):
    def fail():
        world.scheduler.enter(work)
        raise ZeroDivisionError("a bug")

    work = world.enter("a", 2)
    work.then = fail
    with pytest.raises(ZeroDivisionError):
        world.round()
    assert work in world.scheduler.waiting
    work.then = lambda: None
    assert world.round() == ["a"]


def test_who_waits_keeps_its_place_however_often_it_enters(world):
    last = [world.enter(name, 25) for name in "abc"][-1]
    for _ in range(3):
        world.scheduler.enter(last)
    world.enter("new", 1)
    assert world.round()[:4] == [*"abc", "new"]


@pytest.mark.parametrize("crowd", [20, 1000])
def test_who_asks_for_little_waits_for_two_slices_however_many_have_much_to_do(world, crowd):
    light = world.work("light", 0)
    world.served(light)
    heavy = [world.enter(f"heavy {number}", 10_000) for number in range(crowd)]
    for _ in range(crowd):
        world.round()  # the crowd has had some
    for _ in range(100):
        world.round()
        light.steps = 1
        world.scheduler.enter(light)
        assert "light" in world.round()[:3]
    assert max(one.steps for one in heavy[:20]) < 10_000, "they are served, too"


def test_who_comes_back_with_more_each_time_is_not_one_who_asks_for_little(world):
    """Each of a crowd sends as much as fits in a slice, whenever it is answered."""
    light, crowd = world.work("light", 0), [world.work(f"{number}", 0) for number in range(200)]
    for one in (light, *crowd):
        world.served(one)
    waits = []
    for _ in range(300):
        for one in crowd:
            if not one.steps:
                one.steps = 10
                world.scheduler.enter(one)
        light.steps = 1
        world.scheduler.enter(light)
        rounds = 0
        while light.steps:
            world.scheduler.run_round()
            rounds += 1
        waits.append(rounds)
    assert waits[0] <= 200 * SLICE_NS[CLIENTS] // CLIENTS_NS + 1, "all had the same until now"
    assert max(waits[30:]) == 1


def test_what_one_saves_up_by_resting_is_bounded(world):
    rested, busy = world.work("rested", 0), world.enter("busy", 100_000)
    world.served(rested)
    for _ in range(50):
        world.round()
    rested.steps = 100_000
    world.scheduler.enter(rested)
    taken = [name for _ in range(10) for name in world.round()]
    saved = SAVED_NS // SLICE_NS[CLIENTS]
    assert saved <= taken.index("busy") <= saved + 2
    later = taken[taken.index("busy") :]
    assert abs(later.count("rested") - later.count("busy")) <= 1
    assert busy.steps


def test_who_was_never_there_comes_behind_those_who_have_asked_for_little(world):
    light = world.work("light", 0)
    world.served(light)
    for number in range(50):
        world.enter(f"new {number}", 100)
    light.steps = 1
    world.scheduler.enter(light)
    assert world.round()[0] == "light"


def test_what_was_taken_in_is_worked_off_before_more_is(world):
    world.enter("client", 1).then = lambda: world.enter("next shard", 1, MACHINES)
    world.enter("shard", 1, MACHINES)
    world.enter("load", 1, BACKGROUND)
    assert world.round() == ["shard", "client", "load"]
    assert world.round() == ["next shard"]
    assert not world.scheduler.waiting


def test_less_is_taken_in_while_machines_are_behind(world):
    world.enter("shard", 10_000, MACHINES)
    world.enter("client", 10_000)
    world.enter("load", 10_000, BACKGROUND)
    world.round()
    slack = max(SLICE_NS)
    assert MACHINES_NS <= world.used_ns[MACHINES] < MACHINES_NS + slack
    assert CLIENTS_BUSY_NS <= world.used_ns[CLIENTS] < CLIENTS_BUSY_NS + slack
    assert BACKGROUND_NS <= world.used_ns[BACKGROUND] < BACKGROUND_NS + slack

    arrived = world.work("arrived", 1000)
    assert world.scheduler.admits(arrived)
    arrived.run(world.scheduler.over)
    assert arrived.steps == 1000 - CLIENTS_BUSY_NS // STEP_NS


def test_what_enters_in_a_round_runs_in_it_while_its_share_lasts(world):
    first = world.enter("first", 1)
    first.then = lambda: world.enter("second", 1)
    assert world.round() == ["first", "second"]
    assert not world.scheduler.waiting


def test_who_enters_during_its_own_slice_is_in_the_line_once(world):
    eager = world.enter("eager", 15)
    eager.then = lambda: world.scheduler.enter(eager)
    assert world.round() == ["eager"] * 3, "the third finds nothing to do"


def test_who_enters_during_its_own_slice_has_had_that_slice(world):
    """A coordinator of transactions does so at each transaction, where no sync is waited for."""
    eager = world.enter("eager", 0)

    def again(steps=eager):
        steps.steps = 5

    again()
    eager.then = lambda: world.scheduler.enter(eager)
    world.enter("other", 10_000)
    for _ in range(20):
        taken = world.round()
        again()
        world.scheduler.enter(eager)
    assert taken.count("other") > 5


def test_a_standstill_of_the_process_is_nobodys_debt(world):
    one, other = world.enter("one", 100_000), world.enter("other", 100_000)
    one.step_ns = 10_000_000_000
    world.round()
    one.step_ns = other.step_ns
    taken = [name for _ in range(10) for name in world.round()]
    assert taken.index("one") <= SAVED_NS // SLICE_NS[CLIENTS] + 1


def test_who_fails_can_enter_again(world):
    def fail() -> None:
        raise ZeroDivisionError

    one = world.enter("fails", 3)
    one.then = fail
    with pytest.raises(ZeroDivisionError):
        world.scheduler.run_round()
    one.then = lambda: None
    world.scheduler.enter(one)
    world.scheduler.run_round()
    assert one.steps == 0


def test_what_arrives_long_after_the_last_turn_runs_at_once(world):
    """A turn in which nobody waits has no round."""
    for _ in range(3):
        assert world.scheduler.admits(world.work("arrived", 1))
        world.scheduler.arrived = 0  # as each turn does
        world.watch.ns += 1_000_000_000


def test_one_arrival_does_not_take_the_share_of_all(world):
    arrived = world.work("arrived", 1000)
    assert world.scheduler.admits(arrived)
    arrived.run(world.scheduler.over)
    assert world.used_ns[CLIENTS] == ARRIVAL_NS


def test_what_arrives_runs_at_once_until_the_share_of_clients_is_used_up(world):
    scheduler, works = world.scheduler, [world.work("arrived", 40) for _ in range(8)]
    at_once = 0
    for work in works:
        if scheduler.admits(work) and not work.run(scheduler.over):
            at_once += 1
        else:
            scheduler.enter(work)
    assert at_once == CLIENTS_NS // (40 * STEP_NS)

    arrived, begun, ended = scheduler.run_round()
    assert (arrived, ended) == (1, world.watch.ns)
    assert begun > arrived
    assert all(work.steps == 0 for work in works)
    assert scheduler.admits(world.work("in the next round", 1))


def test_who_waits_in_the_line_is_not_admitted_before_its_turn(world):
    waiting = world.enter("waiting", 1)
    assert not world.scheduler.admits(waiting)


def test_one_that_fails_takes_its_place_from_nobody_else(world):
    def fail() -> None:
        raise ZeroDivisionError

    world.enter("fails", 1).then = fail
    world.enter("other", 1)
    with pytest.raises(ZeroDivisionError):
        world.scheduler.run_round()
    world.scheduler.run_round()
    assert world.taken == ["fails", "other"]
    assert not world.scheduler.waiting


def test_a_round_without_work_takes_no_time(world):
    assert world.scheduler.run_round() == (1, 1, 1)
