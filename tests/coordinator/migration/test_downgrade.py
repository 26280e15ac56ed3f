# SPDX-License-Identifier: Apache-2.0
"""A consumer group that only classic members are left in becomes a classic group."""

import pytest
from tests.coordinator.classics import (
    QUICK,
    commit,
    heartbeat,
    join,
    join_request,
    leave,
    sync,
    sync_request,
)
from tests.coordinator.consumers import Consumer, beat, kinds, request
from tests.coordinator.desk import Asked, Desk, topics
from tests.coordinator.mixed import (
    Classic,
    classic_group,
    go_on,
    leaves,
    mixed_group,
    owners,
    subscribed,
    together,
    unpacked,
)
from tests.coordinator.test_causes import of_generations

from kohort.coordinator.consumer import timers
from kohort.coordinator.migration import downgrade
from kohort.errors import ErrorCode
from kohort.machines.effects import Call, Client
from kohort.records.causes import Cause
from kohort.records.schemas import GroupMetadataKey
from kohort.terms import GroupState


def downgraded(**fields):
    """A group of one classic member that the consumer member has just left."""
    desk = Desk(**QUICK)
    (classic,), consumer = mixed_group(desk, 1, **fields)
    desk.written()
    leaves(desk, consumer)
    return desk, classic


def static_group(desk, *, epochs=True, **fields):
    """A classic member and a static one of the consumer protocol, at rest."""
    (classic,) = classic_group(desk, 1)
    consumer = Consumer(desk, "new", instance_id="i", **fields).join()
    together(desk, classic, consumer)
    return classic, consumer


