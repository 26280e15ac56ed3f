# SPDX-License-Identifier: Apache-2.0
"""Java's hashes and the order of its hash tables: values from a JDK."""

import pytest

from kohort.java import copied_table, hash_order, id_hash, text_hash, timeline_order


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("test-group", 627841412),
        ("my-group", -1906497762),
        ("größe", 98762257),
        ("polygenelubricants", -2147483648),
        ("\U0001f600", 1772899),
    ],
)
def test_text(text, expected):
    assert text_hash(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (bytes(16), 0),
        (bytes(15) + b"\x07", 7),
        (b"\x01" + bytes(15), 1 << 24),
        (b"\xff" * 8 + bytes(8), 0),
        (bytes.fromhex("00112233445566778899aabbccddeeff"), 0),
    ],
)
def test_ids(value, expected):
    assert id_hash(value) == expected


@pytest.mark.parametrize(
    "letters", ["a", "\x7f\0", "az09-_.", "größe", "\uffff", "\U0001f600a", "\ud800"]
)
@pytest.mark.parametrize("length", [*range(95, 112), 1000, 8191])
def test_long_texts(letters, length):
    text = (letters * length)[:length]
    units = text.encode("utf-16-be", "surrogatepass")
    whole = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        whole = (31 * whole + (high << 8 | low)) % (1 << 32)
    assert text_hash(text) % (1 << 32) == whole
    assert -(1 << 31) <= text_hash(text) < 1 << 31


def test_names_of_protocols():
    names = ["cooperative-sticky", "range", "sticky", "roundrobin"]
    assert hash_order(names, text_hash) == ["sticky", "range", "roundrobin", "cooperative-sticky"]


def test_numbers_wrap_at_the_size_of_the_table():
    assert hash_order([14, 15, 16, 17], int) == [16, 17, 14, 15]
    assert hash_order(range(12), int) == list(range(12))
    assert hash_order([1, 33, 17], int) == [1, 33, 17]  # one bucket: as they came
    # The thirteenth doubles the table, so that 16 no longer shares a bucket with 0.
    assert hash_order([*range(5, 17)], int) == [16, *range(5, 16)]
    assert hash_order([*range(5, 18)], int) == [*range(5, 18)]


def test_a_copied_set_has_room_for_all_from_the_start():
    numbers = [*range(5, 17)]  # twelve: one after the other they leave the table at 16
    assert hash_order(numbers, int, copied_table(12)) == numbers
    assert [copied_table(count) for count in (0, 11, 12, 23, 24)] == [16, 16, 32, 32, 64]


@pytest.mark.parametrize(
    "order",
    [
        [0, 1],
        [0, 2, 1],
        [3, 0, 2, 4, 1],
        [3, 0, 5, 2, 4, 1],
        [3, 10, 8, 0, 5, 2, 7, 4, 9, 1, 6],
        [13, 18, 3, 10, 8, 0, 15, 5, 12, 17, 2, 7, 14, 19, 4, 11, 9, 1, 16, 6],
    ],
)
def test_a_table_with_snapshots_grows_slot_by_slot(order):
    """Told by a TimelineHashMap of Apache Kafka 4.3.1."""
    keys = [f"member-{number}" for number in range(len(order))]
    assert timeline_order(keys, text_hash) == [f"member-{number}" for number in order]
    assert timeline_order(["m-A", "m-B", "m-b"], text_hash) == ["m-b", "m-B", "m-A"]
    assert timeline_order([], text_hash) == []
