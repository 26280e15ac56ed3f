# SPDX-License-Identifier: Apache-2.0
"""Tables on a terminal, line by line."""

import io
import subprocess
import sys

import pytest

from kohort.cli.layout import Column
from kohort.cli.terminal import draw, terminal_width


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


class InAscii(io.StringIO):
    encoding = "ascii"


def drawn(*columns, stream=None):
    stream = io.StringIO() if stream is None else stream
    draw(stream, columns)
    return stream.getvalue()


GROUP = ("GROUP", ["a", "größe 漢字"], False)
STATE = ("STATE", ["Stable", "failed"], False)
LAG = ("LAG", ["5", "1234567"], True)


def test_columns_have_their_widths_and_states_their_colours():
    assert drawn(*(Column(*one) for one in (GROUP, STATE, LAG))).splitlines() == [
        "\x1b[1mGROUP        STATE        LAG\x1b[0m",
        "─" * 29,
        "a            \x1b[32mStable\x1b[0m         5",
        "größe 漢字   \x1b[31mfailed\x1b[0m   1234567",
    ]


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_has_no_styles_gets_none(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert drawn(Column(*STATE)).splitlines() == ["STATE", "──────", "Stable", "failed"]


def test_a_rule_is_of_characters_that_the_terminal_has():
    assert drawn(Column(*STATE), stream=InAscii()).splitlines()[1] == "------"


def test_a_table_without_rows_is_its_headers():
    assert drawn(Column("A", [], False), Column("B", [], False)).splitlines()[1:] == ["─────"]


def test_prose_goes_on_in_its_column_and_headers_end_in_the_last_line():
    lag = Column("LAG_RECORDS", ["5", "6"], True)
    prose = Column("REASON", ["it has members, and a commit", "none"], False)
    lag.width, prose.width, prose.wraps = 8, 11, True
    assert drawn(lag, prose).splitlines() == [
        "\x1b[1m    LAG_\x1b[0m",
        "\x1b[1m RECORDS   REASON\x1b[0m",
        "─" * 22,
        "       5   it has",
        "           members,",
        "           and a",
        "           commit",
        "       6   none",
    ]


def test_columns_of_the_environment_count_first(monkeypatch):
    monkeypatch.setenv("COLUMNS", "47")
    assert terminal_width() == 47


def test_a_table_waits_for_no_library():
    """What draws for `watch` took half of the time in which a shell shows the groups."""
    program = (
        "import io, sys\n"
        "from kohort.cli.render import Output\n"
        "class Terminal(io.StringIO):\n"
        "    isatty = lambda self: True\n"
        "terminal = Terminal()\n"
        "Output(terminal).table(('GROUP', 'LAG'), [('a', 5)])\n"
        "assert '─' in terminal.getvalue()\n"
        "print([one for one in sys.modules if one.partition('.')[0] == 'rich'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
