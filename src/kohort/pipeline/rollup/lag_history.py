# SPDX-License-Identifier: Apache-2.0
"""The files of `lag_history`: new rows beside old ones, and old ones downsampled as they age.

A file is of one step. Of downsampled rows there is one file for each day, later for each
week, so a run writes only what it adds, and what has just become a day or a week older. However
many rows there are, memory has those of some groups at a time.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kohort.pipeline.format.manifest import HistoryChunk, Part, to_join
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup.lag_downsampling import downsample
from kohort.pipeline.schemas import LAG_HISTORY
from kohort.pipeline.schemas.rollup_tiers import ONE_MOMENT, ROLLUP_TIERS, RollupTier
from kohort.pipeline.schemas.table import TIME
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import OBSERVED_HISTORY
from kohort.pipeline.stores.places import Folder

ROWS_AT_ONCE = 500_000
_ROW_GROUP = 100_000
_LEVELS = ("group", "topic", "partition")

HistoryChunks = tuple[HistoryChunk, ...]


def _as_it_is(rows: pa.Table) -> pa.Table:
    return rows


class Origin(NamedTuple):
    """Rows of some files, and what makes rows of `lag_history` of them."""

    files: list[str]
    schema: pa.Schema = LAG_HISTORY.arrow
    where: pc.Expression | None = None
    shape: Callable[[pa.Table], pa.Table] = _as_it_is

    def read(self, columns: list[str] | None, where: pc.Expression) -> pa.Table:
        """Some of the rows, as they are in the files."""
        both = where if self.where is None else self.where & where
        if not self.files:
            return self.schema.empty_table().select(columns or self.schema.names)
        return self._rows.to_table(columns, both)

    def group_ids(self, level: str) -> Counter[str]:
        """How many rows each group has of a level."""
        of_level = pc.field("level") == level
        both = of_level if self.where is None else self.where & of_level
        found: Counter[str] = Counter()
        if not self.files:
            return found
        for batch in self._rows.to_batches(columns=["group_id"], filter=both):
            for pair in batch.column(0).value_counts().to_pylist():
                found[pair["values"]] += pair["counts"]
        return found

    @property
    def _rows(self) -> ds.Dataset:
        return parquet.dataset(self.files, self.schema)


def recorded_moments(
    directory: Folder, chunks: HistoryChunks, moments: Collection[int]
) -> set[int]:
    """Those of the moments, in microseconds, that some row is about or spans."""
    found: set[int] = set()
    for chunk in chunks:
        within = [moment for moment in moments if chunk.first_us <= moment <= chunk.last_us]
        if not within:
            continue
        where = (
            (pc.field("level") == "group")
            & (pc.field("first_at") <= _time(max(within)))
            & (pc.field("at") >= _time(min(within)))
        )
        rows = Origin(_files(directory, chunk.part)).read(["first_at", "at"], where)
        spans = rows.group_by(["first_at", "at"]).aggregate([])
        first, last = (spans[name].cast(pa.int64()).to_numpy() for name in ("first_at", "at"))
        found |= {moment for moment in within if np.any((first <= moment) & (moment <= last))}
    return found


def with_new_rows(
    writer: Writer, chunks: HistoryChunks, origins: Iterable[Origin]
) -> HistoryChunks:
    """The chunks and the new rows, each of a single moment. Many small chunks become one."""
    grown = (*chunks, *_written(writer, origins, ONE_MOMENT))
    joined = to_join([chunk.part for chunk in grown if chunk.step_us == ONE_MOMENT])
    if not joined:
        return grown
    small = [chunk for chunk in grown if chunk.part in joined]
    merged = _written(writer, [_origin(writer, chunk) for chunk in small], ONE_MOMENT)
    return (*(chunk for chunk in grown if chunk not in small), *merged)


def roll_up(writer: Writer, chunks: HistoryChunks, now_us: int) -> HistoryChunks:
    """The chunks, with the rows downsampled that are due."""
    step_us = ONE_MOMENT
    for tier in ROLLUP_TIERS:
        chunks = _roll_up_into(writer, chunks, step_us, tier, tier.due_before(now_us))
        step_us = tier.step_us
    return chunks


def _roll_up_into(
    writer: Writer, chunks: HistoryChunks, finer_us: int, tier: RollupTier, until_us: int
) -> HistoryChunks:
    """Rows of the finer step that are before a moment go into the files of a tier."""
    due = [chunk for chunk in chunks if chunk.step_us == finer_us and chunk.first_us < until_us]
    for number in _periods(writer, due, tier, until_us):
        begin = number * tier.file_us
        inside = (pc.field("at") >= _time(begin)) & (pc.field("at") < _time(begin + tier.file_us))
        known = [
            chunk
            for chunk in chunks
            if chunk.step_us == tier.step_us and chunk.first_us // tier.file_us == number
        ]
        origins = [_origin(writer, chunk, inside) for chunk in (*due, *known)]
        new = _written(writer, origins, tier.step_us)
        chunks = (*(chunk for chunk in chunks if chunk not in known), *new)
    young = pc.field("at") >= _time(until_us)
    left = [_origin(writer, chunk, young) for chunk in due if chunk.last_us >= until_us]
    kept = tuple(chunk for chunk in chunks if chunk not in due)
    return (*kept, *_written(writer, left, finer_us)) if left else kept


def _periods(writer: Writer, due: list[HistoryChunk], tier: RollupTier, until_us: int) -> list[int]:
    """The numbers of the files of a tier to which rows before a moment belong."""
    where = (pc.field("level") == "group") & (pc.field("at") < _time(until_us))
    found: set[int] = set()
    for chunk in due:
        if chunk.first_us // tier.file_us == min(chunk.last_us, until_us - 1) // tier.file_us:
            found.add(chunk.first_us // tier.file_us)
            continue
        times = _origin(writer, chunk).read(["at"], where)["at"].cast(pa.int64()).unique()
        found.update((times.to_numpy() // tier.file_us).tolist())
    return sorted(found)


def _written(writer: Writer, origins: Iterable[Origin], step_us: int) -> Iterator[HistoryChunk]:
    """Rows in new files, a row for each key and step: one chunk, and none without rows."""
    name = f"{OBSERVED_HISTORY}/{LAG_HISTORY.name}/{writer.new_name('')}"
    path = writer.directory / name
    times: list[int] = []
    count = 0
    chosen = list(origins)
    for level in _LEVELS:  # a file for each: most questions are about groups
        file = parquet.ParquetFileWriter(
            path / f"{level}s.parquet", LAG_HISTORY.arrow, compression="zstd"
        )
        with file:
            for groups in _shares(chosen, level):
                where = (pc.field("level") == level) & groups
                rows = downsample(
                    pa.concat_tables([origin.shape(origin.read(None, where)) for origin in chosen]),
                    step_us,
                )
                if rows.num_rows:
                    file.write(rows, _ROW_GROUP)
                    count += rows.num_rows
                    ends = pc.min(rows["first_at"]), pc.max(rows["at"])
                    times += [end.cast(pa.int64()).as_py() for end in ends]
    if count:
        part = Part(path=name, rows=count)
        yield HistoryChunk(part=part, step_us=step_us, first_us=min(times), last_us=max(times))


def _shares(origins: Iterable[Origin], level: str) -> Iterator[pc.Expression]:
    """The groups to read together: as many as have rows that fit into memory."""
    counts: Counter[str] = Counter()
    for origin in origins:
        counts += origin.group_ids(level)
    if not counts:
        return
    group, first, weight = pc.field("group_id"), "", 0
    for name in sorted(counts):
        if weight and weight + counts[name] > ROWS_AT_ONCE:
            yield (group >= first) & (group < name)
            first, weight = name, 0
        weight += counts[name]
    yield group >= first


def _origin(writer: Writer, chunk: HistoryChunk, where: pc.Expression | None = None) -> Origin:
    return Origin(_files(writer.directory, chunk.part), where=where)


def _files(directory: Folder, part: Part) -> list[str]:
    return [str(file) for file in parquet.files_of(directory / part.path)]


def _time(microseconds: int) -> pa.Scalar:
    return pa.scalar(microseconds, TIME)
