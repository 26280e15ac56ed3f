# SPDX-License-Identifier: Apache-2.0
"""Who owned which partition, as the coordinator's own records tell it."""

import pytest

pytest.importorskip("pyspark")

from tests.spark.gold import stories
from tests.spark.gold.stories import named, seconds


def owners(told, script, *columns):
    """(topic, partition) -> its owners, one after the other."""
    found = {}
    for row in told["assignments"][script]:
        key = (row["topic"], row["topic_partition"])
        found.setdefault(key, []).append(
            (
                named(script, row["member_id"]),
                seconds(script, row["valid_from"]),
                seconds(script, row["valid_to"]),
                *(row[name] for name in columns),
            )
        )
    return found


def test_a_partition_has_one_owner_after_the_other(told):
    found = owners(told, stories.lives)
    # b is given 2 and 3 by the assignor, and c the same after it
    kept = {("orders", 0): [("a", 0, 60.5)], ("orders", 1): [("a", 0, 60.5)]}
    moved = [("a", 0, 7), ("b", 7, 8), ("a", 9, 12)]
    assert {key: spans for key, spans in found.items() if key in kept} == kept
    for index in (2, 3):
        spans = found["orders", index]
        assert spans[:3] == moved
        assert spans[3:] == [("a", 55, 60.5)]  # c never fetched what was free for it at 12 s


def test_epochs_and_the_order_to_give_up(told):
    rows = [
        row
        for row in told["assignments"][stories.lives]
        if row["topic_partition"] == 2 and row["member_id"] in ("a", "b")
    ]
    script = stories.lives
    assert [
        (row["member_id"], row["epoch"], row["last_epoch"], seconds(script, row["revoked_at"]))
        for row in rows
    ] == [("a", 2, 2, 6), ("b", 3, 3, None), ("a", 4, 4, 11), ("a", 6, 6, None)]
    given = {row["offset"]: row["epoch"] for row in told["rebalances"][script]}
    assert [(given[row["gained_by"]], given[row["lost_by"]]) for row in rows] == [
        (2, 3),
        (3, 4),
        (4, 5),
        (6, 7),
    ]


def test_names_of_topics_come_from_commits_or_sole_subscriptions(told):
    assert {row["topic"] for row in told["assignments"][stories.stalls]} == {"orders"}
    named = {row["topic"] for row in told["assignments"][stories.changes]}
    assert named == {"orders", None}  # nobody subscribes to payments alone, or commits it
    ids = {row["topic_id"] for row in told["assignments"][stories.lives]}
    assert len(ids) == 1
    assert {row["topic_id"] for row in told["assignments"][stories.classic_lives]} == ids


def test_classic_owners_are_those_of_the_generations(told):
    assert owners(told, stories.classic_lives, "epoch", "last_epoch") == {
        ("orders", 0): [("a", 0, None, 1, 5)],
        ("orders", 1): [("a", 0, None, 1, 5)],
        **{
            ("orders", index): [
                ("a", 0, 5.5, 1, 1),
                ("b", 5.5, 24.5, 2, 2),
                ("a", 24.5, 24.5, 3, 3),
                ("c", 24.5, 39.5, 4, 4),
                ("a", 39.5, None, 5, 5),
            ]
            for index in (2, 3)
        },
    }
    assert owners(told, stories.cooperative) == {
        ("orders", 0): [("a", 0, None)],
        ("orders", 1): [("a", 0, 1), ("b", 3, None)],
    }
