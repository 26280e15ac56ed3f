# SPDX-License-Identifier: Apache-2.0
"""What a history tells of a recorded day on a real Apache Kafka, held against what was done to its
clients, and against the journals that they kept themselves.

The thresholds of `kohort.history` are older than the recordings. See tests/data/felt.
"""

from collections import Counter
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.spark.downtime import checks, reading
from tests.spark.downtime.days import KINDS
from tests.spark.downtime.replay import Story

from kohort.history import RebalanceRow
from kohort.history.rows import COORDINATOR_AWAY, LEAVE, LEFT_AT_WORK, WENT_SILENT
from kohort.pipeline.schemas import END_OFFSETS
from kohort.spark.gold import MEASURES, Context
from kohort.spark.gold.history_replay import as_table
from kohort.spark.tables.silver import views

ARCHIVES = sorted((Path(__file__).parents[1] / "data" / "downtime").glob("*.tar.xz"))
CASES = [(archive.name, group) for archive in ARCHIVES for group in KINDS]
SESSIONS = [None, 6000]


@cache
def story(name):
    return Story(next(archive for archive in ARCHIVES if archive.name == name))


@cache
def rebalances(name, group, proof, session_ms=None):
    return story(name).rebalances(group, proof=proof, session_ms=session_ms)


@pytest.mark.parametrize("session_ms", SESSIONS)
@pytest.mark.parametrize(("name", "group"), CASES)
def test_what_is_likely_is_what_was_done(name, group, session_ms):
    rows = rebalances(name, group, proof=False, session_ms=session_ms)
    assert [*checks.wrong_guesses(story(name), rows)] == []


@pytest.mark.parametrize("session_ms", SESSIONS)
@pytest.mark.parametrize(("name", "group"), CASES)
def test_what_is_proven_is_what_was_done(name, group, session_ms):
    for proof in (False, True):
        rows = rebalances(name, group, proof=proof, session_ms=session_ms)
        assert [*checks.wrong_proofs(story(name), rows)] == []


@pytest.mark.parametrize("session_ms", SESSIONS)
@pytest.mark.parametrize(("name", "group"), CASES)
def test_what_is_concluded_is_what_the_coordinator_has_said(name, group, session_ms):
    told, proven = (
        rebalances(name, group, proof=proof, session_ms=session_ms) for proof in (False, True)
    )
    assert [*checks.contradictions(told, proven)] == []
    assert sum(bool(row.gone) for row in proven) > 6
    assert all(row.possible == [] for row in proven)  # it has said it of each


@pytest.mark.parametrize(("name", "group"), CASES)
def test_nobody_has_read_what_was_unread(name, group):
    rows = rebalances(name, group, proof=True)
    assert [*reading.wrong_lengths(story(name), group, rows)] == []
    assert len(reading.measured(story(name), group, rows)) > 15


@pytest.mark.parametrize(("name", "group"), CASES)
def test_what_is_not_known_has_a_reason(name, group):
    assert [*reading.wrong_reasons(story(name), group, rebalances(name, group, proof=True))] == []


@pytest.mark.parametrize(("name", "group"), CASES)
def test_a_client_that_dies_is_recognised_and_costs_what_was_felt(name, group):
    """Whoever is killed, stopped or hangs while the broker is there."""
    rows = rebalances(name, group, proof=False)
    first_outage = story(name).outages[0].at
    amid = [row for row in rows if checks.removed_at(row) < first_outage]
    silent = [one for one in checks.removals(story(name), amid) if one.likely == WENT_SILENT]
    assert sorted(one.reasons[0].what for one in silent) == ["hang", "kill", "stop"]
    for one in silent:
        felt = reading.measured(story(name), group, [one.row])
        assert max(part.until - part.since for part in felt) > 4500


