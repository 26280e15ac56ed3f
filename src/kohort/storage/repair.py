"""Mending what an inspection has found: what is damaged is given up, what is left can be served.

Nothing is thrown away: a file that changes is copied aside first, as `<name>.damaged`. Offsets that
are lost are noted as a hole and never given out again.
"""

from kohort.storage import checkpoints
from kohort.storage.files import File, Files, free_name, set_aside
from kohort.storage.holes import survey
from kohort.storage.inspection import Inspected, noted_points
from kohort.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX, file_stem
from kohort.terms import Offset

_COPY_BYTES = 1 << 20


def repair(files: Files, path: str, found: Inspected) -> None:
    """Give up what is damaged of one partition. May raise OSError: then it can be done again."""
    if found.missing:
        place = checkpoints.split_name(found.name)
        points = {one: at for one, at in noted_points(files, path).items() if one != place}
        checkpoints.write_recovery_points(files, path, points)
        return
    folder = f"{path}/{found.name}"
    for name in found.aside:
        set_aside(files, folder, name)
    if found.wrong_start:
        starts = checkpoints.start_offsets(files, path)
        kept = {one: at for one, at in starts.items() if one != checkpoints.split_name(found.name)}
        checkpoints.write_start_offsets(files, path, kept)
    for base, stretches in found.kept.items():
        _keep(files, folder, base, stretches)
    holes, end, _ = survey(files, folder, found.expected_start)
    if found.synced is not None and end < found.synced:
        stem = file_stem(found.synced)
        files.open(f"{folder}/{stem}{LOG_SUFFIX}").close()
        holes.append((end, found.synced))
    if holes:
        checkpoints.write_holes(files, folder, holes)
    files.sync_directory(folder)


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
    target = files.open(path)
    try:
        target.truncate(0)
        size = 0
        for start, stop in stretches:
            for at in range(start, stop, _COPY_BYTES):
                data = source.read(at, min(_COPY_BYTES, stop - at))
                target.write(size, data)
                size += len(data)
        target.sync()
    finally:
        target.close()
