# SPDX-License-Identifier: Apache-2.0
"""A batch keeps its records, and gives them by the producer and the sequence of the moment."""

import pytest
from tests.client.accumulator.fake_leader import T0, batch_of

from kohort.client.accumulator.batch import NOBODY, SEQUENCES, Batch, ProducerId
from kohort.wire.batch import header_at, records
from kohort.wire.compression import Compression


@pytest.mark.parametrize("codec", Compression)
def test_records_come_out_as_they_went_in(codec: Compression) -> None:
    batch = Batch(T0, 1, limit=1 << 20, codec=codec, created=0, expires=1)
    some = [(7, b"k", b"v" * 500, [("h", b"1")]), (3, None, None, []), (9, b"", b"", [("n", None)])]
    for entry in some:
        batch.take(*entry, "delivery", 10)
    data = batch.sealed(transactional=False)
    assert [(one.timestamp, one.key, one.value, one.headers) for one in records(data, 0)] == some
    header = header_at(data)
    assert (header.compression, header.base_timestamp, header.max_timestamp) == (codec, 7, 9)
    assert (header.count, header.is_transactional) == (3, False)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert batch.charge == 30


def test_it_is_sealed_by_who_writes_at_the_moment() -> None:
    batch = batch_of(b"a", b"b")
    batch.producer, batch.sequence = ProducerId(5, 1), 8
    first = header_at(batch.sealed(transactional=True))
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (5, 1, 8)
    assert first.is_transactional
    batch.producer, batch.sequence = ProducerId(5, 2), 0
    second = header_at(batch.sealed(transactional=False))
    assert (second.producer_epoch, second.base_sequence) == (2, 0)
    assert second.crc != first.crc


def test_a_batch_that_is_closed_takes_no_more() -> None:
    batch = batch_of(b"a")
    size = batch.size
    batch.close()
    assert not batch.add(5, None, b"b", (), batch.limit)
    assert (batch.count, batch.size) == (1, size)


def test_the_limit_counts_the_header() -> None:
    batch = Batch(T0, 1, limit=200, codec=0, created=0, expires=1)
    while batch.add(5, None, b"0123456789", (), batch.limit):
        assert batch.size <= 200
    assert batch.size == len(batch.sealed(transactional=False)) > 200 - 20


def test_sequences_begin_again_after_the_last_one() -> None:
    batch = batch_of(b"a", b"b", b"c")
    batch.sequence = SEQUENCES - 1
    assert (batch.last_sequence, batch.next_sequence) == (0, 1)


def test_halves_have_its_records_and_its_sequences() -> None:
    batch = batch_of(b"a", b"b", b"c", number=4)
    batch.charge = 31
    batch.producer, batch.sequence, batch.attempts = ProducerId(5, 1), SEQUENCES, 2
    first, second = batch.halves()
    assert [one.deliveries for one in (first, second)] == [["a"], ["b", "c"]]
    assert [one.sequence for one in (first, second)] == [SEQUENCES, 0]
    assert [one.charge for one in (first, second)] == [10, 21]
    assert {one.number for one in (first, second)} == {4}
    assert {one.attempts for one in (first, second)} == {2}
    assert {one.producer for one in (first, second)} == {ProducerId(5, 1)}
    assert [one.value for one in records(second.sealed(transactional=False), 0)] == [b"b", b"c"]


def test_halves_of_a_batch_without_sequences_have_none() -> None:
    first, second = batch_of(b"a", b"b").halves()
    assert (first.sequence, second.sequence, first.producer) == (-1, -1, NOBODY)
