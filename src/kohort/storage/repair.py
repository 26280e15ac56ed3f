# SPDX-License-Identifier: Apache-2.0
"""Mending what an inspection has found: what is damaged is given up, what is left can be served.

Nothing is thrown away: a file that changes is copied aside first, as `<name>.damaged`. Offsets that
are lost are noted as a hole and never given out again.
"""

from collections.abc import Iterable, Mapping

from kohort.storage import checkpoints
from kohort.storage.files import File, Files, free_name, set_aside
from kohort.storage.holes import survey
from kohort.storage.inspection import LogInspection, noted_points
from kohort.storage.log import NO_TIMESTAMP
from kohort.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX, file_stem, segment_bases
from kohort.terms import Offset
from kohort.wire import batch

_COPY_BYTES = 1 << 20
_LONGEST_BATCH = (1 << 31) - 1  # the largest delta of its last offset


def repair(files: Files, path: str, found: LogInspection) -> None:
    """Give up what is damaged of one partition. May raise OSError: then it can be done again."""
    if found.missing:
        place = checkpoints.split_name(found.name)
        points = {name: at for name, at in noted_points(files, path).items() if name != place}
        checkpoints.write_recovery_points(files, path, points)
        return
    folder = f"{path}/{found.name}"
    for name in found.aside:
        set_aside(files, folder, name)
    if found.wrong_start:
        starts = checkpoints.start_offsets(files, path)
        kept = {
            name: at for name, at in starts.items() if name != checkpoints.split_name(found.name)
        }
        checkpoints.write_start_offsets(files, path, kept)
    for base, stretches in found.kept.items():
        _keep(files, folder, base, stretches)
    holes, end, _ = survey(files, folder, found.expected_start)
    if found.synced is not None and end < found.synced:
        _fill(files, folder, end, found.synced)
        end = found.synced
    if holes:
        checkpoints.write_holes(files, folder, holes)
    files.sync_directory(folder)
    if found.clean and found.synced not in (None, end):
        _sync_last(files, folder)
        _note_points(files, path, {found.name: end})


def repair_directory(
    files: Files, path: str, found: LogInspection, partitions: Iterable[LogInspection]
) -> None:
    """Give up checkpoint files of the directory. What they said is written anew of `partitions`,
    which are whole by now. May raise OSError: then it can be done again.
    """
    for name in found.aside:
        files.rename(f"{path}/{name}", f"{path}/{free_name(files, path, name)}")
    files.sync_directory(path)
    if checkpoints.RECOVERY_POINTS not in found.aside:
        return
    points = {}
    for partition in partitions:
        folder = f"{path}/{partition.name}"
        if segment_bases(files.names(folder)):
            _sync_last(files, folder)
            points[partition.name] = survey(files, folder, partition.expected_start).end
    _note_points(files, path, points)


def _fill(files: Files, folder: str, end: Offset, behind: Offset) -> None:
    """Let a log that ends too early go on to where it ended, by batches without records such as a
    cleaner leaves: consumers pass over them, where they would wait at a hole for ever.
    """
    epochs = checkpoints.leader_epochs(files, folder)
    file = files.open(f"{folder}/{file_stem(end)}{LOG_SUFFIX}")
    try:
        size = 0  # a segment that begins where the log ends has nothing in it
        file.truncate(size)
        while end < behind:
            last = min(behind - 1, end + _LONGEST_BATCH)
            data = batch.build_records(
                [],
                base_offset=end,
                last_offset=last,
                base_timestamp=NO_TIMESTAMP,
                max_timestamp=NO_TIMESTAMP,
                leader_epoch=epochs[-1][0] if epochs else 0,
            )
            file.write(size, data)
            size += len(data)
            end = Offset(last + 1)
        file.sync()
    finally:
        file.close()


def _sync_last(files: Files, folder: str) -> None:
    """Before it is noted up to where a log is on the disk: closed segments have been synced."""
    last = segment_bases(files.names(folder))[-1]
    file = files.open(f"{folder}/{file_stem(last)}{LOG_SUFFIX}")
    try:
        file.sync()
    finally:
        file.close()


def _note_points(files: Files, path: str, points: Mapping[str, Offset]) -> None:
    noted = noted_points(files, path)
    for name, end in points.items():
        place = checkpoints.split_name(name)
        if place is not None:
            noted[place] = end
    checkpoints.write_recovery_points(files, path, noted)


def _keep(files: Files, folder: str, base: Offset, stretches: list[tuple[int, int]]) -> None:
    """Let a segment hold nothing but these stretches of it."""
    name = f"{file_stem(base)}{LOG_SUFFIX}"
    path = f"{folder}/{name}"
    damaged = files.open(path)
    try:
        aside = f"{folder}/{free_name(files, folder, name)}"
        _copy(files, damaged, aside, [(0, damaged.size())])
        _copy(files, damaged, f"{path}.tmp", stretches)
    finally:
        damaged.close()
    files.sync_directory(folder)
    files.rename(f"{path}.tmp", path)
    for suffix in INDEX_SUFFIXES:
        files.unlink(f"{folder}/{file_stem(base)}{suffix}")


def _copy(files: Files, source: File, path: str, stretches: list[tuple[int, int]]) -> None:
    target = files.create(path)
    try:
        size = 0
        for start, stop in stretches:
            for at in range(start, stop, _COPY_BYTES):
                data = source.read(at, min(_COPY_BYTES, stop - at))
                target.write(size, data)
                size += len(data)
        target.sync()
    finally:
        target.close()
