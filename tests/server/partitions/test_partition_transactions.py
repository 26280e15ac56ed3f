# SPDX-License-Identifier: Apache-2.0
"""What a partition knows of transactions, against a log that Apache Kafka wrote and by hand."""

import pytest
from tests import golden_logs

from kohort.errors import Broken
from kohort.server.partitions.partition_transactions import PartitionTransactions
from kohort.storage.files import DiskFiles
from kohort.storage.memory import MemoryLog
from kohort.storage.segments import SegmentLog
from kohort.terms import Offset
from kohort.wire import batch


def data(producer, *, transactional=True):
    return batch.build(
        [(b"k", b"v")], 1000, producer_id=producer, producer_epoch=0, transactional=transactional
    )


def marker(producer, *, commit):
    return batch.build_marker(
        commit=commit, timestamp=1000, producer_id=producer, producer_epoch=0, coordinator_epoch=0
    )


# What is in the log, and then: the last stable offset, and the aborted ones as (producer, first).
STORIES = {
    "nothing": ([], 0, []),
    "plain records": ([data(1, transactional=False)], 1, []),
    "an open one": ([data(9, transactional=False), data(1), data(2)], 1, []),
    "a committed one": ([data(1), marker(1, commit=True)], 2, []),
    "an aborted one": ([data(1), marker(1, commit=False)], 2, [(1, 0)]),
    "one in another": (
        [data(1), data(2), marker(2, commit=False), marker(1, commit=True)],
        4,
        [(2, 1)],
    ),
    "the first still open": ([data(1), data(2), marker(2, commit=False)], 0, [(2, 1)]),
    "twice the same": (
        [data(1), marker(1, commit=False), data(1), data(1), marker(1, commit=False)],
        5,
        [(1, 0), (1, 2)],
    ),
    "a marker alone": ([marker(1, commit=False)], 1, []),
}


@pytest.mark.parametrize("name", STORIES)
def test_a_log_tells_what_is_stable_and_what_was_aborted(name):
    """Read at once, read on behind what was read, and told as it is written."""
    batches, stable, aborted = STORIES[name]
    log = MemoryLog()
    told = PartitionTransactions(log.end)
    behind = PartitionTransactions(log.end)
    for one in batches:
        header = batch.header_at(one)
        base = log.end
        log.append(one, 1)
        behind.catch_up(log)
        if header.is_control:
            (entry,) = batch.entries(one)
            told.ended(header.producer_id, base, commit=batch.marker_commits(entry[2]))
        elif header.is_transactional:
            told.wrote(header.producer_id, base)
    for known in (PartitionTransactions.of(log), behind, told):
        assert known.stable(log.end) == stable
        found = known.aborted(Offset(0), log.end)
        assert [(one.producer_id, one.first) for one in found] == aborted


def test_a_batch_that_the_cleaner_has_emptied_opens_nothing():
    """It is kept for its sequence; the marker behind it may be gone."""
    emptied = batch.build([], 1000, producer_id=1, producer_epoch=0, transactional=True)
    log = MemoryLog()
    log.append(emptied, 1)
    log.append(data(2, transactional=False), 1)

    assert PartitionTransactions.of(log).stable(log.end) == 2


def test_what_ended_is_stable_once_its_marker_is_durable():
    known = PartitionTransactions(Offset(0))
    known.wrote(1, Offset(3))
    known.ended(1, Offset(7), commit=True)

    assert known.stable(Offset(5)) == 3
    assert known.stable(Offset(7)) == 3
    assert known.stable(Offset(8)) == 8


def test_a_reader_is_told_only_of_what_concerns_it():
    known = PartitionTransactions(Offset(0))
    for number in range(10):
        known.wrote(number, Offset(10 * number))
        known.ended(number, Offset(10 * number + 5), commit=False)

    def told(start, end):
        return [one.producer_id for one in known.aborted(Offset(start), Offset(end))]

    assert told(0, 100) == list(range(10))
    assert told(25, 41) == [2, 3, 4]
    assert told(26, 30) == []
    assert told(5, 6) == [0]
    known.forget_before(Offset(26))
    assert told(0, 100) == list(range(3, 10))


def test_a_log_of_apache_kafka_is_read_as_its_index_has_it(tmp_path):
    """Kafka's own index of this log: aborted are the offsets 4 to 7 and 13 to 16, 17 is open."""
    folder = golden_logs.unpack("user", tmp_path) / "txn-topic-0"
    log = SegmentLog(str(folder), DiskFiles())
    known = PartitionTransactions.of(log)

    found = [(one.producer_id, one.first, one.last, one.stable) for one in known.aborted(0, 18)]
    assert found == [(5, 4, 7, 8), (5, 13, 16, 17)]
    assert known.stable(log.end) == 17
    assert known.producers == {6: 17}
    log.close()


def test_a_log_that_cannot_be_read_says_so(tmp_path):
    folder = golden_logs.unpack("user", tmp_path) / "txn-topic-0"
    path = next(folder.glob("*.log"))
    log = SegmentLog(str(folder), DiskFiles())
    path.write_bytes(b"\xff" * path.stat().st_size)

    with pytest.raises(Broken, match="txn-topic-0"):
        PartitionTransactions.of(log)
    log.close()
