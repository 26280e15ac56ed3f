# SPDX-License-Identifier: Apache-2.0
"""Documents for programs: rows in JSON, lines of JSON, and CSV."""

import csv
import io
import json

import pytest

from kohort.cli.documents import json_text, laid_out, write_json, write_json_rows
from kohort.cli.render import Output

ROWS = [
    {"group_id": "größe\x1b[2J", "lag": None, "own": True, "topics": ["a", "b"]},
    {"group_id": 'a,"b"\nc', "lag": 5, "error": "X"},
]
COLUMNS = ("group_id", "lag", "own", "topics", "error")


def written(form, rows, **options):
    stream = io.StringIO()
    Output(stream, form).rows("groups", rows, COLUMNS, **options)
    return stream.getvalue()


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], []])
@pytest.mark.parametrize("beside", [{}, {"errors": []}, {"errors": [{"node": 1}], "dry_run": True}])
def test_rows_are_written_as_the_whole_document_would_be(rows, beside):
    streamed, whole = io.StringIO(), io.StringIO()
    write_json_rows(streamed, "groups", iter(rows), beside)
    write_json(whole, {"groups": rows, **beside})
    assert streamed.getvalue() == whole.getvalue()
    assert json.loads(streamed.getvalue()) == {"schema_version": 1, "groups": rows, **beside}


def test_a_row_is_written_before_the_next_is_made():
    stream = io.StringIO()
    seen = []

    def rows():
        for number in range(3):
            seen.append(stream.getvalue().count('"n"'))
            yield {"n": number}

    Output(stream, "json").rows("groups", rows(), COLUMNS)
    assert seen == [0, 1, 2]


def test_a_document_on_each_line():
    lines = written("jsonl", ROWS, errors=[]).splitlines()
    assert [json.loads(line) for line in lines] == [{"schema_version": 1, **row} for row in ROWS]
    assert all(line.isprintable() for line in lines)


def test_csv_is_read_back():
    names, *rows = csv.reader(io.StringIO(written("csv", ROWS), newline=""))
    assert tuple(names) == COLUMNS
    assert rows == [
        ["größe\x1b[2J", "", "true", '["a", "b"]', ""],
        ['a,"b"\nc', "5", "", "", "X"],
    ]


def test_a_row_of_csv_for_each_that_is_nested():
    rows = [{"group_id": "a", "inner": [{"lag": 1}, {"lag": 2}]}, {"group_id": "b", "inner": []}]
    rows[0]["inner"][0]["group_id"] = "the inner one"
    assert written("csv", rows, nested="inner").splitlines()[1:] == ["a,1,,,", "a,2,,,", "b,,,,"]


@pytest.mark.parametrize(("form", "text"), [("jsonl", ""), ("csv", ""), ("json", "X")])
def test_only_json_has_a_place_for_an_error(form, text):
    stream = io.StringIO()
    Output(stream, form).error({"error": "X"})
    assert text in stream.getvalue()
    assert bool(stream.getvalue()) == bool(text)


DEEP = {
    "texts": [
        "",
        'a"b\\',
        "größe ☃",
        "\x00\x1b\x7f\x85\u2028\u200b",
        "\ud800",
        "\\ud800",
        "\\\ud800",
    ],
    "numbers": [0, -1, 2**63, 1.5, 1e300, True, None],
    "empty": [[], {}, [[]], {"a": {}}],
    "inner": {"rows": [{"a": [1, {"b": ()}]}]},
}


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_document_over_several_lines_is_that_of_pythons_own_encoder(encoding):
    text = laid_out(DEEP, encoding)
    assert json.loads(text) == json.loads(json.dumps(DEEP))
    assert all(line.isprintable() for line in text.split("\n"))
    own = json.dumps(DEEP, indent=2, ensure_ascii=encoding == "ascii")
    assert len(text.split("\n")) == len(own.split("\n"))
    if encoding == "ascii":
        assert text.replace("\x7f", "\\u007f") == own.replace("\x7f", "\\u007f")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_no_document_has_a_number_that_json_has_not(number):
    for write in (laid_out, json_text):
        with pytest.raises(ValueError, match="JSON compliant"):
            write({"a": number})
