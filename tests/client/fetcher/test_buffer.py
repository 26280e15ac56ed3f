# SPDX-License-Identifier: Apache-2.0
"""What waits to be handed out: each record once, and the place after it at any time."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.fetcher.batches import T0, answer, batch, damaged, emptied, marker, of_transaction

from kohort.client.fetcher.buffer import Buffer
from kohort.client.fetcher.decoding import RecordError
from kohort.client.fetcher.record import OffsetAndEpoch
from kohort.client.fetcher.settings import FetchSettings

BODY = 70  # a place among the records of a batch, behind its header


def buffer(offset: int = 0, **settings: Any) -> Buffer:
    return Buffer(T0, OffsetAndEpoch(offset), FetchSettings(**settings))


def taken(some: Buffer, most: int = 100) -> list[int]:
    return [record.offset for record in some.take(most)]


def drained(some: Buffer) -> list[int]:
    found: list[int] = []
    while offsets := taken(some):
        found += offsets
    return found


def test_records_are_handed_out_from_the_place_on() -> None:
    some = buffer(3)
    some.add(answer(batch(0, 1, 2, 3, 4, epoch=2), batch(5, 6, epoch=3)))
    assert some.fetch_from == OffsetAndEpoch(7, 3)
    assert some.take_from == OffsetAndEpoch(3)
    assert taken(some, 1) == [3]
    assert some.take_from == OffsetAndEpoch(4, 2)
    assert taken(some) == [4]
    assert some.take_from == OffsetAndEpoch(5, 2)
    assert taken(some, 1) == [5]
    assert some.take_from == OffsetAndEpoch(6, 3)
    assert taken(some) == [6]
    assert some.take_from == some.fetch_from
    assert taken(some) == []


def test_a_gap_that_compaction_has_left_is_passed() -> None:
    some = buffer(2)
    some.add(answer(batch(0, 9), emptied(10, 14), batch(20, last_offset=29)))
    assert drained(some) == [9, 20]
    assert some.take_from == some.fetch_from == OffsetAndEpoch(30, 0)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_batches_without_anything_to_see_move_the_place(level: str) -> None:
    """Else a reader would ask for them again and again, and never come to the end."""
    some = buffer(isolation_level=level)
    some.add(answer(emptied(0, 4, epoch=1), marker(1, 5, commit=True)))
    assert some.fetch_from == OffsetAndEpoch(6, -1)
    assert some.has_something
    assert taken(some) == []
    assert some.take_from == OffsetAndEpoch(6, -1)
    assert (some.has_something, some.bytes) == (False, 0)


@pytest.mark.parametrize(
    ("level", "seen"), [("read_committed", [3]), ("read_uncommitted", [0, 1, 3])]
)
def test_aborted_transactions(level: str, seen: list[int]) -> None:
    some = buffer(isolation_level=level)
    told = answer(of_transaction(1, 0, 1), marker(1, 2, commit=False), batch(3), aborted=[(1, 0)])
    some.add(told)
    assert drained(some) == seen
    assert some.take_from == OffsetAndEpoch(4, 0)


def test_what_is_passed_over_still_says_where_transactions_end() -> None:
    """The place may be behind the marker of the batch that it is in the middle of."""
    some = buffer(3, isolation_level="read_committed")
    some.add(
        answer(
            of_transaction(1, 0),
            marker(1, 1, commit=False),
            of_transaction(1, 2, 3),
            aborted=[(1, 0)],
        )
    )
    assert drained(some) == [3]


def test_each_answer_names_its_own_transactions() -> None:
    some = buffer(isolation_level="read_committed")
    some.add(answer(of_transaction(1, 0), aborted=[(1, 0)]))
    some.add(answer(of_transaction(1, 1), marker(1, 2, commit=False), aborted=[(1, 0)]))
    some.add(answer(of_transaction(1, 3), aborted=None))
    assert drained(some) == [3]


def test_bytes_are_counted_until_they_are_decoded() -> None:
    some = buffer()
    first, second = batch(0, 1) + batch(2), batch(3)
    some.add(answer(first))
    some.add(answer(second))
    assert some.bytes == len(first + second)
    assert taken(some) == [0, 1]
    assert taken(some) == [2]
    assert some.bytes == len(first + second)
    assert taken(some) == [3]
    assert some.bytes == len(second)
    assert taken(some) == []
    assert some.bytes == 0


def test_nothing_is_nothing() -> None:
    some = buffer(5)
    for nothing in (b"", None):
        told = answer()
        told.records = nothing
        some.add(told)
    assert (some.has_something, some.take_from, some.fetch_from) == (
        False,
        OffsetAndEpoch(5),
        OffsetAndEpoch(5),
    )


def test_a_batch_that_is_cut_is_asked_for_again() -> None:
    some = buffer()
    some.add(answer(batch(0, 1), batch(2, 3)[:-1]))
    assert some.fetch_from == OffsetAndEpoch(2, 0)
    some.add(answer(batch(2, 3)))
    assert drained(some) == [0, 1, 2, 3]


# What is wrong


def test_damage_is_told_at_the_first_record_of_its_batch() -> None:
    some = buffer()
    some.add(answer(batch(0, 1), damaged(batch(2, 3), BODY), batch(4)))
    assert taken(some) == [0, 1]
    assert some.error is None
    for _ in range(2):
        assert taken(some) == []
        assert isinstance(some.error, RecordError)
        assert some.error.offset == 2
        assert some.has_something  # somebody has to be told
        assert some.take_from == OffsetAndEpoch(2, 0)
    assert some.bytes == 0


def test_damage_in_the_middle_of_which_the_place_is() -> None:
    some = buffer(3)
    some.add(answer(damaged(batch(2, 3), BODY)))
    assert taken(some) == []
    assert isinstance(some.error, RecordError)
    assert (some.error.partition, some.error.offset) == (T0, 3)


def test_the_crc_may_be_left_alone() -> None:
    """Its own bytes are wrong, and the records are as they were."""
    for checks in (True, False):
        some = buffer(check_crcs=checks)
        some.add(answer(damaged(batch(0, 1), 17)))
        assert taken(some) == ([] if checks else [0, 1])
        assert (some.error is not None) is checks


def test_what_is_no_batch_does_not_drop_what_is_before_it() -> None:
    """Else whoever goes on behind the error would never see it."""
    some = buffer()
    some.add(answer(batch(0, 1), batch(2)))
    assert taken(some, 1) == [0]
    some.add(answer(b"x" * 80))
    assert isinstance(some.error, RecordError)
    assert some.error.offset == some.fetch_from.offset == 3
    assert drained(some) == [1, 2]
    assert some.take_from == OffsetAndEpoch(3, 0)
    assert some.bytes == 0


@pytest.mark.parametrize(
    "told",
    [b"\0", batch(0, 1)[:70], batch(0, 1), batch(0) + b"x" * 80],
    ids=["a byte", "a cut batch", "what is before it", "what is before it, and no batch"],
)
def test_an_answer_that_never_comes_to_the_place_is_an_error(told: bytes) -> None:
    """The next answer would be the same, and so on for ever."""
    some = buffer(2)
    some.add(answer(told))
    assert isinstance(some.error, RecordError)
    assert some.error.offset == 2
    assert (some.fetch_from, some.bytes, taken(some)) == (OffsetAndEpoch(2), 0, [])


def test_batches_that_go_back_are_not_handed_out_twice() -> None:
    """The base offset is outside of what the crc covers."""
    some = buffer(4)
    some.add(answer(batch(4, 5), batch(0, 1), batch(5, 6), batch(2)))
    assert some.fetch_from.offset == 7
    assert drained(some) == [4, 5, 6]
    assert some.take_from.offset == 7


def test_a_record_that_cannot_be_deserialized_is_the_next_one_until_somebody_seeks() -> None:
    some = buffer(value_deserializer=int)
    some.add(answer(batch(0, 1, value=b"1"), batch(2, value=b"x"), batch(3, value=b"1")))
    assert taken(some) == [0, 1]
    assert taken(some) == []
    assert isinstance(some.error, RecordError)
    assert (some.error.offset, some.take_from.offset) == (2, 2)
    assert (some.bytes, taken(some)) == (0, [])


def test_records_before_it_come_out_first() -> None:
    found: list[bytes] = []

    def third(value: bytes) -> bytes:
        found.append(value)
        if len(found) == 3:
            raise LookupError
        return value

    some = buffer(key_deserializer=third, value_deserializer=third)
    some.add(answer(batch(0, 1, 2, 3)))
    assert taken(some, 1) == [0]
    assert isinstance(some.error, RecordError)  # it is known, and what is before it comes first
    assert some.take_from.offset == 1
    assert taken(some) == [1]
    assert (some.take_from.offset, some.error.offset) == (2, 2)


def test_hidden_records_are_not_deserialized() -> None:
    some = buffer(value_deserializer=int, isolation_level="read_committed")
    some.add(answer(of_transaction(1, 0), marker(1, 1, commit=False), aborted=[(1, 0)]))
    assert taken(some) == []
    assert some.error is None


# Every way to cut a log into answers


@given(st.data())
def test_every_record_is_handed_out_once_however_it_came(data: Any) -> None:
    log, kept, at = [], [], 0
    for _ in range(data.draw(st.integers(1, 8))):
        gaps = data.draw(st.lists(st.integers(1, 3), max_size=4))
        if gaps:
            offsets = [at + sum(gaps[: index + 1]) - 1 for index in range(len(gaps))]
            last = offsets[-1] + data.draw(st.integers(0, 2))
            log.append((last, batch(*offsets, base_offset=at, last_offset=last)))
            kept += offsets
        else:
            last = at
            log.append((last, emptied(at, last)))
        at = last + 1
    start = data.draw(st.integers(0, at - 1))
    some, found = buffer(start), []
    while some.fetch_from.offset < at:
        rest = b"".join(one for last, one in log if last >= some.fetch_from.offset)
        first = next(one for last, one in log if last >= some.fetch_from.offset)
        some.add(answer(rest[: data.draw(st.integers(len(first), len(rest)))]))
        for most in data.draw(st.lists(st.integers(1, 5), max_size=3)):
            found += taken(some, most)
            assert all(offset < some.take_from.offset for offset in found)
            assert some.take_from.offset <= some.fetch_from.offset
    found += drained(some)
    assert found == [offset for offset in kept if offset >= start]
    assert some.error is None
    assert (some.take_from, some.bytes) == (some.fetch_from, 0)


def test_bytes_that_nobody_had_thought_of_are_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours stops the partition at its record, and skips nothing."""

    def broken(*_: Any) -> None:
        raise IndexError

    some = buffer()
    some.add(answer(batch(0, 1), batch(2)))
    assert taken(some) == [0, 1]
    monkeypatch.setattr("kohort.client.fetcher.buffer.records_of", broken)
    assert taken(some) == []
    assert isinstance(some.error, RecordError)
    assert some.error.offset == 2
    assert some.take_from.offset == 2
