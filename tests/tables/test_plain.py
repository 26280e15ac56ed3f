# SPDX-License-Identifier: Apache-2.0
"""Values of tables as text."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from kohort.tables.plain import csv_header, csv_lines, jsonl, plain, rows

AT = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        ([float("-inf")], ["-Infinity"]),
        (AT, "2026-11-21T07:30:00Z"),
        (date(2026, 11, 21), "2026-11-21"),
        (b"\x00\xff", "00ff"),
        (Decimal(12), 12),
        (Decimal("1.5"), 1.5),
        (timedelta(seconds=90), "0:01:30"),
        ([{"a": (AT, None)}], [{"a": ["2026-11-21T07:30:00Z", None]}]),
    ],
)
def test_a_value_as_json_has_it(value, shown):
    assert plain(value) == shown
    json.dumps(plain(value), allow_nan=False)


def batch():
    columns = [pa.array(['say "hi", ü', None]), pa.array([[1, 2], []]), pa.array([True, None])]
    return pa.RecordBatch.from_arrays(columns, names=["text", "many", "flag"])


def test_lines_of_json():
    first, second = jsonl(batch()).splitlines()

    assert json.loads(first) == {"text": 'say "hi", ü', "many": [1, 2], "flag": True}
    assert json.loads(second) == {"text": None, "many": [], "flag": None}
    assert "ü" in first


def test_csv():
    assert csv_header(batch().schema) == "text,many,flag\n"
    assert csv_lines(batch()) == '"say ""hi"", ü","[1, 2]",true\n,[],\n'


def test_rows_have_a_value_for_each_column_of_a_name():
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert list(rows(twice)) == [[1, 2]]
