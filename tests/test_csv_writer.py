# SPDX-License-Identifier: Apache-2.0
"""CSV that every reader takes apart as it was put together."""

import csv
from io import StringIO

import pytest

from kohort.csv_writer import CsvWriter


def written(*rows):
    stream = StringIO()
    CsvWriter(stream).writerows(rows)
    return stream.getvalue()


@pytest.mark.parametrize(
    "text", ["a,b", 'a"b', "a\rb", "a\nb", "a\r\nb", "\r\n", "", " a ", "a\0b"]
)
def test_a_text_is_read_back(text):
    rows = [[text, "1"], [text], ["1", text]]
    assert list(csv.reader(StringIO(written(*rows), newline=""), strict=True)) == rows


def test_quotes_are_where_they_are_needed_and_a_line_ends_in_a_line_feed():
    assert written(["a\rb", "c", None, 8], ["d"]) == '"a\rb",c,,8\nd\n'
