# SPDX-License-Identifier: Apache-2.0
"""What a log may lose when it is opened: a torn tail, and nothing that was promised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.contract import ALL, batch, filled, values

from kohort.errors import Broken
from kohort.sim.disk import SimulatedFiles
from kohort.storage.files import make_durable_directory
from kohort.storage.log import LogConfig
from kohort.storage.recovery import RecoveryPoint
from kohort.storage.segments import SegmentLog
from kohort.wire import batch as batches

FOLDER = "/data/topic-0"

SMALL = LogConfig(segment_bytes=700, index_interval_bytes=150)


def opened(disk, config=SMALL, **options):
    make_durable_directory(disk, FOLDER)
    return SegmentLog(FOLDER, disk, config, **options)


@pytest.mark.parametrize("cut", [1, 12, 60, 61, 75])
def test_a_torn_tail_is_cut(cut):
    disk = SimulatedFiles()
    log = opened(disk, LogConfig())
    written = filled(log, 5)
    log.append(batch("torn", "tail"), 2)
    path = f"{FOLDER}/00000000000000000000.log"
    whole = sum(map(len, written))
    del disk.files[path].now[whole + cut :]
    log = opened(disk)
    assert list(log.read(0, ALL)) == written
    assert len(disk.files[path].now) == whole
    assert log.append(batch("next"), 1) == log.end
    assert values(opened(disk))[-1][1] == "next"


@pytest.mark.parametrize("tail", [b"\x00" * 5000, b"\xff" * 300, bytes(range(256)) * 4])
def test_what_is_no_batch_is_cut_from_the_tail(tail):
    disk = SimulatedFiles()
    written = filled(opened(disk, LogConfig()), 5)
    disk.files[f"{FOLDER}/00000000000000000000.log"].now += tail
    log = opened(disk)
    assert list(log.read(0, ALL)) == written
    assert log.size_bytes == sum(map(len, written))


def test_a_last_batch_with_a_wrong_crc_is_cut():
    disk = SimulatedFiles()
    written = filled(opened(disk, LogConfig()), 5)
    disk.files[f"{FOLDER}/00000000000000000000.log"].now[-1] ^= 1
    assert list(opened(disk).read(0, ALL)) == written[:-1]


@pytest.mark.parametrize("at", [0, 8, 16, 17, 30, 65])
@pytest.mark.parametrize(
    ("recovery_point", "why"),
    [
        (RecoveryPoint(synced=5), "offsets before 5 have been synced"),
        (RecoveryPoint(synced=9), "offsets before 9 have been synced"),
        (RecoveryPoint(clean=True), "the log was closed in order"),
    ],
)
def test_damage_to_what_was_promised_is_an_error_and_nothing_is_cut(at, recovery_point, why):
    disk = SimulatedFiles()
    written = filled(opened(disk, LogConfig()), 9, records=1)
    position = sum(map(len, written[:4]))
    path = f"{FOLDER}/00000000000000000000.log"
    disk.files[path].now[position + at] ^= 0xFF
    before = bytes(disk.files[path].now)
    with pytest.raises(Broken, match=rf"{path} is damaged at byte {position}, offset 4: .*{why}"):
        opened(disk, recovery_point=recovery_point)
    assert disk.files[path].now == before


@pytest.mark.parametrize("at", [0, 8, 16, 17, 30, 65])
@pytest.mark.parametrize(
    "recovery_point", [RecoveryPoint(), RecoveryPoint(synced=4), RecoveryPoint(synced=0)]
)
def test_a_tail_with_a_hole_is_cut_and_told(at, recovery_point):
    """Pages reach a disk in any order: a good batch may follow what was lost."""
    disk = SimulatedFiles()
    written = filled(opened(disk, LogConfig()), 9, records=1)
    position = sum(map(len, written[:4]))
    path = f"{FOLDER}/00000000000000000000.log"
    size = len(disk.files[path].now)
    disk.files[path].now[position + at] ^= 0xFF
    log = opened(disk, recovery_point=recovery_point)
    assert list(log.read(0, ALL)) == written[:4]
    assert log.append(batch("next"), 1) == 5
    (told,) = log.notices
    assert f"{path} is torn at byte {position} and cut there" in told
    assert f"{size - position} bytes from offset 4 on are given up" in told
    assert "among them 4 that look like batches, with offsets 5 to 8" in told


def test_a_batch_in_the_value_of_a_torn_record_stops_nobody():
    disk = SimulatedFiles()
    log = opened(disk, LogConfig())
    filled(log, 3, records=1)
    inside = batches.stamp(batch("planted"), 4711, 0)
    log.append(batches.build([(b"key", inside + bytes(500))], 1000), 1)
    path = f"{FOLDER}/00000000000000000000.log"
    del disk.files[path].now[-100:]
    log = opened(disk, recovery_point=RecoveryPoint(synced=3))
    assert log.end == 3
    assert "with offsets 4711 to 4711" in log.notices[0]


def test_a_whole_log_says_nothing():
    disk = SimulatedFiles()
    filled(opened(disk), 30)
    for recovery_point in (RecoveryPoint(), RecoveryPoint(synced=30), RecoveryPoint(clean=True)):
        assert opened(disk, recovery_point=recovery_point).notices == []


@given(st.integers(0, 400), st.binary(max_size=100))
def test_any_tail_is_cut_or_refused_never_read(cut, junk):
    disk = SimulatedFiles()
    written = filled(opened(disk, LogConfig()), 4)
    file = disk.files[f"{FOLDER}/00000000000000000000.log"]
    cut = min(cut, len(file.now))
    file.now[len(file.now) - cut :] = junk
    kept = list(opened(disk).read(0, ALL))
    assert kept == written[: len(kept)]