@pytest.mark.parametrize(("name", "least"), [("kafka-0.tar.xz", 0), ("kafka-1.tar.xz", 6)])
def test_an_outage_is_told_as_one_or_not_at_all(name, least):
    """All members are put out by it: by a broker that has come back under another leader epoch, by
    one that has the old epoch until the controller has missed it, and by one that was paused.
    """
    said = Counter(
        one.likely
        for group in KINDS
        for one in checks.removals(story(name), rebalances(name, group, proof=False))
        if any(reason.what in {"pause", "crash"} for reason in one.reasons)
    )
    assert said.total() > 30
    assert said[COORDINATOR_AWAY] == least
    assert said[WENT_SILENT] == said[LEFT_AT_WORK] == 0


def test_a_commit_that_has_waited_proves_no_leave():
    """A paused broker went on, handled it, and ended the session a millisecond later."""
    told, said = (
        [
            row
            for row in rebalances("kafka-0.tar.xz", "consumer", proof=proof, session_ms=6000)
            if row.gone and "last commit of its partitions 0.0 s before" in row.evidence
        ]
        for proof in (False, True)
    )
    at = [number for number, row in enumerate(said) if row.triggers == ["session timeout"]]
    assert [told[number].possible for number in at] == [["session timeout", LEAVE]]


@pytest.mark.parametrize("every", [7, 100])
@pytest.mark.parametrize(("name", "group"), CASES)
def test_a_history_that_is_continued_tells_the_same(name, group, every):
    pieces = story(name).rebalances(group, proof=True, session_ms=6000, every=every)
    assert pieces == rebalances(name, group, proof=True, session_ms=6000)


def shifted(rows, by_us):
    """Intervals that begin later, or earlier."""
    return [
        RebalanceRow(
            **{name: getattr(row, name) for name in RebalanceRow.__struct_fields__}
            | {
                "unread": [
                    part._replace(since=part.since + by_us)
                    for part in row.unread
                    if part.since is not None and part.seconds > 1
                ]
            }
        )
        for row in rows
    ]


@pytest.mark.parametrize("by_s", [-10, -2, 3])
@pytest.mark.parametrize(("name", "group"), CASES)
def test_a_length_that_is_wrong_is_found(name, group, by_s):
    rows = shifted(rebalances(name, group, proof=True), by_s * 1_000_000)
    told = sum(len(row.unread) for row in rows)
    wrong = [*reading.wrong_lengths(story(name), group, rows)]
    assert told > 3
    assert len(wrong) > told / 2


@pytest.mark.parametrize("likely", [WENT_SILENT, LEFT_AT_WORK, COORDINATOR_AWAY])
@pytest.mark.parametrize(("name", "group"), CASES)
def test_a_guess_that_is_wrong_is_found(name, group, likely):
    rows = [*rebalances(name, group, proof=False)]
    for number, row in enumerate(rows):
        told = {field: getattr(row, field) for field in RebalanceRow.__struct_fields__}
        told["likely"] = [one._replace(likely=likely) for one in row.likely]
        rows[number] = RebalanceRow(**told)
    assert len([*checks.wrong_guesses(story(name), rows)]) > 2


def by_offset(row):
    return row["offset"]


def test_spark_tells_the_same(spark):
    """It folds the commits between two records, with the last rest among them."""
    one = story("kafka-0.tar.xz")
    decoded = spark.createDataFrame(one.rows).cache()
    (measure,) = (each for each in MEASURES if each.table.name == "rebalances")
    context = Context(datetime(2026, 12, 1, tzinfo=UTC), 7 * 86_400_000, 6000)
    frames = {
        **views(decoded),
        "end_offsets": spark.createDataFrame(END_OFFSETS.arrow.empty_table()),
    }
    found = measure.compute(frames, context).toArrow().to_pylist()
    decoded.unpersist()
    for group in KINDS:
        rows = rebalances("kafka-0.tar.xz", group, proof=False, session_ms=6000)
        expected = as_table(0, group, rows)["rebalances"].to_pylist()
        told = sorted((row for row in found if row["group_id"] == group), key=by_offset)
        assert [{name: row[name] for name in expected[0]} for row in told] == expected
