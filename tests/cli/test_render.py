# SPDX-License-Identifier: Apache-2.0
"""How results are shown."""

import io
import json
import re

import pytest

from kohort.cli.render import Output, columns, name_text, partitions_text, printable, runs


def test_columns_are_aligned_and_do_not_trail():
    assert columns(("GROUP", "LAG", "STATE"), [("a-long-name", 5, "Empty"), ("b", 1234, None)]) == [
        "GROUP         LAG  STATE",
        "a-long-name     5  Empty",
        "b            1234  -",
    ]


def test_an_empty_table_still_has_its_header():
    assert columns(("GROUP", "STATE"), []) == ["GROUP  STATE"]


def test_control_characters_cannot_move_the_cursor():
    assert printable("a\x1b[31m\nb") == "a\\x1b[31m\\nb"
    assert columns(("G",), [("a\nb",)]) == ["G", "a\\nb"]
    assert printable("größe ☃") == "größe ☃"


@pytest.mark.parametrize(
    ("indexes", "text"),
    [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([5, 1, 0, 7, 6], "0-1,5-7"), ([0, 2], "0,2")],
)
def test_runs(indexes, text):
    assert runs(indexes) == text


def test_the_empty_name_is_no_missing_one():
    """A group may be called so, and is deleted by that name."""
    assert columns(("GROUP", "PROTOCOL"), [(name_text(""), "")]) == ["GROUP  PROTOCOL", '""     -']
    assert name_text("a") == "a"


def test_partitions():
    assert partitions_text({"b": (0,), "a": (0, 1, 4)}) == "a:0-1,4 b:0"
    assert partitions_text({}) == "nothing"
    assert partitions_text(None) is None


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_drawn_table():
    stream = Terminal()
    Output(stream).table(("GROUP", "LAG"), [("[red]g", 5), ("h", None)])
    text = stream.getvalue()
    assert "GROUP" in text
    assert "[red]g" in text
    assert "─" in text


GROUP = ("GROUP", "TYPE", "EPOCH", "COORDINATOR")
ROWS = [
    ("team-0-service-00000", "consumer", 123456, "0 (127.0.0.1:39777)"),
    ("b", "classic", 7, ""),
]


def drawn(monkeypatch, width, rows=ROWS, **options):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    output = Output(stream)
    output.table(GROUP, rows, **options)
    output.end()
    text = re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue())
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("width", [10, 28, 29, 40, 50, 61, 62, 80, 200])
def test_no_width_breaks_a_word_or_a_number(monkeypatch, width):
    lines = drawn(monkeypatch, width, spare=("COORDINATOR", "TYPE"))
    text = "\n".join(lines)
    assert all(word in text for word in ("GROUP", "EPOCH", "team-0-service-00000", "123456"))
    assert all(word in text for word in ("COORDINATOR", "TYPE"))
    assert ("(127.0.0.1:39777)" in text) == (width >= 62 or width < 29)
    assert width < 36 or max(map(len, lines)) <= width


def test_what_is_left_out_is_told_once(monkeypatch):
    assert drawn(monkeypatch, 36, spare=("COORDINATOR", "TYPE"))[0].split() == ["GROUP", "EPOCH"]
    assert drawn(monkeypatch, 36, spare=("COORDINATOR", "TYPE"))[-1] == (
        "(too narrow for TYPE, COORDINATOR)"
    )


def test_what_is_no_table_any_more_is_a_list_of_fields(monkeypatch):
    assert drawn(monkeypatch, 20, spare=("COORDINATOR", "TYPE")) == [
        "GROUP        team-0-service-00000",
        "TYPE         consumer",
        "EPOCH        123456",
        "COORDINATOR  0 (127.0.0.1:39777)",
        "",
        "GROUP        b",
        "TYPE         classic",
        "EPOCH        7",
        "COORDINATOR  -",
    ]


def test_one_very_long_name_is_laid_out_in_its_column_and_nothing_else_changes(monkeypatch):
    """No part of it is lost: who puts its lines together has the name."""
    long = "team-0-" + "very-" * 40 + "long-name"
    lines = drawn(monkeypatch, 80, [*ROWS, (long, "consumer", 8, "")], spare=("COORDINATOR",))
    assert lines[0].split() == ["GROUP", "TYPE", "EPOCH"]
    assert lines[-1] == "(too narrow for COORDINATOR)"
    assert ["b", "classic", "7"] in [line.split() for line in lines]
    start = next(index for index, line in enumerate(lines) if line.startswith("team-0-very"))
    assert lines[start].split()[1:] == ["consumer", "8"]
    assert "".join(line.split()[0] for line in lines[start:-1]) == long
    assert max(map(len, lines)) <= 80


def test_a_pipe_gets_every_column_at_any_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    output = Output(stream)
    output.table(GROUP, ROWS, spare=("COORDINATOR",))
    output.end()
    assert stream.getvalue().splitlines() == columns(GROUP, ROWS)


ODD = "größe \u009b2J\x7f\u202e\u2028 \U0001f600\U000e0001"


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_json_is_json_in_every_encoding_and_moves_no_cursor(encoding):
    """A code of two letters in Latin-1, and a control sequence beyond ASCII."""
    file = io.BytesIO()
    stream = io.TextIOWrapper(file, encoding=encoding, errors="backslashreplace")
    Output(stream, "json").json({"group": ODD})
    stream.flush()
    text = file.getvalue().decode(encoding)
    assert json.loads(text) == {"schema_version": 1, "group": ODD}
    assert all(line.isprintable() for line in text.splitlines())
    assert ("größe" in text) == (encoding == "utf-8")


def test_json_keeps_text_as_it_is():
    stream = io.StringIO()
    Output(stream, "json").json({"group": "größe"})
    assert stream.getvalue() == '{\n  "schema_version": 1,\n  "group": "größe"\n}\n'


def test_csv_on_a_terminal_controls_nothing_and_is_as_it_is_in_a_pipe():
    row = {"group": "e\x1b[2J\u202e", "state": "a,b"}
    shown = {}
    for stream in (Terminal(), io.StringIO()):
        output = Output(stream, "csv")
        output.rows("groups", [row], ("group", "state"))
        output.csv("\x07bell,t,0,1\n")
        shown[stream.isatty()] = stream.getvalue()
    assert shown[False] == 'group,state\ne\x1b[2J\u202e,"a,b"\n\x07bell,t,0,1\n'
    assert shown[True] == 'group,state\ne\\x1b[2J\\u202e,"a,b"\n\\x07bell,t,0,1\n'
