# SPDX-License-Identifier: Apache-2.0
"""Generations of classic groups, and what differs between one and the next."""

import pytest
from tests.history import log as logs
from tests.history.log import (
    Log,
    at,
    classic,
    end_of,
    epoch,
    generation,
    has_nothing,
    member,
    tables,
)

FIRST = (classic("a", 0, 1), classic("b", 2))


def second(*members, **more):
    """What a second generation with these members is, and why."""
    log = Log()
    log.write(generation(1, classic("a", 0, 1), classic("b", 2)))
    log.at(8).write(generation(2, *members, **more))
    return tables(log).epoch(2)


@pytest.mark.parametrize(
    ("members", "more", "triggers"),
    [
        ([classic("a", 0), classic("b", 1), classic("c", 2)], {}, ["join"]),
        (
            [classic("a", 0, 1, topics=("orders", "x")), classic("b", 2)],
            {},
            ["subscription change"],
        ),
        ([*FIRST], {"protocol": "sticky"}, ["assignor change"]),
        ([classic("a", 0, 1, 3), classic("b", 2)], {}, ["metadata change"]),
        ([classic("a"), classic("b")], {}, ["metadata change"]),
        ([*FIRST], {}, ["unknown"]),
        ([classic("a", 0, 1, 2)], {}, ["leave"]),
    ],
)
def test_what_must_have_been_a_reason_is_named(members, more, triggers):
    assert second(*members, **more).triggers == triggers


def test_what_was_withheld_is_given_in_the_next_generation():
    log = Log()
    log.write(generation(1, classic("a", 0, 1), protocol="cooperative-sticky"))
    log.at(1).write(
        generation(2, classic("a", 0, claims=(0, 1)), classic("b"), protocol="cooperative-sticky")
    )
    log.at(3).write(
        generation(3, classic("a", 0, claims=(0,)), classic("b", 1), protocol="cooperative-sticky")
    )
    found = tables(log)
    assert found.epoch(3).triggers == ["cooperative follow-up"]
    assert [(one.topic_partition, one.seconds) for one in found.epoch(2).unowned] == [(1, 2)]
    assert [(one.from_member_id, one.to_member_id) for one in found.epoch(3).moves] == [("a", "b")]


def test_without_the_generation_before_nothing_can_be_compared():
    log = Log()
    log.write(generation(7, classic("a", 0)))
    row = tables(log).epoch(7)
    assert (row.triggers, row.joined) == (["unknown"], [])
    assert row.evidence == "the log does not have the generation before"
    assert row.started_after is None


def test_a_rebalance_has_bounds_in_time():
    row = second(*FIRST, joined_at=7)
    assert [at(time) for time in (row.started_after, row.started_before, row.ended_at)] == [0, 7, 8]
    assert (row.started_at, row.seconds, row.outcome) == (None, None, "completed")
    assert (row.seconds_at_least, row.seconds_at_most) == (1, 8)


def test_a_row_of_a_member_goes_on_until_it_changes_or_leads():
    log = Log()
    log.write(generation(1, classic("a", 0), classic("b", 1)))
    log.at(1).write(generation(2, classic("a", 1), classic("b", 0)))
    log.at(2).write(generation(3, classic("b", 0, 1)))
    log.at(3).write(logs.end_of_classic())
    found = [
        (row.member_id, row.is_leader, at(row.valid_from), at(row.valid_to))
        for row in tables(log).members
    ]
    assert found == [("a", True, 0, 2), ("b", False, 0, 2), ("b", True, 2, 3)]


def test_a_group_that_only_becomes_empty_or_repeats_its_generation_does_not_rebalance():
    log = Log()
    log.write(generation(0))
    log.at(1).write(generation(1, classic("a", 0)))
    log.at(2).write(generation(1, classic("a", 0, instance="i")))
    assert [row.epoch for row in tables(log).rebalances] == [1]


def test_a_consumer_group_that_is_converted_tells_who_was_its_last_consumer():
    log = Log()
    log.write(member("a", classic_protocols=["range"]), member("b"), epoch(2))
    log.at(5).write(
        has_nothing("b"),
        end_of("a"),
        end_of("b"),
        epoch(None),
        generation(2, classic("a")),
    )
    log.at(6).write(generation(3, classic("a", 0)))
    row = tables(log).epoch(3)
    assert row.trigger == "migration"
    assert [one.member_id for one in row.gone] == ["b"]
    assert "a consumer group was converted" in row.evidence


def test_an_empty_classic_group_is_succeeded():
    log = Log()
    log.write(generation(1))
    log.at(2).write(logs.end_of_classic(), member("a"), epoch(2))
    assert tables(log).epoch(2).trigger == "migration"
