# SPDX-License-Identifier: Apache-2.0
"""Compares gold with a recomputation, which is made elsewhere from the same rows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.catalog import there
from kohort.pipeline.format.code import code
from kohort.pipeline.format.integrity import Finding, damage, holes, unknown_files
from kohort.pipeline.format.manifest import Manifest
from kohort.pipeline.format.rebuild import as_of_of, partitions_of, without_derived_state
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup.end_samples import known_to_gold
from kohort.pipeline.schemas import Table
from kohort.pipeline.stores.layout import END, MANIFEST, ROWS, SERVER_LOGS
from kohort.pipeline.stores.places import Folder
from kohort.spark.gold import Context
from kohort.spark.tables import spark_reader
from kohort.spark.tables.compute import compute

SAMPLE = 4
"""How many partitions of the log are recomputed, unless all are asked for."""
FIRST_ROWS = 3
_LONGEST = 300


class VerificationResult(NamedTuple):
    """What was looked at, and what is not as it should be."""

    directory: Folder
    findings: tuple[Finding, ...]
    partitions: tuple[int, ...] | None
    """Partitions of the log whose gold was recomputed; None: it was not."""
    why_not: str | None
    """Why it was not recomputed."""


def file_findings(tables: Tables) -> Iterator[Finding]:
    """What is wrong with the files, without computing gold."""
    manifest = tables.manifest
    yield from damage(tables.directory, manifest)
    yield from unknown_files(tables.directory, manifest)
    yield from holes(manifest)
    if manifest.gold and manifest.code != code():
        yield Finding(
            MANIFEST,
            "gold that this Kohort has computed",
            "that of another: the next run computes it anew, or `kohort pipeline rebuild`",
        )


def can_be_recomputed(tables: Tables) -> bool:
    """Whether gold is this Kohort's, in a directory."""
    manifest = tables.manifest
    is_here = isinstance(tables.directory, Path)
    return manifest.code == code() and is_here


def why_not(tables: Tables, found: list[Finding]) -> str:
    """Why gold was not recomputed."""
    if any(finding.file != MANIFEST for finding in found):
        return "there is damage"
    if found:
        return "another Kohort has computed it"
    if not isinstance(tables.directory, Path):
        return "only that in a directory is: `kohort pipeline rebuild` computes it anew in any case"
    return "gold was not computed yet"


class Recomputation:
    """Gold of the same rows, in the directory of another writer."""

    def __init__(
        self, spark: SparkSession, writer: Writer, tables: Tables, doing: Callable[[str], None]
    ) -> None:
        self._spark, self._writer, self._tables, self._doing = spark, writer, tables, doing
        assert isinstance(writer.directory, Path)
        assert isinstance(tables.directory, Path)
        for name in (ROWS, END, SERVER_LOGS):
            (writer.directory / name).symlink_to(tables.directory / name)

    def of_all(self) -> tuple[tuple[int, ...], list[Finding]]:
        """All partitions of the log, and what differs in them."""
        every = tuple(partitions_of(self._tables.manifest))
        return every, [*self._differences(None)]

    def of_some(self) -> tuple[tuple[int, ...], list[Finding]]:
        """Compares some partitions. A difference may only be names of topics that other partitions
        tell; then all of them are compared.
        """
        every = partitions_of(self._tables.manifest)
        if len(every) <= SAMPLE:
            return self.of_all()
        first = self._tables.manifest.number  # others the next time
        chosen = tuple(
            sorted(every[(first + at * len(every) // SAMPLE) % len(every)] for at in range(SAMPLE))
        )
        return self.of_all() if any(self._differences(chosen)) else (chosen, [])

    def _differences(self, chosen: tuple[int, ...] | None) -> Iterator[Finding]:
        before = self._tables.manifest
        context = Context(as_of_of(before), *before.settings)
        alone = _only(without_derived_state(_of_then(before)), chosen)
        touched = partitions_of(alone)
        found = compute(self._spark, self._writer, alone, touched, context, self._doing)
        after = alone.with_(gold=found.gold)
        for table in there(before).values():
            if table.layer == "gold" and table.name in found.gold:
                yield from self._difference(table, after, chosen)

    def _difference(
        self, table: Table, after: Manifest, chosen: tuple[int, ...] | None
    ) -> Iterator[Finding]:
        if chosen is not None and "partition" not in table.names:
            return
        self._doing(f"{table.name}, to compare it")
        directory, manifest = self._tables.directory, self._tables.manifest
        old = spark_reader.gold(self._spark, directory, manifest, table)
        new = spark_reader.gold(self._spark, self._writer.directory, after, table)
        if chosen is not None:
            old, new = (frame.where(F.col("partition").isin([*chosen])) for frame in (old, new))
        for frame, others, expected, found in (
            (old, new, "only rows that the log tells", "others"),
            (new, old, "all rows that the log tells", "some missing"),
        ):
            count, first = _beyond(frame, others)
            if count:
                yield Finding(
                    f"gold/{table.name}", expected, f"{count:,} {found}, such as {'; '.join(first)}"
                )


def _of_then(manifest: Manifest) -> Manifest:
    """The manifest without samples of ends that were added after gold was computed: they say more
    of the same moment.
    """
    known = known_to_gold(manifest)
    there = {one.path for one in manifest.end_offsets}
    if (
        manifest.progress is None or not known <= there
    ):  # of tables whose files an earlier Kohort has merged
        return manifest
    parts = tuple(one for one in manifest.end_offsets if one.path in known)
    return manifest.with_(end_offsets=parts)


def _only(manifest: Manifest, chosen: tuple[int, ...] | None) -> Manifest:
    """The manifest with the rows of some partitions of the log: those of all others are cut off."""
    if chosen is None:
        return manifest
    kept = []
    for increment in manifest.increments:
        cuts = dict.fromkeys(increment.ranges.keys() - {*chosen}, 0)
        kept.append(msgspec.structs.replace(increment, cuts={**increment.cuts, **cuts}))
    return manifest.with_(increments=tuple(kept))


def _beyond(frame: DataFrame, others: DataFrame) -> tuple[int, list[str]]:
    """How many rows are not among others, each as often as it is there, and the first of them."""
    found = frame.exceptAll(others).cache()
    try:
        rows = [row.asDict(recursive=True) for row in found.limit(FIRST_ROWS).collect()]
        return found.count() if rows else 0, [_shown(row) for row in rows]
    finally:
        found.unpersist()


def _shown(row: dict[str, object]) -> str:
    text = ", ".join(f"{name}={value}" for name, value in row.items() if value is not None)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
