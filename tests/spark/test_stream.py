# SPDX-License-Identifier: Apache-2.0
"""Batch, stream, and any split into micro-batches give the same tables."""

from datetime import UTC, datetime
from random import Random

import pytest

pytest.importorskip("pyspark")

from tests import golden_logs
from tests.spark.contents import contents
from tests.spark.feeding import IDENTITY
from tests.spark.measures import compute_only
from tests.spark.rows import decoded_frame, golden

from kohort.pipeline.format.manifest import load
from kohort.pipeline.format.writer import Writer
from kohort.spark import jobs
from kohort.spark.gold import MEASURES
from kohort.spark.sources.registry import source
from kohort.spark.streaming import MicroBatch
from kohort.spark.tables.ingest import Options

pytestmark = pytest.mark.timeout(600)
FEW = ("members", "commits", "offsets")
AS_OF = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return golden_logs.unpack("1-written", tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def batch(spark, folder, tmp_path_factory):
    """The tables of one run over the whole log."""
    out = tmp_path_factory.mktemp("batch")
    jobs.run(f"log:{folder}", out, spark=spark, as_of=AS_OF)
    return contents(out)


def test_a_stream_gives_the_tables_of_a_batch(spark, folder, batch, tmp_path):
    out = tmp_path / "out"

    seen = []
    streamed = jobs.stream(
        f"log:{folder}",
        out,
        spark=spark,
        as_of=AS_OF,
        max_records=200,
        after_each=lambda added: seen.append((len(load(out).increments), sum(added.rows.values()))),
    )

    assert [increments for increments, _ in seen] == [1, 2]
    assert sum(rows for _, rows in seen) == len(batch["records"])
    assert contents(out) == batch
    assert sum(streamed.rows.values()) == len(batch["records"])
    assert len(load(out).increments) == 2
    assert not list((out / "checkpoints").iterdir())


@pytest.mark.prove
def test_any_split_gives_the_tables_of_a_batch(spark, folder, batch, tmp_path, monkeypatch):
    """Also one in which rows come again, as after a crash between the tables and the checkpoint."""
    few = tuple(one for one in MEASURES if one.table.name in FEW)
    compute_only(monkeypatch, few)
    random = Random(7)
    rows = golden("1-written")
    log = source(f"log:{folder}")
    places = sorted(
        zip(*(rows.column(name).to_pylist() for name in ("partition", "offset")), strict=True)
    )
    ends = {partition: offset + 1 for partition, offset in places}
    decoded = decoded_frame(spark, rows)
    with Writer(tmp_path) as writer:
        writer.manifest = writer.manifest.with_(identity=IDENTITY)
        each = MicroBatch(writer, log, Options(AS_OF), None)
        reached = dict.fromkeys(ends, 0)
        for step in range(3):
            upto = {
                one: end if step == 2 else random.randint(reached[one], end)
                for one, end in ends.items()
            }
            back = {one: max(0, at - random.randint(0, 5)) for one, at in reached.items()}
            some = " or ".join(
                f"(partition = {one} and offset >= {back[one]} and offset < {upto[one]})"
                for one in ends
            )
            each(decoded.where(some), step)
            reached = upto
    decoded.unpersist()

    found = contents(tmp_path)
    assert set(FEW) <= set(found)
    assert found == {name: batch[name] for name in found}
    assert len(batch["records"]) == len(places)
