# SPDX-License-Identifier: Apache-2.0
"""Bytes of a Fetch answer: what is whole is read, what is hidden is not, what is wrong is said."""

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.fetcher.batches import (
    APPEND_TIME,
    T0,
    answer,
    batch,
    damaged,
    emptied,
    marker,
    of_transaction,
)

from kohort.client.fetcher.decoding import (
    AbortedBatchFilter,
    RecordError,
    deserialized,
    records_of,
    whole_batches,
)
from kohort.client.fetcher.record import ConsumerRecord
from kohort.errors import WireError
from kohort.wire.batch import HEADER_SIZE, Record, build, build_records, peek, records

OLD = bytes(16) + b"\x01" + bytes(60)  # a message of magic 1
COUNT_AT = 57  # the last four bytes of a header


def ends(data: bytes) -> list[int]:
    return [header.last_offset for _, header in whole_batches(data)]


def decoded(data: bytes, first: int = 0) -> list[ConsumerRecord]:
    return [
        record
        for position, header in whole_batches(data)
        for record in records_of(T0, data, position, header, first)
    ]


def offsets(data: bytes, first: int = 0) -> list[int]:
    return [record.offset for record in decoded(data, first)]


def visible(data: bytes, *aborted: tuple[int, int]) -> list[int]:
    """The offsets that a reader of committed records sees."""
    told = AbortedBatchFilter(answer(aborted=aborted).aborted_transactions)
    return [
        record.offset
        for position, header in whole_batches(data)
        if not told.drops(data, position, header)
        for record in records_of(T0, data, position, header, 0)
    ]


# Which batches are there


def test_batches_come_in_their_order_with_their_places() -> None:
    data = batch(3, 4) + emptied(5, 9) + batch(12)
    assert ends(data) == [4, 9, 12]
    assert [position for position, _ in whole_batches(data)] == [
        0,
        len(batch(3, 4)),
        len(batch(3, 4) + emptied(5, 9)),
    ]
    assert ends(b"") == []


def test_the_last_batch_may_be_cut_anywhere() -> None:
    whole, last = batch(0, 1), batch(2, 3)
    for size in range(len(last)):
        assert ends(whole + last[:size]) == [1]
    assert ends(whole + last) == [1, 3]


def test_the_first_batch_has_to_be_whole() -> None:
    """Else nobody would get on: the next answer would be the same."""
    data = batch(0, 1)
    for size in range(1, len(data)):
        with pytest.raises(WireError):
            ends(data[:size])


@pytest.mark.parametrize("bad", [OLD, damaged(batch(2), 16), b"\xff" * 80])
def test_what_is_no_batch_ends_what_can_be_read(bad: bytes) -> None:
    """It is said when it comes first, so that what is before it is handed out."""
    assert ends(batch(0, 1) + bad) == [1]
    with pytest.raises(WireError):
        ends(bad)


def test_the_size_that_a_first_batch_should_have_is_told() -> None:
    data = batch(0, 1)
    with pytest.raises(WireError, match=f"a batch of {len(data)} bytes, of which 70 were sent"):
        ends(data[:70])


# Records


def test_a_record_has_all_that_its_batch_says() -> None:
    headers = [("h", b"x"), ("h", None), ("", b"")]
    written = [
        Record(7, 900, b"k", b"v", headers),
        Record(9, 1000, None, None),
        Record(300, 100_000, b"", b"w" * 300),
    ]
    data = build_records(written, leader_epoch=4)
    first, second, third = decoded(data)
    assert first == ("t", 0, 7, 900, "create", b"k", b"v", tuple(headers), 4)
    assert second == ("t", 0, 9, 1000, "create", None, None, (), 4)
    assert third == ("t", 0, 300, 100_000, "create", b"", b"w" * 300, (), 4)
    assert isinstance(first, ConsumerRecord)


def test_the_time_may_be_the_brokers() -> None:
    data = batch(0, 1, attributes=APPEND_TIME, max_timestamp=7)
    assert [(one.timestamp_ms, one.timestamp_type) for one in decoded(data)] == [(7, "append")] * 2


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_and_a_place_in_the_middle(codec: int) -> None:
    data = batch(2, 3, 5, 8, attributes=codec)
    for first in range(10):
        assert offsets(data, first) == [one for one in (2, 3, 5, 8) if one >= first]


@pytest.mark.parametrize("codec", range(5))
def test_an_empty_batch_has_no_records(codec: int) -> None:
    data = build_records([], base_offset=3, last_offset=9, attributes=codec)
    assert ends(data) == [9]
    assert offsets(data) == []


