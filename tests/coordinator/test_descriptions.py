# SPDX-License-Identifier: Apache-2.0
"""What is kept for those who describe groups, what it has of the caller, and when it goes."""

import pytest
from tests.coordinator.assigning import offer
from tests.coordinator.classics import QUICK, commit, heartbeat, join, leave, newcomer, stable, sync
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk, topic_id, topics

from kohort.coordinator.descriptions import LIMIT_BYTES, Descriptions
from kohort.errors import ErrorCode
from kohort.machines.effects import Call, Client
from kohort.machines.topics import Topic, Topics
from kohort.wire import codec
from kohort.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kohort.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

CLIENT = Client("app", "/127.0.0.1")
UNSET = -2147483648
DESCRIBES = {DescribeGroupsResponse: range(7), ConsumerGroupDescribeResponse: range(2)}


def described(desk, version=None):
    """The description of the group, as the shard has it."""
    if desk.shard.groups.consumer("g") is None:
        request, newest = DescribeGroupsRequest(groups=["g"]), 6
    else:
        request = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
        newest = 1
    call = Call(None, request, newest if version is None else version, CLIENT)
    (reply,) = desk.shard.call(call, desk.now).replies
    assert type(reply.response) is Descriptions
    (group,) = reply.response.groups
    return group


def message_of(group, body):
    around = codec.piecewise_encoder(group.response, group.version, "groups").around(
        group.response(), 1
    )
    (message,) = codec.decode(group.response, group.version, body.join(around)).groups
    return message


def classic(size=2):
    desk = Desk(**QUICK)
    return desk, stable(desk, size)


def consumers(size=2):
    desk = Desk(group_consumer_assignment_interval_ms=0)
    names = [f"m-{number}" for number in range(size)]
    epochs = dict.fromkeys(names, 0)
    for _ in range(4):
        for name in names:
            owned = {} if epochs[name] else None
            epochs[name] = beat(desk, name, epochs[name], owned=owned or {}).member_epoch
    return desk, names


def test_a_group_that_has_not_changed_is_the_same_bytes_again():
    desk, (member, _) = classic()
    generation = desk.shard.groups.classic("g").generation
    first = described(desk)
    assert heartbeat(desk, member, generation) == 0
    commit(desk, {("orders", 0): 1}, member_id=member, generation_id_or_member_epoch=generation)
    assert described(desk) is first

    desk, (name, _) = consumers()
    first = described(desk)
    beat(desk, name, desk.shard.groups.consumer("g").members[name].epoch)
    assert described(desk) is first


CLASSIC_CHANGES = {
    "a member joins": lambda desk, _members: newcomer(desk),
    "a member leaves": lambda desk, members: leave(desk, members[1]),
    "a session ends": lambda desk, _members: desk.wait(10_000),
    "another subscription": lambda desk, members: join(desk, members[0], protocols={"range": b""}),
    "everybody joins again": lambda desk, members: [join(desk, one) for one in members],
    "the shard is read anew": lambda desk, _members: desk.restart(),
}


@pytest.mark.parametrize("change", CLASSIC_CHANGES)
def test_a_change_of_a_classic_group_is_described_at_once(change):
    desk, members = classic()
    first = described(desk)
    CLASSIC_CHANGES[change](desk, members)
    assert described(desk) is not first


def test_each_state_of_a_rebalance_is_described():
    desk, (leader, follower) = classic()
    states = [message_of(one := described(desk), one.body).group_state]
    join(desk, leader, protocols={"range": b"other"})
    states.append(message_of(one := described(desk), one.body).group_state)
    join(desk, follower)
    states.append(message_of(one := described(desk), one.body).group_state)
    group = desk.shard.groups.classic("g")
    sync(desk, group.leader, group.generation, {leader: b"new", follower: b""})
    message = message_of(one := described(desk), one.body)
    states.append(message.group_state)
    assert states == ["Stable", "PreparingRebalance", "CompletingRebalance", "Stable"]
    assert {one.member_id: one.member_assignment for one in message.members}[leader] == b"new"


def test_a_static_member_that_comes_back_is_described_under_its_new_id():
    desk = Desk(**QUICK)
    (member,) = stable(desk, group_instance_id="i")
    first = described(desk)
    successor = join(desk, group_instance_id="i").answer.member_id
    message = message_of(one := described(desk), one.body)
    assert (one is not first, member != successor) == (True, True)
    assert [one.member_id for one in message.members] == [successor]


def test_a_topic_that_is_gone_or_made_again_is_described_by_its_name_of_now():
    """KAFKA-20431: what a member has of a topic that is gone is left out."""
    desk, _ = consumers()
    names = {topic.topic_name for topic in assigned(desk)}
    assert names == {"orders"}
    first = described(desk)
    desk.topics_changed(topics(orders=4, payments=2, more=1))
    assert assigned(desk) == assigned(desk)
    desk.driver.topics_changed(Topics([Topic(topic_id("other"), "orders", 4)]), desk.now)
    assert described(desk) is not first
    assert assigned(desk) == []


def assigned(desk):
    group = described(desk)
    message = message_of(group, group.body)
    return [topic for one in message.members for topic in one.assignment.topic_partitions]


def test_settings_that_name_another_assignor_are_described():
    desk, _ = consumers()
    before = message_of(one := described(desk), one.body).assignor_name
    config = Desk(group_consumer_assignors="range").config
    desk.shard.reconfigure(config)
    after = message_of(one := described(desk), one.body).assignor_name
    assert (before, after) == ("uniform", "range")


def test_a_classic_group_is_no_consumer_group_though_it_is_described():
    """Both requests have a version 1."""
    desk, _ = classic()
    described(desk, version=1)
    request = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    (group,) = desk.told(request, 1).groups
    assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("made", "version"),
    [
        *((classic, version) for version in DESCRIBES[DescribeGroupsResponse]),
        *((consumers, version) for version in DESCRIBES[ConsumerGroupDescribeResponse]),
    ],
)
def test_what_a_caller_may_do_is_put_where_the_version_has_it(made, version):
    desk, _ = made()
    group = described(desk, version)
    assert group.response in DESCRIBES
    plain = message_of(group, group.body)
    assert plain.authorized_operations == UNSET
    if group.response is DescribeGroupsResponse and version < 3:
        return  # nobody can ask
    allowed = message_of(group, group.with_operations(0x1234567))
    assert allowed.authorized_operations == 0x1234567
    allowed.authorized_operations = UNSET
    assert allowed == plain


def test_a_group_whose_members_offer_assignors_is_described_anew():
    """K848-043: who computes for it changes without the group."""
    desk = Desk()
    beat(desk, "m", 0, owned={}, client_assignors=[offer()])
    assert described(desk) is not described(desk)
    assert desk.shard.descriptions.kept.get("g") is None


def test_there_is_an_end_of_what_is_kept():
    desk = Desk(offsets_topic_num_partitions=1 << 13, **QUICK)
    limit = LIMIT_BYTES >> 13
    for number in range(40):
        stable_group(desk, f"g-{number}")
        request = DescribeGroupsRequest(groups=[f"g-{number}"])
        assert desk.told(request, 6).groups[0].group_state == "Stable"
        assert desk.shard.descriptions.kept.bytes <= limit
    assert 5 < len(desk.shard.descriptions.kept) < 40


def stable_group(desk, group_id):
    member, _ = newcomer(desk, group_id=group_id)
    assert sync(desk, member, 1, group_id=group_id).answer.error_code == 0
