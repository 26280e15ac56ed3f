# SPDX-License-Identifier: Apache-2.0
"""Lines of a broker's log are proof where they are about one removal, and nothing where not."""

import pytest
from tests.history import log as logs
from tests.history.log import START, Log, Tables, end_of, epoch, has, has_nothing, member, told

from kohort.history import History
from kohort.history.logged import QUARTER_US, Line, by_member, zones
from kohort.records.causes import Because, Cause

SECOND = 1_000_000
REMOVED = START + 50 * SECOND
A = "a-client at /10.0.0.1 (a)"


def line(trigger="leave", *, member_id="a", clock_us=REMOVED, number=3, reason=None):
    return Line(member_id, trigger, reason, clock_us, number, "server.log")


def history(log, *lines, pieces=1):
    found = History(told(None, 0)._replace(lines=by_member(lines)))
    size = -(-len(log.events) // pieces)
    for begin in range(0, len(log.events), size):
        found.feed(log.events[begin : begin + size])
    return Tables([*found.closed, *found.open_rows()])


def gone(*lines, causes=(), ends=("a",)):
    log = Log()
    log.write(member("a"), member("b"), epoch(2))
    log.write(has("a", 2, 0, before=0), has("b", 2, 1, before=0))
    records = [one for name in ends for one in (has_nothing(name), end_of(name, causes=[*causes]))]
    log.at(50).write(*records, epoch(3))
    return history(log, *lines).epoch(3)


@pytest.mark.parametrize("trigger", ["leave", "session timeout", "rebalance timeout"])
def test_a_line_about_the_member_and_the_epoch_is_proof(trigger):
    assert gone().possible == ["session timeout", "leave"]
    row = gone(line(trigger))
    assert (row.trigger, row.triggers, row.possible) == (trigger, [trigger], [])
    said = f"server.log says at 2026-09-21 14:14:10+00:00: {trigger} of {A}"
    assert row.evidence.endswith(said)


@pytest.mark.parametrize("quarters", [-48, -14, 0, 1, 23, 56])
def test_a_clock_of_any_zone_fits(quarters):
    row = gone(line(clock_us=REMOVED + quarters * QUARTER_US + SECOND))
    assert row.trigger == "leave"


@pytest.mark.parametrize(
    "other",
    [
        line(member_id="b"),
        line(number=2),
        line(number=4),
        line(clock_us=REMOVED + 3 * SECOND),
        line(clock_us=REMOVED - 3 * SECOND),
        line(clock_us=REMOVED + 57 * QUARTER_US),
        line(clock_us=REMOVED - 49 * QUARTER_US),
        line(number=None, clock_us=REMOVED + 60 * SECOND),
    ],
)
def test_what_is_about_something_else_proves_nothing(other):
    row = gone(other)
    assert (row.trigger, row.possible) == ("unknown", ["session timeout", "leave"])


def several(*moments, name="a"):
    """A log in which the member comes and goes again and again, at these seconds."""
    log = Log()
    log.write(member("b"), epoch(1))
    number = 1
    for second in moments:
        log.write(member(name), epoch(number + 1), has(name, number + 1, 0, before=0))
        log.at(second).write(has_nothing(name), end_of(name), epoch(number + 2))
        number += 2
    return log


def test_a_line_that_names_no_epoch_counts_in_the_zone_that_others_have_told():
    first = line(clock_us=START + (50 + 3600) * SECOND)
    last = line(clock_us=START + (3000 + 3600) * SECOND, number=None)
    row = history(several(50, 3000), first, last).epoch(5)
    assert row.trigger == "leave"
    assert row.evidence.endswith(f"+01:00: leave of {A}, known by its clock alone")


@pytest.mark.parametrize(
    ("others", "known"),
    [
        ((), "no other line tells it"),
        ((line(clock_us=REMOVED + 3600 * SECOND),), "that of other lines is +01:00"),
        (
            (line(clock_us=REMOVED), line(clock_us=REMOVED + 3600 * SECOND)),
            "that of other lines is +00:00, +01:00",
        ),
    ],
)
def test_a_line_without_a_number_in_no_known_zone_is_a_doubt_and_no_proof(others, known):
    """Whoever restarts its clients each hour has the same clock at each of them."""
    said = line(clock_us=START + 3000 * SECOND, number=None)
    row = history(several(50, 3000), *others, said).epoch(5)
    assert (row.trigger, row.possible) == ("unknown", ["session timeout", "leave"])
    assert "may be about another removal of a: it names no number" in row.evidence
    assert known in row.evidence


@pytest.mark.parametrize("pieces", [1, 2, 1000])
def test_a_line_that_fits_two_removals_settles_neither(pieces):
    log = several(50, 3000, 3001, 9000)
    said = line(clock_us=START + 3001 * SECOND, number=None)
    found = history(log, line(), said, pieces=pieces)
    assert found.epoch(3).trigger == "leave"
    for number in (5, 7):
        assert found.epoch(number).trigger == "unknown"
        assert "server.log at 2026-09-21 15:03:21 fits several" in found.epoch(number).evidence


def test_a_number_that_came_again_needs_the_zone_of_others():
    log = several(50)
    log.at(60).write(end_of("b"), epoch(4))
    log.write(epoch(None))
    log.at(900).write(member("b"), epoch(1))
    log.write(member("a"), epoch(2), has("a", 2, 0, before=0))
    log.at(950).write(has_nothing("a"), end_of("a"), epoch(3))
    first, second = [
        row
        for row in history(log, line()).rebalances
        if row.epoch == 3  # both fit its clock
    ]
    assert (first.trigger, second.trigger) == ("leave", "unknown")
    assert "its number was there in an earlier life of the group" in second.evidence


def test_lines_that_differ_decide_nothing():
    row = gone(line(), line("session timeout"))
    assert (row.trigger, row.possible) == ("unknown", ["session timeout", "leave"])
    assert row.evidence.endswith("lines of the broker's log about a differ")


def test_a_line_that_names_the_epoch_is_before_one_that_does_not():
    assert gone(line(), line("session timeout", number=None)).trigger == "leave"


def test_what_the_coordinator_wrote_beside_the_record_has_precedence():
    row = gone(line("session timeout"), causes=[Because(Cause.LEAVE, "a")])
    assert (row.triggers, "server.log" in row.evidence) == (["leave"], False)


def test_reasons_of_clients_are_told_unless_lines_differ():
    one, other = line(reason="closed"), line(reason="rolled")
    assert gone(one, one).evidence.endswith(f"leave of {A} (closed)")
    assert gone(one, other).evidence.endswith(f"leave of {A}")


def test_several_that_went_at_once_have_each_its_own_cause():
    row = gone(line("session timeout"), line(member_id="b"), ends=("a", "b"))
    assert row.triggers == ["session timeout", "leave"]


def generations(*lines, apart=50):
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0), logs.classic("b", 1)))
    log.at(apart).write(logs.generation(3, logs.classic("b", 0, 1)))
    return history(log, *lines).epoch(3)


@pytest.mark.parametrize("number", [2, 3])
def test_a_generation_has_what_was_said_since_the_one_before(number):
    """Of generations that never came to an assignment there is no record."""
    row = generations(line("session timeout", clock_us=START + 30 * SECOND, number=number))
    assert row.trigger == "session timeout"


@pytest.mark.parametrize(("apart", "trigger"), [(60, "leave"), (900, "unknown")])
def test_between_generations_that_are_far_apart_a_clock_alone_tells_nothing(apart, trigger):
    log = Log()
    log.write(logs.generation(1, logs.classic("a", 0), logs.classic("b", 1)))
    log.at(1).write(logs.generation(2, logs.classic("a", 0)))
    log.at(1 + apart).write(logs.generation(3, logs.classic("c", 0)))
    known = line(member_id="b", clock_us=START + SECOND, number=2)
    said = line(clock_us=START + 30 * SECOND, number=None)
    assert history(log, known, said).epoch(3).trigger == trigger


def test_a_clock_between_two_times_may_be_of_several_zones():
    assert [*zones(QUARTER_US, 0, 0)] == [1]
    assert [*zones(QUARTER_US + 2_000_001, 0, 0)] == []
    assert [*zones(0, 0, QUARTER_US)] == [-1, 0]