def test_a_batch_is_read_from_the_middle_of_an_answer() -> None:
    """A length that is wrong must not reach into the batch behind."""
    data = batch(0, 1) + batch(2, value=b"w" * 300) + batch(3)
    assert offsets(data) == [0, 1, 2, 3]


def with_count(data: bytes, count: int) -> bytes:
    return data[:COUNT_AT] + count.to_bytes(4, "big") + data[COUNT_AT + 4 :]


def with_codec(data: bytes, codec: int) -> bytes:
    return data[:22] + bytes([codec]) + data[23:]


def with_last_delta(data: bytes, delta: int) -> bytes:
    return data[:23] + delta.to_bytes(4, "big") + data[27:]


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 3, 2**31 - 1])
def test_a_count_that_lies(codec: int, count: int) -> None:
    data = with_count(batch(0, 1, attributes=codec), count)
    if codec and not count:  # what nobody would unpack is not there
        assert offsets(data) == []
        return
    for follower in (b"", batch(2)):
        with pytest.raises(WireError):
            offsets(data + follower)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (with_last_delta(batch(0, 5), 4), "last record has offset delta 5, its batch 4"),
        (batch(5, 5, last_offset=9), "offset delta 0 after 0"),
        (batch(5, 7, 6, last_offset=9), "offset delta 1 after 2"),
        (batch(4, base_offset=5, last_offset=9), "offset delta -1 after -1"),
        (with_codec(batch(0), 5), "compression type is 5, expected 0 to 4"),
        (with_codec(batch(0), 7), "compression type is 7, expected 0 to 4"),
        (with_codec(batch(0), 1), "gzip"),
    ],
)
def test_records_that_contradict_their_batch(data: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        offsets(data)


def raw(body: bytes, count: int = 1) -> bytes:
    """A batch whose records are these bytes."""
    head = build([(None, None)] * count, 0)[:HEADER_SIZE]
    size = HEADER_SIZE - 12 + len(body)
    return head[:8] + size.to_bytes(4, "big") + head[12:] + body


@pytest.mark.parametrize(
    "body",
    [
        "",
        "0c",  # a size, and nothing
        "01",  # of -1 bytes
        "00",  # of none
        "0c 00 00 00 01 01",  # cut before its headers
        "0c 00 00 00 01 01 00 00",  # a byte too many
        "0c 00 00 00 7e 01 00",  # a key beyond its end
        "0c 00 00 00 01 7e 00",  # a value beyond its end
        "0a 00 00 00 01 01 00",  # longer than it says
        "0c 00 00 00 01 01 02",  # a header that is not there
        "0c 00 00 00 01 01 01",  # -1 headers
        "10 00 00 00 01 01 02 01 01",  # a header without a name
        "12 00 00 00 01 01 02 00 7e 00",  # a header's value beyond its end
        "ff" * 12,
        "0c 00 " + "ff" * 12,
        "0c 00 00 " + "80" * 12,
        "fe ff ff ff 0f 00 00 00 01 01 00",  # two gigabytes
    ],
)
def test_records_by_hand_that_are_none(body: str) -> None:
    data = raw(bytes.fromhex(body))
    for follower in (b"", batch(2), bytes(200)):
        with pytest.raises(WireError):
            offsets(data + follower)


def test_the_record_by_hand_that_is_one() -> None:
    (record,) = decoded(raw(bytes.fromhex("0c 00 00 00 01 01 00")))
    assert (record.offset, record.key, record.value, record.headers) == (0, None, None, ())


SOME = [
    Record(0, 5, b"key", b"value", [("name", b"item"), ("\udcff", None)]),
    Record(3, 4, None, b"", []),
    Record(200, 90_000, b"k" * 70, None, [("", b"")]),
]


@given(st.data())
def test_damage_is_a_wire_error_and_nothing_else(data: Any) -> None:
    """The crc may be turned off, and damage may have one that fits."""
    codec = data.draw(st.integers(0, 4))
    bad = bytearray(build_records(SOME, attributes=codec) + batch(201))
    for _ in range(data.draw(st.integers(1, 3))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decoded(bytes(bad))
    except WireError:
        return
    assert all(isinstance(one, ConsumerRecord) for one in found)


keys = st.none() | st.binary(max_size=80)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 300),
            st.integers(-(2**40), 2**40),
            keys,
            keys,
            st.lists(st.tuples(st.text(max_size=4), keys), max_size=3),
        ),
        min_size=1,
        max_size=9,
    ),
    st.integers(0, 4),
    st.integers(0, 1000),
)
def test_records_are_read_as_anybody_else_reads_them(
    given_: list[Any], codec: int, first: int
) -> None:
    some, offset = [], 0
    for gap, timestamp, key, value, headers in given_:
        offset += gap
        some.append(Record(offset, timestamp, key, value, headers))
    data = build_records(some, attributes=codec)
    plain = [
        (one.offset, one.timestamp, one.key, one.value, tuple(one.headers))
        for one in records(data)
        if one.offset >= first
    ]
    assert [one[2:4] + one[5:8] for one in decoded(data, first)] == plain


