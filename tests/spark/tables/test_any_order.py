# SPDX-License-Identifier: Apache-2.0
"""Runs, samples that are taken between them and runs that fail, in any order: the tables of one run
over everything.
"""

import random
from datetime import timedelta

import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from tests.spark import killed
from tests.spark.contents import contents
from tests.spark.feeding import FedDecoded
from tests.spark.histories import replay

from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup.end_samples import append_samples
from kohort.spark import jobs

AS_OF = replay.AS_OF
LIVES = ("consumer-life.kafka", "classic-stall.kafka", "lag.kafka", "transactions.kafka")
RUNS, SNAPSHOTS, FAILURES = 4, 6, 2


class FailsError(Exception):
    """What a run dies of here."""


def fails(*_args, **_named):
    raise FailsError


def lives():
    """Partition -> decoded rows, and the samples of all."""
    histories = replay.histories()
    chosen = [histories[name] for name in LIVES]
    rows = replay.merged([one.rows for one in chosen])
    by_partition = {
        partition: rows.filter(pc.field("partition") == partition).sort_by("offset")
        for partition in rows["partition"].unique().to_pylist()
    }
    return by_partition, replay.merged([one.end_offsets for one in chosen]).sort_by("sampled_at")


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1, 8))
def test_they_are_those_of_one_run(spark, tmp_path, monkeypatch, seed):
    chance = random.Random(seed)
    rows, ends = lives()
    points = [*killed.GOING_ON.values(), *killed.ADDING.values()]
    steps = ["run"] * RUNS + ["snapshot"] * SNAPSHOTS + ["failure"] * FAILURES
    chance.shuffle(steps)
    log, out = FedDecoded({}), tmp_path / "out"
    shares = sorted(chance.random() for _ in steps)
    batches = sorted(chance.choices(range(ends.num_rows + 1), k=SNAPSHOTS - 1))
    pieces = [*zip([0, *batches], [*batches, ends.num_rows], strict=True)]
    failed = 0
    for number, step in enumerate(steps):
        log.rows = {
            one: mine.slice(0, int(mine.num_rows * shares[number])) for one, mine in rows.items()
        }
        as_of = AS_OF - timedelta(seconds=len(steps) - number)
        if step == "snapshot":
            begin, end = pieces.pop(chance.randrange(len(pieces)))
            with Writer(out) as writer:
                append_samples(writer, ends.slice(begin, end - begin))
        elif step == "run":
            jobs.run(log, out, spark=spark, as_of=as_of)
        else:
            owner, name, _ = chance.choice(points)
            with monkeypatch.context() as patched:
                patched.setattr(owner, name, fails)
                try:
                    jobs.run(log, out, spark=spark, as_of=as_of)
                except FailsError:
                    failed += 1
    log.rows = rows
    jobs.run(log, out, spark=spark, as_of=AS_OF)

    log.samples = ends
    jobs.run(log, tmp_path / "whole", spark=spark, as_of=AS_OF)
    found, wanted = contents(out), contents(tmp_path / "whole")
    assert failed > 0
    assert {name: one for name, one in found.items() if one != wanted[name]} == {}
