# SPDX-License-Identifier: Apache-2.0
"""A client does not write the log: lines are bounded in length and in number."""

import logging
from traceback import format_exception

import pytest
from tests.observer import RecordingObserver

from kohort.runtime import driver
from kohort.server.log_lines import (
    GROUP_LINES_A_MINUTE,
    LINES_A_SECOND,
    TRACEBACK_LINES,
    BoundedLines,
    OneLineFormatter,
    bounded,
)

KILOBYTE = 1024


class Desk:
    """Lines as `kohort serve` would write them, at a time that a test sets."""

    def __init__(self):
        self.now = 0.0
        self.told = RecordingObserver()
        self.lines = BoundedLines(self.told, lambda: self.now)

    @property
    def written(self):
        texts = [*self.told.lines, *self.told.warnings, *self.told.errors]
        records = [logging.LogRecord("k", logging.WARNING, "", 0, text, (), None) for text in texts]
        return [line for one in records for line in OneLineFormatter().format(one).split("\n")]


@pytest.mark.parametrize(
    "text",
    ["x" * 40_000, "ж" * 40_000, "\0" * 40_000, "😀" * 40_000, "\udcff" * 40_000, "\n" * 9000],
)
@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_no_line_is_longer_than_a_kilobyte_and_what_is_left_out_is_told(text, level):
    desk = Desk()
    getattr(desk.lines, level)(f"the name {text}")
    (line,) = desk.written
    assert len(line.encode("utf-8", "surrogatepass")) <= KILOBYTE
    begin, more = line.split("... and ")
    shown = (*desk.told.lines, *desk.told.warnings, *desk.told.errors)[0].split("... and ")[0]
    assert more == f"{len(text) + 9 - len(shown):,} characters more"
    assert "the name " in begin


@pytest.mark.parametrize("text", ["", "a", "größe", "x" * 900])
def test_what_is_short_is_told_as_it_is(text):
    assert bounded(text) == text


def test_of_a_kind_so_many_lines_are_written_in_a_second_and_the_others_are_counted():
    desk = Desk()
    for number in range(2000):
        desk.lines.warning(f"name-{number}")
    desk.lines.warning("of another kind")
    assert desk.told.warnings == [
        *(f"name-{number}" for number in range(LINES_A_SECOND)),
        "of another kind",
    ]
    desk.now = 0.9
    desk.lines.tell_left_out()
    assert len(desk.told.warnings) == LINES_A_SECOND + 1
    desk.now = 1.0
    desk.lines.tell_left_out()
    assert desk.told.warnings[-1] == "left out 1,990 lines like this one: name-1999"
    desk.now = 5.0
    desk.lines.tell_left_out(at_once=True)
    assert len(desk.told.warnings) == LINES_A_SECOND + 2  # it is told once


def test_in_no_second_more_are_written_whenever_it_begins():
    desk, times = Desk(), []
    for number in range(5000):
        before = len(desk.told.lines)
        desk.now = number / 1000
        desk.lines.info("x" if number % 3 else "y")
        times += [desk.now] * sum(not x.startswith("left out") for x in desk.told.lines[before:])
    for begin in times:
        assert sum(begin <= one < begin + 1 for one in times) <= LINES_A_SECOND
    assert len(times) == 5 * LINES_A_SECOND


def test_any_other_line_tells_what_was_left_out_before():
    desk = Desk()
    for _ in range(12):
        desk.lines.error("a name")
    desk.now = 2.0
    desk.lines.info("something else")
    assert desk.told.errors[-1] == "left out 2 lines like this one: a name"


def test_what_a_client_sends_makes_no_kinds():
    desk = Desk()
    for number in range(3000):
        desk.lines.info("x" * number)
        desk.lines.warning(str(number))
    assert len(desk.lines._kinds) == 2


def test_a_restart_of_many_consumers_is_told_whole_and_endless_changes_are_not():
    desk = Desk()
    tell = eval("lambda lines, text: lines.info(text)", vars(driver))
    for number in range(2 * GROUP_LINES_A_MINUTE):
        tell(desk.lines, f"group g-{number}: Stable")
    assert len(desk.told.lines) == GROUP_LINES_A_MINUTE
    desk.now = 61.0
    desk.lines.tell_left_out()
    assert desk.told.lines[-1].startswith(f"left out {GROUP_LINES_A_MINUTE:,} lines like this one")


def test_a_fault_of_ours_has_its_traceback_which_is_bounded_too():
    desk = Desk()

    def fail(depth):
        if depth:
            fail(depth - 1)
        raise ValueError("r" * 50_000 + "\n" + "of a request\n" * 5000)

    try:
        fail(40)
    except ValueError as error:
        text = "".join(format_exception(error))
    for _ in range(2000):
        desk.lines.error(f"{'n' * 40_000} has failed:\n{text}")
    written = desk.written
    assert len(written) <= LINES_A_SECOND * (TRACEBACK_LINES + 3)
    assert max(len(line.encode()) for line in written) <= KILOBYTE
    assert any('raise ValueError("r"' in line for line in written)
    assert any("lines more ..." in line for line in written)


def test_a_line_break_in_a_name_begins_no_line():
    record = logging.LogRecord("kohort", logging.INFO, "", 0, "a\nb\u2028%s", ("c\x7f",), None)
    assert OneLineFormatter().format(record).endswith(" INFO a\\nb\\u2028c\\x7f")


def test_a_traceback_is_read_as_one_and_begins_no_line_of_the_log():
    """Its last line may hold what a client has sent."""
    told = "plan a\nb has failed:\nTraceback (most recent call last):\n  File x\nE: c\x1b\nd\n"
    record = logging.LogRecord("kohort", logging.ERROR, "", 0, told, (), None)
    first, *rest = OneLineFormatter().format(record).split("\n")
    assert first.endswith(" ERROR plan a\\nb has failed:")
    assert rest == [
        "    Traceback (most recent call last):",
        "      File x",
        "    E: c\\x1b",
        "    d",
    ]


@pytest.mark.parametrize(
    "name", ["größe", "заказы", "注文", "الطلبات", "e\u0301", "😀", "a b\\x0a"]
)
def test_names_in_every_script_are_told_as_they_are(name):
    record = logging.LogRecord("kohort", logging.INFO, "", 0, "%s", (name,), None)
    assert OneLineFormatter().format(record).endswith(f" INFO {name}")


def test_a_traceback_of_the_logging_module_begins_no_line_either():
    error = RuntimeError("a\n2026-01-01 INFO b\u202e")
    info = (type(error), error, None)
    record = logging.LogRecord("kohort", logging.ERROR, "", 0, "failed", (), info)
    first, *rest = OneLineFormatter().format(record).split("\n")
    assert first.endswith(" ERROR failed")
    assert rest[-1] == "    2026-01-01 INFO b\\u202e"
    assert all(line.startswith("    ") for line in rest)
