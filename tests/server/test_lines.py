"""A line of the broker's log."""

import logging

import pytest

from kohort.server.lines import OneLineFormatter


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
