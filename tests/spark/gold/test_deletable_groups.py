# SPDX-License-Identifier: Apache-2.0
"""Which groups may go, worked out by hand."""

from datetime import timedelta

import pytest
from tests.spark.gold.progress_rows import BEGIN, commits_frame, frame

from kohort.pipeline.schemas.membership import GROUP_STATE
from kohort.pipeline.schemas.progress import OFFSETS
from kohort.spark.gold.deletable_groups import deletable_groups
from kohort.spark.gold.measure import Context

NOW = BEGIN + timedelta(days=30)
RETENTION_DAYS = 40


def days_ago(days):
    return NOW - timedelta(days=days)


def group(name, kind="classic", state="Empty", members=0, protocol_type="consumer", changed=20):
    return {
        "partition": 0,
        "group_id": name,
        "group_type": kind,
        "state": state,
        "members": members,
        "protocol_type": protocol_type,
        "timestamp": None if changed is None else days_ago(changed),
    }


def offset(name, committed, days, **more):
    return {
        "partition": 0,
        "group_id": name,
        "topic": "t",
        "topic_partition": 0,
        "committed_offset": committed,
        "committed_at": days_ago(days) if committed is not None else None,
        "commit_timestamp": days_ago(days),
        "pending": committed is None,
    } | more


GROUPS = [
    group("old"),
    group("tool", protocol_type="", changed=None),
    group("new", "consumer"),
    group("named", "consumer", changed=15),
    group("bare", changed=9),
    group("busy", state="Stable", members=2),
    group("fresh"),
    group("changed", changed=1),
    group("open", protocol_type="", changed=None),
    group("shared", "share"),
    group("streams", "streams", state=None, members=None),
    group("gone", state="Dead"),
    group("silent", changed=None),
]
OFFSETS_OF = [
    offset("old", 5, 25),
    offset("old", 7, 30, topic_partition=1),
    offset("tool", 5, 25),
    offset("new", 5, 25),
    offset("named", 5, 25, expire_timestamp=days_ago(-3)),
    offset("busy", 5, 25),
    offset("fresh", 5, 2),
    offset("changed", 5, 25),
    offset("open", None, 25),
    offset("orphan", 5, 25),
]
COMMITS = [
    {
        "partition": 0,
        "group_id": one["group_id"],
        "offset": number,
        "timestamp": one["commit_timestamp"],
        "state": "committed",
    }
    for number, one in enumerate(OFFSETS_OF)
]

# group -> blockers, days idle, days until it expires (None for unknown or never)
TRUTH = {
    "old": ([], 20, RETENTION_DAYS - 20),  # classic: from when it became empty
    "tool": ([], 25, RETENTION_DAYS - 25),
    "new": ([], 20, RETENTION_DAYS - 25),  # consumer: from the commit on
    "named": ([], 15, 3),
    "bare": ([], 9, -9),  # due
    "busy": (["members"], 20, None),
    "fresh": (["recent_commit"], 2, RETENTION_DAYS - 20),
    "changed": (["recently_active"], 1, RETENTION_DAYS - 1),
    "open": (["pending_transaction"], 25, None),
    "shared": (["not_a_consumer_group"], 20, None),
    "streams": (["state_unknown", "not_a_consumer_group"], 20, None),
    "silent": ([], None, None),
    "orphan": (["state_unknown"], 25, None),
}


@pytest.fixture(scope="module")
def found(spark):
    """The rows with the retention known, and without."""
    frames = {
        "group_state": frame(spark, GROUP_STATE, GROUPS),
        "offsets": frame(spark, OFFSETS, OFFSETS_OF),
        "commits": commits_frame(spark, COMMITS),
    }
    retention_ms = RETENTION_DAYS * 86_400_000
    return [
        {row.group_id: row for row in deletable_groups(frames, context).collect()}
        for context in (Context(NOW, retention_ms), Context(NOW))
    ]


def test_what_speaks_against_each(found):
    known, _ = found
    assert known.keys() == TRUTH.keys()  # those that are dead are not asked for
    for name, (blockers, idle, expires) in TRUTH.items():
        row = known[name]
        assert (row.blockers, row.deletable) == (blockers, not blockers), name
        assert row.days_idle == idle, name
        expected = None if expires is None else days_ago(-expires).replace(tzinfo=None)
        assert row.expires_at == expected, name


def test_reasons_are_sentences(found):
    known, unknown = found
    assert known["old"].reason == (
        "no members, idle for 20.0 days; the broker deletes it on 2027-01-10 00:00 UTC"
    )
    assert known["bare"].reason.endswith("at its next look, due since 2026-12-12 00:00 UTC")
    assert known["busy"].reason == "its members: 2"
    assert known["fresh"].reason == "idle for 2.0 days only"
    assert known["streams"].reason == "its state is not known; it is a streams group"
    assert known["silent"].reason == "no members, no sign of life in the log"
    assert unknown["old"].reason == "no members, idle for 20.0 days"


def test_without_the_retention_only_named_times_are_known(found):
    _, unknown = found
    assert {name for name, row in unknown.items() if row.expires_at} == {"named", "bare"}
    assert {row.group_id for row in unknown.values() if row.deletable} == {
        name for name, (blockers, *_) in TRUTH.items() if not blockers
    }


def test_its_offsets_are_told(found):
    known, _ = found
    rows = known["old"].offsets
    assert [tuple(row) for row in rows] == [("t", 0, 5), ("t", 1, 7)]
    assert known["old"].last_commit_at == days_ago(25).replace(tzinfo=None)
    assert known["open"].offsets == []
    assert known["open"].last_commit_at is None
    assert known["bare"].offsets is None
