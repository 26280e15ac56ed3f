# SPDX-License-Identifier: Apache-2.0
"""A noted start that stands behind the end of its log: damage, or all that a crash has left."""

import pytest
from tests.storage.contract import ALL, batch
from tests.storage.logs import CONFIG, END, FOLDER, PATH, contents, segment, three_segments
from tests.storage.starts import begin_at

from kohort.errors import Broken
from kohort.storage import checkpoints
from kohort.storage.inspection import inspect_all
from kohort.storage.recovery import RecoveryPoint
from kohort.storage.repair import repair
from kohort.storage.segments import SegmentLog

BEHIND = 90
PLACE = ("orders", 0)
CRASHED = RecoveryPoint(synced=END)
STOPPED = RecoveryPoint(synced=END, clean=True)


def own(disk, offset):
    checkpoints.write_start_offsets(disk, FOLDER, {PLACE: offset})
    return 0


def of_the_directory(disk, offset):
    checkpoints.write_start_offsets(disk, PATH, {PLACE: offset})
    return offset


@pytest.mark.parametrize("recovery_point", [CRASHED, STOPPED, RecoveryPoint(synced=5)])
@pytest.mark.parametrize("note", [own, of_the_directory])
def test_a_start_behind_what_was_synced_is_damage_and_takes_nothing_away(note, recovery_point):
    disk = three_segments()
    known = note(disk, BEHIND)
    before = contents(disk)
    where = FOLDER if note is own else PATH
    with pytest.raises(
        Broken,
        match=f"{where}/log-start-offset-checkpoint: {FOLDER} begins at offset {BEHIND}, "
        f"it ends at {END}: offsets before {recovery_point.synced} have been synced",
    ):
        SegmentLog(FOLDER, disk, CONFIG, known_start=known, recovery_point=recovery_point)
    assert contents(disk) == before


@pytest.mark.parametrize("note", [own, of_the_directory])
def test_it_is_inspected_and_mended(note):
    disk = three_segments()
    note(disk, BEHIND)
    checkpoints.write_recovery_points(disk, PATH, {PLACE: END})
    (found,) = inspect_all(disk, PATH, ["orders-0"], {"orders"})
    assert [one.file for one in found.damages] == [checkpoints.START_OFFSETS]
    assert (found.start, found.end, found.batches) == (0, END, 9)
    repair(disk, PATH, found)
    (found,) = inspect_all(disk, PATH, ["orders-0"], {"orders"})
    assert found.damages == []
    known = checkpoints.start_offsets(disk, PATH).get(PLACE, 0)
    log = SegmentLog(FOLDER, disk, CONFIG, known_start=known, recovery_point=CRASHED)
    assert (log.start, log.end, len(list(log.read(0, ALL)))) == (0, END, 9)


@pytest.mark.parametrize("recovery_point", [RecoveryPoint(), RecoveryPoint(synced=0)])
@pytest.mark.parametrize("note", [own, of_the_directory])
def test_what_nobody_has_promised_is_set_aside_and_told(note, recovery_point):
    disk = three_segments()
    before = contents(disk)
    size = sum(len(before[segment(base)]) for base in (0, 9, 18))
    log = SegmentLog(
        FOLDER, disk, CONFIG, known_start=note(disk, BEHIND), recovery_point=recovery_point
    )
    assert (log.start, log.end) == (BEHIND, BEHIND)
    assert len(log.notices) == 1
    assert f"3 files of {size} bytes, offsets 0 to {END - 1}, are set aside" in log.notices[0]
    for base in (0, 9, 18):
        assert contents(disk)[f"{segment(base)}.damaged"] == before[segment(base)]
    log.append(batch("next"), 1)
    assert SegmentLog(FOLDER, disk, CONFIG, known_start=BEHIND).notices == []


def test_segments_before_the_start_are_set_aside_and_told():
    """A removal that a crash has interrupted, or a start that has become larger by a bit."""
    disk = three_segments()
    before = contents(disk)
    size = len(before[segment(0)]) + len(before[segment(9)])
    own(disk, 20)
    log = SegmentLog(FOLDER, disk, CONFIG, recovery_point=CRASHED)
    assert (log.start, log.end) == (20, END)
    assert f"2 files of {size} bytes, offsets 0 to 17, are set aside" in log.notices[0]
    assert contents(disk)[f"{segment(9)}.damaged"] == before[segment(9)]
    assert SegmentLog(FOLDER, disk, CONFIG, recovery_point=CRASHED).notices == []


def test_the_start_never_passes_what_is_synced():
    disk = three_segments()
    log = SegmentLog(FOLDER, disk, CONFIG, recovery_point=CRASHED)
    log.append(batch("unsynced"), 1)
    begin_at(log, log.end)
    left = disk.after_power_loss()
    log = SegmentLog(FOLDER, left, CONFIG, recovery_point=CRASHED)
    assert (log.start, log.end) == (END + 1, END + 1)
