# SPDX-License-Identifier: Apache-2.0
"""A first commit of a single record behind a silence: what later commits show of a backlog."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.history.log import Log, end_of, epoch, has, has_nothing, member, tables
from tests.history.test_group import fed, folded

from kohort.history import Commits
from kohort.history.backlog import SCALES_S, boundaries, section

LAST = 45.0
"""Silence from the last commit of the owner to the first one of the next."""


def killed(*behind, per_second=10.0, every=1.0, silent=LAST):
    """`a` commits until it is killed, and is put out; `b` commits `behind`: seconds since its first
    commit, and how many records behind the last of `a`.
    """
    log = Log()
    log.write(member("a"), member("b"), epoch(2))
    log.write(has("a", 2, 0, before=0), has("b", 2, before=0))
    log.commits(every, 10 * every, every, per_second)
    begin = 10 * every
    log.at(begin + silent - 1).write(has_nothing("a"), end_of("a"), epoch(3))
    log.write(has("b", 3, 0))
    for second, ahead in behind:
        log.at(begin + silent + second).commit(round(begin * per_second) + ahead)
    return log


def verdict(log):
    row = tables(log, session_timeout_ms=45_000).epoch(3)
    (part,) = row.unread
    return part.seconds, part.unknown, row.likely[0].likely


def each_record(per_second, until=40.0):
    """Commits after each record, that many in a second."""
    return [(number / per_second, number + 1) for number in range(int(until * per_second))]


SILENT = (pytest.approx(LAST - 1), None, "went silent")
IDLE = (None, "idle", None)


@pytest.mark.parametrize(
    "log",
    [
        killed((0, 1), (2, 400), (4, 440)),  # a commit that fell due with the first record
        killed((0, 1), (2, 400)),  # the same, while that is the last one that there is
        killed((0, 0), (2, 400), (4, 440)),  # with the assignment, before anything was read
        killed((0, 1), (0.01, 2), (5, 430), (10, 500)),
        killed((0, 1), (5, 430), every=5.0),  # the defaults of most clients
        killed((0, 1), (5, 430), (600, 430)),  # no record came since
        killed(*each_record(50)),  # each record, as fast as it can
        killed(*each_record(50), per_second=1.0, every=10.0),
    ],
)
def test_a_backlog_is_seen_by_how_fast_it_is_read(log):
    seconds, unknown, likely = verdict(log)
    assert unknown is None
    assert seconds == pytest.approx(LAST - tables(log).epoch(3).unread[0].error_seconds)
    assert likely == "went silent"


@pytest.mark.parametrize(
    "log",
    [
        killed((0, 1)),
        killed((0, 1), (2, 21), (4, 41), (60, 600)),  # records come again as before
        killed((0, 0), (2, 20), (40, 400)),
        killed((0, 1), (10, 1), (15, 300)),  # the same again: there was nothing to read
        killed((0, 1), (50, 900)),  # long after
        killed((0, 1), *((second, 1 + 12 * second) for second in range(1, 600))),  # a bit faster
        killed(*each_record(10)),
        killed((0, 0), (10, 1), (20, 1), per_second=0.02),  # a record now and then
        killed((0, 0), (1, 50), (2, 100), per_second=0),  # nobody knows what a rate promises
    ],
)
def test_without_a_backlog_the_topic_was_idle(log):
    assert verdict(log) == IDLE


def test_work_for_a_rhythm_is_enough_for_time_but_names_nobody():
    assert verdict(killed((0, 20), (1, 30), (2, 40))) == (LAST - 1, None, None)


def test_the_next_loss_of_the_partition_ends_the_question():
    """What the reader has shown until then counts; the next silence is another one."""
    log = killed((0, 1), (2, 400), silent=20.0)
    log.at(33).write(has_nothing("b"), end_of("b"), member("c"), epoch(4))
    log.write(has("c", 4, 0, before=0))
    log.at(34).commit(520)
    assert tables(log).epoch(3).unread[0].seconds == 19
    assert tables(log).epoch(4).unread[0].unknown != "unread since an earlier rebalance"
    log = killed((0, 1), silent=20.0)
    log.at(33).write(has_nothing("b"), end_of("b"), member("c"), epoch(4))
    log.write(has("c", 4, 0, before=0))
    log.at(34).commit(520)
    assert tables(log).epoch(3).unread[0].unknown == "idle"


def test_nothing_is_awaited_for_longer_than_any_silence():
    log = killed((0, 1), silent=1790.0)
    log.at(1810).commit(100_000)
    log.at(1900).write(member("c"), epoch(4))
    whole = fed([log.events])
    assert all(fed([log.events[:cut], log.events[cut:]]) == whole for cut in range(len(log.events)))


@pytest.mark.parametrize("second", [1799.4, 1799.7, 1800.0])
def test_commits_of_the_last_second_tell_the_same_folded(second):
    """No boundary may be left that would part the first commit from those that come too late."""
    log = killed(silent=LAST + 0.5)
    removed_at = log.seconds
    log.at(removed_at + second).commit(101)
    log.at(removed_at + second + 0.15).commit(100_000)
    assert fed([folded(log.events)]) == fed([log.events])


def reset_behind(log):
    """`b` leaves, and somebody sets the offset far ahead while nobody has the partition."""
    log.at(log.seconds + 1).write(has_nothing("b"), end_of("b"), epoch(4))
    log.at(log.seconds + 3).commit(100_000)
    return log


@pytest.mark.parametrize("behind", [(), [(0, 1)], [(0, 1), (1, 11)]])
def test_an_offset_that_somebody_sets_names_nobody_as_silent(behind):
    row = tables(reset_behind(killed(*behind)), session_timeout_ms=45_000).epoch(3)
    assert row.likely[0].likely is None
    assert row.unread[0].seconds is None


def test_an_offset_that_is_set_takes_nothing_back():
    """What the reader has shown before counts."""
    log = reset_behind(killed((0, 1), (2, 400)))
    assert tables(log, session_timeout_ms=45_000).epoch(3).likely[0].likely == "went silent"


@st.composite
def any_reading(draw):
    """Commits behind a silence, at any distances and of any sizes, some beside a transaction."""
    log = killed(silent=draw(st.sampled_from([3.0, 20.0, LAST, 1000.0])))
    committed = 100
    log.at(log.seconds + 1)
    for _ in range(draw(st.integers(1, 25))):
        committed += draw(st.sampled_from([0, 1, 1, 5, 30, 400]))
        log.commit(committed, plain=draw(st.integers(0, 4)) > 0)
        log.at(log.seconds + draw(st.sampled_from([0.01, 0.3, 1, 1, 2, 5, 30, 900])))
        if draw(st.integers(0, 9)) == 0:
            log.write(member("b", client_id=str(log.seconds)))
    return log


@given(any_reading(), st.lists(st.integers(0, 60), max_size=4))
def test_it_is_the_same_however_commits_are_cut_and_folded(log, cuts):
    whole = fed([log.events])
    assert fed([folded(log.events)]) == whole
    places = sorted({cut % (len(log.events) + 1) for cut in cuts})
    bounds = [0, *places, len(log.events)]
    pieces = [log.events[low:high] for low, high in pairwise(bounds)]
    assert fed(pieces) == whole
    assert fed([folded(piece) for piece in pieces]) == whole


@given(st.integers(0, 10**9), st.integers(0, 3000 * 10**6), st.integers(0, 3000 * 10**6))
def test_no_section_reaches_over_a_boundary_of_an_earlier_commit(first_at, later, more):
    """A fold that begins with any later commit knows nothing of the first one."""
    begins, at = first_at + later, first_at + later + more
    for boundary in boundaries(first_at, first_at + 4000 * 10**6):
        if begins < boundary <= at:
            assert section(boundary - 1, begins) < section(at, begins)


def test_few_sections_have_all_commits():
    log = Log()
    log.commits(0, 3600, 0.5)
    parts = folded(log.events)
    assert all(isinstance(part, Commits) for part in parts)
    assert len(parts) <= 2 * len(SCALES_S) + 1
