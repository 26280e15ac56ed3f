"""A line of the broker's log."""

import logging

from kohort.server.lines import OneLine


def test_a_line_break_in_a_name_begins_no_line():
    record = logging.LogRecord("kohort", logging.INFO, "", 0, "a\nb\u2028%s", ("c\x7f",), None)
    assert OneLine().format(record).endswith(" INFO a\\x0ab\\x2028c\\x7f")


def test_a_traceback_is_read_as_one_and_begins_no_line_of_the_log():
    """Its last line may hold what a client has sent."""
    told = "plan a\nb has failed:\nTraceback (most recent call last):\n  File x\nE: c\x1b\nd\n"
    record = logging.LogRecord("kohort", logging.ERROR, "", 0, told, (), None)
    first, *rest = OneLine().format(record).split("\n")
    assert first.endswith(" ERROR plan a\\x0ab has failed:")
    assert rest == [
        "    Traceback (most recent call last):",
        "      File x",
        "    E: c\\x1b",
        "    d",
    ]
