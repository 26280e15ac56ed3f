"""Holes of logs that come from somebody else."""

from tests.storage.contract import batch, filled
from tests.storage.disk import MemoryFiles

from kohort.storage.holes import survey
from kohort.storage.log import LogConfig
from kohort.storage.segments import SegmentLog
from kohort.wire import batch as batches

FOLDER = "/data/topic-0"


def written(disk, count=24):
    log = SegmentLog(FOLDER, disk, LogConfig(segment_bytes=300))
    filled(log, count, records=1)
    return log


def test_a_log_without_holes():
    disk = MemoryFiles()
    assert survey(disk, FOLDER, 0) == ([], 0, -1)
    log = written(disk)
    assert survey(disk, FOLDER, 0) == ([], log.end, -1)


def test_holes_in_front_between_segments_and_in_the_last():
    disk = MemoryFiles()
    log = written(disk)
    first, second, third = log.closed[:3]
    disk.unlink(first.path)
    disk.unlink(third.path)
    last = log.active.path
    data = batches.stamp(batch("later"), log.end + 5, 0)
    disk.files[last].now += data
    assert survey(disk, FOLDER, 0) == (
        [(0, second.base_offset), (third.base_offset, third.end), (log.end, log.end + 5)],
        log.end + 6,
        -1,
    )


def test_the_highest_producer_id_of_all_segments():
    disk = MemoryFiles()
    log = SegmentLog(FOLDER, disk, LogConfig(segment_bytes=100))
    for producer in (7, 4711, -1, 3):
        data = batches.build([(None, b"x")], 1000, producer_id=producer, producer_epoch=0)
        log.append(data, 1)
    assert survey(disk, FOLDER, 0).highest_producer_id == 4711


def test_what_stands_behind_damage_is_not_seen():
    disk = MemoryFiles()
    log = written(disk)
    disk.flip(log.closed[1].path, 16)
    assert survey(disk, FOLDER, 0).end == log.closed[1].base_offset
