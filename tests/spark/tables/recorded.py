# SPDX-License-Identifier: Apache-2.0
"""The tables of recorded histories, as a run over all of their logs at once would leave them."""

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.spark.histories import replay
from tests.spark.histories.gold import compute
from tests.spark.test_killed_clients import recorded
from tests.tables.published import publish

from kohort.pipeline.format.manifest import Increment
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup.episodes import update_episodes
from kohort.pipeline.rollup.lag_downsampling import downsample, of_moments
from kohort.pipeline.schemas import END_OFFSETS, GOLD, LAG_HISTORY, STATUS_HISTORY
from kohort.pipeline.schemas.progress import LAG
from kohort.pipeline.schemas.rollup_tiers import ROLLUP_TIERS
from kohort.pipeline.stores.layout import ROWS

NAMES = ("classic-life", "consumer-life", "steady", "crash", "lag", "transactions")
"""Joins and leaves in both protocols, commits in a rhythm, a broker that dies, a slow consumer,
transactions; all of them of a real Apache Kafka. Clients that are killed come besides."""
UNREAD = "nobody-reads"
"""A topic of which only an end is known."""


def write(spark, directory):
    """Publish every table."""
    chosen = [
        replay.load(replay.FILES[f"{name}.kafka"], number) for number, name in enumerate(NAMES)
    ]
    rows = replay.merged([*(one.rows for one in chosen), _killed()])
    lonely = {"sampled_at": replay.AS_OF, "topic": UNREAD, "topic_partition": 0, "end_offset": 7}
    of_nobody = pa.Table.from_pylist([lonely], schema=END_OFFSETS.arrow)
    ends = replay.merged([*(one.end_offsets for one in chosen), of_nobody])
    gold = compute(spark, rows, ends, replay.AS_OF)
    _add_rows(directory, rows)
    return publish(
        directory,
        {"end_offsets": ends, **{table.name: gold[table.name] for table in GOLD}, **_past(gold)},
        as_of_ms=int(replay.AS_OF.timestamp() * 1000),
    )


def _past(gold):
    """Lag of every five minutes, and groups that were well an hour ago and are as they are now."""
    now = [row for row in gold["status"] if row["level"] == "group"]
    lag = pa.Table.from_pylist(gold["lag"], LAG.arrow)
    hour_ago = replay.AS_OF - timedelta(hours=1)
    well = [{**row, "status": "OK", "rule": "progress", "lag_records": 0} for row in now]
    _, before = update_episodes([], well, hour_ago, None, {})
    over, still = update_episodes(before, now, replay.AS_OF, hour_ago, {})
    return {
        LAG_HISTORY.name: downsample(of_moments(lag), ROLLUP_TIERS[0].step_us),
        STATUS_HISTORY.name: pa.Table.from_pylist([*over, *still], STATUS_HISTORY.arrow),
    }


def _killed():
    """The day of clients of which some were killed, behind the partitions of the others."""
    rows = replay.renamed(recorded()[0], "", replay.SPREAD * len(NAMES))
    ends = pc.max(rows.column("timestamp")).as_py()
    return replay.moved(rows, int((replay.AS_OF - ends).total_seconds() * 1000))


def _add_rows(directory, rows):
    with Writer(directory) as writer:
        name = writer.new_name("increment=")
        counts = {}
        for kind in rows.column("kind").unique().to_pylist():
            some = rows.filter(pc.equal(rows.column("kind"), kind)).drop(["kind"])
            folder = writer.directory / ROWS / name / f"kind={kind}"
            folder.mkdir(parents=True)
            pq.write_table(some, folder / "part-0.parquet")
            counts[kind] = some.num_rows
        one = Increment(name=name, ranges={}, counts=counts)
        writer.publish(writer.manifest.with_(increments=(one,)))