# Transactions


def test_what_was_aborted_is_hidden_up_to_its_marker() -> None:
    data = (
        of_transaction(1, 0, 1)
        + of_transaction(2, 2)
        + batch(3)
        + marker(1, 4, commit=False)
        + of_transaction(1, 5)
        + marker(1, 6, commit=True)
        + marker(2, 7, commit=True)
    )
    assert visible(data, (1, 0)) == [2, 3, 5]
    assert visible(data) == [0, 1, 2, 3, 5]


def test_a_transaction_that_began_before_the_answer() -> None:
    data = of_transaction(1, 8) + marker(1, 9, commit=False) + of_transaction(1, 10)
    assert visible(data, (1, 2)) == [10]


def test_a_transaction_whose_end_is_in_a_later_answer() -> None:
    assert visible(of_transaction(1, 8) + batch(9) + of_transaction(1, 10), (1, 8)) == [9]


def test_one_producer_aborts_twice_in_any_order_of_telling() -> None:
    data = (
        of_transaction(1, 0)
        + marker(1, 1, commit=False)
        + of_transaction(1, 2)
        + marker(1, 3, commit=True)
        + of_transaction(1, 4)
        + marker(1, 5, commit=False)
    )
    assert visible(data, (1, 4), (1, 0)) == visible(data, (1, 0), (1, 4)) == [2]


def test_what_belongs_to_no_transaction_is_never_hidden() -> None:
    """A producer's id stays the same when it writes without a transaction."""
    data = batch(0, producer_id=1, producer_epoch=0) + of_transaction(1, 1)
    assert visible(data, (1, 0)) == [0]


def test_compaction_may_leave_a_marker_empty() -> None:
    empty = build_records([], base_offset=1, last_offset=1, producer_id=1, attributes=0x30)
    assert visible(of_transaction(1, 0) + empty + batch(2), (1, 0)) == [2]


def test_no_list_of_transactions_is_an_empty_one() -> None:
    data = of_transaction(1, 0)
    assert not AbortedBatchFilter(None).drops(data, 0, peek(data))


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\0\0\0\x05"])
def test_a_marker_that_says_nothing(key: bytes | None) -> None:
    data = build([(key, None)], 0, producer_id=1, transactional=True, control=True)
    with pytest.raises(WireError, match="control record"):
        AbortedBatchFilter(None).drops(data, 0, peek(data))


# Deserializers


def rows(*pairs: tuple[bytes | None, bytes | None]) -> list[ConsumerRecord]:
    return [
        ConsumerRecord("t", 0, offset, 0, "create", key, value)
        for offset, (key, value) in enumerate(pairs, 5)
    ]


def test_deserializers_see_bytes_and_never_none() -> None:
    found, failure = deserialized(rows((b"1", None), (None, b"2"), (b"", b"")), bytes.hex, len)
    assert failure is None
    assert [one[5:7] for one in found] == [("31", None), (None, 1), ("", 0)]


@pytest.mark.parametrize(("key", "value"), [(int, None), (None, int)])
def test_a_record_that_cannot_be_deserialized_stops_there(key: Any, value: Any) -> None:
    some = rows((b"1", b"1"), (b"x", b"x"), (b"3", b"3"))
    found, failure = deserialized(some, key, value)
    assert [one.offset for one in found] == [5]
    assert failure is not None
    assert (failure.partition, failure.offset) == (T0, 6)
    assert "t:0 at offset 6: it cannot be deserialized: ValueError(" in str(failure)
    assert isinstance(failure.__cause__, ValueError)


def test_an_error_may_go_to_another_process() -> None:
    error = RecordError(T0, 6, "no")
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (other.partition, other.offset, str(other)) == (T0, 6, "t:0 at offset 6: no")
