"""What reads a log in slices sees each batch once, also those that are written meanwhile."""

import pytest

from kohort.server.partitions.log_reader import LogReader
from kohort.storage.log import EVERY_BATCH
from kohort.storage.memory import MemoryLog
from kohort.wire import batch


class Offsets(LogReader):
    """Keeps where each batch begins."""

    def __init__(self, seen):
        super().__init__(seen)
        self.found = []

    def _take(self, header, log):
        del log
        self.found.append(header.base_offset)


def log_of(count):
    log = MemoryLog()
    write(log, count)
    return log


def write(log, count):
    for _ in range(count):
        log.append(batch.build([(b"k", b"v")] * 2, 1000), 2)


@pytest.mark.parametrize("most", [1, 2, 3, 7, EVERY_BATCH])
def test_each_batch_is_seen_once_however_it_is_read(most):
    log = log_of(7)
    reader = Offsets(log.start)
    slices = 1
    while reader.catch_up(log, most):
        slices += 1
    assert reader.found == [0, 2, 4, 6, 8, 10, 12]
    assert reader.seen == log.end
    assert slices == -(-7 // min(most, 7))


def test_it_goes_on_where_it_has_ended():
    log = log_of(2)
    reader = Offsets(log.start)
    assert reader.catch_up(log, 1)
    write(log, 1)
    while reader.catch_up(log, 1):
        pass
    write(log, 1)
    assert not reader.catch_up(log)
    assert not reader.catch_up(log)
    assert reader.found == [0, 2, 4, 6]


def test_a_reader_that_keeps_nothing_is_a_mistake():
    log = log_of(1)
    with pytest.raises(NotImplementedError):
        LogReader(log.start).catch_up(log)
