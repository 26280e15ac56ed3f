# SPDX-License-Identifier: Apache-2.0
"""Damage is found where it is, by its offsets and bytes, and nothing is changed."""

import pytest
from tests.storage.logs import BASES, END, FOLDER, PATH, contents, damage, segment, three_segments

from kohort.storage import checkpoints
from kohort.storage.inspection import inspect_all, inspect_log
from kohort.storage.recovery import RecoveryPoint

SYNCED = RecoveryPoint(synced=END, clean=True)


def inspected(disk, recovery_point=SYNCED):
    before = contents(disk)
    found = inspect_log(disk, FOLDER, recovery_point, 0)
    assert contents(disk) == before
    return found


def test_a_whole_log():
    found = inspected(three_segments())
    assert (found.segments, found.batches, found.records) == (3, 9, 27)
    assert (found.start, found.end, found.synced) == (0, END, END)
    assert (found.damages, found.kept, found.aside, found.missing) == ([], {}, [], False)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_batch_of_many(base, number):
    disk = three_segments()
    at = damage(disk, base, number)
    found = inspected(disk)
    (one,) = found.damages
    first = base + 3 * number
    assert (one.file, one.position) == (segment(base).rpartition("/")[2], at)
    assert (one.first, one.behind, one.batches) == (first, first + 3, 1)
    assert (found.batches, found.records, list(found.kept)) == (8, 24, [base])


def test_a_segment_that_is_missing():
    disk = three_segments()
    disk.unlink(segment(9))
    (one,) = inspected(disk).damages
    assert (one.first, one.behind, one.size_bytes) == (9, 18, 0)
    checkpoints.write_holes(disk, FOLDER, [(9, 18)])
    assert inspected(disk).damages == []


def test_what_was_never_promised_is_a_torn_tail():
    disk = three_segments()
    damage(disk, 18, 2)
    (one,) = inspected(disk, RecoveryPoint(synced=18)).damages
    assert one.reason.startswith("torn: ")
    assert one.first == 24


def test_a_folder_without_segments():
    disk = three_segments()
    for base in BASES:
        disk.unlink(segment(base))
    found = inspected(disk)
    (one,) = found.damages
    assert (one.first, one.behind, found.segments, found.end) == (0, END, 0, 0)
    assert f"offsets before {END} have been synced" in one.reason
    for recovery_point in (RecoveryPoint(), RecoveryPoint(clean=True), RecoveryPoint(synced=0)):
        assert inspected(disk, recovery_point).damages == []


def test_a_log_that_ends_before_what_was_synced():
    disk = three_segments()
    disk.unlink(segment(18))
    (one,) = inspected(disk).damages
    assert (one.first, one.behind) == (18, END)


def test_the_log_of_a_kafka_controller_is_nobodys_partition():
    disk = three_segments()
    points = {("orders", 0): END, ("__cluster_metadata", 0): 5}
    checkpoints.write_recovery_points(disk, PATH, points)
    (orders,) = inspect_all(disk, PATH, ["orders-0"], {"orders", "__cluster_metadata"})
    assert (orders.name, orders.damages) == ("orders-0", [])


def test_a_folder_that_is_gone_is_told_beside_those_that_are_there():
    disk = three_segments()
    checkpoints.write_recovery_points(disk, PATH, {("orders", 0): END, ("gone", 3): 5})
    orders, gone = inspect_all(disk, PATH, ["orders-0"], {"orders", "gone"})
    assert (orders.name, orders.damages) == ("orders-0", [])
    assert (gone.name, gone.missing, gone.synced) == ("gone-3", True, 5)
