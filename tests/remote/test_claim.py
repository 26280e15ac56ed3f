# SPDX-License-Identifier: Apache-2.0
"""How a log is taken over: what is asked in which order, and who is fenced."""

import pytest

from kohort.errors import ErrorCode, FencedError, KohortError
from kohort.machines.effects import Producer
from kohort.remote.claim import (
    LAST_EPOCH,
    Claim,
    ClaimRecord,
    ClaimResult,
    InitProducerId,
    Read,
    Write,
)
from kohort.terms import Millis, Offset
from kohort.wire import batch

MINE = Producer(7, 3)


def headers(*producers, base=0):
    """A batch of one record by each producer, from an offset on."""
    return [
        batch.header_at(
            batch.build(
                [(b"k", b"v")],
                0,
                base_offset=base + number,
                producer_id=producer,
                producer_epoch=epoch,
            )
        )
        for number, (producer, epoch) in enumerate(producers)
    ]


def begun(at=4):
    """A claim whose batch stands at an offset."""
    claim = Claim("log-0", ClaimRecord(b"claim", b"n1", Millis(5)))
    assert claim.request == InitProducerId("log-0")
    claim.initialised(MINE)
    header = written_by(claim)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (*MINE, 0)
    claim.written(ErrorCode.NONE, at)
    return claim


def written_by(claim):
    assert isinstance(claim.request, Write)
    header = batch.header_at(claim.request.batch)
    batch.check(claim.request.batch, 0, header)
    assert header.base_offset == 0
    return header


def test_it_writes_first_and_reads_then():
    claim = begun(at=4)
    assert claim.request == Read(None)
    claim.read(headers((7, 2), (7, 2), (-1, -1)), Offset(3))
    assert claim.request == Read(Offset(3)), "its own batch stands at 4"
    claim.read(headers((7, 2), MINE, base=3), Offset(5))
    assert claim.result == ClaimResult(MINE, 1, Offset(5))


def test_each_other_producer_is_fenced_and_the_log_is_read_on():
    claim = begun(at=2)
    claim.read(headers((5, 0), (6, 9), MINE), Offset(3))
    for stranger, at in ((5, 3), (6, 4)):
        header = written_by(claim)
        assert (header.producer_id, header.producer_epoch) == (stranger, LAST_EPOCH)
        claim.written(ErrorCode.NONE, at)
    assert claim.request == Read(Offset(3)), "one more may have written in between"
    claim.read(headers((5, LAST_EPOCH), (6, LAST_EPOCH), (8, 0), base=3), Offset(6))
    assert written_by(claim).producer_id == 8
    claim.written(ErrorCode.NONE, 6)
    claim.read(headers((8, LAST_EPOCH), base=6), Offset(7))
    assert claim.result == ClaimResult(MINE, 1, Offset(7))


def test_a_marker_is_of_the_cluster_and_fences_nobody():
    marker = batch.build_marker(
        commit=True, timestamp=0, producer_id=9, producer_epoch=0, coordinator_epoch=0
    )
    claim = begun(at=0)
    claim.read([batch.header_at(marker)], Offset(1))
    assert claim.result is not None


def test_one_who_is_fenced_already_stays_so():
    claim = begun(at=1)
    claim.read(headers((5, LAST_EPOCH), MINE), Offset(2))
    assert claim.result is not None


def test_somebody_else_has_fenced_the_same_producer():
    claim = begun(at=1)
    claim.read(headers((5, 0), MINE), Offset(2))
    claim.written(ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert claim.result is not None


def test_another_claim_has_come_later():
    claim = Claim("log-0", ClaimRecord(b"claim", b"n1", Millis(5)))
    claim.initialised(MINE)
    with pytest.raises(FencedError, match="INVALID_PRODUCER_EPOCH"):
        claim.written(ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert claim.result is None


def test_a_producer_that_cannot_be_fenced_ends_the_claim():
    claim = begun(at=1)
    claim.read(headers((5, 0), MINE), Offset(2))
    with pytest.raises(
        KohortError, match="producer 5 cannot be fenced: TOPIC_AUTHORIZATION_FAILED"
    ):
        claim.written(ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)
    assert claim.result is None
