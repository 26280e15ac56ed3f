# SPDX-License-Identifier: Apache-2.0
"""A finished cleaning that cannot be one: it does not take the place of good segments."""

import pytest
from tests.storage.contract import ALL
from tests.storage.logs import CONFIG, END, FOLDER, PATH, contents, segment, three_segments

from kohort.errors import Broken
from kohort.storage.inspection import inspect_all
from kohort.storage.recovery import RecoveryPoint
from kohort.storage.repair import repair
from kohort.storage.segments import SegmentLog

SYNCED = RecoveryPoint(synced=END)
SWAP = segment(0) + ".swap"


def swap(disk, data, path=SWAP):
    disk.open(path).write(0, data)


def good(disk, base=0):
    return contents(disk)[segment(base)]


WRONG = {
    "empty": lambda disk: b"",
    "garbage": lambda disk: b"junk" * 100,
    "short": lambda disk: good(disk)[: 2 * len(good(disk)) // 3],
    "torn": lambda disk: good(disk)[:-1],
    "short of the second": lambda disk: good(disk) + good(disk, 9)[: len(good(disk, 9)) // 3],
    "another's": lambda disk: good(disk, 18)[: len(good(disk, 18)) // 3],
}


@pytest.mark.parametrize("recovery_point", [RecoveryPoint(), SYNCED])
@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_it_is_set_aside_and_told(content, recovery_point):
    disk = three_segments()
    wrong = content(disk)
    before = contents(disk)
    swap(disk, wrong)
    (found,) = inspect_all(disk, PATH, ["orders-0"], {"orders"})
    assert found.aside == [f"{0:020d}.log.swap"]
    log = SegmentLog(FOLDER, disk, CONFIG, recovery_point=recovery_point)
    assert len(list(log.read(0, ALL))) == 9
    assert contents(disk) == before | {f"{SWAP}.damaged": wrong}
    assert len(log.notices) == 1
    assert f"{SWAP} is set aside as {0:020d}.log.swap.damaged" in log.notices[0]
    assert SegmentLog(FOLDER, disk, CONFIG, recovery_point=recovery_point).notices == []


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_a_repair_sets_it_aside(content):
    disk = three_segments()
    before = contents(disk)
    swap(disk, content(disk))
    (found,) = inspect_all(disk, PATH, ["orders-0"], {"orders"})
    repair(disk, PATH, found)
    assert {path: contents(disk)[path] for path in before} == before
    assert SWAP not in contents(disk)


def test_without_the_file_it_replaces_there_is_nothing_to_go_on_with():
    disk = three_segments()
    swap(disk, good(disk)[:-1])
    disk.unlink(segment(0))
    before = contents(disk)
    with pytest.raises(Broken, match=rf"{SWAP} cannot be put in place: .* is damaged at byte"):
        SegmentLog(FOLDER, disk, CONFIG, recovery_point=SYNCED)
    assert contents(disk) == before


@pytest.mark.parametrize("gone", [(), (9,), (0,), (0, 9)])
def test_a_right_one_is_put_in_place(gone):
    disk = three_segments()
    merged = good(disk) + good(disk, 9)
    swap(disk, merged)
    for base in gone:
        disk.unlink(segment(base))
    log = SegmentLog(FOLDER, disk, CONFIG, recovery_point=SYNCED)
    assert log.notices == []
    assert len(list(log.read(0, ALL))) == 9
    assert contents(disk)[segment(0)] == merged
    assert segment(9) not in contents(disk)