def test_the_last_consumer_leaves_a_classic_group_behind():
    """K848-117: the epoch is the generation, and the group rebalances at once."""
    desk, classic = downgraded()
    group = desk.shard.groups.classic("g")
    assert (group.state, group.generation) == (GroupState.PREPARING_REBALANCE, 2)
    assert heartbeat(desk, classic.id, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    together(desk, classic)
    assert group.generation == 3


def test_the_records_are_those_of_upstream_and_one_batch():
    desk, classic = downgraded()
    records = desk.written()
    assert kinds(records) == [
        *("-current", "-current", "-target", "-target", "-target epoch"),
        *("-member", "-member", "-partitions", "-epoch", "classic"),
    ]
    *_, last = desk._batches.read(desk._batches.start, 1 << 30)
    assert int.from_bytes(last[57:61]) == len(records)
    value = records[-1].value
    (member,) = value.members
    assert (value.protocol_type, value.protocol, value.generation) == ("consumer", "range", 2)
    assert (member.member_id, member.subscription) == (classic.id, subscribed())
    assert unpacked(member.assignment) == classic.owned


@pytest.mark.parametrize(
    ("policy", "converts"), [("upgrade", False), ("downgrade", True), ("bidirectional", True)]
)
def test_the_policy_decides(policy, converts):
    """K848-117: else the group goes on as a consumer group of classic members alone."""
    desk = Desk(**QUICK)
    Consumer(desk, "new").join()
    desk = desk.beside(**QUICK, group_consumer_migration_policy=policy)
    consumer = Consumer(desk, "new")
    consumer.epoch, consumer.owned = 2, {"orders": [0, 1, 2, 3]}
    classic = Classic(desk).join()
    together(desk, classic, consumer)
    leaves(desk, consumer)
    assert (desk.shard.groups.classic("g") is not None) is converts
    together(desk, classic)


@pytest.mark.parametrize("how", ["leave", "removed", "session", "revocation"])
def test_whatever_ends_the_last_consumer_converts_the_group(how):
    desk = Desk(**QUICK)
    classics, consumer = mixed_group(desk, 2, session_timeout_ms=1_000_000)
    if how == "leave":
        leaves(desk, consumer)
    elif how == "removed":
        leave(desk, consumer.id)
    elif how == "session":
        desk.wait(45_001)
    else:
        consumer.beat(names=[], rebalance_timeout_ms=1_000)
        assert desk.shard.groups.consumer("g").members["new"].revoking
        desk.wait(1_001)
    together(desk, *classics)
    assert desk.shard.groups.classic("g") is not None


def test_a_classic_member_that_goes_does_not_convert_a_mixed_group():
    desk = Desk(**QUICK)
    (first, second), consumer = mixed_group(desk, 2)
    leave(desk, first.id)
    together(desk, second, consumer)
    assert desk.shard.groups.consumer("g") is not None


def test_the_last_of_all_leaves_an_empty_consumer_group():
    desk = Desk(**QUICK)
    (classic,), consumer = mixed_group(desk, 1)
    leave(desk, classic.id, consumer.id)
    group = desk.shard.groups.consumer("g")
    assert group.state is GroupState.EMPTY


def test_a_group_that_would_be_too_large_stays_a_consumer_group():
    desk = Desk(**QUICK, group_max_size=2)
    Consumer(desk, "new").join()
    classics = [Classic(desk).join() for _ in range(3)]
    leaves(desk, Consumer(desk, "new"))
    together(desk, *classics)
    assert desk.shard.groups.consumer("g").classic_members == 3
    leave(desk, classics.pop().id)
    together(desk, *classics)
    assert desk.shard.groups.classic("g") is not None


def test_a_group_that_no_batch_can_hold_stays_a_consumer_group():
    desk = Desk(**QUICK)
    classics, consumer = mixed_group(desk, 2)
    desk.shard.record_limit = lambda: 1000
    leaves(desk, consumer)
    assert desk.shard.groups.consumer("g").classic_members == 2
    together(desk, *classics)


def test_a_group_that_is_much_too_large_is_not_made_in_vain(monkeypatch):
    """With thousands of members that takes long, and they may all fall silent in one turn."""
    desk = Desk(**QUICK)
    classics, consumer = mixed_group(desk, 4)
    desk.shard.record_limit = lambda: 1000
    made = []
    monkeypatch.setattr(downgrade, "ClassicGroup", lambda *given: made.append(given))
    leaves(desk, consumer)
    leave(desk, classics.pop().id)
    together(desk, *classics)
    assert made == []


def test_every_member_keeps_all_that_it_offers():
    """A record tells of one assignor; the group can still choose another one."""
    desk = Desk(**QUICK)
    first = Classic(desk, "range", "roundrobin").join()
    consumer = Consumer(desk, "new").join()
    second = Classic(desk, "roundrobin", "range").join()
    third = Classic(desk, "roundrobin", "range").join()
    together(desk, first, second, third, consumer)
    leaves(desk, consumer)
    group = desk.shard.groups.classic("g")
    assert group.protocol == "roundrobin"
    assert list(group.members[first.id].protocols) == ["range", "roundrobin"]
    assert join(desk, protocols={"range": subscribed()}).answer.error_code == (
        ErrorCode.MEMBER_ID_REQUIRED
    )


def test_an_old_generation_has_to_join_again():
    """A member that had not come to the last epoch missed something."""
    desk = Desk(**QUICK)
    (classic,), _ = mixed_group(desk, 1)
    beat(desk, "newer", 0)
    for member_id in ("newer", "new"):
        leaves(desk, Consumer(desk, member_id))
    assert desk.shard.groups.classic("g").generation == 4
    assert heartbeat(desk, classic.id, 2) == ErrorCode.ILLEGAL_GENERATION
    member = {"member_id": classic.id, "generation_id_or_member_epoch": 2}
    code = ErrorCode.ILLEGAL_GENERATION
    assert commit(desk, {("orders", 0): 4}, **member) == {("orders", 0): code}
    together(desk, classic)


def test_commits_of_the_generation_go_on_and_offsets_stay():
    desk = Desk(**QUICK)
    (classic,), consumer = mixed_group(desk, 1)
    member = {"member_id": classic.id, "generation_id_or_member_epoch": 2}
    assert commit(desk, {("orders", 0): 3}, **member) == {("orders", 0): 0}
    leaves(desk, consumer)
    assert desk.shard.offsets.holds("g", "orders", 0)
    assert commit(desk, {("orders", 0): 4}, **member) == {("orders", 0): 0}


def test_deadlines_of_the_consumer_group_end_and_sessions_go_on():
    desk, _ = downgraded(session_timeout_ms=10_000)
    kept = {key[0] for key in desk.shard.deadlines._deadlines if "g" in key}
    assert not kept & {timers.SESSION, timers.REVOCATION, timers.JOIN, timers.SYNC}
    desk.wait(10_001)
    assert desk.shard.groups.classic("g").state is GroupState.EMPTY


def test_the_log_says_why():
    desk, classic = downgraded()
    together(desk, classic)
    *_, conversion, outcome = of_generations(desk)
    assert [one.cause for one in conversion] == [Cause.MIGRATION, Cause.LEAVE]
    assert [one.cause for one in outcome] == [Cause.MIGRATION]


def test_a_crash_before_the_rebalance_does_not_forget_it():
    """The partitions of the member that has gone would never be read again."""
    desk, classic = downgraded()
    desk.restart()
    group = desk.shard.groups.classic("g")
    assert group.state is GroupState.PREPARING_REBALANCE
    together(desk, classic)
    generation = desk.shard.groups.classic("g").generation
    desk.restart()
    assert desk.shard.groups.classic("g").state is GroupState.STABLE
    assert heartbeat(desk, classic.id, generation) == ErrorCode.NONE


def test_a_static_classic_member_takes_over_and_nobody_rebalances():
    """K848-107, K848-117: the answer names nobody as the leader, and what the successor gets is
    what the other had.
    """
    desk = Desk(**QUICK)
    classic, consumer = static_group(desk)
    desk.written()
    answer = join(desk, group_instance_id="i", protocols={"range": subscribed()}).answer
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 2, "")
    assert (answer.protocol_name, answer.members) == ("range", [])
    assert kinds(desk.written())[-1] == "classic"
    group = desk.shard.groups.classic("g")
    assert (group.state, group.generation) == (GroupState.STABLE, 2)
    got = sync(desk, answer.member_id, 2, group_instance_id="i").answer
    assert unpacked(got.assignment) == consumer.owned
    assert heartbeat(desk, classic.id, 2) == ErrorCode.NONE
    gone = beat(desk, "new", 2, instance_id="i")
    assert gone.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    desk.restart()
    assert desk.shard.groups.classic("g").state is GroupState.STABLE
    assert heartbeat(desk, answer.member_id, 2, group_instance_id="i") == ErrorCode.NONE


