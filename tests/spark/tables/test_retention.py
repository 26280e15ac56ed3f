# SPDX-License-Identifier: Apache-2.0
"""Dropping history: what is left of the oldest rows tells the same of all that comes after."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark")

from tests.spark.gold.stories import all_rows
from tests.spark.gold.test_commits import entry_of, merged, story
from tests.spark.rows import decoded_frame, raw

from kohort.pipeline.schemas import MARKER, TOMBSTONE
from kohort.spark.gold.commits import commits, offsets
from kohort.spark.gold.group_state import group_state
from kohort.spark.gold.measure import Context
from kohort.spark.gold.rates import commit_rates
from kohort.spark.tables.retention import kept
from kohort.spark.tables.silver import views

CONTEXT = Context(datetime(2026, 11, 21, tzinfo=UTC))
HORIZON = 20


def told(rows):
    """Tables of commits over decoded rows, by position, without the mark of completeness."""
    frames = dict(views(rows))
    frames["commits"] = commits(frames, CONTEXT).cache()
    tables = {"commits": frames["commits"]}
    for compute in (offsets, commit_rates):
        tables[compute.__name__] = compute(frames, CONTEXT)
    return {
        name: {
            (row["partition"], row["offset"]): {**row, "complete_from": None}
            for row in table.toArrow().to_pylist()
        }
        for name, table in tables.items()
    }


def test_commits_behind_the_horizon_are_what_they_were(spark):
    """Random transactions, removals and commits, cut in the middle."""
    stories = [story(seed) for seed in range(40)]
    rows = merged(
        [raw([entry_of(step, f"g{n}") for step in steps]) for n, steps in enumerate(stories)]
    )
    every = decoded_frame(spark, rows)
    old, young = every.where(f"offset < {HORIZON}"), every.where(f"offset >= {HORIZON}")
    left = spark.createDataFrame(kept(old, young).toArrow())
    full, rest = told(every), told(left.unionByName(young))

    assert rest["offsets"] == full["offsets"]
    later = {
        place
        for place, row in full["commits"].items()
        if row["offset"] >= HORIZON or (row["effective_offset"] or 0) >= HORIZON
    }
    assert any(offset < HORIZON for _, offset in later)
    for name in ("commits", "commit_rates"):
        whole = {place: row for place, row in full[name].items() if place in later}
        assert {place: row for place, row in rest[name].items() if place in later} == whole
        assert len(whole) > 100

    back = {(row["partition"], row["key"]) for row in young.toArrow().to_pylist()}
    stayed = left.toArrow().to_pylist()
    assert len(stayed) < old.count() / 2
    gone = [row for row in stayed if row["kind"] == TOMBSTONE]
    assert gone
    assert all((row["partition"], row["key"]) in back for row in gone)
    states = {
        rest["commits"][row["partition"], row["offset"]]["state"]
        for row in stayed
        if row["kind"] != MARKER
    }
    assert "aborted" in states  # those whose transactions were open at the horizon
    for row in stayed:
        if row["kind"] == MARKER:
            assert row["commits"]


def test_groups_are_what_they_were(spark):
    """Of groups that were deleted before the horizon nothing is told."""
    every = decoded_frame(spark, all_rows())
    old, young = every.where("offset < 15"), every.where("offset >= 15")
    left = spark.createDataFrame(kept(old, young).unionByName(young).toArrow())

    full, rest = (states(rows) for rows in (every, left))

    assert left.count() < every.count()
    assert rest == full


def states(rows):
    """As groups are; without what only tombstones tell, which a cleaner drops in time as well."""
    found = group_state(dict(views(rows)), CONTEXT).toArrow().to_pylist()
    return {
        (row["partition"], row["group_id"]): row
        | {"complete_from": None}
        | ({"offset": None, "timestamp": None} if row["protocol_type"] == "" else {})
        for row in found
        if row["state"] != "Dead"
    }
