# SPDX-License-Identifier: Apache-2.0
"""The files of `status_history`: rows that are over are added, rows that last are replaced."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa

from kohort.pipeline.format.manifest import Part, to_join
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup.episodes import Row, Worst, update_episodes
from kohort.pipeline.schemas import STATUS_HISTORY
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import OBSERVED_HISTORY
from kohort.pipeline.stores.places import Folder

Parts = tuple[Part, ...]


class Moments(NamedTuple):
    """The moment of a run, and of the previous run; None for the first one."""

    now: datetime
    before: datetime | None


def updated_status_history(
    writer: Writer, before: Parts, statuses: pa.Table, at: Moments, between: Worst
) -> Parts:
    """The parts after a run. Its statuses are rows of `status`."""
    lasted = _episodes(writer.directory, [part for part in before if part.is_open]).to_pylist()
    over, still = update_episodes(lasted, statuses.to_pylist(), at.now, at.before, between)
    kept = (*(part for part in before if not part.is_open), *_write(writer, over))
    if small := to_join(kept):
        merged = _write(writer, _episodes(writer.directory, small))
        kept = (*(part for part in kept if part not in small), *merged)
    return (*kept, *_write(writer, still, is_open=True))


def _episodes(directory: Folder, parts: Sequence[Part]) -> pa.Table:
    schema = STATUS_HISTORY.arrow
    tables = [parquet.folder_dataset(directory / part.path, schema) for part in parts]
    return pa.concat_tables([schema.empty_table(), *(table.to_table() for table in tables)])


def _write(writer: Writer, rows: pa.Table | list[Row], *, is_open: bool = False) -> Parts:
    """Rows of `status_history` as a part; none without rows."""
    table = rows
    if not isinstance(table, pa.Table):
        table = pa.Table.from_pylist(table, schema=STATUS_HISTORY.arrow)
    if not table.num_rows:
        return ()
    name = f"{OBSERVED_HISTORY}/{STATUS_HISTORY.name}/{writer.new_name('')}"
    path = writer.directory / name
    path.mkdir(parents=True)
    order = [(column, "ascending") for column in ("group_id", "rules", "valid_from")]
    parquet.write(table.sort_by(order), path / "part-0.parquet", compression="zstd")
    return (Part(path=name, rows=table.num_rows, is_open=is_open),)
