# SPDX-License-Identifier: Apache-2.0
"""A history is the same however its log is cut, and however its commits are folded."""

from collections import Counter
from copy import deepcopy
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.history import log as logs
from tests.history.log import Log, at, end_of, epoch, has, has_nothing, member, tables, told

from kohort.history import Commits, History
from kohort.history.backlog import section
from kohort.history.events import AWAY, GIVES_UP, Computation

MEMBERS = ["a", "b", "c"]
SUBSCRIPTIONS = [["orders"], ["orders", "payments"], None]


@st.composite
def consumer_records(draw):
    """A record of a consumer group, sensible or not."""
    name = draw(st.sampled_from(MEMBERS))
    number = draw(st.integers(1, 4))
    owned = draw(st.lists(st.integers(0, 2), unique=True, max_size=2))
    kind = draw(st.integers(0, 10))
    match kind:
        case 0:
            return epoch(draw(st.none() | st.integers(1, 4)), draw(st.integers(0, 1)))
        case 1:
            return epoch(number)
        case 2:
            return logs.topics(there=draw(st.booleans()))
        case 3 | 4:
            return member(
                name,
                instance_id=draw(st.sampled_from([None, "i", "j"])),
                subscribed_topic_names=draw(st.sampled_from(SUBSCRIPTIONS)),
                subscribed_topic_regex=draw(st.sampled_from([None, "o.*"])),
                server_assignor=draw(st.sampled_from([None, "range"])),
                classic_protocols=draw(st.sampled_from([None, None, ["range"]])),
            )
        case 5:
            return end_of(name)
        case 6:
            return logs.target(number, draw(st.none() | st.just(Computation("x", "a"))))
        case 7:
            return has_nothing(name)
        case 8:
            return logs.expression("o.*", *draw(st.lists(st.sampled_from("xy"), unique=True)))
        case 9:
            return has(name, AWAY, *owned)
        case _:
            given_up = [one for one in (0, 1, 2) if one not in owned]
            state = draw(st.sampled_from(["stable", GIVES_UP]))
            before = draw(st.integers(0, number))
            revoking = given_up[: draw(st.integers(0, 1))]
            return has(name, number, *owned, before=before, state=state, giving_up=revoking)


@st.composite
def classic_records(draw):
    """A record of a classic group."""
    if draw(st.integers(0, 5)) == 0:
        return logs.end_of_classic()
    names = draw(st.lists(st.sampled_from(MEMBERS), unique=True, max_size=3))
    found = [
        logs.classic(name, *draw(st.lists(st.integers(0, 2), unique=True)), session_ms=2000)
        for name in names
    ]
    return logs.generation(draw(st.integers(0, 4)), *found)


@st.composite
def conversions(draw):
    """The records with which a classic group becomes a consumer group, or the other way round."""
    names = draw(st.lists(st.sampled_from(MEMBERS), unique=True, min_size=1, max_size=2))
    if draw(st.booleans()):
        ends = [record(name) for name in names for record in (has_nothing, end_of)]
        return [*ends, epoch(None), draw(classic_records())]
    number = draw(st.integers(1, 3))
    owned = [has(name, number, index, before=number) for index, name in enumerate(names)]
    joins = draw(st.sampled_from([[], [member("c"), epoch(number + 1)]]))
    members = [member(name, classic_protocols=["range"]) for name in names]
    return [logs.end_of_classic(), *members, epoch(number), logs.target(number), *owned, *joins]


@st.composite
def any_log(draw):
    """Writes, in any order, with commits and changes of the coordinator in between."""
    log = Log()
    for _ in range(draw(st.integers(1, 14))):
        log.at(log.seconds + draw(st.sampled_from([0, 0, 0.5, 1, 3, 40, 2000])))
        log.leader_epoch += draw(st.sampled_from([0, 0, 0, 1]))
        if draw(st.booleans()):
            for number in range(draw(st.integers(1, 6))):
                log.at(log.seconds + 1)
                log.commit(int(log.seconds * 10), draw(st.integers(0, 2)), plain=number % 5 > 0)
        records = st.one_of(consumer_records(), consumer_records(), classic_records())
        some = st.lists(records, min_size=1, max_size=5)
        log.write(*draw(st.one_of(some, some, some, conversions())))
        if draw(st.booleans()):
            log.offset -= 1  # the next write follows at once
    return log


def fed(pieces, session_timeout_ms=None):
    """All rows of a history that is put aside behind each piece, and how often each is there."""
    closed, state = [], None
    for events in pieces:
        history = History(told(session_timeout_ms), state)
        history.feed(deepcopy(events))
        closed += history.closed
        state = history.state()
    last = History(told(session_timeout_ms), state)
    return Counter(map(repr, [*closed, *last.open_rows()]))


