# SPDX-License-Identifier: Apache-2.0
"""Who was in which group, as the coordinator's own records tell it."""

import pytest

pytest.importorskip("pyspark")

from tests.spark.gold import stories
from tests.spark.gold.stories import named, seconds


def spans(told, script, *columns):
    return [
        (
            named(script, row["member_id"]),
            seconds(script, row["valid_from"]),
            seconds(script, row["valid_to"]),
            *(row[name] for name in columns),
        )
        for row in told["members"][script]
    ]


def test_members_of_a_consumer_group_come_and_go(told):
    assert spans(told, stories.lives) == [
        ("a", 0, 60.5),
        ("b", 5, 8),
        ("c", 10, 55),
    ]


def test_a_change_begins_a_new_row(told):
    assert spans(told, stories.changes, "subscribed_topics", "assignors") == [
        ("a", 0, 1, ["orders"], None),
        ("b", 0, 7, ["orders"], None),
        ("a", 1, 7, ["orders", "payments"], None),
        ("a", 7, 10, ["orders", "payments"], ["range"]),
        ("b", 7, 10, ["orders"], ["range"]),
    ]


def test_members_of_a_classic_group_are_those_of_its_generations(told):
    assert spans(told, stories.classic_lives, "is_leader", "session_timeout_ms") == [
        ("a", 0, None, True, 10_000),
        ("b", 5.5, 24.5, False, 10_000),
        ("c", 24.5, 39.5, False, 10_000),
    ]
    assert spans(told, stories.classic_changes, "subscribed_topics", "assignors") == [
        ("a", 0, 3, ["orders"], ["range"]),
        ("a", 3, 4, ["orders", "payments"], ["range"]),
        ("a", 4, None, ["orders", "payments"], ["sticky"]),
    ]


def test_a_log_without_holes_is_complete_from_its_first_record(told):
    for script, found in told["members"].items():
        assert {seconds(script, row["complete_from"]) for row in found} == {0}
