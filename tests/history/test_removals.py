# SPDX-License-Identifier: Apache-2.0
"""Why a member is gone: what is proven, what is possible, what is likely."""

from itertools import product

import pytest
from tests.history import log as logs
from tests.history.log import Log, end_of, epoch, has, has_nothing, member, tables
from tests.history.test_commits import killed

from kohort.history.events import AWAY, GIVES_UP
from kohort.history.removals import SEPARATOR, Gone, judged, tenths, would_be_decided
from kohort.history.rows import Who
from kohort.history.state import State
from kohort.history.story import HistoryInputs, Names, Story


def likely(log, number=3, **more):
    return tables(log, **more).epoch(number).likely[0]


def test_who_stops_amid_work_went_silent():
    one = likely(killed())
    assert one.likely == "went silent"
    assert (one.silent_seconds, one.usual_seconds) == (8.0, 1.0)
    assert (one.member_id, one.client_id, one.client_host) == ("a", "a-client", "/10.0.0.1")


def test_who_commits_to_the_end_left_at_work():
    assert likely(killed(silent=0.3)).likely == "left at work"


@pytest.mark.parametrize(
    "log",
    [
        killed(silent=2.5),  # neither
        killed(late=None),  # whether there was work nobody knows yet
        killed(late=1900),  # nor so late
        killed(after=101),  # the topic was idle
        killed(after=140),  # less than half of what would have been read
        killed(every=5.0),  # two commits are no rhythm
    ],
)
def test_what_is_not_likely_is_left_open(log):
    assert likely(log).likely is None


def short_session(*, witness=True, silent=11.0, leads=None, after=None):
    """Classic members whose session of 10 s is twice the distance of their commits: aiokafka's
    defaults. One of two is killed just behind a commit; the other one goes on if it is a witness.
    """
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0), logs.classic("b", 1)))
    log.commits(5, 30, 5.0, partitions=(0, 1))
    if leads is not None:
        log.leader_epoch = leads
    for second in (35, 40):
        if witness and second < 30 + silent:
            log.at(second).commit(10 * second, 1)
    log.at(30 + silent).write(logs.generation(2, logs.classic("b", 0, 1)))
    log.at(45).commit(450 if after is None else after, 0)
    log.commit(450, 1)
    return log


def test_a_silence_of_a_whole_session_is_enough_while_others_go_on():
    one = likely(short_session(), 2)
    assert (one.likely, one.silent_seconds, one.usual_seconds) == ("went silent", 11.0, 5.0)


@pytest.mark.parametrize(
    "log",
    [
        short_session(witness=False),  # the coordinator may have been away
        short_session(after=301),  # nothing was there to read
        short_session(silent=8.5),  # no session ends so soon
    ],
)
def test_a_silence_of_less_than_that_proves_nothing(log):
    assert likely(log, 2).likely is None


def test_a_leave_within_the_rhythm_of_commits_is_none():
    assert likely(short_session(silent=4.0), 2).likely == "left at work"


@pytest.mark.parametrize("witness", [True, False])
def test_nobody_went_silent_by_himself_over_a_change_of_the_coordinator(witness):
    """One member comes back and goes on, another one does not: the broker's outage is no crash of
    that client.
    """
    assert likely(short_session(leads=1, witness=witness), 2).likely is None
    assert likely(short_session(leads=0, witness=True), 2).likely == "went silent"


def test_a_session_that_is_known_must_have_had_time_to_end():
    assert likely(killed(silent=8), session_timeout_ms=45_000).likely is None
    assert likely(killed(silent=8), session_timeout_ms=9_000).likely == "went silent"
    # Commits come less often than sessions end: it may have died just behind one.
    assert likely(killed(every=3.0, silent=2), session_timeout_ms=3_000).likely is None
    assert likely(killed(every=3.0, silent=2), session_timeout_ms=9_000).likely == "left at work"


def test_who_had_lost_its_partitions_before_is_not_judged_by_them():
    log = killed(silent=0.3)
    log.at(30).write(has_nothing("b"), epoch(4))
    log.at(40).write(end_of("b"), epoch(5))
    assert likely(log, 5).likely is None
    assert likely(log, 5).silent_seconds is None


