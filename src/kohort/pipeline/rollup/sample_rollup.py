# SPDX-License-Identifier: Apache-2.0
"""The files of old samples: one for each day, later one for each week, downsampled.

Samples are downsampled before gold is computed from them, so whoever computes it again finds the
same ones. How old a sample is tells the newest one that is not after the moment of the run: a copy
of a log gets no older while it lies there. Where both the moment and a sample come from a clock
that is ahead, all others are taken for that much older, and what is downsampled then stays so:
times of lag are less exact, and none is wrong. When the clock is right again, that sample makes
nothing old until its time has come.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.columns.times import micros
from kohort.pipeline.format.footers import smallest
from kohort.pipeline.format.manifest import Part
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup.batch_fold import folded
from kohort.pipeline.rollup.sample_downsampling import downsample, without_downsampled
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.rollup_tiers import ONE_MOMENT, ROLLUP_TIERS, RollupTier
from kohort.pipeline.schemas.table import TIME
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import END
from kohort.pipeline.stores.places import Folder

Parts = tuple[Part, ...]
_ROW_GROUP = 100_000


def roll_up(writer: Writer, parts: Parts, as_of_us: int) -> Parts:
    """The parts of `end_offsets`, with the samples downsampled that are due."""
    newest_us = _newest(writer.directory, parts, as_of_us)
    if newest_us is not None:
        for tier in reversed(ROLLUP_TIERS):  # from the coarsest on: no sample is written twice
            parts = _roll_up_into(writer, parts, tier, tier.due_before(newest_us))
    return parts


def without_known_samples(writer: Writer, known: Parts, fresh: Parts) -> Parts:
    """The fresh parts without samples that were left out before: a log that is walked again from
    its begin, as an older copy is, tells them each time.
    """
    directory = writer.directory
    coarse = [part for part in known if part.step_us != ONE_MOMENT]
    times = [_first(directory, part) for part in fresh]
    reached = max((_first(directory, part) + _file_us(part) for part in coarse), default=None)
    if reached is None or min(times, default=reached) >= reached:
        return fresh
    since = pc.field("sampled_at") >= _time(min(times))
    stands = since & (pc.field("samples") > 1)
    for tier in ROLLUP_TIERS:
        of_tier = [part for part in coarse if part.step_us == tier.step_us]
        rows = pa.Table.from_batches(_read(directory, of_tier, stands), END_OFFSETS.arrow)
        batches = (
            without_downsampled(batch, rows, tier) for batch in _read(directory, fresh, since)
        )
        fresh = tuple(_written(writer, batches, ONE_MOMENT))
    return fresh


def _file_us(part: Part) -> int:
    return next(tier.file_us for tier in ROLLUP_TIERS if tier.step_us == part.step_us)


def _newest(directory: Folder, parts: Parts, as_of_us: int) -> int | None:
    """The time of the newest sample by then. It is in no file of downsampled ones."""
    is_known = pc.field("sampled_at") <= _time(as_of_us)
    young = [part for part in parts if part.step_us == ONE_MOMENT]
    batches = _read(directory, young, is_known, ["sampled_at"])
    newest = (pc.max(batch.column(0)).cast(pa.int64()).as_py() for batch in batches)
    return max((at for at in newest if at is not None), default=None)


def _roll_up_into(writer: Writer, parts: Parts, tier: RollupTier, until_us: int) -> Parts:
    """Samples of finer steps that are before a moment go into the files of a tier."""
    directory = writer.directory
    finer = [part for part in parts if part.step_us < tier.step_us]
    due = [part for part in finer if _first(directory, part) < until_us]
    coarse = [part for part in parts if part.step_us == tier.step_us]
    gone, new = [*due], list[Part]()
    for number in _files(directory, due, tier, until_us):
        known = [part for part in coarse if _first(directory, part) // tier.file_us == number]
        begin, end = number * tier.file_us, (number + 1) * tier.file_us
        inside = (pc.field("sampled_at") >= _time(begin)) & (pc.field("sampled_at") < _time(end))
        rows = folded(
            _read(directory, [*due, *known], inside),
            END_OFFSETS.arrow,
            partial(downsample, tier=tier),
        )
        new += _written(writer, rows.to_batches(), tier.step_us)
        gone += known
    young = _read(directory, due, pc.field("sampled_at") >= _time(until_us))
    new += _written(writer, young, ONE_MOMENT)  # downsampled files are due as a whole
    return (*(part for part in parts if part not in gone), *new)


def _first(directory: Folder, part: Part) -> int:
    """The time of its first sample; none is ever old in a part without any."""
    first = smallest(directory, [part], "sampled_at")
    return np.iinfo(np.int64).max if first is None else micros(first)


def _files(directory: Folder, due: list[Part], tier: RollupTier, until_us: int) -> list[int]:
    """The numbers of the files of a tier to which samples before a moment belong."""
    before = pc.field("sampled_at") < _time(until_us)
    found: set[int] = set()
    for batch in _read(directory, due, before, ["sampled_at"]):
        times = batch.column("sampled_at").cast(pa.int64()).to_numpy()
        found.update(np.unique(times // tier.file_us).tolist())
    return sorted(found)


def _read(
    directory: Folder, parts: Iterable[Part], where: pc.Expression, columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    for part in parts:
        rows = parquet.folder_dataset(directory / part.path, END_OFFSETS.arrow)
        yield from rows.to_batches(columns=columns, filter=where)


def _written(writer: Writer, batches: Iterable[pa.RecordBatch], step_us: int) -> Iterator[Part]:
    """Samples as a new part, however many there are; none without any."""
    name, rows = f"{END}/{writer.new_name('')}", 0
    path = writer.directory / name / "samples.parquet"
    with parquet.ParquetFileWriter(path, END_OFFSETS.arrow, compression="zstd") as file:
        for batch in batches:
            if batch.num_rows:
                file.write(pa.Table.from_batches([batch]), _ROW_GROUP)
                rows += batch.num_rows
    if rows:
        yield Part(path=name, rows=rows, step_us=step_us)


def _time(microseconds: int) -> pa.Scalar:
    return pa.scalar(microseconds, TIME)
