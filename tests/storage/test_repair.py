# SPDX-License-Identifier: Apache-2.0
"""What is damaged is given up and kept aside; everything else is served as before."""

from random import Random

import pytest
from tests.storage.contract import ALL
from tests.storage.logs import (
    BASES,
    CONFIG,
    END,
    FOLDER,
    PATH,
    contents,
    damage,
    segment,
    three_segments,
)

from kohort.storage import checkpoints
from kohort.storage.inspection import inspect_all, inspect_log
from kohort.storage.recovery import RecoveryPoint
from kohort.storage.repair import repair
from kohort.storage.segments import SegmentLog
from kohort.wire.batch import build, header_at, walk

SYNCED = RecoveryPoint(synced=END, clean=True)
PROMISES = [
    SYNCED,
    RecoveryPoint(synced=18),
    RecoveryPoint(synced=13),
    RecoveryPoint(synced=0),
    RecoveryPoint(clean=True),
    RecoveryPoint(),
]


def mended(disk):
    repair(disk, PATH, inspect_log(disk, FOLDER, SYNCED, 0))
    assert inspect_log(disk, FOLDER, SYNCED, 0).damages == []


def served(disk):
    log = SegmentLog(FOLDER, disk, CONFIG)
    headers = [header_at(data) for data in log.read(log.start, ALL)]
    return [header.base_offset for header in headers if header.count], log.end


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_batch_of_many_is_given_up(base, number):
    disk = three_segments()
    damage(disk, base, number)
    before = contents(disk)
    mended(disk)

    lost = base + 3 * number
    assert served(disk) == ([one for one in range(0, END, 3) if one != lost], END)
    after = contents(disk)
    assert after[segment(base) + ".damaged"] == before[segment(base)]
    for other in set(BASES) - {base}:
        assert after[segment(other)] == before[segment(other)]


def offsets(disk, known_start=0):
    """Every offset that can be read, of segments one after the other."""
    log = SegmentLog(FOLDER, disk, CONFIG, known_start=known_start)
    return {
        offset
        for data in log.read(log.start, ALL)
        for _, header in walk(data)
        if header.count
        for offset in range(header.base_offset, header.last_offset + 1)
    }


def given_up(found):
    return [
        offset
        for one in found.damages
        for offset in range(max(one.first, found.expected_start), one.behind)
    ]


@pytest.mark.parametrize("seed", range(150))
def test_what_is_said_to_be_given_up_is_what_is_gone_afterwards(seed):
    """Bits of records, and whole segments, in any number, whatever was promised."""
    random = Random(seed)
    disk = three_segments()
    recovery_point = random.choice(PROMISES)
    for _ in range(random.choice([1, 1, 2, 3, 4])):
        base = random.choice(BASES)
        kind = random.choice(["bit", "bit", "bit", "file"])
        if kind == "bit" and segment(base) in disk.files:
            damage(disk, base, random.randrange(3))
        elif recovery_point.synced == END and base != 0:
            disk.unlink(segment(base))
    found = inspect_log(disk, FOLDER, recovery_point, 0)
    repair(disk, PATH, found)
    left = offsets(disk)
    assert sorted(given_up(found)) == sorted(set(range(END)) - left)
    assert found.records == len(left)
    torn = [one for one in found.damages if one.reason.startswith("torn: ")]
    assert [one.first for one in torn] in ([], [found.end])


def test_a_torn_tail_is_counted_to_its_end():
    disk = three_segments()
    damage(disk, 18, 0)
    damage(disk, 18, 2)
    found = inspect_log(disk, FOLDER, RecoveryPoint(synced=18), 0)
    (one,) = found.damages
    assert (one.first, one.behind, one.batches) == (18, END, 3)
    assert (found.end, found.records) == (18, 18)


def test_offsets_of_a_lost_tail_are_not_given_out_again():
    disk = three_segments()
    disk.unlink(segment(18))
    mended(disk)
    assert served(disk) == (list(range(0, 18, 3)), END)
    assert list(checkpoints.holes(disk, FOLDER)) == []


@pytest.mark.parametrize("lost", [[18], [9, 18], BASES])
def test_consumers_pass_over_a_lost_tail(lost):
    """A position in front of a hole at the end of a log would stay there for ever."""
    disk = three_segments()
    for base in lost:
        disk.unlink(segment(base))
    mended(disk)
    log = SegmentLog(FOLDER, disk, CONFIG, recovery_point=SYNCED)
    position = lost[0]
    while position < END:
        position = header_at(log.fetch(position, ALL)).last_offset + 1
    assert position == log.end == END
    log.append(build([(b"k", b"v")], 0), 1)
    assert header_at(log.fetch(END, ALL)).base_offset == END


def test_a_log_without_segments_goes_on_behind_what_was_synced():
    disk = three_segments()
    for base in BASES:
        disk.unlink(segment(base))
    mended(disk)
    log = SegmentLog(FOLDER, disk, CONFIG, recovery_point=SYNCED)
    assert [header_at(data).count for data in log.read(log.start, ALL)] == [0]
    assert log.end == END


def test_a_second_repair_has_a_name_of_its_own_for_what_it_moves():
    disk = three_segments()
    for number in (0, 0):
        damage(disk, 9, number)
        mended(disk)
    names = [name for name in disk.names(FOLDER) if ".damaged" in name]
    stem = segment(9).rpartition("/")[2]
    assert sorted(names) == [f"{stem}.damaged", f"{stem}.damaged.2"]


def test_a_folder_that_is_gone_is_forgotten():
    disk = three_segments()
    checkpoints.write_recovery_points(disk, PATH, {("orders", 0): END, ("gone", 3): 5})
    *_, gone = inspect_all(disk, PATH, ["orders-0"], {"orders", "gone"})
    repair(disk, PATH, gone)
    assert checkpoints.recovery_points(disk, PATH) == {("orders", 0): END}