def test_a_static_member_that_is_away_is_taken_over_too():
    desk = Desk(**QUICK)
    classic, consumer = static_group(desk)
    beat(desk, "new", -2, instance_id="i")
    again = Classic(desk, group_instance_id="i").join()
    assert again.owned == consumer.owned
    together(desk, classic, again)
    assert desk.shard.groups.classic("g").generation == 2


@pytest.mark.parametrize("change", ["subscription", "reconciling", "regex"])
def test_a_group_that_is_not_at_rest_rebalances(change):
    """Two members must not read the same: who is still to give up joins first."""
    desk = Desk(**QUICK)
    fields = {"subscribed_topic_regex": "ord.*"} if change == "regex" else {}
    classic, consumer = static_group(desk, **fields)
    fields = {"topics": ["orders", "payments"]} if change == "subscription" else {}
    if change == "reconciling":
        desk.topics_changed(topics(orders=6, payments=2))
        consumer.beat()
    again = Classic(desk, group_instance_id="i", **fields)
    again.join()
    group = desk.shard.groups.classic("g")
    assert group.state is GroupState.PREPARING_REBALANCE
    generation = group.generation
    go_on([classic, again])
    assert (group.state, group.generation) == (GroupState.STABLE, generation + 1)
    assert {index for topic, index in owners([classic, again]) if topic == "orders"} == set(
        range(desk.known.by_name["orders"].partitions)
    )


def test_a_member_may_go_back_under_its_own_id():
    desk = Desk(**QUICK)
    (classic,), consumer = mixed_group(desk, 1)
    back = Classic(desk)
    back.id = consumer.id
    back.join()
    group = desk.shard.groups.classic("g")
    assert (group.state, set(group.members)) == (GroupState.STABLE, {classic.id, "new"})
    together(desk, classic, back)


def test_the_answer_names_the_assignor_that_the_group_has_chosen():
    """A sync that names another one is an error that ends a client."""
    desk = Desk(**QUICK)
    first = Classic(desk, "range", "roundrobin").join()
    consumer = Consumer(desk, "new", instance_id="i").join()
    second = Classic(desk, "range", "roundrobin").join()
    together(desk, first, second, consumer)
    again = Classic(desk, "roundrobin", "range", group_instance_id="i").join()
    assert again.protocol == "range"
    assert again.owned


@pytest.mark.parametrize("eager", [True, False])
def test_a_rolling_downgrade_goes_member_by_member(eager):
    """K848-116, K848-117."""
    desk = Desk(**QUICK, known=topics(orders=8))
    consumers = [Consumer(desk, f"new-{number}").join() for number in range(4)]
    together(desk, *consumers)
    classics = []
    while consumers:
        leaves(desk, consumers.pop(0))
        classics.append(Classic(desk, eager=eager).join())
        together(desk, *classics, *consumers)
    assert len(desk.shard.groups.classic("g").members) == 4


def test_leaves_and_joins_of_one_turn_find_the_group_as_it_is_by_then():
    """The driver takes several calls in one turn; the conversion is whole before the next."""
    desk = Desk(**QUICK)
    (classic,), _ = mixed_group(desk, 1)
    asked = [Asked() for _ in range(3)]
    client = Client("app", "/127.0.0.1")
    rejoin = join_request(classic.id, protocols={"range": subscribed()})
    desk.driver.submit(Call(asked[0], request("new", -1), 1, client))
    desk.driver.submit(Call(asked[1], rejoin, 9, client))
    desk.driver.submit(Call(asked[2], sync_request(classic.id, 3), 5, client))
    desk._step()
    assert asked[0].answer.error_code == 0
    assert (asked[1].answer.generation_id, asked[1].answer.leader) == (3, classic.id)
    assert asked[2].answer.error_code == 0
    assert [type(one.key) for one in desk.written()[-2:]] == [GroupMetadataKey] * 2
