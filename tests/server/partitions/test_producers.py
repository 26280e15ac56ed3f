# SPDX-License-Identifier: Apache-2.0
"""Idempotent producers: sequences, epochs and duplicates (KIP-98)."""

import pytest
from tests.python_calls import python_calls

from kohort.errors import ApiError, ErrorCode
from kohort.server.partitions.producers import Producers
from kohort.wire.batch import build, header_at


def header(sequence, *, count=2, epoch=0, producer=7, control=False):
    return header_at(
        build(
            [(b"k", b"v")] * count,
            1_700_000_000_000,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            control=control,
        )
    )


def written(*headers):
    producers = Producers()
    offset = 0
    for one in headers:
        assert producers.admit(one) is None
        producers.written(one, offset, 0)
        offset += one.count
    return producers


def refused(producers, given):
    with pytest.raises(ApiError) as caught:
        producers.admit(given)
    return caught.value.code


def test_batches_follow_each_other():
    producers = written(header(0), header(2), header(4))

    assert producers.admit(header(6)) is None
    assert refused(producers, header(9)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(producers, header(5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_is_sent_again_has_its_old_offset():
    producers = written(*(header(2 * index) for index in range(6)))

    assert producers.admit(header(10)).base_offset == 10
    assert producers.admit(header(2)).base_offset == 2
    assert producers.admit(header(2)).timestamp == 1_700_000_000_000
    # Only five are remembered; and a batch of other records is no duplicate.
    assert refused(producers, header(0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(producers, header(10, count=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_epoch_begins_at_zero_and_fences_the_ones_before():
    producers = written(header(0))

    assert refused(producers, header(7, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.admit(header(0, epoch=1)) is None
    producers.written(header(0, epoch=1), 2, 0)
    assert refused(producers, header(2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.admit(header(2, epoch=1)) is None


def test_sequences_wrap_around():
    producers = written(header(2**31 - 2, count=4))

    assert refused(producers, header(3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.admit(header(2)) is None


def test_a_producer_that_nobody_knows_may_start_anywhere():
    assert Producers().admit(header(500)) is None


def test_silent_producers_are_forgotten():
    producers = Producers()
    producers.written(header(0, producer=1), 0, 100)
    producers.written(header(0, producer=2), 2, 200)
    producers.expire(150)

    assert len(producers) == 1
    assert producers.admit(header(90, producer=1)) is None


def test_all_are_looked_at_only_when_one_may_be_silent():
    """A client can invent a million of them, and housekeeping comes every few seconds."""
    producers = Producers()
    for producer in range(1, 200):
        producers.written(header(0, producer=producer), 0, 1000 + producer)
    producers.expire(100)
    few = python_calls(lambda: producers.expire(1001))
    assert few <= 5
    producers.expire(1101)
    assert len(producers) == 99


def test_many_are_forgotten_in_several_calls(monkeypatch):
    """Those with an open transaction stay, and keep nobody behind them."""
    monkeypatch.setattr("kohort.server.partitions.producers._EXPIRED_AT_ONCE", 10)
    producers = Producers()
    for producer in range(30):
        producers.written(header(0, producer=producer), 0, 1000)
    left = []
    for _ in range(3):
        producers.expire(1001, keep={0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
        left.append(len(producers))
    assert left == [20, 11, 11]


def test_the_longest_silent_are_forgotten_first():
    producers = written(header(0, producer=1), header(0, producer=2), header(0, producer=3))
    producers.written(header(2, producer=1), 6, 0)
    assert producers.forget(2, keep={3}) == 2
    assert [one.producer_id for one in producers.active()] == [3]
    assert producers.forget(9) == 1


def test_who_has_a_marker_only_has_yet_to_begin():
    """Unless what was written before it may be gone."""
    marker = header(-1, count=1, control=True)
    producers, cut = Producers(), Producers(whole=False)
    for known in (producers, cut):
        known.written(marker, 0, 0)

    assert refused(producers, header(5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.admit(header(0)) is None
    assert cut.admit(header(5)) is None


def test_a_marker_has_no_sequence():
    producers = written(header(0))
    producers.written(header(-1, count=1, control=True), 2, 0)

    assert producers.admit(header(2)) is None
