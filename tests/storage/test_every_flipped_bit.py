# SPDX-License-Identifier: Apache-2.0
"""What an inspection finds: each flipped bit, each lost file, nothing in a whole log."""

from tests.storage.contract import filled

from kohort.sim.disk import SimulatedFiles
from kohort.storage import checkpoints
from kohort.storage.files import replace_whole
from kohort.storage.inspection import inspect_all, inspect_log
from kohort.storage.log import LogConfig
from kohort.storage.recovery import RecoveryPoint
from kohort.storage.segments import SegmentLog

FOLDER = "/data/topic-0"


def written(disk, count=9):
    log = SegmentLog(FOLDER, disk, LogConfig(segment_bytes=300))
    filled(log, count)
    return log


def test_a_whole_log():
    disk = SimulatedFiles()
    log = written(disk)
    for recovery_point in (
        RecoveryPoint(),
        RecoveryPoint(synced=log.end),
        RecoveryPoint(synced=log.end, clean=True),
    ):
        found = inspect_log(disk, FOLDER, recovery_point, 0)
        assert found.damages == []
        assert (found.segments, found.batches, found.records) == (len(log.closed) + 1, 9, 18)
        assert (found.size_bytes, found.start, found.end) == (log.size_bytes, 0, log.end)


def test_every_flipped_bit_is_found_and_costs_one_batch():
    disk = SimulatedFiles()
    log = written(disk)
    recovery_point = RecoveryPoint(synced=log.end)
    for path in [one.path for one in [*log.closed, log.active]]:
        for position in range(len(disk.files[path].now)):
            disk.flip(path, position, position % 8)
            found = inspect_log(disk, FOLDER, recovery_point, 0)
            disk.flip(path, position, position % 8)
            if found.damages:
                assert (len(found.damages), found.batches) == (1, 8), (path, position)
                assert found.end == log.end
            else:
                assert found.batches == 9  # the leader epoch, which no crc covers
    assert inspect_log(disk, FOLDER, recovery_point, 0).damages == []


def test_an_empty_segment_that_was_never_begun_is_no_damage():
    disk = SimulatedFiles()
    log = SegmentLog(FOLDER, disk)
    filled(log, 4, records=1)
    disk.open(f"{FOLDER}/{2:020d}.log")
    assert inspect_log(disk, FOLDER, RecoveryPoint(synced=4), 0).damages == []


def test_a_finished_cleaning_that_is_damaged():
    disk = SimulatedFiles()
    log = written(disk)
    data = bytearray(disk.files[log.closed[0].path].now)
    data[70] ^= 1
    name = f"{0:020d}.log.swap"
    replace_whole(disk, FOLDER, name, bytes(data))
    found = inspect_log(disk, FOLDER, RecoveryPoint(), 0)
    assert found.aside == [name]
    assert "a finished cleaning cannot be put in place" in found.damages[0].reason


def test_folders_that_are_missing_matter_where_the_topic_is_ours():
    disk = SimulatedFiles()
    written(disk)
    points = {("topic", 0): 0, ("topic", 1): 5, ("other", 0): 5}
    checkpoints.write_recovery_points(disk, "/data", points)
    found = list(inspect_all(disk, "/data", ["topic-0"], {"topic"}))
    assert [(one.name, one.missing, len(one.damages)) for one in found] == [
        ("topic-0", False, 0),
        ("topic-1", True, 1),
    ]
