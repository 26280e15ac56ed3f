# SPDX-License-Identifier: Apache-2.0
"""The names of topics that the rows tell, kept from run to run: new rows may tell more of them."""

from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa

from kohort.pipeline.format.manifest import Increment, Manifest, Part
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import DECODED, KINDS
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import PROGRESS, ROWS
from kohort.pipeline.stores.places import Folder
from kohort.spark.gold.history import MEMBER, TARGET
from kohort.spark.gold.measure import Frames
from kohort.spark.gold.names import sole_topics, topic_name_pairs
from kohort.spark.gold.newest import RECORDS
from kohort.spark.tables import spark_reader
from kohort.spark.tables.log_progress import LogProgress, are_few, new_increments
from kohort.terms import uuid_text

Pairs = frozenset[tuple[str, str]]
"""Id of a topic as text, and a name that somebody has given it."""

_FILE = "names.parquet"
_COMMIT = KINDS[1]


def named(pairs: Pairs) -> dict[str, str]:
    """Topic id -> name, of those that have one name only."""
    names = defaultdict(set)
    for topic_id, topic in pairs:
        names[topic_id].add(topic)
    return {
        topic_id: next(iter(read_topic_names))
        for topic_id, read_topic_names in sorted(names.items())
        if len(read_topic_names) == 1
    }


def read_topic_names(
    writer: Writer, manifest: Manifest, frames: Frames, log_progress: LogProgress
) -> Pairs:
    """The names that all rows of `manifest` tell. Reads only the new rows, where that is enough."""
    before = None if log_progress.truncated else log_progress.before
    if before is None and not are_few(manifest):
        return frozenset(_pairs(topic_name_pairs(frames).toArrow()))
    directory = writer.directory
    fresh = new_increments(writer, manifest) if before is not None else [*manifest.increments]
    found = {*_of_commits(directory, fresh)}
    if before is not None:
        found |= {*_pairs(parquet.read(directory / before.names.path / _FILE))}
    found |= {*_of_ends(directory, list(manifest.end_offsets))}
    if any(increment.counts.get(KINDS[TARGET]) for increment in fresh):
        spark = frames[DECODED.name].sparkSession
        rows = spark_reader.rows(spark, directory, manifest, fresh)
        if before is not None:
            then = spark_reader.parts(spark, directory, RECORDS, before.records)
            rows = rows.unionByName(then.where(then["kind"] == KINDS[MEMBER]))
        found |= {*_pairs(sole_topics(rows).distinct().toArrow())}
    return frozenset(found)


def keep(writer: Writer, pairs: Pairs) -> Part:
    """Write the pairs into a file that no manifest names yet."""
    name = f"{PROGRESS}/{writer.new_name('names-')}"
    path = writer.directory / name
    path.mkdir(parents=True)
    ids, topics = zip(*sorted(pairs), strict=True) if pairs else ((), ())
    rows = {"topic_id": pa.array(ids, pa.string()), "topic": pa.array(topics, pa.string())}
    parquet.write(pa.table(rows), path / _FILE)
    return Part(path=name, rows=len(pairs))


def _pairs(rows: pa.Table) -> Iterator[tuple[str, str]]:
    ids, topics = rows["topic_id"].to_pylist(), rows["topic"].to_pylist()
    return (
        (topic_id, topic)
        for topic_id, topic in zip(ids, topics, strict=True)
        if topic_id is not None and topic is not None
    )


def _of_commits(directory: Folder, increments: list[Increment]) -> Iterator[tuple[str, str]]:
    folders = [directory / ROWS / increment.name / f"kind={_COMMIT}" for increment in increments]
    files = [str(file) for folder in folders for file in sorted(folder.glob("*.parquet"))]
    rows = parquet.dataset(files, DECODED.arrow)
    for batch in rows.to_batches(columns=["topic_id", "topic"]) if files else ():
        for topic_id, topic in _pairs(_distinct(pa.Table.from_batches([batch]))):
            yield uuid_text(topic_id), topic  # type: ignore[arg-type]


def _of_ends(directory: Folder, parts: list[Part]) -> Iterator[tuple[str, str]]:
    for part in parts:
        rows = parquet.read(directory / part.path, columns=["topic_id", "topic"])
        yield from _pairs(_distinct(rows))


def _distinct(rows: pa.Table) -> pa.Table:
    return rows.group_by(["topic_id", "topic"]).aggregate([])