@given(any_log(), st.lists(st.integers(0, 200), max_size=4), st.sampled_from([None, 3000]))
def test_cut_anywhere_it_is_the_whole(log, cuts, session_timeout_ms):
    places = sorted({cut % (len(log.events) + 1) for cut in cuts})
    bounds = [0, *places, len(log.events)]
    pieces = [log.events[low:high] for low, high in pairwise(bounds)]
    assert fed(pieces, session_timeout_ms) == fed([log.events], session_timeout_ms)


@given(any_log())
def test_cut_behind_each_event_it_is_the_whole(log):
    """What is over is gone as early as can be, and nothing may ask for it by its number again."""
    assert fed([[event] for event in log.events]) == fed([log.events])


def test_a_silence_that_is_too_long_is_over_wherever_the_log_is_cut():
    """Found by chance: its rebalance is final, and gone where the log was cut behind it."""
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0)))
    log.commits(1, 4)
    log.at(5).write(logs.generation(2, logs.classic("b"), logs.classic("c")))
    log.at(6).write(logs.generation(3, logs.classic("b", 0), logs.classic("c")))
    log.at(1900).commit(1, 1)
    log.at(2000).write(logs.generation(4, logs.classic("b"), logs.classic("c", 0)))
    log.at(4001).write(logs.generation(5, logs.classic("b", 0), logs.classic("c")))
    whole = fed([log.events])
    for place in range(len(log.events)):
        assert fed([log.events[:place], log.events[place:]]) == whole, place


def test_an_offset_that_is_set_after_so_long_ends_no_silence_wherever_the_log_is_cut():
    """Its rebalance was final before, and gone where the log was cut in between."""
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0)))
    log.commits(1, 4)
    log.at(5).write(logs.generation(2, logs.classic("b")))
    log.at(6).write(logs.generation(3, logs.classic("b", 0)))
    log.at(7).write(logs.generation(4, logs.classic("b")))
    log.at(1900).commit(1, 1)
    log.at(1901).commit(1, 0)
    whole = fed([log.events])
    for place in range(len(log.events)):
        assert fed([log.events[:place], log.events[place:]]) == whole, place


def folded(events):
    """Commits of a partition between two records, as one for each section."""
    found, run, firsts = [], {}, {}
    for event in events:
        if not isinstance(event, Commits):
            found += sorted(run.values(), key=lambda one: one.offset)
            found.append(event)
            run, firsts = {}, {}
            continue
        partition = (event.topic, event.topic_partition)
        first_at = firsts.setdefault(partition, event.first_at)
        key = (*partition, event.plain, section(event.at, first_at))
        last = run.get(key)
        if last is None:
            run[key] = deepcopy(event)
            continue
        last.at = event.at
        last.last_committed, last.leader_epoch = event.last_committed, event.leader_epoch
        last.count += event.count
    return found + sorted(run.values(), key=lambda one: one.offset)


@given(any_log())
def test_folding_commits_changes_nothing(log):
    assert fed([folded(log.events)]) == fed([log.events])


def joined():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(logs.target(2), has("a", 2, 0, 1, before=0))
    return log


def test_what_is_over_is_told_once():
    log = joined()
    history = History(told())
    history.feed(log.events)
    assert history.closed == []
    log.at(5).write(has_nothing("a"), end_of("a"), epoch(3))
    log.at(6).write(logs.target(3))
    history.feed(log.events[4:])
    assert [type(row).__name__ for row in history.closed] == [
        "AssignmentRow",
        "AssignmentRow",
        "MemberRow",
        "RebalanceRow",
    ]
    assert [at(row.valid_to) for row in history.closed[:3]] == [5, 5, 5]
    assert history.closed[3].epoch == 2
    assert [row.epoch for row in history.open_rows()] == [3]  # nobody has the partitions yet


def test_a_write_that_is_torn_is_read_again():
    log = joined()
    log.at(5).write(has_nothing("a"), end_of("a"), epoch(3))
    for cut in (5, 6):
        history = History(told())
        history.feed(log.events[:cut])
        rest = History(told(), history.state())
        rest.feed(log.events[cut:])
        rows = {row.epoch: row for row in rest.open_rows() if hasattr(row, "trigger")}
        assert [one.member_id for one in rows[3].gone] == ["a"]


def test_an_open_row_stays_as_it_is_when_the_history_goes_on():
    log = joined()
    history = History(told())
    history.feed(log.events)
    first = [repr(row) for row in history.open_rows()]
    assert [repr(row) for row in history.open_rows()] == first


def test_a_conversion_begins_no_rebalance_of_its_own():
    log = Log()
    log.write(logs.generation(4, logs.classic("a", 0, 1)))
    log.at(3).write(
        logs.end_of_classic(),
        member("a", classic_protocols=["range"], classic_session_timeout_ms=10_000),
        epoch(4),
        logs.target(4),
        has("a", 4, 0, 1, before=4),
        member("b"),
        epoch(5),
    )
    found = tables(log)
    assert [(row.group_type, row.epoch) for row in found.rebalances] == [
        ("classic", 4),
        ("consumer", 5),
    ]
    assert "migration" in found.epoch(5).triggers
