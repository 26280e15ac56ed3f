# SPDX-License-Identifier: Apache-2.0
"""Records as Python objects."""

import pytest

from kohort.testing.records import Record, content, from_wire
from kohort.wire.batch.reading import Record as WireRecord


@pytest.mark.parametrize(
    ("value", "stands_for"),
    [
        (None, None),
        (b"\xff", b"\xff"),
        ("größe", "größe".encode()),
        ({"id": 1}, b'{"id": 1}'),
        ([1], b"[1]"),
        (7, b"7"),
        (True, b"true"),
    ],
)
def test_what_a_value_of_a_test_stands_for(value, stands_for):
    assert content(value) == stands_for


def test_a_record_shows_its_value():
    wire = WireRecord(3, 7, b"k", b'{"a": [1]}', [("h", None)])
    record = from_wire("t", 1, wire)
    assert record == Record("t", 1, 3, 7, b"k", b'{"a": [1]}', (("h", None),))
    assert (record.text, record.json) == ('{"a": [1]}', {"a": [1]})
    empty = from_wire("t", 1, WireRecord(3, 7, None, None, []))
    assert (empty.text, empty.json) == ("", None)
