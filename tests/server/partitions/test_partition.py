# SPDX-License-Identifier: Apache-2.0
"""A partition: what it takes from producers, what it shows to consumers."""

from dataclasses import replace

import google_crc32c
import pytest
from tests.storage.starts import begin_at

from kohort.config import BrokerConfig
from kohort.errors import ApiError, Broken, ErrorCode, StorageError
from kohort.machines.effects import Producer
from kohort.server.catalog import Topic
from kohort.server.partitions.partition import Partition
from kohort.sim.disk import SimulatedFiles
from kohort.storage.log import LogConfig
from kohort.storage.memory import MemoryLog
from kohort.storage.segments import SegmentLog
from kohort.terms import TopicId
from kohort.wire.batch import Record, build, build_marker, build_records, header_at, walk

NOW = 1_700_000_000_000


def topic(**configs):
    return Topic(
        name="orders",
        topic_id=TopicId(b"o" * 16),
        partitions=1,
        replication_factor=1,
        configs={name.replace("_", "."): text for name, text in configs.items()},
    )


def partition(log=None, **configs):
    return Partition(topic(**configs), 0, log or MemoryLog(), BrokerConfig())


def append(one, batch, now=NOW):
    """Write, and let it be durable at once."""
    appended = one.append(batch, now)
    one.durable(one.log.end)
    return appended


def batch(count=1, timestamp=NOW, **more):
    return build([(b"key", b"value")] * count, timestamp, **more)


def code(one, data, now=NOW):
    before = one.log.end
    with pytest.raises(ApiError) as caught:
        one.append(data, now)
    assert one.log.end == before
    return caught.value.code


def test_batches_are_stored_as_they_came():
    one = partition()

    assert append(one, batch(3)).base_offset == 0
    assert append(one, batch(2, compression=4)).base_offset == 3
    data = one.read(0, 10_000, one.high_watermark)
    assert [header.base_offset for _, header in walk(data)] == [0, 3]
    assert data[61 : len(batch(3))] == batch(3)[61:]


def test_what_is_not_one_whole_batch_is_refused():
    one = partition()

    assert code(one, batch()[:-1]) is ErrorCode.INVALID_RECORD
    assert code(one, batch() + batch()) is ErrorCode.INVALID_RECORD
    assert code(one, batch()[:-1] + b"!") is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (batch(base_offset=5), ErrorCode.INVALID_RECORD),
        (build([], NOW), ErrorCode.INVALID_RECORD),
        (batch(transactional=True), ErrorCode.INVALID_RECORD),
        (
            build_marker(
                commit=True, timestamp=NOW, producer_id=1, producer_epoch=0, coordinator_epoch=0
            ),
            ErrorCode.INVALID_RECORD,
        ),
        (batch(producer_id=1, producer_epoch=-1), ErrorCode.INVALID_RECORD),
        (
            build_records([Record(0, NOW, b"k", b"v"), Record(2, NOW, b"k", b"v")]),
            ErrorCode.INVALID_RECORD,
        ),
    ],
    ids=["offset", "empty", "transaction", "marker", "no epoch", "hole"],
)
def test_batches_that_no_producer_may_send(data, expected):
    assert code(partition(), data) is expected


def test_batches_have_a_largest_size():
    one = partition(max_message_bytes="100")

    assert code(one, build([(b"k", b"v" * 100)], NOW)) is ErrorCode.MESSAGE_TOO_LARGE
    append(one, batch())


def test_records_of_a_compacted_topic_need_a_key():
    one = partition(cleanup_policy="compact")

    assert code(one, build([(b"k", b"v"), (None, b"v")], NOW)) is ErrorCode.INVALID_RECORD
    append(one, build([(b"k", None)], NOW))


def test_the_producers_clock_may_differ_so_much():
    one = partition(message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="50")

    append(one, batch(timestamp=NOW - 1000))
    append(one, batch(timestamp=NOW + 50))
    append(one, batch(timestamp=-1))
    assert code(one, batch(timestamp=NOW - 1001)) is ErrorCode.INVALID_TIMESTAMP
    assert code(one, batch(timestamp=NOW + 51)) is ErrorCode.INVALID_TIMESTAMP


