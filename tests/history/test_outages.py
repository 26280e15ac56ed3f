# SPDX-License-Identifier: Apache-2.0
"""Members that an outage of the coordinator has put out, or may have put out."""

from copy import copy

import pytest
from tests.history import log as logs
from tests.history.log import Log, Tables, end_of, epoch, has, has_nothing, member, tables, told

from kohort.history import Commits, History
from kohort.history.outages import SHORTEST_REST_US


def at_work(until):
    """Two members, each with a partition that it commits every second up to one."""
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.at(1).write(member("b"), epoch(3))
    log.write(has("a", 3, 0), has("b", 3, 1, before=0))
    log.commits(2, until, partitions=(0, 1))
    return log


def outage(*, changes=True, alive=False, commits=False, apart=0.1, wait=30.0):
    """Two members, of whom nothing is heard after the coordinator has changed."""
    log = at_work(10)
    log.leader_epoch += changes
    if alive:
        log.at(20).write(has("b", 3, 1))
    if commits:
        log.at(20).commit(200, 1)
    log.at(10 + wait).write(has_nothing("a"), end_of("a"), epoch(4))
    log.at(10 + wait + apart).write(has_nothing("b"), end_of("b"), epoch(5))
    return log


def likely(log):
    found = tables(log)
    return [one.likely for number in (4, 5) for one in found.epoch(number).likely]


def test_all_are_out_at_once_under_another_coordinator():
    assert likely(outage()) == ["coordinator away"] * 2


@pytest.mark.parametrize(
    "log",
    [
        outage(changes=False),
        outage(alive=True),
        outage(commits=True),
        outage(apart=30),
        outage(wait=4000),
    ],
)
def test_one_sign_to_the_contrary_is_enough(log):
    assert "coordinator away" not in likely(log)


def test_one_alone_may_have_gone_by_itself():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.leader_epoch += 1
    log.at(9).write(has_nothing("a"), end_of("a"), epoch(3))
    assert tables(log).epoch(3).likely[0].likely is None


def test_a_classic_group_loses_them_in_one_generation():
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0), logs.classic("b", 1)))
    log.leader_epoch += 1
    log.at(20).write(logs.generation(2))
    assert [one.likely for one in tables(log).epoch(2).likely] == ["coordinator away"] * 2


def test_where_the_coordinator_is_not_told_nothing_is_likely():
    log = outage()
    for event in log.events:
        event.leader_epoch = None
    assert likely(log) == [None, None]


def test_an_outage_is_not_put_on_the_one_who_stays_away():
    """The other one is at work again at once, so it is no outage of all; nor did one go silent."""
    log = at_work(10)
    log.leader_epoch += 1
    log.commits(16, 40, partitions=(1,))
    log.at(40).write(has_nothing("a"), end_of("a"), epoch(4))
    log.write(has("b", 4, 0, 1))
    log.at(41).commit(410, 0)

    (one,) = tables(log).epoch(4).likely

    assert (one.likely, one.silent_seconds) == (None, 30.0)


def standstill(*, witness=False, waits=False, rest=12.0, out=("a", "b")):
    """Two members at work. The coordinator stands still and goes on: it handles a commit that has
    waited, if one has, and puts out whose session has ended. No leader epoch tells of it.
    """
    log = at_work(10)
    if witness:
        log.commits(11, 9 + rest, partitions=(1,))
    log.at(10 + rest)
    if waits:
        log.commit(100, 0)
    for number, name in enumerate(out):
        log.at(10 + rest + 0.1 * (number + 1))
        log.write(has_nothing(name), end_of(name), epoch(4 + number))
    log.at(14 + rest).write(member("c"), epoch(9))
    log.write(has("c", 9, 0, 1, before=0))
    log.at(15 + rest)
    log.commit(round(150 + 10 * rest), 0)
    log.commit(round(150 + 10 * rest), 1)
    return log


def test_who_falls_silent_with_all_the_others_may_have_heard_nothing():
    assert likely(standstill()) == [None, None]
    alone = tables(standstill(witness=True)).epoch(4).likely[0]
    assert alone.likely == "went silent"  # the coordinator was there for the other one


def test_a_commit_that_may_have_waited_shows_nobody_at_work():
    row = tables(standstill(waits=True)).epoch(4)
    assert [one.likely for one in row.likely] == [None]
    assert row.likely[0].silent_seconds == pytest.approx(0.1)


def test_nor_does_it_for_the_others():
    """It was sent when they still were at work."""
    assert likely(standstill(waits=True, out=("b", "a"))) == [None, None]


