# SPDX-License-Identifier: Apache-2.0
"""A run that kills its own process and all that it has started, for tests of crashes.

    python killed.py LOG OUT MEASURES POINT      dies when it comes to the point
    python killed.py LOG OUT MEASURES never      comes to its end

MEASURES are names with commas between, or `all`. Prints `working` when there is a session.
"""

import os
import signal
import sys
from datetime import UTC, datetime

from kohort.pipeline.format.writer import Writer
from kohort.pipeline.stores import local_store
from kohort.spark import jobs
from kohort.spark.engine.session import session
from kohort.spark.gold import MEASURES
from kohort.spark.tables import compute, histories, increments, progress

AS_OF = datetime(2026, 11, 22, tzinfo=UTC)
CONF = {"spark.sql.shuffle.partitions": "1"}


def chosen(names):
    return tuple(one for one in MEASURES if names == "all" or one.table.name in names.split(","))


def die(*_, **__):
    os.killpg(os.getpid(), signal.SIGKILL)


def second_dies(function):
    calls = []

    def call(*args, **kwargs):
        calls.append(args)
        return die() if len(calls) == 2 else function(*args, **kwargs)

    return call


def dies_after(function):
    def call(*args, **kwargs):
        function(*args, **kwargs)
        die()

    return call


POINTS = {
    "rows are written and not counted": (increments, "_count", lambda _: die),
    "gold is half written": (compute, "write_part", second_dies),
    "all is written and nothing flipped": (Writer, "publish", lambda _: die),
    "all is flipped and nobody was told": (Writer, "publish", dies_after),
}
GOING_ON = {
    "rows of an increment are written and not counted": (increments, "_count", lambda _: die),
    "groups were replayed and nothing is written": (histories, "_table", lambda _: die),
    "rows that are over are written, open ones are not": (histories, "write_part", second_dies),
    "tables are written and states are not": (histories, "_states", lambda _: die),
    "states are written and nothing flipped": (histories, "_states", dies_after),
    "the manifest is written beside the old one": (local_store, "replace_whole", lambda _: die),
    "all is flipped and nobody was told": (Writer, "publish", dies_after),
}
ADDING = {
    "commits are added and rates are not": (progress, "rates", lambda _: die),
    "rates are added, and what the next run goes on from is half written": (
        progress,
        "_records",
        lambda _: die,
    ),
    "what is over is written, what tells of now is not": (progress, "lag", lambda _: die),
    "the tables of now are written and nothing flipped": (progress, "deletable", dies_after),
    "the past is written and nothing flipped": (compute, "refresh_observed_history", dies_after),
    "all is flipped and nobody was told": (Writer, "publish", dies_after),
}


def main():
    log, out, names, point = sys.argv[1:]
    compute.MEASURES = chosen(names)
    spark = session("local[2]", CONF, quick=True)
    print("working", flush=True)
    points = {**POINTS, **GOING_ON, **ADDING}
    if point in points:
        owner, name, dying = points[point]
        setattr(owner, name, dying(getattr(owner, name)))
    jobs.run(f"log:{log}", out, spark=spark, as_of=AS_OF)


if __name__ == "__main__":
    main()
