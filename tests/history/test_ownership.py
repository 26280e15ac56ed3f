# SPDX-License-Identifier: Apache-2.0
"""Who owned which partition, one after the other."""

from tests.history import log as logs
from tests.history.log import (
    Log,
    at,
    classic,
    end_of,
    epoch,
    generation,
    has,
    has_nothing,
    member,
    tables,
)


def test_a_move_has_the_owner_before_even_across_protocols():
    log = Log()
    log.write(generation(1, classic("a", 0)))
    log.at(3).write(logs.end_of_classic(), member("b"), epoch(2))
    log.write(has("b", 2, 0, before=0))
    found = tables(log)
    assert [(row.group_type, row.topic_id, row.topic) for row in found.assignments] == [
        ("classic", "orders-id", "orders"),
        ("consumer", "orders-id", "orders"),
    ]
    (move,) = found.epoch(2).moves
    assert (move.from_member_id, move.to_member_id) == ("a", "b")
    assert found.epoch(2).partitions_moved == 1


def test_an_epoch_of_a_partition_is_the_first_that_counts():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.at(1).write(member("b"), epoch(3))
    log.at(2).write(has("a", 3, 0))
    (row,) = tables(log).assignments
    assert (row.epoch, row.last_epoch, row.valid_to) == (2, 3, None)


def test_a_partition_that_is_handed_over_by_one_record_had_no_gap():
    log = Log()
    log.write(generation(1, classic("a", 0)))
    log.at(1).write(generation(2, classic("b", 0)))
    row = tables(log).epoch(2)
    assert row.unowned == []
    assert row.members_involved == 2


def test_a_gap_lasts_until_the_next_owner_whenever_that_comes():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, 1, before=0))
    log.at(1).write(has_nothing("a"), end_of("a"), epoch(3))
    log.at(2).write(member("b"), epoch(4))
    log.at(9).write(has("b", 4, 0, before=0))
    found = [(one.topic_partition, one.seconds) for one in tables(log).epoch(3).unowned]
    assert found == [(0, 8), (1, None)]


def test_two_topics_of_one_name_are_two():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    other = has("a", 3, 0)
    other.value.assigned_partitions[0].topic_id = "new-id"
    log.at(1).write(epoch(3), other)
    found = [(row.topic_id, row.topic, at(row.valid_from)) for row in tables(log).assignments]
    assert found == [("orders-id", "orders", 0), ("new-id", None, 1)]


def test_a_group_of_the_same_id_takes_nothing_from_one_that_was_deleted():
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.at(1).write(has_nothing("a"), end_of("a"), epoch(3))
    log.at(5).write(epoch(None))
    log.at(6).write(member("b"), epoch(2))
    log.at(7).write(has("b", 2, 0, before=0))
    *_, before, anew = tables(log).rebalances
    assert [(gap.topic_partition, gap.seconds) for gap in before.unowned] == [(0, None)]
    (move,) = anew.moves
    assert (move.from_member_id, move.to_member_id) == (None, "b")
    assert anew.partitions_moved == 0


def test_a_classic_group_takes_nothing_from_one_that_was_deleted_either():
    log = Log()
    log.write(generation(1, classic("a", 0)))
    log.at(1).write(generation(2))
    log.at(5).write(logs.end_of_classic())
    log.at(6).write(generation(1, classic("b", 0)))
    *_, anew = tables(log).rebalances
    assert [move.from_member_id for move in anew.moves] == [None]
    assert anew.partitions_moved == 0


def first_owners(log, number, **more):
    row = tables(log, **more).epoch(number)
    found = [(one.topic_partition, one.seconds, one.since, one.until) for one in row.unread]
    return [(place, lasted, at(since), at(until)) for place, lasted, since, until in found], row


NEW = "since when it was there is not known, nobody had it before"


def grown(behind=5.0):
    """A topic of one partition gets two more, and `a` has them some seconds after."""
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.commits(1, 10)
    log.at(20).write(epoch(3, 7))
    log.at(20 + behind).write(has("a", 3, 0, 1, 2))
    log.at(50).commit(100, 1)
    return log


def test_a_new_partition_is_unread_at_least_until_it_has_an_owner():
    found, row = first_owners(grown(), 3)
    assert found == [(1, None, 20, 25), (2, None, 20, 25)]
    assert {one.unknown for one in row.unread} == {NEW}
    assert (row.unread_seconds, row.longest_unread_seconds) == (10, 5)  # at least
    assert row.unowned == []


def test_of_a_new_partition_that_has_an_owner_at_once_nothing_is_known():
    found, row = first_owners(grown(0.0), 3)
    assert found == [(1, None, 20, 20), (2, None, 20, 20)]
    assert row.unread_seconds is row.longest_unread_seconds is None


def test_a_topic_may_grow_with_a_member_that_joins():
    """Whatever names the rebalance: nobody had the partition."""
    log = Log()
    log.write(member("a"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.at(20).write(member("b"), epoch(3, 7))
    log.at(22).write(has("b", 3, 1, before=0))
    found, row = first_owners(log, 3)
    assert row.trigger == "join"
    assert found == [(1, None, 20, 22)]


def test_a_classic_group_has_new_partitions_too():
    log = Log()
    log.write(generation(1, classic("a", 0)))
    log.at(20).write(generation(2, classic("a", 0, 1)))
    found, row = first_owners(log, 2)
    assert found == [(1, None, 20, 20)]  # when the generation began is not in the log
    assert row.unread[0].unknown == NEW


def test_the_first_partitions_of_a_topic_are_not_new_ones():
    """Neither of a group, whoever gets them when, nor of one that begins again."""
    log = Log()
    log.write(member("a"), member("b"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.at(3).write(has("b", 2, 1, before=0))
    log.at(9).write(has_nothing("a"), has_nothing("b"), end_of("a"), end_of("b"), epoch(3))
    log.at(10).write(epoch(None))
    log.at(20).write(member("c"), epoch(2))
    log.write(has("c", 2, 2, before=0))
    assert {one.topic_partition for row in tables(log).rebalances for one in row.unread} == {0, 1}
    assert {row.epoch for row in tables(log).rebalances if row.unread} == {3}


def test_behind_a_hole_an_owner_before_may_be_hidden():
    log = grown()
    for complete in (log.events[-2].offset, None):
        found, row = first_owners(log, 3, complete_offset=complete)
        assert found == [(1, None, None, None), (2, None, None, None)]
        assert {one.unknown for one in row.unread} == {"commits may be missing"}
        assert row.unread_seconds is None
