# SPDX-License-Identifier: Apache-2.0
"""Static members of consumer groups: what the scenarios do not tell (KIP-345)."""

from dataclasses import replace

import pytest
from tests.coordinator.assigning import Assigner, offer
from tests.coordinator.classics import QUICK, heartbeat, join
from tests.coordinator.consumers import Consumer, beat, given, kinds, settled
from tests.coordinator.desk import Desk, topic_id
from tests.coordinator.mixed import classic_group, subscribed, together

from kohort.coordinator.consumer import timers
from kohort.coordinator.consumer.member import AWAY, Member, MemberState
from kohort.coordinator.consumer.records import current_record, member_record, target_record
from kohort.coordinator.consumer.target import Target
from kohort.errors import ErrorCode
from kohort.records.schemas import ClassicMemberMetadata
from kohort.terms import GroupId, MemberId
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest

ORDERS = topic_id("orders")


@pytest.fixture
def desk():
    return Desk()


def group_in(desk):
    return desk.shard.groups.consumer(GroupId("g"))


def session_of(desk, member_id):
    return desk.shard.deadlines.at((timers.SESSION, "g", member_id))


def test_the_instance_id_is_told(desk):
    """K848-106: what is configured is what describe shows."""
    settled(desk, "a", instance_id="i")
    answer = desk.told(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
    (member,) = answer.groups[0].members
    assert (member.member_id, member.instance_id) == ("a", "i")


def test_before_v1_the_broker_gives_the_successor_its_id(desk):
    first = beat(desk, "", 0, version=0, instance_id="i")
    beat(desk, first.member_id, -2, version=0, instance_id="i")
    second = beat(desk, "", 0, version=0, instance_id="i")
    assert (second.error_code, second.member_epoch) == (0, first.member_epoch)
    assert second.member_id != first.member_id
    assert given(second) == {"orders": [0, 1, 2, 3]}
    assert list(group_in(desk).members) == [second.member_id]


def test_a_dynamic_member_becomes_static(desk):
    """By an instance id that nobody has, and with epoch 0 (K848-106)."""
    (a,) = settled(desk, "a")
    answer = beat(desk, "a", 0, instance_id="i")
    assert answer.member_epoch == a.epoch
    assert group_in(desk).instances == {"i": "a"}


def test_a_static_member_starts_over_as_it_was(desk):
    """Epoch 0 without an instance id is that of a dynamic member; it keeps the instance id."""
    (a,) = settled(desk, "a", instance_id="i")
    for fields in ({}, {"instance_id": "i"}):
        desk.written()
        answer = beat(desk, "a", 0, **fields)
        assert (answer.error_code, answer.member_epoch) == (0, a.epoch)
        assert given(answer) == {"orders": [0, 1, 2, 3]}
        assert desk.written() == []
    assert group_in(desk).instances == {"i": "a"}


def test_who_takes_the_place_of_another_gives_up_its_own():
    """Otherwise nobody would get what it was meant to have."""
    desk = Desk(group_consumer_assignment_interval_ms=0)
    b, c = settled(desk, "b", "c")
    beat(desk, "a", 0, instance_id="i")
    beat(desk, "a", -2, instance_id="i")
    epoch = group_in(desk).group_epoch
    desk.written()

    answer = beat(desk, "b", 0, instance_id="i")

    assert answer.error_code == 0
    assert kinds(desk.written())[:4] == ["-current", "-target", "-member", "epoch"]
    assert group_in(desk).group_epoch == epoch + 1
    assert group_in(desk).instances == {"i": "b"}
    assert set(group_in(desk).members) == {"b", "c"}
    b.take(answer)
    for _ in range(3):
        for one in (b, c):
            one.beat()
    assert sorted(b.owned["orders"] + c.owned["orders"]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("member_id", "instance_id", "code"),
    [
        ("b", "i", ErrorCode.NONE),
        ("a", "i", ErrorCode.NONE),
        ("b", "j", ErrorCode.GROUP_MAX_SIZE_REACHED),
        ("b", None, ErrorCode.GROUP_MAX_SIZE_REACHED),
    ],
)
def test_a_full_group_takes_back_who_holds_an_instance_id(member_id, instance_id, code):
    """It takes no place beside itself (KAFKA-20601)."""
    desk = Desk(group_consumer_max_size=1)
    settled(desk, "a", instance_id="i")
    beat(desk, "a", -2, instance_id="i")
    assert beat(desk, member_id, 0, instance_id=instance_id).error_code == code


def test_the_session_of_who_is_away_goes_on(desk):
    """K848-107: going away is no sign of life, and saying so again is none either."""
    settled(desk, "a", instance_id="i")
    ends = session_of(desk, "a")
    for _ in range(2):
        desk.wait(1000)
        beat(desk, "a", -2, instance_id="i")
    assert session_of(desk, "a") == ends
    desk.wait(45_000)
    assert group_in(desk).members == {}
    assert group_in(desk).held == {}


def test_a_successor_begins_a_session_and_ends_the_one_before(desk):
    settled(desk, "a", instance_id="i")
    beat(desk, "a", -2, instance_id="i")
    desk.wait(40_000)
    beat(desk, "b", 0, instance_id="i")
    assert session_of(desk, "a") is None
    assert session_of(desk, "b") == desk.now + 45_000


def test_who_goes_away_gives_up_at_once_what_it_had_to_give_up(desk):
    """Others must not wait for somebody who has nothing left to say."""
    (a,) = settled(desk, "a", instance_id="i")
    desk.wait(1000)
    answer = beat(desk, "b", 0)
    beat(desk, "a", a.epoch, owned=a.owned, instance_id="i")
    assert group_in(desk).members["a"].state is MemberState.UNREVOKED_PARTITIONS

    beat(desk, "a", -2, instance_id="i")

    assert (timers.REVOCATION, "g", "a") not in desk.shard.deadlines
    assert given(beat(desk, "b", answer.member_epoch)) == {"orders": [2, 3]}
    back = beat(desk, "c", 0, instance_id="i")
    assert (back.member_epoch, given(back)) == (answer.member_epoch, {"orders": [0, 1]})


def test_a_heartbeat_that_names_the_instance_is_as_quiet_as_any(desk):
    """Clients name it in every heartbeat."""
    settled(desk, "a", instance_id="i")
    group = group_in(desk)
    desk.written()
    ends = session_of(desk, "a")
    desk.wait(1000)
    answer = beat(desk, "a", group.target_epoch, instance_id="i")
    assert (answer.error_code, answer.assignment) == (0, None)
    assert desk.written() == []
    assert session_of(desk, "a") == ends + 1000


def written_by_another_broker(desk, member):
    """A group at rest whose member is as a log of Kafka has it."""
    settled(desk, "other")
    desk.write(
        member_record(GroupId("g"), member),
        target_record(GroupId("g"), member.id, Target({})),
        current_record(GroupId("g"), member),
        live=False,
    )
    desk.restart()


def test_who_was_away_in_a_loaded_log_has_a_session_and_no_other_deadline(desk):
    """Kafka keeps the state of a member that goes away, here that it had to give something up."""
    state = MemberState.UNREVOKED_PARTITIONS
    member = Member(
        MemberId("a"), "i", subscribed_names=("orders",), epoch=AWAY, previous_epoch=1, state=state
    )
    written_by_another_broker(desk, replace(member, rebalance_timeout_ms=1000))
    assert (timers.REVOCATION, "g", "a") not in desk.shard.deadlines
    desk.wait(44_999)
    assert "a" in group_in(desk).members
    desk.wait(1)
    assert group_in(desk).members == {}


def test_a_classic_member_is_replaced_without_having_left(desk):
    """KAFKA-17228: it has another protocol, and cannot leave in this one."""
    classic = ClassicMemberMetadata(session_timeout_ms=10_000, supported_protocols=[])
    member = Member(MemberId("a"), "i", subscribed_names=("orders",), classic=classic, epoch=2)
    written_by_another_broker(desk, member)
    answer = beat(desk, "b", 0, instance_id="i")
    assert answer.error_code == 0
    assert group_in(desk).instances == {"i": "b"}
    assert group_in(desk).members["b"].classic is None


TOO_MANY = [f"{'t' * 200}{number}" for number in range(6000)]


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ({"client_assignors": [offer(low=5, high=5)]}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"client_assignors": [offer(metadata=bytes(600_000))]}, ErrorCode.INVALID_REQUEST),
        ({"names": TOO_MANY}, ErrorCode.MESSAGE_TOO_LARGE),
        ({"subscribed_topic_regex": "["}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
@pytest.mark.parametrize("successor", ["a2", "c"])
def test_who_is_refused_takes_nobodys_place(desk, says, code, successor):
    """K848-107: nobody could have it back before a session is over, nor any other successor. One
    that has a place of its own keeps that, too.
    """
    for one in "abc":
        Assigner(desk, one, instance_id="i" if one == "a" else None).join()
    beat(desk, "a", -2, instance_id="i")
    before = dict(group_in(desk).members)
    desk.written()
    answer = beat(desk, successor, 0, instance_id="i", **says)
    assert answer.error_code == code
    assert (group_in(desk).members, desk.written()) == (before, [])
    assert beat(desk, "a", 0, instance_id="i").error_code == 0


def test_who_is_refused_does_not_bring_a_group_over():
    """K848-116: its classic member would be fenced by somebody who is not there."""
    desk = Desk(**QUICK)
    (classic,) = classic_group(desk, 1, group_instance_id="i")
    desk.written()
    answer = beat(desk, "a", 0, instance_id="i", names=TOO_MANY)
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert desk.written() == []
    assert heartbeat(desk, classic.id, 1, group_instance_id="i") == ErrorCode.NONE


def test_a_classic_member_that_is_refused_takes_nobodys_place():
    """K848-118: what it says has room in a record, and who says it has not."""
    desk = Desk(**QUICK)
    together(desk, Consumer(desk, "a", instance_id="i").join(), Consumer(desk, "b").join())
    before = dict(group_in(desk).members)
    desk.driver.limit_bytes = desk.shard.record_limit = lambda: 700
    says = {"range": subscribed("orders", user_data=bytes(600))}
    answer = join(desk, group_instance_id="i", protocols=says).answer
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert group_in(desk).members == before
