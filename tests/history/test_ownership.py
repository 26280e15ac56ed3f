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
