# SPDX-License-Identifier: Apache-2.0
"""Whether the files of tables are whole: there, of the right size, with the right checksums, and
with as many rows as the manifest says. Needs no Spark.

Spark writes a file of checksums beside each of its own, and Arrow puts them into the pages. What
has neither is read to its end.
"""

import struct
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from kohort.pipeline.format.delta_log import LOG
from kohort.pipeline.format.manifest import Increment, Manifest, Part
from kohort.pipeline.format.writer import MOST_NOTES
from kohort.pipeline.schemas import LAG_HISTORY
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import (
    END,
    FOLDERS,
    GOLD,
    HISTORIES,
    OBSERVED_HISTORY,
    PROGRESS,
    ROWS,
    SERVER_LOGS,
    is_made,
)
from kohort.pipeline.stores.object_path import ObjectPath
from kohort.pipeline.stores.places import Folder

_FOLDERS = (ROWS, END, HISTORIES, PROGRESS, SERVER_LOGS)
_CRC_HEADER = struct.Struct(">4si")
_CRC_MAGIC = b"crc\0"
_BESIDE = {"_SUCCESS", "._SUCCESS.crc"}


class Finding(NamedTuple):
    """Something that is wrong."""

    file: str
    """Relative to the directory of the tables."""
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.file}: expected {self.expected}, found {self.found}"


def damage(directory: Folder, manifest: Manifest) -> Iterator[Finding]:
    """What is wrong with the files that a manifest names."""
    yield from damage_of_inputs(directory, manifest)
    gold = (part for table in manifest.gold.values() for part in table.parts)
    history = (*manifest.past.parts(LAG_HISTORY.name), *manifest.past.status)
    for part in (*history, *gold, *_states(manifest)):
        yield from _of_part(directory, part)


def damage_of_inputs(directory: Folder, manifest: Manifest) -> Iterator[Finding]:
    """What is wrong with the files that gold is computed from."""
    for increment in manifest.increments:
        yield from _of_increment(directory, increment)
    for part in (*manifest.end_offsets, *manifest.server_log):
        yield from _of_part(directory, part)


def _states(manifest: Manifest) -> Iterator[Part]:
    histories, progress = manifest.histories, manifest.progress
    if histories is not None:
        yield from histories.states
        if histories.names is not None:
            yield histories.names
    if progress is not None:
        yield from progress.parts


def _of_increment(directory: Folder, increment: Increment) -> Iterator[Finding]:
    folder = directory / ROWS / increment.name
    found: dict[str, int] = {}
    unread = False
    for file in parquet.below(folder, "*.parquet"):
        rows = yield from _of_file(directory, file)
        kind = str(file).rpartition("/")[0].rpartition("/kind=")[2]
        found[kind] = found.get(kind, 0) + (rows or 0)
        unread |= rows is None
    for kind in sorted({*found, *increment.counts}) if not unread else ():
        expected, there = increment.counts.get(kind, 0), found.get(kind, 0)
        if there != expected:
            where = f"{ROWS}/{increment.name}/kind={kind}"
            yield Finding(where, f"{expected:,} rows", f"{there:,}")


def _of_part(directory: Folder, part: Part) -> Iterator[Finding]:
    folder = directory / part.path
    if not folder.is_dir():
        yield Finding(part.path, f"{part.rows:,} rows", "no such directory")
        return
    counts: list[int | None] = []
    for file in parquet.below(folder, "*.parquet"):
        rows = yield from _of_file(directory, file)
        counts.append(rows)
    if None in counts:
        return
    there = sum(count or 0 for count in counts)
    if there != part.rows if part.partitions is None else there < part.rows:
        least = "" if part.partitions is None else "at least "
        yield Finding(part.path, f"{least}{part.rows:,} rows", f"{there:,}")


def _of_file(directory: Folder, file: Folder) -> Generator[Finding, None, int | None]:
    """What is wrong with a file; returns its rows, None where it cannot be read."""
    name = str(file)[len(str(directory)) + 1 :]
    try:
        wrong = _beyond_its_sums(file) if isinstance(file, Path) else None
        if wrong is not None:
            yield Finding(name, *wrong)
            return None
        with parquet.opened(file, page_checksum_verification=True) as opened:
            for _ in opened.iter_batches():
                pass
            return int(opened.metadata.num_rows)
    except (OSError, pa.ArrowException) as error:
        yield Finding(name, "a whole file of Parquet", _sentence(error))
        return None