@pytest.mark.parametrize(
    ("rest", "possible"), [(12.0, ["session timeout", "leave"]), (1.0, ["leave"])]
)
def test_nor_is_it_a_proof_that_a_session_went_on(rest, possible):
    """A consumer sends its heartbeats beside its commits, and they may have come too late."""
    log = standstill(waits=True, rest=rest)
    row = tables(log, session_timeout_ms=6000).epoch(4)
    assert (row.possible or row.triggers) == possible
    assert ("which may have been sent 12." in row.evidence) == (rest == 12)


def test_a_commit_prolongs_a_classic_session_whenever_it_is_handled():
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0), logs.classic("b", 1)))
    log.commits(1, 10, partitions=(0, 1))
    log.at(30).commit(100)
    log.at(30.1).write(logs.generation(2, logs.classic("b", 0, 1)))
    assert tables(log).epoch(2).triggers == ["leave"]


def test_who_goes_on_after_a_rest_is_at_work():
    log = standstill(out=())
    log.events = [event for event in log.events if logs.at(event.at) < 11]
    log.commits(22, 30, partitions=(0, 1))
    log.at(30.1).write(has_nothing("a"), end_of("a"), epoch(4))
    row = tables(log, session_timeout_ms=6000).epoch(4)
    assert (row.triggers, row.likely[0].likely) == (["leave"], "left at work")


def test_who_had_nothing_to_do_has_not_fallen_silent_with_it():
    log = standstill(rest=30)
    idle = [event for event in log.events if isinstance(event, Commits) and event.topic_partition]
    log.events = [event for event in log.events if event not in idle[2:-1]]
    assert likely(log)[0] == "went silent"


def test_what_was_unread_before_such_a_commit_is_not_known():
    (part,) = tables(standstill(waits=True)).epoch(4).unread
    assert (part.seconds, part.unknown) == (None, "idle, or the coordinator was away")
    (part,) = tables(standstill()).epoch(4).unread
    assert part.seconds == 16  # from 11 s to 27 s


def folded(events):
    """The same, with the commits of each partition between two records as one event: as Spark folds
    the rows of one run.
    """
    found, runs, latest, rest = [], {}, None, (None, None)
    for event in events:
        if latest is not None and event.at - latest > SHORTEST_REST_US:
            rest = latest, event.at
        latest = event.at if latest is None else max(latest, event.at)
        if not isinstance(event, Commits):
            runs = {}
            found.append(event)
            continue
        run = runs.get(event.topic_partition)
        if run is None:
            run = runs[event.topic_partition] = copy(event)
            found.append(run)
        else:
            run.count += 1
            run.first_at, run.at = min(run.first_at, event.at), max(run.at, event.at)
            run.last_committed = event.last_committed
        run.rest_since, run.rest_until = rest
    return found


def told_in(pieces, session_ms):
    """The rebalances, where a log is read in pieces that are folded each."""
    state, closed = None, []
    for piece in pieces:
        history = History(told(session_ms), state)
        history.feed(folded(piece))
        closed += history.closed
        state = history.state()
    return Tables([*closed, *history.open_rows()]).rebalances


def busy_beside():
    """Both commit behind a standstill; then one goes on, with rests, and the other is put out."""
    log = at_work(10)
    log.at(30).commit(100, 0)
    log.at(30.1).commit(100, 1)
    for second in range(31, 40, 2):
        log.at(second).commit(10 * second, 0)
    log.at(40).write(has_nothing("b"), end_of("b"), epoch(4))
    log.write(has("a", 4, 0, 1))
    log.at(41).commit(400, 0)
    log.commit(400, 1)
    return log


def clock_goes_back():
    """Another coordinator, whose clock is behind, stands still before it puts somebody out."""
    log = at_work(60)
    for second in (11, 31):
        log.at(second).commit(600 + second, 0)
        log.commit(600 + second, 1)
    log.at(31.2).write(has_nothing("b"), end_of("b"), epoch(4))
    log.write(has("a", 4, 0, 1))
    log.at(32).commit(640, 0)
    log.commit(640, 1)
    return log


@pytest.mark.parametrize("session_ms", [None, 6000, 12_000])
@pytest.mark.parametrize(
    "life", [busy_beside, clock_goes_back, standstill, lambda: standstill(waits=True)]
)
def test_a_rest_is_the_same_wherever_the_log_is_cut(life, session_ms):
    events = life().events
    expected = tables(life(), session_ms).rebalances
    for cut in range(len(events)):
        found = told_in([events[:cut], events[cut:]], session_ms)
        assert found == expected, cut


def test_a_clock_that_goes_back_proves_nothing():
    row = tables(clock_goes_back(), session_timeout_ms=12_000).epoch(4)
    assert (row.trigger, row.possible) == ("unknown", ["session timeout", "leave"])
    assert row.likely[0].likely is None
    assert [part.unknown for part in row.unread] == ["the clock has gone back"]
