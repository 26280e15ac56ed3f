"""How far the log is known, and what of it is new, before anything is computed.

From where on a partition of the log is complete (see `gold.completeness`) is read off all of its
records once. Records that follow on without a hole change nothing of that, so of most runs only the
new ones are counted.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from kohort.spark.gold.completeness import Reach, reaches
from kohort.spark.gold.measure import Frames
from kohort.spark.schemas import RECORDS_TABLE
from kohort.spark.tables import spark_reader
from kohort.spark.tables.code import code
from kohort.spark.tables.manifest import ROWS, Histories, Increment, Manifest, Progress, Writer
from kohort.spark.tables.news import news, reached_by
from kohort.spark.tables.parts import is_whole


class Standing(NamedTuple):
    """What of the log the tables know, and what is new of it. Partitions are those of the log."""

    before: Progress | None
    """What earlier runs have told; None where none of it may be used."""
    go_on: frozenset[int]
    """Partitions with rows behind those that are known, and with nothing else."""
    rewound: frozenset[int]
    """Partitions whose known rows are not those that count any more, or have got others before
    them."""
    hidden: frozenset[int]
    """Partitions of which another stretch is complete than before."""
    reaches: dict[int, Reach]

    @property
    def anew(self) -> frozenset[int] | None:
        """Partitions whose rows of gold are all written anew; None for all there are."""
        return None if self.before is None else self.rewound | self.hidden

    @property
    def touched(self) -> frozenset[int]:
        """Partitions whose rows of gold may be others than before."""
        return frozenset(self.reaches) if self.anew is None else self.go_on | self.anew


def standing(writer: Writer, manifest: Manifest, frames: Frames) -> Standing:
    """Of the rows of `manifest`, beside those of the published one. Runs Spark where it has to."""
    before = usable(writer.directory, manifest)
    if before is None:
        return Standing(None, frozenset(), frozenset(), frozenset(), reaches(frames))
    told = Histories(code=before.code, session_timeout_ms=None, fed=before.fed, complete={})
    now = told.with_(code=code() or "", fed=reached_by(manifest.increments))
    found = news(told, now, writer.manifest.increments, manifest.increments)
    if found.anew is None:
        return Standing(None, frozenset(), frozenset(), frozenset(), reaches(frames))
    known = {one: Reach(*told) for one, told in before.extents.items() if one not in found.anew}
    fresh = fresh_increments(writer, manifest)
    added = _added(writer.directory, fresh, found.go_on)
    reached = {one: reach for one, reach in known.items() if one not in found.go_on}
    reached |= {
        one: _longer(known[one], added[one])
        for one in found.go_on & known.keys() & added.keys()
        if _follows(known[one], added[one])
    }
    reached |= {one: known[one] for one in (found.go_on & known.keys()) - added.keys()}
    others = (found.anew | found.go_on) - reached.keys()
    if others:
        records = frames[RECORDS_TABLE.name]
        some = records.where(records["partition"].isin(sorted(others)))
        reached |= reaches({RECORDS_TABLE.name: some})
    hidden = {one for one, reach in known.items() if reached.get(one, reach)[2:] != reach[2:]}
    return Standing(before, found.go_on, found.anew, frozenset(hidden), reached)


def usable(directory: Path, manifest: Manifest) -> Progress | None:
    """What earlier runs have told, as far as its files are there."""
    before = manifest.progress
    if before is None or not before.code or manifest.format == "delta":
        return None
    return before if all(is_whole(directory, one) for one in before.parts) else None


def fresh_increments(writer: Writer, manifest: Manifest) -> list[Increment]:
    """Those that were added since the published manifest."""
    old = {one.name for one in writer.manifest.increments}
    return [one for one in manifest.increments if one.name not in old]


def fresh_rows(frame: DataFrame, writer: Writer, manifest: Manifest) -> DataFrame:
    """Decoded rows of those increments; `frame` is of any rows of the session."""
    chosen = fresh_increments(writer, manifest)
    return spark_reader.rows(frame.sparkSession, writer.directory, manifest, chosen)


class _Added(NamedTuple):
    """Rows behind those that are known."""

    first: int
    last: int
    rows: int
    damaged: bool


def _added(
    directory: Path, increments: Iterable[Increment], partitions: Iterable[int]
) -> Mapping[int, _Added]:
    """What the files of some increments add to partitions of the log. Needs no Spark."""
    wanted = pa.array(sorted(partitions), pa.int32())
    files = [
        file for one in increments for file in (directory / ROWS / one.name).rglob("*.parquet")
    ]
    if not files or not len(wanted):
        return {}
    of_raw = RECORDS_TABLE.arrow
    rows = ds.dataset(sorted(map(str, files)), of_raw, format="parquet")
    damage = ~ds.field("error").is_null() & ds.field("key").is_null()
    columns = {"partition": ds.field("partition"), "offset": ds.field("offset"), "damage": damage}
    table = rows.to_table(columns=columns, filter=ds.field("partition").isin(wanted))
    counted = table.group_by("partition").aggregate(
        [("offset", "min"), ("offset", "max"), ("offset", "count"), ("damage", "max")]
    )
    return {
        one["partition"]: _Added(
            one["offset_min"], one["offset_max"], one["offset_count"], one["damage_max"]
        )
        for one in counted.to_pylist()
    }


def _follows(known: Reach, added: _Added) -> bool:
    """Whether nothing is missing between and within them, so that nothing is learnt of what was
    hidden before. Of a partition that is complete from nowhere on, any record may tell.
    """
    return (
        known.complete_offset is not None
        and added.first == known.end
        and added.last - added.first + 1 == added.rows
        and not added.damaged
    )


def _longer(known: Reach, added: _Added) -> Reach:
    return known._replace(end=added.last + 1, rows=known.rows + added.rows)
