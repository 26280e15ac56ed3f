"""A line of the broker's log."""

import logging

from kohort.server.lines import OneLine


def test_a_line_break_in_a_name_begins_no_line():
    record = logging.LogRecord("kohort", logging.INFO, "", 0, "a\nb\u2028%s", ("c\x7f",), None)
    assert OneLine().format(record).endswith(" INFO a\\x0ab\\x2028c\\x7f")
