# SPDX-License-Identifier: Apache-2.0
"""One writer of one partition: its sequences, where its batches must stand, and how it ends."""

import pytest

from kohort.errors import Broken, ErrorCode, FencedError
from kohort.machines.effects import Producer
from kohort.remote.writer import IN_FLIGHT, Gap, PartitionWriter
from kohort.terms import Millis, Offset
from kohort.wire import batch

NOW = Millis(1000)
NONE = ErrorCode.NONE


def begun(end=10, sequence=1):
    return PartitionWriter("log-0", Producer(7, 3), Offset(end), sequence)


def data(count=1):
    return batch.build([(b"k", b"v")] * count, 0)


def sent(writer, now=NOW):
    """The sequences of what it sends."""
    found = []
    for each in writer.to_send(now):
        header = batch.header_at(each)
        batch.check(each, 0, header)
        assert (header.base_offset, header.producer_id) == (0, 7)
        found.append((header.producer_epoch, header.base_sequence))
    return found


def marker(at):
    made = batch.build_marker(
        commit=True,
        timestamp=0,
        producer_id=9,
        producer_epoch=0,
        coordinator_epoch=0,
        base_offset=at,
    )
    return batch.header_at(made)


def record(at, producer=-1):
    return batch.header_at(batch.build([(b"k", b"v")], 0, base_offset=at, producer_id=producer))


def test_in_order_and_acknowledged():
    writer = begun()
    assert writer.append(data(2), 2) == 12
    assert writer.append(data(1), 1) == 13
    assert sent(writer) == [(3, 1), (3, 3)]
    assert sent(writer) == []
    writer.answered(NONE, 10)
    assert writer.acknowledged == 12
    assert writer.waits
    writer.answered(NONE, 12)
    assert writer.acknowledged == 13
    assert not writer.waits


def test_at_most_five_are_under_way():
    writer = begun()
    for _ in range(IN_FLIGHT + 2):
        writer.append(data(), 1)
    assert len(sent(writer)) == IN_FLIGHT
    writer.answered(NONE, 10)
    assert sent(writer) == [(3, IN_FLIGHT + 1)]


def test_sequences_begin_again_behind_the_last():
    writer = begun(sequence=(1 << 31) - 1)
    writer.append(data(2), 2)
    writer.append(data(), 1)
    assert sent(writer) == [(3, (1 << 31) - 1), (3, 1)]


def test_what_has_no_answer_is_sent_again_the_same():
    writer = begun()
    for _ in range(3):
        writer.append(data(), 1)
    first = writer.to_send(NOW)
    writer.answered(NONE, 10)
    writer.disconnected()
    writer.append(data(), 1)
    again = writer.to_send(NOW)
    assert again[:2] == first[1:]
    assert len(again) == 3


def test_a_retriable_error_ends_the_connection():
    """What stands behind it may be refused for its sequence alone."""
    writer = begun()
    for _ in range(3):
        writer.append(data(), 1)
    first = writer.to_send(NOW)
    writer.answered(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert writer.must_reconnect
    assert sent(writer) == []
    writer.answered(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert writer.lost is None
    writer.disconnected()
    assert writer.to_send(NOW) == first


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    ],
)
def test_another_owner_ends_it(code):
    writer = begun()
    writer.append(data(), 1)
    writer.append(data(), 1)
    sent(writer)
    writer.answered(NONE, 10)
    writer.answered(code, -1)
    assert isinstance(writer.lost, FencedError)
    assert code.name in str(writer.lost)
    assert writer.acknowledged == 11
    assert sent(writer) == []
    with pytest.raises(FencedError):
        writer.append(data(), 1)


def test_a_refusal_for_good_is_no_fence():
    writer = begun()
    writer.append(data(), 1)
    sent(writer)
    writer.answered(ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)
    assert type(writer.lost) is Broken


def test_markers_of_their_transactions_take_offsets():
    writer = begun()
    writer.append(data(), 1)
    writer.append(data(), 1)
    writer.append(data(), 1)
    sent(writer)
    writer.answered(NONE, 12)
    writer.answered(NONE, 13)
    assert writer.gap == Gap(10, 12)
    assert writer.acknowledged == 10
    assert sent(writer) == []
    writer.gap_read([marker(10), marker(11), record(12, 7)])
    assert (writer.gap, writer.acknowledged, writer.shift) == (None, 12, 2)
    writer.append(data(), 1)
    assert sent(writer) == [(3, 4)]
    writer.answered(NONE, 14)
    assert writer.acknowledged == 13


def test_answers_before_the_gap_was_read_outlive_their_connection():
    writer = begun()
    for _ in range(3):
        writer.append(data(), 1)
    first = writer.to_send(NOW)
    writer.answered(NONE, 11)
    writer.answered(NONE, 12)
    writer.disconnected()
    writer.gap_read([marker(10)])
    assert writer.acknowledged == 12
    assert writer.to_send(NOW) == first[2:]


@pytest.mark.parametrize(
    "found", [[record(10)], [marker(10), record(11, 8)], [marker(11)], [marker(10)], []], ids=str
)
def test_a_stranger_ends_it_before_anybody_has_an_answer(found):
    writer = begun()
    writer.append(data(), 1)
    sent(writer)
    writer.answered(NONE, 12)
    writer.gap_read(found)
    assert isinstance(writer.lost, FencedError)
    assert writer.acknowledged == 10


def test_records_that_were_acknowledged_are_gone():
    """An unclean election: the offset is free again."""
    writer = begun()
    writer.append(data(), 1)
    sent(writer)
    writer.answered(NONE, 8)
    assert isinstance(writer.lost, FencedError)
    assert "has lost records" in str(writer.lost)


def test_without_a_lease_nothing_is_sent():
    writer = begun()
    writer.lease_until = NOW
    writer.append(data(), 1)
    assert sent(writer, NOW) == []
    assert sent(writer, Millis(NOW - 1)) == [(3, 1)]


def test_another_epoch_begins_when_nothing_is_under_way():
    writer = begun()
    writer.append(data(), 1)
    sent(writer)
    writer.begin_renewal()
    writer.append(data(), 1)
    assert sent(writer) == []
    with pytest.raises(Broken, match="while batches are under way"):
        writer.renewed(Producer(7, 4))
    writer.answered(NONE, 10)
    assert writer.is_idle
    writer.renewed(Producer(7, 4))
    assert sent(writer) == [(4, 0)]
    writer.answered(NONE, 11)
    assert writer.acknowledged == 12


def test_the_first_batch_of_another_producer_goes_alone():
    """A partition that knows nothing of a producer takes any sequence: where the first batch is
    refused, and may come again, the second would stand before it.
    """
    writer = begun()
    writer.begin_renewal()
    writer.renewed(Producer(7, 4))
    for _ in range(3):
        writer.append(data(), 1)
    assert sent(writer) == [(4, 0)]
    writer.answered(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    writer.disconnected()
    assert sent(writer) == [(4, 0)]
    writer.answered(NONE, 10)
    assert sent(writer) == [(4, 1), (4, 2)]