@pytest.mark.parametrize(
    ("silent", "commits", "possible"),
    [
        (5.0, False, ["leave"]),
        (9.5, False, ["session timeout", "leave"]),
        (20.0, True, ["leave"]),
        (70.0, False, ["session timeout", "rebalance timeout", "leave"]),
    ],
)
def test_a_session_of_a_classic_member_begins_anew_with_its_commits(silent, commits, possible):
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0), logs.classic("b", 1)))
    if commits:
        log.at(silent - 2).commit(1)
    log.at(silent).write(logs.generation(2, logs.classic("b", 0, 1)))
    row = tables(log).epoch(2)
    assert [one.member_id for one in row.gone] == ["a"]
    assert (row.possible or row.triggers) == possible


def test_a_timer_that_was_running_is_proof():
    log = Log()
    log.write(member("a", rebalance_timeout_ms=10_000), epoch(2))
    log.write(has("a", 2, 0, 1, before=0))
    log.at(1).write(member("b"), epoch(3))
    log.at(2).write(has("a", 2, 0, state=GIVES_UP, giving_up=[1]))
    log.at(12.2).write(has_nothing("a"), end_of("a"), epoch(4))
    row = tables(log).epoch(4)
    assert row.triggers == ["rebalance timeout"]
    assert "had partitions to give up for 10.2 s" in row.evidence


def test_a_static_member_that_stays_away_times_out():
    log = Log()
    log.write(member("a", instance_id="i"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.at(1).write(has("a", AWAY, 0))
    log.at(3).write(has_nothing("a"), end_of("a"), epoch(3))
    row = tables(log, session_timeout_ms=45_000).epoch(3)
    assert row.possible == ["session timeout", "leave"]
    assert "had left for a while" in row.evidence


@pytest.mark.parametrize(
    ("micros", "text"), [(0, "0.0"), (49_999, "0.0"), (250_000, "0.3"), (-1_250_000, "-1.3")]
)
def test_seconds_in_words(micros, text):
    assert tenths(micros) == text


def test_what_others_commit_after_its_end_is_no_sign_of_life():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.commits(1, 10)
    log.at(12).write(has_nothing("a"))
    log.commit(120)
    log.write(end_of("a"), epoch(3))
    assert likely(log).silent_seconds == 2


SECOND = 1_000_000
CRAFTED = "; last sign of life, session timeout 1.0 s assumed"
"""A name that a client may choose."""


def gone(name="a", *, assumed, seen, waits=False, away=False, at=100 * SECOND):
    return Gone(
        Who(name, name, None, "/10.0.0.1"),
        at,
        at,
        7,
        90 * SECOND if seen else None,
        45_000,
        assumed,
        300_000,
        waits_since=80 * SECOND if waits else None,
        waits_exactly=waits,
        away=away,
    )


def evidence_of(removed, committed_at=None):
    return judged(Story(State(), HistoryInputs(Names())), removed, committed_at).evidence


@pytest.mark.parametrize("name", ["a", CRAFTED, f"x{CRAFTED}"], ids=["plain", "crafted", "more"])
@pytest.mark.parametrize(("assumed", "seen"), [*product([False, True], repeat=2)])
def test_who_reads_evidence_finds_what_its_writer_has_put_there(name, assumed, seen):
    """Tables have the text alone."""
    for waits, away, committed in product([False, True], [False, True], [None, 95 * SECOND]):
        removed = gone(name, assumed=assumed, seen=seen, waits=waits, away=away)
        text = evidence_of(removed, committed)
        assert would_be_decided(text) == (assumed and seen), text
        others = [
            evidence_of(gone(assumed=True, seen=False)),
            evidence_of(gone(assumed=False, seen=True)),
        ]
        for said in ([text, *others], [*others, text], ["epoch 3", text, "and more"]):
            assert would_be_decided(SEPARATOR.join(said)) == (assumed and seen), said


def test_without_a_time_nothing_would_be_decided():
    assert not would_be_decided(evidence_of(gone(assumed=True, seen=True, at=None)))
    assert not would_be_decided(None)
