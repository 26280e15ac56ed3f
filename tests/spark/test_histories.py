# SPDX-License-Identifier: Apache-2.0
"""What happened to groups, as the tables tell it, held against what the scripts know."""

import pytest

pytest.importorskip("pyspark")

from tests.spark.histories import compaction, replay
from tests.spark.histories.gold import CHECKS, compute, part, problems
from tests.spark.histories.membership import began

from kohort.spark.gold import MEASURES

VARIANTS = 2  # compacted ones of each history
APART = 10_000  # partitions between a log and its variants

HISTORIES = sorted(replay.FILES)
FINAL = ("group_state", "offsets")
BEGINS = {
    "commits": lambda row: row["timestamp"],
    "commit_rates": lambda row: row["effective_at"],
    "members": lambda row: row["valid_from"],
    "assignments": lambda row: row["valid_from"],
    "rebalances": began,
}
"""History tables -> when what a row tells has begun."""
BY_RHYTHM = {"likely", "unread", "unread_seconds", "longest_unread_seconds"}
"""Columns that rest on commits before."""


@pytest.fixture(scope="module")
def gold(spark):
    """All of gold over all histories, and over two compacted variants of each."""
    histories = replay.histories()
    rows = [history.rows for history in histories.values()]
    for variant in range(1, VARIANTS + 1):
        rows += [
            replay.renamed(
                compaction.compacted(history.rows, f"{name} {variant}"),
                f"~{variant}",
                APART * variant,
            )
            for name, history in histories.items()
        ]
    end_offsets = replay.merged([history.end_offsets for history in histories.values()])
    return compute(spark, replay.merged(rows), end_offsets, replay.AS_OF)


def of_history(gold, name, variant=0):
    """The tables' rows of one history, or of a compacted variant of it, under the same names."""
    first = APART * variant + replay.SPREAD * HISTORIES.index(name)
    found = part(gold, range(first, first + replay.SPREAD))
    suffix = f"~{variant}" if variant else ""
    for row in (row for rows in found.values() for row in rows):
        assert row["group_id"].endswith(suffix)
    return {
        table: [
            row
            | {
                "group_id": row["group_id"].removesuffix(suffix),
                "partition": row["partition"] - APART * variant,
            }
            for row in rows
        ]
        for table, rows in found.items()
    }


def test_every_table_is_checked():
    assert {measure.table.name for measure in MEASURES} <= set(CHECKS)


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("table", CHECKS)
def test_a_history_is_told_as_it_was(gold, table, name):
    truth = replay.histories()[name].truth
    assert problems(table, truth, of_history(gold, name)) == []


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("variant", range(1, VARIANTS + 1))
def test_compaction_changes_no_final_state(gold, variant, name):
    full, left = of_history(gold, name), of_history(gold, name, variant)
    for table in FINAL:
        assert without_mark(living(left[table])) == without_mark(living(full[table])), table


def living(rows):
    """Without what only tombstones tell, which a cleaner drops in time: who is dead, and when a
    group died before it came back with nothing but offsets.
    """
    return [
        row | ({"offset": None, "timestamp": None} if row.get("protocol_type") == "" else {})
        for row in rows
        if row.get("state") != "Dead"
    ]


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("variant", range(1, VARIANTS + 1))
def test_history_is_equal_from_where_it_is_complete(gold, variant, name):
    """What compaction hid lies before `complete_from`, and only there."""
    full, left = of_history(gold, name), of_history(gold, name, variant)
    for table, at in BEGINS.items():
        assert all(at(row) >= row["complete_from"] for row in full[table]), "nothing is hidden"
        since = {row["partition"]: row["complete_from"] for row in left[table]}
        whole = [
            row
            for row in full[table]
            if row["partition"] in since and at(row) >= since[row["partition"]]
        ]
        if table == "rebalances":
            whole = [forgetting(row, full["assignments"], since) for row in whole]
        rest = [row for row in left[table] if at(row) >= row["complete_from"]]
        assert without_mark(rest) == without_mark(whole), table


def forgetting(row, assignments, since):
    """A rebalance without those owners before whose time had ended before everything was known."""
    known = {
        (one["group_id"], one["topic"], one["topic_partition"], one["member_id"])
        for one in assignments
        if one["valid_to"] is None or one["valid_to"] >= since[row["partition"]]
    }
    moves = [
        move
        if (row["group_id"], move["topic"], move["topic_partition"], move["from_member_id"])
        in known
        else move | {"from_member_id": None}
        for move in row["moves"]
    ]
    went = [one for one in moves if one["from_member_id"] not in {None, one["to_member_id"]}]
    return row | {"moves": moves, "partitions_moved": len(went)}


def without_mark(rows):
    """The rows in an order of their own, without what tells how far back they reach: words and
    rhythms may be those of commits before.
    """
    left_out = {"complete_from", "evidence", *BY_RHYTHM}
    return sorted(
        ({key: one for key, one in row.items() if key not in left_out} for row in rows),
        key=repr,
    )