def _beyond_its_sums(file: Path) -> tuple[str, str] | None:
    beside = file.with_name(f".{file.name}.crc")
    return _first_wrong(file, beside.read_bytes()) if beside.exists() else None


def _first_wrong(file: Path, sums: bytes) -> tuple[str, str] | None:
    """Where a file differs from the checksums beside it, one for so many bytes, as in Hadoop."""
    if len(sums) < _CRC_HEADER.size:
        return "a file of checksums beside it", f"one of {len(sums)} bytes"
    magic, each = _CRC_HEADER.unpack_from(sums)
    if magic != _CRC_MAGIC or each <= 0:
        return "a file of checksums beside it", "something else"
    sums = sums[_CRC_HEADER.size :]
    if len(sums) % 4:
        return "a file of checksums beside it", "a part of one"
    expected = [checksum for (checksum,) in struct.iter_unpack(">I", sums)]
    size = file.stat().st_size
    if -(-size // each) != len(expected):
        least, most = each * (len(expected) - 1) + 1, each * len(expected)
        return f"{least:,} to {most:,} bytes", f"{size:,}"
    with file.open("rb") as opened:
        for number, checksum in enumerate(expected):
            if zlib.crc32(opened.read(each)) != checksum:
                return "the bytes of its checksums", f"others from byte {number * each:,} on"
    return None


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0].rstrip(".") or type(error).__name__


def unknown_files(directory: Folder, manifest: Manifest) -> Iterator[Finding]:
    """Files among the tables that no writer has made. The next run removes what writers have left
    behind.
    """
    known = {*manifest.paths(), *(retired.path for retired in manifest.retired)}
    if isinstance(directory, ObjectPath):
        yield from _strange_objects(directory, known)
        return
    folders = list(_FOLDERS)
    for parent in (GOLD, OBSERVED_HISTORY):
        for child in _inside(directory / parent):
            name = f"{parent}/{child.name}"
            if child.is_dir():
                folders.append(name)
            else:
                yield Finding(name, "nothing that the manifest does not know", _kind(child))
    for folder in folders:
        for path in _inside(directory / folder):
            name = str(path.relative_to(directory))
            if (is_made(name) and name not in known) or path.name == LOG:
                continue
            if name not in known:
                yield Finding(name, "nothing that the manifest does not know", _kind(path))
                continue
            for file in sorted(path.rglob("*")):
                if file.is_file() and not _is_ours(file):
                    there = str(file.relative_to(directory))
                    yield Finding(there, "nothing but files of Parquet", _kind(file))


def _strange_objects(directory: ObjectPath, known: set[str]) -> Iterator[Finding]:
    root = directory.root
    named = {stored.key for path in known for stored in (directory / path).rglob("*")}
    for folder in FOLDERS:
        for there in root.objects.listed(root.key(folder)):
            name = there.key[len(root.key("x")) - 1 :]
            if there.key not in named and not is_made(name) and f"/{LOG}/" not in name:
                found = f"an object of {there.size:,} bytes"
                yield Finding(name, "nothing that the manifest does not know", found)


def _is_ours(file: Path) -> bool:
    name = file.name
    return name in _BESIDE or name.removesuffix(".crc").endswith(".parquet")


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _kind(path: Path) -> str:
    return "a directory" if path.is_dir() else f"a file of {path.stat().st_size:,} bytes"


def holes(manifest: Manifest) -> Iterator[Finding]:
    """Ranges of offsets between increments that were never read and that no note explains."""
    if len(manifest.notes) >= MOST_NOTES:  # older ones are forgotten
        return
    noted = {(note.partition, note.offset) for note in manifest.notes}
    spans: dict[int, list[tuple[int, int, bool]]] = {}
    for increment in manifest.increments:
        for partition, (start, end) in increment.ranges.items():
            last = min(end, increment.cuts.get(partition, end))
            if last > start:
                spans.setdefault(partition, []).append((start, last, increment.planned))
    for partition, found in sorted(spans.items()):
        spans_in_order = sorted(found)
        _, reached, planned = spans_in_order[0]
        for start, end, is_planned in spans_in_order[1:]:
            is_hole = start > reached and planned and is_planned
            if is_hole and (partition, reached) not in noted:
                yield Finding(
                    ROWS,
                    f"offsets {reached} to {start - 1} of partition {partition}",
                    "no increment that has read them, and no note of it",
                )
            if end >= reached:
                reached, planned = end, is_planned
