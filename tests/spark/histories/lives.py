# SPDX-License-Identifier: Apache-2.0
"""Logs of every kind side by side, and what the tables of membership say about them.

    python -m tests.spark.histories.lives      says what differs, and writes it down anew

`tests/data/told.jsonl.xz` is what is written down: a row a line, with its table and the session
timeout that was told. The replay was held against an older way of computing these tables, by window
functions, until the two agreed in every cell of it. Who changes what the tables say reads through
the differences that this prints before they are committed.
"""

import json
import lzma
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.spark import rows
from tests.spark.gold import stories
from tests.spark.histories import compaction, replay

from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.record_positions import ArrowRows
from kohort.pipeline.schemas import DECODED, END_OFFSETS
from kohort.spark.gold import Context, membership
from kohort.spark.gold.history_replay import HISTORIES, histories
from kohort.spark.gold.measure import Frames
from kohort.spark.tables.silver import views

WRITTEN = Path(__file__).parents[2] / "data" / "told.jsonl.xz"
APART = 10_000
"""Partitions between one set of logs and the next."""
FOLDERS = ("1-written", "2-compacted", "3-compacted-again", "4-killed", "codec-zstd", "legacy")
SESSIONS = {None: ("members", "assignments", "rebalances"), 4000: ("rebalances",)}
"""Session timeout that is told -> tables in which that may matter."""


def everything() -> pa.Table:
    """Decoded rows: recorded lives, what cleaners leave of them, logs with holes, logs of real
    brokers, and made up ones.
    """
    return replay.merged(list(_logs()))


def _logs() -> Iterator[pa.Table]:
    yield from (history.rows for history in replay.histories().values())
    for variant, (name, history) in enumerate(replay.histories().items()):
        part = compaction.compacted(history.rows, f"{name} windows")
        yield replay.renamed(part, "~compacted", APART)
        chance = random.Random(variant)
        loss = chance.choice([0.03, 0.15, 0.4])
        left = [one for one in range(history.rows.num_rows) if chance.random() > loss]
        yield replay.renamed(history.rows.take(left), "~holes", 2 * APART)
    for number, name in enumerate(FOLDERS):
        yield replay.renamed(_decoded(rows.golden(name)), "", 3 * APART + 100 * number)
    yield replay.renamed(_decoded(stories.all_rows()), "", 4 * APART)


def _decoded(raw: pa.Table) -> pa.Table:
    return pa.Table.from_batches([decode(ArrowRows(raw))], DECODED.arrow)


def frames_of(spark: SparkSession, decoded: pa.Table) -> Frames:
    ends = replay.merged([history.end_offsets for history in replay.histories().values()])
    return {**views(spark.createDataFrame(decoded)), END_OFFSETS.name: spark.createDataFrame(ends)}


def told(frames: Frames) -> Iterator[str]:
    """Every row of the tables, as it is written down."""
    for session_ms, tables in SESSIONS.items():
        context = Context(replay.AS_OF, session_timeout_ms=session_ms)
        replayed = {**frames, HISTORIES: histories(frames, context).cache()}
        for name in tables:
            table = getattr(membership, name)(replayed, context).toArrow()
            yield from (_line(name, session_ms, row) for row in table.to_pylist())


def _line(table: str, session_ms: int | None, row: dict[str, Any]) -> str:
    return json.dumps([table, session_ms, row], default=str)


def written() -> list[str]:
    return lzma.decompress(WRITTEN.read_bytes()).decode().splitlines()


def _write() -> None:
    from tests.spark import sessions  # starts a JVM

    now = sorted(told(frames_of(sessions.start(), everything())))
    before = written() if WRITTEN.exists() else []
    for sign, more, less in (("-", before, now), ("+", now, before)):
        for line in (Counter(more) - Counter(less)).elements():
            print(sign, line)
    WRITTEN.write_bytes(lzma.compress("\n".join(now).encode(), preset=9))


if __name__ == "__main__":
    _write()
