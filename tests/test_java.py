"""Java's hashes and the order of its hash tables: values from a JDK."""

import pytest

from kohort.java import copied_table, hash_order, id_hash, text_hash


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