def test_the_brokers_clock_can_count_instead():
    one = partition(message_timestamp_type="LogAppendTime")

    assert append(one, batch(2, timestamp=5)).log_append_time_ms == NOW
    header = header_at(one.read(0, 1000, one.high_watermark))
    assert header.is_append_time
    assert header.max_timestamp == NOW
    assert one.find(NOW, one.high_watermark).offset == 0


def test_consumers_see_only_what_is_durable():
    one = partition()
    one.append(batch(2), NOW)
    one.append(batch(3), NOW)

    assert one.read(0, 1000, one.high_watermark) == b""
    one.durable(2)
    shown = one.read(0, 1000, one.high_watermark)
    assert [header.last_offset for _, header in walk(shown)] == [1]
    assert one.read(3, 1000, one.high_watermark) == b""
    assert one.find(-1, one.high_watermark).offset == 2


def test_written_bytes_are_counted_until_all_of_them_can_be_read():
    one = partition()
    one.append(batch(), NOW)
    one.unannounced_bytes += 100
    one.append(batch(), NOW)
    one.unannounced_bytes += 100
    one.durable(1)
    assert one.take_unannounced() == 200
    one.durable(2)
    assert one.take_unannounced() == 200
    assert one.take_unannounced() == 0


@pytest.mark.parametrize("offset", [-1, 3, 100])
def test_offsets_that_are_not_there(offset):
    one = partition()
    append(one, batch(2))

    with pytest.raises(ApiError) as caught:
        one.read(offset, 1000, one.high_watermark)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_duplicates_have_their_old_offset_and_are_not_written():
    one = partition()
    append(one, batch())
    append(one, batch(2, producer_id=9, producer_epoch=0))

    again = append(one, batch(2, producer_id=9, producer_epoch=0))

    assert (again.base_offset, again.log_append_time_ms, again.size_bytes) == (1, NOW, 0)
    assert one.log.end == 3


def test_producers_are_read_from_the_log_after_a_restart():
    log = MemoryLog()
    before = partition(log)
    append(before, batch())
    append(before, batch(2, producer_id=9, producer_epoch=3))

    one = partition(log)

    duplicate = batch(2, producer_id=9, producer_epoch=3)
    assert one.append(duplicate, NOW).base_offset == 1
    gap = batch(1, producer_id=9, producer_epoch=3, base_sequence=7)
    assert code(one, gap) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    old = batch(1, producer_id=9, producer_epoch=2, base_sequence=2)
    assert code(one, old) is ErrorCode.INVALID_PRODUCER_EPOCH
    one.expire_producers(NOW + 1)
    assert one.append(gap, NOW).base_offset == 3


def test_producers_that_have_been_silent_for_long_are_not_looked_for():
    log = MemoryLog()
    append(partition(log), batch(producer_id=1, producer_epoch=0))
    again = partition(log)
    assert again.append(batch(producer_id=1, producer_epoch=0), NOW).size_bytes == 0
    late = NOW + BrokerConfig().producer_id_expiration_ms + 1
    again = partition(log)
    sent = batch(producer_id=1, producer_epoch=0)
    assert again.append(sent, late).base_offset == 1


def test_after_a_cut_a_marker_does_not_say_that_its_producer_has_yet_to_begin():
    log = MemoryLog()
    whole = partition(log)
    append(whole, batch(2, producer_id=9, producer_epoch=3, transactional=True))
    whole.end_transaction(Producer(9, 3), NOW, commit=True, coordinator_epoch=0)
    whole.durable(log.end)
    late = batch(1, producer_id=9, producer_epoch=3, base_sequence=7)
    assert code(whole, late) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    begin_at(log, 2)
    cut = partition(log)

    assert append(cut, late).base_offset == 3


class FullLog(MemoryLog):
    full = False

    def append(self, data, count):
        if self.full:
            raise StorageError("no space left")
        return super().append(data, count)


