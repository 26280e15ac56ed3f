"""How results are shown."""

import io

import pytest

from kohort.cli.render import Output, columns, partitions_text, printable, runs


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


def test_partitions():
    assert partitions_text({"b": (0,), "a": (0, 1, 4)}) == "a:0-1,4 b:0"
    assert partitions_text({}) == "nothing"
    assert partitions_text(None) is None


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_drawn_table():
    stream = Terminal()
    Output(stream, as_json=False).table(("GROUP", "LAG"), [("[red]g", 5), ("h", None)])
    text = stream.getvalue()
    assert "GROUP" in text
    assert "[red]g" in text
    assert "─" in text


def test_json_keeps_text_as_it_is():
    stream = io.StringIO()
    Output(stream, as_json=True).json({"group": "größe"})
    assert stream.getvalue() == '{\n  "group": "größe"\n}\n'
