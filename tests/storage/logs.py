# SPDX-License-Identifier: Apache-2.0
"""A log of three segments on a disk in memory, with three batches of three records in each."""

from tests.storage.contract import batch

from kohort.sim.disk import SimulatedFiles
from kohort.storage.files import make_durable_directory
from kohort.storage.log import LogConfig
from kohort.storage.segments import SegmentLog

PATH = "/data"
FOLDER = "/data/orders-0"
BASES = (0, 9, 18)
END = 27
CONFIG = LogConfig(segment_bytes=1 << 20)


def segment(base):
    return f"{FOLDER}/{base:020d}.log"


def three_segments():
    """The disk; the log is closed."""
    disk = SimulatedFiles()
    make_durable_directory(disk, FOLDER)
    log = SegmentLog(FOLDER, disk, CONFIG)
    for number in range(9):
        log.append(batch(*(f"{number}-{part}" for part in range(3))), 3)
        if number in (2, 5):
            log.roll()
    log.sync()
    log.close()
    return disk


def damage(disk, base, number):
    """Change a bit in the records of a batch of a segment; where the batch begins."""
    content = disk.files[segment(base)].now
    size = len(content) // 3
    content[number * size + size - 1] ^= 1
    return number * size


def contents(disk):
    return {path: bytes(one.now) for path, one in disk.files.items()}