def test_a_full_disk_is_the_producers_to_know_and_passes():
    one = partition(FullLog())
    one.log.full = True
    sent = batch(producer_id=1, producer_epoch=0)

    assert code(one, sent) is ErrorCode.KAFKA_STORAGE_ERROR
    one.log.full = False
    assert one.append(sent, NOW).base_offset == 0


class UnreadableLog(MemoryLog):
    max_timestamp = NOW

    def fetch(self, start, limit_bytes):
        raise Broken("a bad sector")

    def find_timestamp(self, timestamp):
        raise Broken("a bad sector")


def test_what_cannot_be_read_is_told_to_who_asks_for_it():
    one = partition(UnreadableLog())
    append(one, batch())
    end = one.high_watermark

    for ask in (
        lambda: one.read(0, 100, end),
        lambda: one.find(NOW, end),
        lambda: one.find(-3, end),
    ):
        with pytest.raises(ApiError, match="a bad sector") as caught:
            ask()
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_after_a_failed_sync_nothing_more_is_taken_or_shown():
    disk = SimulatedFiles()
    one = partition(SegmentLog("/data/orders-0", disk, LogConfig(segment_bytes=100)))
    append(one, batch())
    one.append(batch(), NOW)
    disk.refuses_sync = True

    assert code(one, batch()) is ErrorCode.KAFKA_STORAGE_ERROR
    assert one.failed
    disk.refuses_sync = False
    assert code(one, batch()) is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(Broken):
        one.log.sync()
    one.durable(one.log.end)
    assert one.high_watermark == 1


def test_special_points():
    one = partition()
    for timestamp in (NOW, NOW + 7, NOW + 3):
        append(one, batch(2, timestamp=timestamp))
    end = one.high_watermark

    assert one.find(-1, end) == (6, -1, 0)
    assert one.find(-2, end) == (0, -1, 0)
    assert one.find(-3, end) == (2, NOW + 7, 0)
    assert one.find(-4, end) == (0, -1, 0)
    assert one.find(-5, end) == (-1, -1, -1)
    assert one.find(NOW + 1, end) == (2, NOW + 7, 0)
    assert one.find(NOW + 8, end) == (-1, -1, -1)
    assert one.find(NOW + 1, 2) == (-1, -1, -1)
    assert partition().find(-3, 0) == (-1, -1, -1)


def test_a_time_is_found_within_its_batch():
    one = partition()
    records = [Record(index, NOW + 10 * index, b"k", b"v") for index in range(5)]
    append(one, build_records(records))

    assert one.find(NOW + 11, one.high_watermark) == (2, NOW + 20, 0)


def test_records_that_are_none_are_the_searchers_to_know():
    """A log may hold them, from a broker that did not look; nobody else may suffer for it."""
    one = partition()
    good = build([(b"k", b"v" * 20)], NOW)
    covered = good[21:61] + b"\x7f" * (len(good) - 61)
    one.log.append(good[:17] + google_crc32c.value(covered).to_bytes(4) + covered, 1)
    one.durable(one.log.end)

    with pytest.raises(ApiError) as caught:
        one.find(NOW, one.high_watermark)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_start_lies_between_the_old_one_and_the_end():
    one = partition()
    append(one, batch(2))
    append(one, batch(2))

    assert one.new_start(1) == 1
    one.log.move_start(1)
    assert one.new_start(0) == 1
    assert one.find(-2, one.high_watermark).offset == 1
    for offset in (-5, 5):
        with pytest.raises(ApiError):
            one.new_start(offset)
    assert one.new_start(-1) == 4
    one.log.move_start(4)
    assert one.read(4, 100, one.high_watermark) == b""


def test_settings_count_from_now_on():
    one = partition()
    append(one, batch())
    changed = replace(BrokerConfig(), message_max_bytes=10)
    one.reconfigure(topic(), changed)

    assert code(one, batch()) is ErrorCode.MESSAGE_TOO_LARGE
