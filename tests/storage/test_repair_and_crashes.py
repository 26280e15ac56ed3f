# SPDX-License-Identifier: Apache-2.0
"""What is left after a repair: everything but the damage, and a copy of what there was."""

import errno

import pytest
from tests.storage.contract import ALL, filled

from kohort.sim.disk import MachineCrash, SimulatedFiles
from kohort.storage import checkpoints
from kohort.storage.files import make_durable_directory
from kohort.storage.inspection import inspect_log
from kohort.storage.log import LogConfig
from kohort.storage.recovery import RecoveryPoint
from kohort.storage.repair import repair
from kohort.storage.segments import SegmentLog
from kohort.wire.batch import header_at

FOLDER = "/data/topic-0"


def opened(disk, recovery_point=RecoveryPoint()):  # noqa: B008  (a value)
    make_durable_directory(disk, FOLDER)
    return SegmentLog(FOLDER, disk, LogConfig(segment_bytes=300), recovery_point=recovery_point)


def mend(disk, recovery_point):
    found = inspect_log(disk, FOLDER, recovery_point, 0)
    if found.damages:
        repair(disk, "/data", found)


@pytest.mark.parametrize("number", range(9))
def test_one_batch_of_nine_is_given_up(number):
    disk = SimulatedFiles()
    log = opened(disk)
    written = filled(log, 9)
    recovery_point = RecoveryPoint(synced=log.end)
    sizes = 0
    for segment in [*log.closed, log.active]:
        if sizes + segment.size > sum(map(len, written[:number])):
            disk.flip(segment.path, sum(map(len, written[:number])) - sizes + 65)
            break
        sizes += segment.size
    before = bytes(disk.files[segment.path].now)

    mend(disk, recovery_point)

    assert disk.files[segment.path + ".damaged"].now == before
    again = opened(disk, recovery_point)
    left = written[:number] + written[number + 1 :]
    assert [data for data in again.read(0, ALL) if header_at(data).count] == left
    assert again.end == log.end, "no offset is given out twice"


def test_a_crash_at_every_step_of_a_repair():
    steps = 0
    crashed = True
    while crashed:
        steps += 1
        disk = SimulatedFiles()
        log = opened(disk)
        written = filled(log, 9)
        log.sync()
        recovery_point = RecoveryPoint(synced=log.end)
        disk.flip(log.closed[0].path, 70)
        disk.crash_at = disk.steps + steps
        try:
            mend(disk, recovery_point)
            crashed = False
        except MachineCrash:
            pass
        for left in (disk.after_crash(), disk.after_power_loss()):
            mend(left, recovery_point)
            assert list(opened(left, recovery_point).read(0, ALL)) == written[1:]
    assert steps > 5


def test_a_repair_that_the_disk_refuses_can_be_done_again():
    disk = SimulatedFiles()
    log = opened(disk)
    written = filled(log, 9)
    recovery_point = RecoveryPoint(synced=log.end)
    disk.flip(log.closed[0].path, 70)
    disk.faults["write", log.closed[0].path + ".tmp"] = errno.ENOSPC
    with pytest.raises(OSError, match="No space"):
        mend(disk, recovery_point)
    disk.faults.clear()
    mend(disk, recovery_point)
    assert list(opened(disk, recovery_point).read(0, ALL)) == written[1:]


def test_nothing_is_owed_of_a_folder_that_was_given_up():
    disk = SimulatedFiles()
    disk.make_directory("/data")
    checkpoints.write_recovery_points(disk, "/data", {("topic", 0): 5, ("other", 0): 6})
    from kohort.storage.inspection import inspect_all

    (found,) = inspect_all(disk, "/data", [], {"topic"})
    repair(disk, "/data", found)
    assert checkpoints.recovery_points(disk, "/data") == {("other", 0): 6}
