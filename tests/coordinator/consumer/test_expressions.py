# SPDX-License-Identifier: Apache-2.0
"""Subscriptions by regular expression, from the heartbeat to the record and back."""

from typing import Any

import pytest
from tests.coordinator.consumers import Consumer, beat, given, kinds, settled
from tests.coordinator.desk import Desk, topics

from kohort import expressions as language
from kohort.coordinator.consumer import expressions
from kohort.coordinator.consumer.expressions import finished
from kohort.errors import ErrorCode
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest

MANY = topics(orders=2, order_items=1, payments=2)


def by(expression: str, **fields: Any) -> dict[str, Any]:
    return {"names": None, "subscribed_topic_regex": expression, **fields}


@pytest.fixture
def desk() -> Desk:
    return Desk(known=MANY, group_consumer_assignment_interval_ms=0)


def group_of(desk: Desk) -> Any:
    return desk.shard.groups.consumer("g")


def state_of(desk: Desk) -> Any:
    group = group_of(desk)
    return group.members, group.resolved, group.group_epoch, group.target_epoch, group.targets


def test_a_member_gets_the_topics_of_its_expression_at_its_second_heartbeat(desk: Desk) -> None:
    """K848-110."""
    answer = beat(desk, "a", 0, **by("order.*"))
    assert (answer.member_epoch, given(answer)) == (1, {})
    assert kinds(desk.written()) == ["member", "current", "regex", "epoch"]

    answer = beat(desk, "a", 1)
    assert (answer.member_epoch, given(answer)) == (2, {"orders": [0, 1], "order_items": [0]})
    assert kinds(desk.written()) == ["target", "target epoch", "current"]


def test_the_record_holds_the_topics_and_the_time(desk: Desk) -> None:
    beat(desk, "a", 0, **by("order.*"))
    (record,) = (one for one in desk.log if kinds([one]) == ["regex"])
    assert (record.key.group_id, record.key.regular_expression) == ("g", "order.*")
    assert record.value.topics == ["order_items", "orders"]
    assert record.value.timestamp == desk.now


def test_the_group_is_resolved_beside_the_heartbeats(desk: Desk) -> None:
    """Others are served while it goes on, and one resolution of a group is out at a time."""
    desk.errands_held = True
    for member in ("a", "b", "c"):
        assert beat(desk, member, 0, **by("order.*")).error_code == 0
    beat(desk, "a", 1)
    assert len(desk.driver.tasks) == 1
    assert group_of(desk).resolved == {}

    desk.run_errands()
    assert group_of(desk).resolved == {"order.*": ("order_items", "orders")}
    assert not desk.driver.tasks


def test_an_expression_that_cannot_be_read_is_refused(desk: Desk) -> None:
    """K848-111."""
    for epoch in (0, 0):
        answer = beat(desk, "a", epoch, **by("("))
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert answer.error_message == (
            "SubscribedTopicRegex `(` is not a valid regular expression: missing closing )."
        )
    assert desk.log == []
    assert group_of(desk) is None

    a = Consumer(desk, "a").join()
    answer = beat(desk, "a", a.epoch, subscribed_topic_regex="(?=x)")
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert group_of(desk).members["a"].subscribed_regex == ""
    a.beat()


def test_the_checks_of_group_and_member_come_before(desk: Desk) -> None:
    answer = beat(desk, "a", 3, subscribed_topic_regex="(")
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    Consumer(desk, "a").join()
    answer = beat(desk, "b", 3, subscribed_topic_regex="(")
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_refused_expression_takes_no_static_members_place(desk: Desk) -> None:
    a = Consumer(desk, "a", instance_id="i").join()
    beat(desk, "a", -2, instance_id="i")
    desk.written()
    answer = beat(desk, "b", 0, instance_id="i", **by("("))
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert desk.written() == []
    answer = beat(desk, "b", 0, instance_id="i", **by("order.*", names=["orders"]))
    assert given(answer) == a.owned


