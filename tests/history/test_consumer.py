# SPDX-License-Identifier: Apache-2.0
"""Records of consumer groups, and what led to each epoch."""

from tests.history import log as logs
from tests.history.log import Log, at, end_of, epoch, expression, has, has_nothing, member, tables

from kohort.history.events import AWAY, GIVES_UP, Computation
from kohort.history.rows import AssignmentComputation


def settled(*names, hash_of_topics=1):
    """Members at epoch 2, with a partition each."""
    log = Log()
    log.write(*(member(name) for name in names), epoch(2, hash_of_topics))
    found = [has(name, 2, index, before=0) for index, name in enumerate(names)]
    log.write(logs.target(2), *found)
    return log


def test_a_member_comes_and_the_rebalance_ends_with_the_last_to_reach_it():
    log = settled("a")
    log.at(5).write(member("b"), epoch(3), logs.target(3), has("b", 3, before=0))
    log.at(7).write(has("a", 3, 0))
    row = tables(log).epoch(3)
    assert (row.triggers, row.outcome, row.members) == (["join"], "completed", 2)
    assert [at(time) for time in (row.started_at, row.assigned_at, row.ended_at)] == [5, 5, 7]
    assert [one.member_id for one in row.joined] == ["b"]
    assert row.seconds == row.seconds_at_least == row.seconds_at_most == 2


def test_who_has_computed_the_target():
    log = settled("a")
    log.at(5).write(member("b"), epoch(3))
    log.write(logs.target(2, Computation("x", "late")))  # of the epoch before
    log.at(6).write(logs.target(3, Computation("x", "a", 2, 7, 1500)), has("b", 3, before=0))
    log.at(7).write(logs.target(3, Computation("uniform", why="again")))
    log.at(8).write(epoch(4), logs.target(4, Computation("uniform", why="nobody could")))
    log.at(9).write(epoch(5), logs.target(5))
    found = tables(log)
    assert found.epoch(2).computed is None
    assert found.epoch(3).computed == AssignmentComputation("x", "a", 1.5, 7, 2, None)
    assert found.epoch(4).computed == AssignmentComputation(
        "uniform", None, None, None, None, "nobody could"
    )
    assert found.epoch(5).computed is None


def test_what_was_not_there_has_come_only_if_its_epoch_was_the_first():
    log = settled("a")
    log.at(5).write(member("b"), epoch(3))
    log.at(6).write(has("b", 3, 1, before=2))  # the record of its coming is hidden
    assert tables(log).epoch(3).triggers == ["unknown"]


def test_a_wish_another_subscription_other_topics():
    log = settled("a", "b")
    log.at(1).write(member("a", subscribed_topic_names=["orders", "payments"]), epoch(3, 2))
    log.at(2).write(epoch(4, 3))
    wish = {"subscribed_topic_names": ["payments", "orders"], "server_assignor": "range"}
    log.at(3).write(member("a", **wish), epoch(5, 3))
    found = tables(log)
    assert [found.epoch(number).triggers for number in (3, 4, 5)] == [
        ["subscription change"],
        ["metadata change"],
        ["assignor change"],
    ]
    assert [one.member_id for one in found.epoch(5).changed] == ["a"]
    assert [row.valid_to is None for row in found.members] == [False, True, False, True]


def test_nothing_but_another_hash_proves_nothing_where_records_may_be_hidden():
    log = settled("a")
    offset = log.at(2).write(epoch(3, 2))
    assert tables(log, complete_offset=offset).epoch(3).triggers == ["metadata change"]
    assert tables(log, complete_offset=offset + 1).epoch(3).triggers == ["unknown"]
    assert tables(log, complete_offset=None).epoch(3).triggers == ["unknown"]


def test_a_regular_expression_is_resolved_and_matches_others():
    log = Log()
    log.write(member("a", subscribed_topic_names=[], subscribed_topic_regex="o.*"), epoch(2))
    log.at(1).write(expression("o.*", "orders"), epoch(3))
    log.at(2).write(has("a", 3, 0, before=0))
    log.at(3).write(expression("o.*", "orders", "others"), epoch(4))
    log.at(4).write(expression("o.*", "others", "orders"), epoch(5))
    found = tables(log)
    assert found.epoch(3).triggers == ["join"]
    assert "o.* was resolved for the first time, to 1 topics" in found.epoch(3).evidence
    assert found.epoch(4).triggers == ["metadata change"]
    assert found.epoch(5).triggers == ["unknown"]


def test_a_static_member_that_is_replaced_neither_comes_nor_goes():
    log = Log()
    log.write(member("a", instance_id="i"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.at(5).write(
        has_nothing("a"), end_of("a"), member("b", instance_id="i"), epoch(3), has("b", 3, before=0)
    )
    row = tables(log).epoch(3)
    assert (row.joined, row.gone, row.triggers) == ([], [], ["unknown"])


def test_a_static_member_that_is_away_keeps_what_it_has():
    log = Log()
    log.write(member("a", instance_id="i"), epoch(2))
    log.write(has("a", 2, 0, before=0))
    log.at(5).write(has("a", AWAY, 0))
    log.at(6).write(has("a", 2, 0))
    found = tables(log)
    assert [(row.epoch, row.gained_by is None) for row in found.assignments] == [
        (2, False),
        (AWAY, True),
        (2, True),
    ]
    assert found.assignments[0].lost_by is None
    assert found.epoch(2).unowned == []


def test_what_is_to_be_given_up_is_owned_until_it_is():
    log = settled("a")
    log.at(1).write(member("b"), epoch(3), has("b", 3, before=0))
    log.at(2).write(has("a", 2, state=GIVES_UP, giving_up=[0]))
    log.at(4).write(has("a", 3))
    log.at(5).write(has("b", 3, 0))
    first, second = tables(log).assignments
    assert [at(time) for time in (first.valid_from, first.revoked_at, first.valid_to)] == [0, 2, 4]
    assert (second.member_id, at(second.valid_from)) == ("b", 5)
    (gap,) = tables(log).epoch(3).unowned
    assert (gap.topic, gap.topic_partition, gap.seconds) == ("orders", 0, 1)


def test_several_that_are_gone_at_once_were_removed_by_a_request():
    log = settled("a", "b")
    log.at(60).write(has_nothing("a"), end_of("a"), has_nothing("b"), end_of("b"), epoch(3))
    row = tables(log).epoch(3)
    assert row.triggers == ["leave"]
    assert [one.member_id for one in row.gone] == ["a", "b"]
    assert row.members == 0
    assert row.ended_at == row.started_at


def test_an_epoch_that_comes_too_late_is_superseded_and_the_end_of_a_group_supersedes():
    log = settled("a")
    log.at(1).write(epoch(3))
    log.at(2).write(epoch(4, 2))
    log.at(3).write(epoch(None))
    found = tables(log)
    assert [found.epoch(number).outcome for number in (2, 3, 4)] == [
        "completed",
        "superseded",
        "superseded",
    ]


def test_what_older_brokers_write_of_topics_is_a_change_of_topics():
    log = settled("a")
    log.at(1).write(logs.topics(), epoch(3))
    assert tables(log).epoch(3).triggers == ["metadata change"]
