# SPDX-License-Identifier: Apache-2.0
"""What a run knows that brings the tables of progress up to date, and what its steps hand on."""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.format.manifest import Manifest, Part, to_join
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import Table
from kohort.pipeline.schemas.membership import GROUP_STATE
from kohort.pipeline.schemas.progress import (
    COMMIT_RATES,
    COMMITS,
    DELETABLE_GROUPS,
    LAG,
    OFFSETS,
    STATUS,
)
from kohort.pipeline.stores.layout import GOLD, PROGRESS
from kohort.pipeline.stores.places import Folder
from kohort.spark.engine import small_runs
from kohort.spark.engine.background_worker import InlineWorker, Worker, background_worker
from kohort.spark.gold.commits import effective
from kohort.spark.gold.lazy_tables import LazyTables
from kohort.spark.gold.measure import Context
from kohort.spark.tables import spark_reader
from kohort.spark.tables.log_progress import LogProgress, new_increments
from kohort.spark.tables.parts import without, write_part

Parts = tuple[Part, ...]

TABLES = (GROUP_STATE, COMMITS, OFFSETS, COMMIT_RATES, LAG, STATUS, DELETABLE_GROUPS)


class Run(NamedTuple):
    """What a run knows."""

    spark: SparkSession
    writer: Writer
    manifest: Manifest
    frames: LazyTables
    context: Context
    log_progress: LogProgress
    names: Part

    @property
    def directory(self) -> Folder:
        return self.writer.directory

    @property
    def incremental_partitions(self) -> frozenset[int]:
        """Partitions in which only new rows are looked at."""
        return (
            self.log_progress.incremental
            - self.log_progress.truncated
            - self.log_progress.completeness_changed
        )

    @property
    def is_same(self) -> bool:
        """Whether no row counts that did not count before, and all of them still do."""
        return self.log_progress.before is not None and not self.log_progress.touched

    def recompute(self) -> frozenset[int]:
        """Partitions in which all rows are looked at."""
        return self.log_progress.touched - self.incremental_partitions

    def here(self, frame: DataFrame, partitions: Collection[int]) -> DataFrame:
        """The rows of some partitions of the log."""
        return frame.where(F.col("partition").isin(sorted(partitions)))

    def parts(self, table: Table, parts: Collection[Part]) -> DataFrame:
        """The rows of parts of a table."""
        return spark_reader.parts(self.spark, self.directory, table, parts)

    def effective(self, parts: Collection[Part]) -> DataFrame:
        """The commits of some parts that took effect."""
        return effective({COMMITS.name: self.parts(COMMITS, parts)})

    def before(self, table: Table) -> tuple[Part, ...]:
        """The parts of a table as they were."""
        return () if self.log_progress.before is None else self.manifest.gold[table.name].parts

    def write(
        self,
        rows: DataFrame,
        table: Table,
        *,
        is_open: bool = False,
        few: bool | None = None,
    ) -> tuple[Part, ...]:
        """Rows as a part; none without rows. `few` says whether there are few rows; None: whether
        the run has few.
        """
        where = f"{GOLD}/{table.name}" if table in TABLES else PROGRESS
        few = self.are_few() if few is None else few
        part = write_part(self.writer, self._near(rows), where, is_open=is_open, few=few)
        return (part,) if part.rows else ()

    def known(self, table: Table, before: Parts) -> DataFrame:
        """The rows of a state that new ones build on: of the partitions that go on, and where there
        are few rows also of those without news.
        """
        rows = self.parts(table, before)
        if not self.are_few():
            return self.here(rows, self.incremental_partitions)
        recompute = sorted(self.recompute())
        return rows.where(~F.col("partition").isin(recompute)) if recompute else rows

    def without(self, table: Table, parts: Parts, partitions: Collection[int]) -> Parts:
        """Parts of a table with the rows of all other partitions of the log."""
        return without(self.writer, table, parts, partitions)

    def rewritten(self, rows: DataFrame, table: Table, before: Parts) -> Parts:
        """A state, when `rows` have been built on what is `known`. Few rows become one part: a plan
        over several is as many plans.
        """
        if self.are_few():
            return self.write(rows, table)
        touched = self.log_progress.touched
        return (*self.without(table, before, touched), *self.write(rows, table))

    def merged(self, table: Table, parts: Parts) -> Parts:
        """The parts, small ones as one where there are many."""
        small = to_join(parts)
        if not small:
            return parts
        few = sum(part.rows for part in small) <= small_runs.ONE_FILE_ROWS
        joined = self.write(self.parts(table, small), table, few=few)
        return (*(part for part in parts if part not in small), *joined)

    def background_worker(self) -> AbstractContextManager[Worker]:
        """Who does what need not wait for the steps before it."""
        if self.are_few():
            return background_worker(self.spark)
        return nullcontext(InlineWorker())  # many rows take all cores, and the memory of one step

    def are_few(self) -> bool:
        """Whether this process may hold any table that is written: there are few rows to look at,
        and few partitions of groups.
        """
        looked_at = new_increments(self.writer, self.manifest)
        before = self.log_progress.before
        if before is None or self.recompute():
            looked_at = [*self.manifest.increments]
        kept = () if before is None else (*before.newest, *before.records)
        keys = sum(part.rows for part in kept)
        rows = sum(increment.rows for increment in looked_at)
        return small_runs.is_few(keys + rows, small_runs.DRIVER_TABLE_ROWS)

    def _near(self, rows: DataFrame) -> DataFrame:
        before, fresh = self.log_progress.before, new_increments(self.writer, self.manifest)
        small = (
            before is not None
            and sum(increment.rows for increment in fresh) <= small_runs.ONE_FILE_ROWS
        )
        return rows.coalesce(1) if small else rows


class NewCommits(NamedTuple):
    """What has become final of `commits`, and what has not."""

    over: tuple[Part, ...]
    still_open: tuple[Part, ...]
    """Of partitions with news only."""
    open_from: dict[int, int]
