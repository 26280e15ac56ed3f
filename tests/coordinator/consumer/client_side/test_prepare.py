# SPDX-License-Identifier: Apache-2.0
"""What the member that was asked is told, and what it may not ask."""

import re

import pytest
from tests.coordinator.assigning import Assigner, group_of, offer, part, settle, share
from tests.coordinator.consumers import beat, settled
from tests.coordinator.desk import Desk, topic_id, topics

from kohort.errors import ErrorCode
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

ORDERS, PAYMENTS = topic_id("orders"), topic_id("payments")


def asked(desk, *offers, member_id="a", **fields):
    """A member that has just been asked."""
    one = Assigner(desk, member_id, *offers, **fields).join()
    assert one.asked
    return one


def test_everything_that_an_assignor_needs_comes_from_the_coordinator():
    """K848-061, K848-143, K848-144, K848-145, K848-146, K848-147."""
    desk = Desk()
    one = asked(desk, offer(reason=4, metadata=b"\0\xff"), rack_id="r", instance_id="i")
    settle(one)
    two = Assigner(desk, "b", offer(metadata=b"two"), names=["payments", "orders", "nowhere"])
    assert two.join().asked
    prepared = two.prepare()
    assert (prepared.error_code, prepared.error_message) == (0, None)
    assert (prepared.group_epoch, prepared.assignor_name) == (3, "x")
    first, second = prepared.members
    assert (first.member_id, first.member_epoch, first.instance_id, first.rack_id) == (
        *("a", 2),
        *("i", "r"),
    )
    assert (second.member_id, second.member_epoch, second.instance_id, second.rack_id) == (
        *("b", 2),
        *(None, None),
    )
    assert first.subscribed_topic_ids == [ORDERS]
    assert second.subscribed_topic_ids == [ORDERS, PAYMENTS]
    said = first.assignor
    assert (said.reason, said.metadata_version, said.metadata_bytes) == (4, 0, b"\0\xff")
    assert second.assignor.metadata_bytes == b"two"
    assert [(one.topic_id, one.partitions) for one in first.topic_partitions] == [
        (ORDERS, [0, 1, 2, 3])
    ]
    assert second.topic_partitions == []
    assert [(one.topic_id, one.topic_name, one.num_partitions) for one in prepared.topics] == [
        (ORDERS, "orders", 4),
        (PAYMENTS, "payments", 2),
    ]


def test_the_target_is_told_and_not_what_members_have():
    """K848-145: the first one still has all partitions, and is meant to have half of them."""
    desk = Desk()
    one, two = asked(desk), Assigner(desk, "b")
    settle(one)
    two.join()
    two.compute(*share(two.prepare()))
    three = Assigner(desk, "c").join()
    assert three.asked
    told = {one.member_id: one.topic_partitions for one in three.prepare().members}
    assert [part.partitions for part in told["a"]] == [[0, 2]]
    assert list(group_of(desk).members["a"].assigned[ORDERS]) == [0, 1, 2, 3]


def test_the_same_epoch_gives_the_same_answer_and_writes_nothing():
    """K848-061."""
    desk = Desk()
    one = asked(desk)
    written = len(desk.log)
    assert one.prepare() == one.prepare()
    assert len(desk.log) == written


def test_the_last_answer_is_what_counts():
    """K848-061, K848-066."""
    desk = Desk()
    one = asked(desk)
    one.prepare()
    Assigner(desk, "b").join()
    assert [member.member_id for member in one.prepare().members] == ["a", "b"]
    assert one.install(2, part("a", {})).error_code == ErrorCode.STALE_MEMBER_EPOCH
    assert one.install(3, part("b", {"orders": [0]})).error_code == 0


def test_the_version_that_all_read_is_told():
    """K848-070."""
    desk = Desk()
    one = asked(desk, offer("x", 1, 3))
    Assigner(desk, "b", offer("x", 1, 2)).join()
    assert one.prepare().metadata_version == 2


def test_a_pattern_is_told_as_topics():
    """K848-145."""
    desk = Desk(known=topics(orders=2, payments=1, other=1))
    fields = {"names": [], "subscribed_topic_regex": "(orders|pay.*)"}
    one = Assigner(desk, "a", **fields).join()
    one.beat()
    assert one.asked
    [told] = one.prepare().members
    assert sorted(told.subscribed_topic_ids) == sorted([ORDERS, PAYMENTS])


REFUSED = {
    "GroupId can't be empty": ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    "MemberId can't be empty": ({"member_id": " "}, ErrorCode.INVALID_REQUEST),
    "Group nowhere not found": ({"group_id": "nowhere"}, ErrorCode.GROUP_ID_NOT_FOUND),
    "Group classic is not a consumer group": (
        {"group_id": "classic"},
        ErrorCode.GROUP_ID_NOT_FOUND,
    ),
    "Member z is not a member of group g": ({"member_id": "z"}, ErrorCode.UNKNOWN_MEMBER_ID),
    "member a is at epoch 1, request says 2": ({"member_epoch": 2}, ErrorCode.STALE_MEMBER_EPOCH),
    "member a is at epoch 1, request says 0": ({"member_epoch": 0}, ErrorCode.STALE_MEMBER_EPOCH),
    "Member b of group g is not asked to compute": (
        {"member_id": "b"},
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
}


def with_a_classic_group(desk):
    request = JoinGroupRequest(
        group_id="classic",
        member_id="",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    desk.ask(request, 3)


@pytest.mark.parametrize("call", ["prepare", "install"])
@pytest.mark.parametrize("why", REFUSED)
def test_who_may_not_ask(call, why):
    """K848-158, K848-159, K848-161."""
    desk = Desk()
    one = asked(desk)
    Assigner(desk, "b").join()
    with_a_classic_group(desk)
    one.prepare()
    written = len(desk.log)
    fields, code = REFUSED[why]
    said = () if call == "prepare" else (3, part("a", {}))
    answer = getattr(one, call)(*said, **fields)
    assert ErrorCode(answer.error_code) is code
    assert re.search(re.escape(why), answer.error_message)
    assert len(desk.log) == written


def test_where_nobody_computes_nobody_may_ask():
    """K848-161."""
    desk = Desk()
    [one] = settled(desk, "a")
    assert beat(desk, "a", one.epoch).error_code == 0
    uninvited = Assigner(desk, "a")
    uninvited.epoch = one.epoch
    assert uninvited.prepare().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert uninvited.install(2, part("a", {})).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_was_picked_and_not_told_may_not_ask():
    """K848-161: its time has not begun."""
    desk = Desk()
    one = asked(desk, rebalance_timeout_ms=10_000)
    two = Assigner(desk, "b").join()
    desk.wait(10_000)
    assert not one.beat().asked  # and picks the other one by that
    assert two.prepare().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert two.beat().asked
    assert two.prepare().error_code == 0
