"""Lines of a broker's log are proof where they are about one removal, and nothing where not."""

import pytest
from tests.history import log as logs
from tests.history.log import START, Log, Tables, end_of, epoch, has, has_nothing, member, told

from kohort.history import History
from kohort.history.logged import QUARTER_US, Line, by_member, zones
from kohort.records.causes import Because, Cause

SECOND = 1_000_000
REMOVED = START + 50 * SECOND


def line(trigger="leave", *, member_id="a", clock_us=REMOVED, number=3, reason=None):
    return Line(member_id, trigger, reason, clock_us, number, "server.log")


def history(log, *lines):
    found = History(told(None, 0)._replace(lines=by_member(lines)))
    found.feed(log.events)
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
    assert row.evidence.endswith(f"server.log says at 2026-09-21 14:14:10+00:00: {trigger} of a")


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


def test_a_line_that_names_no_epoch_says_that_only_its_clock_fits():
    row = gone(line(number=None))
    assert row.trigger == "leave"
    assert row.evidence.endswith("leave of a, known by its clock alone")


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
    assert gone(one, one).evidence.endswith("leave of a (closed)")
    assert gone(one, other).evidence.endswith("leave of a")


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


def test_between_generations_that_are_far_apart_a_clock_alone_tells_nothing():
    said = {"clock_us": START + 30 * SECOND, "number": None}
    assert generations(line("leave", **said), apart=60).trigger == "leave"
    assert generations(line("leave", **said), apart=900).trigger == "unknown"


def test_a_clock_between_two_times_may_be_of_several_zones():
    assert [*zones(QUARTER_US, 0, 0)] == [1]
    assert [*zones(QUARTER_US + 2_000_001, 0, 0)] == []
    assert [*zones(0, 0, QUARTER_US)] == [-1, 0]
