"""A line of the broker's log."""

import logging

import pytest

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


BIDIRECTIONAL = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
ZERO_WIDTH = (0xAD, 0x34F, 0x180E, *range(0x200B, 0x200E), *range(0x2060, 0x2066), 0xFEFF)
FILLERS = (0x115F, 0x1160, 0x17B4, 0x3164, 0xFE00, 0xFE0F, 0xFFA0, 0xE0001, 0xE0041, 0xE0100)


@pytest.mark.parametrize(
    "code",
    [*range(32), *range(127, 160), *BIDIRECTIONAL, *ZERO_WIDTH, *FILLERS, 0x2028, 0x2029, 0xD800],
)
def test_no_name_hides_a_character_or_turns_the_line_around(code):
    record = logging.LogRecord("kohort", logging.INFO, "", 0, "group %s", (f"a{chr(code)}b",), None)
    assert OneLine().format(record).endswith(f" INFO group a\\x{code:02x}b")


@pytest.mark.parametrize(
    "name", ["größe", "заказы", "注文", "الطلبات", "e\u0301", "😀", "a b\\x0a"]
)
def test_names_in_every_script_are_told_as_they_are(name):
    record = logging.LogRecord("kohort", logging.INFO, "", 0, "%s", (name,), None)
    assert OneLine().format(record).endswith(f" INFO {name}")


def test_a_traceback_of_the_logging_module_begins_no_line_either():
    error = RuntimeError("a\n2026-01-01 INFO b\u202e")
    info = (type(error), error, None)
    record = logging.LogRecord("kohort", logging.ERROR, "", 0, "failed", (), info)
    first, *rest = OneLine().format(record).split("\n")
    assert first.endswith(" ERROR failed")
    assert rest[-1] == "    2026-01-01 INFO b\\x202e"
    assert all(line.startswith("    ") for line in rest)
