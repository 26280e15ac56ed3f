# SPDX-License-Identifier: Apache-2.0
"""Every character of a text of others is seen: in a line of the log, a table, and the report."""

import logging

import pytest

from kohort.cli.render import printable
from kohort.escaping import visible
from kohort.server.log_lines import OneLineFormatter

BIDIRECTIONAL = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
ZERO_WIDTH = (0xAD, 0x34F, 0x180E, *range(0x200B, 0x200E), *range(0x2060, 0x2066), 0xFEFF)
FILLERS = (0x115F, 0x1160, 0x17B4, 0x3164, 0xFE00, 0xFE0F, 0xFFA0, 0xE0001, 0xE0041, 0xE0100)
SPACES = (0xA0, 0x2003, 0x202F, 0x3000)


def logged(name):
    record = logging.LogRecord("kohort", logging.INFO, "", 0, "%s", (name,), None)
    return OneLineFormatter().format(record).partition(" INFO ")[2]


def reported(name):
    pytest.importorskip("altair")
    from kohort.pipeline.report.page import escape

    return escape(name)


@pytest.mark.parametrize("shown", [visible, printable, logged, reported])
@pytest.mark.parametrize(
    "code",
    [*range(32), *range(127, 160), *BIDIRECTIONAL, *ZERO_WIDTH, *FILLERS, 0x2028, 0x2029, 0xD800],
)
def test_no_name_hides_a_character_or_turns_what_stands_beside_it(code, shown):
    escaped = chr(code).encode("unicode_escape").decode()
    assert escaped != chr(code)
    assert shown(f"a{chr(code)}b") == f"a{escaped}b"


@pytest.mark.parametrize("shown", [visible, printable, logged, reported])
@pytest.mark.parametrize(
    "name", ["größe", "заказы", "注文", "الطلبات", "e\u0301", "😀", "a b\\x0a"]
)
def test_names_in_every_script_are_shown_as_they_are(name, shown):
    assert shown(name) == name


@pytest.mark.parametrize("code", SPACES)
def test_a_space_that_looks_like_the_usual_one_is_told_apart_but_on_a_page(code):
    assert visible(f"a{chr(code)}b") != f"a{chr(code)}b"
    assert visible(f"a{chr(code)}b", spaces=True) == f"a{chr(code)}b"
