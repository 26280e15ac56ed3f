# SPDX-License-Identifier: Apache-2.0
"""Where only groups that live commit, what groups are is not computed again. Else it is."""

from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark")

from tests.spark import rows as made
from tests.spark.feeding import Fed

from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.manifest import load
from kohort.records import codec
from kohort.records.codec import Record
from kohort.records.schemas import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kohort.spark import jobs
from kohort.spark.engine import small_runs

AS_OF = datetime.fromtimestamp(made.FIRST / 1000, UTC) + timedelta(days=1)


def commit(group, offset=1):
    key = OffsetCommitKey(group=group, topic="t", partition=0)
    return Record(key, OffsetCommitValue(offset=offset, metadata="", commit_timestamp=1))


def removed(group):
    return Record(OffsetCommitKey(group=group, topic="t", partition=0), None)


def epoch(group, number):
    value = None if number is None else ConsumerGroupMetadataValue(epoch=number)
    return Record(ConsumerGroupMetadataKey(group_id=group), value)


BEFORE = [
    epoch("members", 1),
    commit("members"),
    commit("alone"),
    epoch("gone", 1),
    commit("gone"),
    removed("gone"),
    epoch("gone", None),
]
OTHERS = [commit("elsewhere")]
"""In a partition of the log with no news."""


LIVING = [commit("members", 2), commit("alone", 2)]
IN_TRANSACTION = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
ENDED = {"control": True, "key": b"\x00\x00\x00\x01", "value": bytes(6)}
TRANSACTIONS = [
    IN_TRANSACTION | {"record": commit("alone", 2)},
    IN_TRANSACTION | ENDED,
    IN_TRANSACTION | {"record": commit("members", 3)},
]
KEY, _ = codec.encode(commit("alone"))
UNREADABLE = [*LIVING, {"key": KEY[:-1], "value": b"\x00\x03"}]


@pytest.mark.parametrize(
    ("few", "fresh", "changed"),
    [
        (True, LIVING, set()),
        pytest.param(False, LIVING, set(), marks=pytest.mark.prove),
        pytest.param(True, TRANSACTIONS, set(), marks=pytest.mark.prove),
        pytest.param(True, UNREADABLE, set(), marks=pytest.mark.prove),
        pytest.param(True, [*LIVING, removed("alone")], set(), marks=pytest.mark.prove),
        pytest.param(
            *(True, [commit("alone", 2), commit("new"), commit("gone", 2)], {"new", "gone"}),
            marks=pytest.mark.prove,
        ),
        pytest.param(
            *(True, [commit("alone", 2), epoch("members", 2)], {"members"}), marks=pytest.mark.prove
        ),
    ],
    ids=[
        "commits",
        "many commits",
        "transactions",
        "an unreadable one",
        "a removal",
        "a new and a dead one",
        "an epoch",
    ],
)
@pytest.mark.timeout(300)
def test_groups_are_what_one_run_says(spark, tmp_path, monkeypatch, few, fresh, changed):
    if not few:
        monkeypatch.setattr(small_runs, "DRIVER_TABLE_ROWS", 0)
    out, whole = tmp_path / "out", tmp_path / "whole"
    log = Fed({0: made.raw(BEFORE), 1: made.raw(OTHERS, 1)})
    jobs.run(log, out, spark=spark, as_of=AS_OF)
    before = load(out).gold["group_state"].parts
    then = states(out)
    log.rows[0] = made.raw([*BEFORE, *fresh])

    jobs.run(log, out, spark=spark, as_of=AS_OF)

    jobs.run(log, whole, spark=spark, as_of=AS_OF)
    now = states(out)
    assert now == states(whole)
    assert {group for group in now if now[group] != then.get(group)} == changed
    for name in ("deletable_groups", "offsets", "status"):
        assert told(out, name) == told(whole, name), name
    told_of = load(out)
    assert (told_of.gold["group_state"].parts == before) == (
        few and fresh in (LIVING, TRANSACTIONS, UNREADABLE)
    )
    if few:  # a state of few rows is one part, whatever partitions of the log have news
        assert len(told_of.progress.newest) == len(told_of.progress.records) == 1
        assert len(told_of.gold["offsets"].parts) == 1


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_a_log_that_was_cut_beside_one_without_news(spark, tmp_path):
    """The states of few rows are one part: what it says of the other partition stays."""
    out, whole = tmp_path / "out", tmp_path / "whole"
    log = Fed({0: made.raw(BEFORE), 1: made.raw(OTHERS, 1)})
    jobs.run(log, out, spark=spark, as_of=AS_OF)
    log.rows[0] = made.raw([*BEFORE[:2], commit("instead")])
    log.cut = {0: 2}

    jobs.run(log, out, spark=spark, as_of=AS_OF)

    log.cut = {}
    jobs.run(log, whole, spark=spark, as_of=AS_OF)
    assert set(states(out)) == {"members", "instead", "elsewhere"}
    for name in ("group_state", "commits", "offsets", "lag", "status", "deletable_groups"):
        assert told(out, name) == told(whole, name), name


def states(out):
    return {row["group_id"]: row for row in Tables(out).table("group_state").to_pylist()}


def told(out, name):
    return sorted(map(repr, Tables(out).table(name).to_pylist()))