def test_a_machine_without_re2_refuses(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "re2", None)
    answer = beat(desk, "a", 0, **by("a.*"))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == (
        "SubscribedTopicRegex 'a.*': regular expressions need the Python package google-re2, "
        "which is not installed"
    )


def test_members_of_a_log_are_served_without_re2(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = settled(desk, "a", **by("order.*"))[0]
    monkeypatch.setattr(language, "re2", None)
    desk.restart()
    assert a.beat().owned == {"orders": [0, 1], "order_items": [0]}
    desk.topics_changed(topics(orders=2, order_items=1, orders2=1))
    assert set(a.beat().owned) == {"orders", "order_items"}


def test_names_and_expression_are_read_together(desk: Desk) -> None:
    a = Consumer(desk, "a", **by("order.*", names=["payments", "orders"])).join()
    assert a.owned == {"orders": [0, 1], "payments": [0, 1]}
    assert a.beat().owned == {"orders": [0, 1], "order_items": [0], "payments": [0, 1]}


def test_an_empty_text_subscribes_to_nothing(desk: Desk) -> None:
    """K848-115."""
    answer = beat(desk, "a", 0, **by(""))
    assert (answer.member_epoch, given(answer)) == (1, {})
    desk.wait(30_000)
    assert not desk.driver.tasks
    assert "regex" not in kinds(desk.log)


def test_a_new_topic_is_found_at_once(desk: Desk) -> None:
    """K848-037, K848-112: no ten seconds are waited, and nobody has to ask."""
    a = settled(desk, "a", **by("order.*"))[0]
    epoch = a.epoch
    desk.topics_changed(topics(orders=2, order_items=1, payments=2, orders_eu=1))
    assert group_of(desk).resolved == {"order.*": ("order_items", "orders", "orders_eu")}
    assert set(a.beat().owned) == {"orders", "order_items", "orders_eu"}
    assert a.epoch == epoch + 1


def test_a_topic_that_does_not_match_moves_nobody(desk: Desk) -> None:
    a = settled(desk, "a", **by("order.*"))[0]
    desk.written()
    desk.topics_changed(topics(orders=2, order_items=1, payments=2, events=1))
    epoch = a.epoch
    a.beat()
    assert (desk.written(), a.epoch) == ([], epoch)
    assert group_of(desk).at_rest(group_of(desk).members["a"])


def test_a_topic_made_while_others_are_looked_at_is_found_too(desk: Desk) -> None:
    desk.errands_held = True
    a = Consumer(desk, "a", **by("order.*")).join()
    desk.topics_changed(topics(orders=2, orders_eu=1))
    desk.topics_changed(topics(orders=2, orders_eu=1, orders_us=1))
    desk.errands_held = False
    a.beat()
    assert set(a.beat().owned) == {"orders", "orders_eu", "orders_us"}


def test_a_topic_that_was_just_found_is_kept_when_others_are_looked_at(desk: Desk) -> None:
    """K848-112: the next look begins before what the last one has found is in the log."""
    a = settled(desk, "a", **by("order.*"))[0]
    desk.errands_held = True
    desk.topics_changed(topics(orders=2, order_items=1, orders_eu=1))
    desk.topics_changed(topics(orders=2, order_items=1, orders_eu=1, events=1))
    desk.errands_held = False
    a.beat()
    assert group_of(desk).resolved == {"order.*": ("order_items", "orders", "orders_eu")}
    assert set(a.beat().owned) == {"orders", "order_items", "orders_eu"}


def test_a_topic_that_is_deleted_and_made_anew_is_read_again(desk: Desk) -> None:
    a = settled(desk, "a", **by("order.*"))[0]
    desk.topics_changed(topics(payments=2))
    a.beat()
    assert a.beat().owned == {}
    desk.topics_changed(topics(payments=2, orders=3))
    a.beat()
    assert a.beat().owned == {"orders": [0, 1, 2]}


def test_a_new_expression_of_another_member_is_resolved_at_once(desk: Desk) -> None:
    a = settled(desk, "a", **by("orders"))[0]
    b = Consumer(desk, "b", **by("pay.*")).join()
    assert b.beat().owned == {"payments": [0, 1]}
    assert a.beat().owned == {"orders": [0, 1]}


def test_one_that_is_resolved_already_gives_a_share_at_once(desk: Desk) -> None:
    settled(desk, "a", **by("order.*"))
    answer = beat(desk, "b", 0, **by("order.*"))
    assert answer.member_epoch == group_of(desk).group_epoch


def test_who_replaces_its_expression_gives_up_first(desk: Desk) -> None:
    a = settled(desk, "a", **by("order.*"))[0]
    desk.written()
    a.beat(subscribed_topic_regex="pay.*")
    assert a.owned == {}
    assert kinds(desk.written()) == ["member", "-regex", "current"]
    a.beat()
    assert kinds(desk.written())[-2:] == ["regex", "epoch"]
    assert a.beat().owned == {"payments": [0, 1]}


def test_the_last_one_to_leave_takes_the_topics_along(desk: Desk) -> None:
    settled(desk, "a", "b", **by("order.*"))
    beat(desk, "a", -1)
    assert group_of(desk).resolved
    desk.written()
    beat(desk, "b", -1)
    assert kinds(desk.written()) == [
        "-current",
        "-target",
        "-member",
        "-regex",
        "epoch",
        "target epoch",
    ]
    assert group_of(desk).resolved == {}
    desk.wait(700_000)
    assert not desk.driver.tasks


def test_what_nobody_wants_any_more_is_not_written(desk: Desk) -> None:
    desk.errands_held = True
    beat(desk, "a", 0, **by("order.*"))
    beat(desk, "a", -1)
    desk.written()
    desk.run_errands()
    assert desk.written() == []


def test_a_group_that_is_gone_wants_nothing(desk: Desk) -> None:
    desk.errands_held = True
    beat(desk, "a", 0, **by("order.*"))
    task = desk.driver.tasks[0]
    desk.shard.groups.remove("g")
    assert finished(desk.shard, task, {"order.*": ("orders",)}, desk.now).records == []


def test_an_expression_without_topics_raises_nothing(desk: Desk) -> None:
    a = Consumer(desk, "a", **by("nothing.*")).join()
    assert kinds(desk.log)[-1] == "regex"
    a.beat()
    assert (a.epoch, group_of(desk).state) == (1, "Stable")
    assert group_of(desk).at_rest(group_of(desk).members["a"])


def test_what_a_replaced_expression_has_named_goes_to_those_who_still_read_it(desk: Desk) -> None:
    """The new one names nothing, and the group reads the topics that it has read before. Kafka
    leaves what the member gives up without an owner.
    """
    a = settled(desk, "a", **by("orders"))[0]
    b = Consumer(desk, "b", names=["orders"]).join()
    for one in (a, b, a, b):
        one.beat()
    assert sorted(a.owned["orders"] + b.owned["orders"]) == [0, 1]

    a.beat(subscribed_topic_regex="nothing.*")
    for one in (a, b, a, b):
        one.beat()
    assert (a.owned, b.owned) == ({}, {"orders": [0, 1]})


def test_the_topics_survive_a_restart_and_are_looked_at_again(desk: Desk) -> None:
    a = settled(desk, "a", **by("order.*"))[0]
    live = state_of(desk)
    desk.restart()
    assert state_of(desk) == live

    desk.topics_changed(topics(orders=2, orders_eu=1))  # nobody has asked since the start
    assert not desk.driver.tasks
    a.beat()
    assert set(a.beat().owned) == {"orders", "orders_eu"}


@pytest.mark.parametrize("step", range(6))
def test_a_restart_at_any_step_loses_nothing(desk: Desk, step: int) -> None:
    """K848-122: also between a heartbeat and the end of its resolution."""
    desk.errands_held = True
    a = Consumer(desk, "a", **by("order.*"))
    steps = [a.join, desk.run_errands, a.beat, a.beat, desk.run_errands, a.beat]
    for one in steps[: step + 1]:
        one()
    before = state_of(desk)
    desk.restart()
    assert state_of(desk) == before
    desk.errands_held = False
    for _ in range(4):
        a.beat()
    assert a.owned == {"orders": [0, 1], "order_items": [0]}


def test_an_errand_of_the_last_life_is_forgotten(desk: Desk) -> None:
    desk.errands_held = True
    beat(desk, "a", 0, **by("order.*"))
    driver, task = desk.driver, desk.driver.tasks[0]
    driver.resign("its node is gone")
    driver.start_loading()
    driver.load_some(desk.now)
    driver.task_done(task, {"order.*": ("orders",)})
    driver.turn(desk.now)
    assert group_of(desk).resolved == {}


def test_everything_is_looked_at_again_now_and_then(desk: Desk) -> None:
    """K848-126."""
    settled(desk, "a", **by("order.*"))
    desk.errands_held = True
    desk.wait(600_000)
    assert [one.key for one in desk.driver.tasks] == []  # the member was silent, and is gone

    a = Consumer(desk, "a", **by("order.*")).join()
    desk.run_errands()
    for _ in range(15):
        desk.wait(40_000)
        a.beat()
    assert len(desk.driver.tasks) == 1


def test_a_failure_is_told_and_the_group_goes_on(desk: Desk) -> None:
    desk.errands_held = True
    a = Consumer(desk, "a", **by("order.*")).join()
    task = desk.driver.tasks.popleft()
    desk.driver.task_done(task, TimeoutError("too long"))
    a.beat()
    (line,) = desk.told_lines.warnings
    assert line == "group g: its regular expressions cannot be resolved: too long"
    assert group_of(desk).resolved == {}


def test_a_failure_keeps_nobody_without_topics_for_long(desk: Desk) -> None:
    """The members are at rest without any, and their heartbeats ask for nothing."""
    desk.errands_held = True
    a = Consumer(desk, "a", **by("order.*")).join()
    desk.driver.task_done(desk.driver.tasks.popleft(), TimeoutError("too long"))
    desk.wait(0)
    a.beat()
    assert not desk.driver.tasks, "it would fail again, at each heartbeat"
    desk.wait(30_000)
    desk.run_errands()
    assert a.beat().owned


def test_a_refused_expression_is_told_once_for_each_group(desk: Desk) -> None:
    """A client hides the reason, and sends the same again and again."""
    for _ in range(3):
        beat(desk, "a", 0, **by("orders-(\\d)-\\1"))
    beat(desk, "a", 0, **by("(" * 5000))
    first, second = desk.told_lines.lines
    told = "group g: client app subscribes by the pattern '{}', which is refused: {}".format
    assert first == told("orders-(\\d)-\\1", "invalid escape sequence")
    assert second == told("(" * 100, "expression too large, 5000 characters, at most 4096")


def test_not_all_refused_expressions_are_remembered(desk: Desk) -> None:
    for number in range(expressions.REFUSED_MOST + 1):
        beat(desk, "a", 0, **by(f"({number}"))
    assert len(desk.shard.refused_expressions) == expressions.REFUSED_MOST


def test_more_topics_than_a_record_has_room_for_are_told(desk: Desk) -> None:
    desk.shard.record_limit = lambda: 220
    a = Consumer(desk, "a", **by(".*")).join()
    a.beat()
    (warning,) = desk.told_lines.warnings
    assert warning.startswith("group g: the expression '.*' names 3 topics")
    assert group_of(desk).resolved == {}


def test_describe_shows_the_expression(desk: Desk) -> None:
    settled(desk, "a", **by("order.*"))
    asked = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    (group,) = desk.told(asked, 1).groups
    (member,) = group.members
    assert (member.subscribed_topic_regex, member.subscribed_topic_names) == ("order.*", [])
    assert {one.topic_name for one in member.assignment.topic_partitions} == {
        "orders",
        "order_items",
    }
