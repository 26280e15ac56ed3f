"""A classic group by itself: who supports what, the vote, what may follow what,
what the log restores.
"""

import pytest
from tests.coordinator.classics import SUBSCRIBED, heartbeat
from tests.coordinator.desk import START, Desk

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import ClassicMember, subscribed_topics
from kohort.coordinator.classic.records import creation_record, tombstone
from kohort.coordinator.effects import Client
from kohort.errors import ApiError, Broken, ErrorCode
from kohort.records.codec import Record
from kohort.records.consumer_protocol import ConsumerProtocolSubscription, encode
from kohort.records.schemas import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kohort.terms import GroupId, GroupState, GroupType, MemberId


def group_of(*members: dict[str, bytes], protocol_type: str = "consumer") -> ClassicGroup:
    group = ClassicGroup(GroupId("g"), START)
    group.protocol_type = protocol_type
    for number, protocols in enumerate(members):
        group.add(member(f"m{number}", protocols))
    return group


def member(
    member_id: str, protocols: dict[str, bytes], instance_id: str | None = None
) -> ClassicMember:
    return ClassicMember(
        MemberId(member_id),
        instance_id,
        Client("app", "/127.0.0.1"),
        rebalance_timeout_ms=60_000,
        session_timeout_ms=10_000,
        protocols=protocols,
    )


def names(*protocols: str) -> dict[str, bytes]:
    return dict.fromkeys(protocols, SUBSCRIBED)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param([names("range")], "range", id="no choice"),
        pytest.param([names("sticky", "range")], "sticky", id="the first of one"),
        pytest.param([names("sticky", "range"), names("range")], "range", id="common to all"),
        pytest.param([names("a", "b"), names("b", "a"), names("b", "a")], "b", id="most votes"),
        pytest.param(
            [names("x", "a", "b"), names("y", "a", "b"), names("b", "a")],
            "a",
            id="votes go to the first that all support",
        ),
        pytest.param([names("a", "b"), names("b", "a")], "a", id="a tie"),
    ],
)
def test_vote(members, expected):
    assert group_of(*members).vote() == expected


@pytest.mark.parametrize(
    ("preferences", "expected"),
    [
        (["roundrobin", "range"], "range"),
        (["range", "roundrobin"], "range"),
        (["range", "sticky"], "sticky"),
        (["cooperative-sticky", "roundrobin"], "roundrobin"),
        (["cooperative-sticky", "roundrobin", "range", "sticky"], "sticky"),
    ],
)
def test_a_tie_goes_to_the_first_in_the_order_of_upstreams_hash_table(preferences, expected):
    members = [names(first, *set(preferences).difference([first])) for first in preferences]
    assert group_of(*members).vote() == expected
    assert group_of(*reversed(members)).vote() == expected


def test_vote_without_a_common_protocol_is_broken():
    with pytest.raises(Broken, match="no protocol in common"):
        group_of(names("a"), names("b")).vote()


@pytest.mark.parametrize(
    ("members", "protocol_type", "protocols", "expected"),
    [
        pytest.param([], "connect", names("x"), True, id="empty takes any type"),
        pytest.param([], "", names("x"), False, id="empty needs a type"),
        pytest.param([], "connect", {}, False, id="empty needs a protocol"),
        pytest.param([names("a", "b")], "consumer", names("b"), True, id="one in common"),
        pytest.param([names("a")], "consumer", names("b"), False, id="none in common"),
        pytest.param([names("a")], "connect", names("a"), False, id="another type"),
        pytest.param(
            [names("a", "b"), names("b")], "consumer", names("a"), False, id="common to some"
        ),
        pytest.param([names("a")], "consumer", {}, False, id="no protocols"),
    ],
)
def test_supports(members, protocol_type, protocols, expected):
    group = group_of(*members)
    if members:
        group.become_preparing(START)
    assert group.supports(protocol_type, protocols) is expected


def test_support_is_counted_down_again():
    group = group_of(names("a"), names("a", "b"))
    group.become_preparing(START)
    group.remove(MemberId("m0"))
    assert group.supports("consumer", names("b"))
    group.change_protocols(group.members[MemberId("m1")], names("c"))
    assert not group.supports("consumer", names("b"))


def test_the_leader_is_followed_by_the_next_member():
    group = group_of(names("a"), names("a"))
    assert group.leader == "m0"
    group.remove(MemberId("m0"))
    assert group.leader == "m1"
    group.remove(MemberId("m1"))
    assert group.leader is None


def test_illegal_transition_is_broken():
    group = group_of(names("a"))
    with pytest.raises(Broken, match="is Empty, from where it cannot become Stable"):
        group.become_stable(START, {})


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param(SUBSCRIBED, ["orders"], id="v3"),
        pytest.param(b"\0\0" + SUBSCRIBED[2:], ["orders"], id="v0 with bytes behind it"),
        pytest.param(b"\0\x63" + SUBSCRIBED[2:], ["orders"], id="v99"),
        pytest.param(
            encode(ConsumerProtocolSubscription(topics=[], owned_partitions=[])), [], id="none"
        ),
        pytest.param(b"", None, id="nothing"),
        pytest.param(b"\0", None, id="half a version"),
        pytest.param(b"\xff\xff junk", None, id="negative version"),
        pytest.param(b"\0\0\xff\xff\xff\xff", None, id="negative length"),
        pytest.param(b"\0\0\x7f\xff\xff\xff", None, id="a length beyond the bytes"),
        pytest.param(SUBSCRIBED[:9], None, id="cut"),
    ],
)
def test_subscribed_topics(metadata, expected):
    assert subscribed_topics(metadata) == expected


def test_one_lying_subscription_makes_every_topic_subscribed():
    group = group_of(names("a"), {"a": b"\0\0\x7f\xff\xff\xff"})
    group.become_preparing(START)
    group.become_completing(START)
    assert group.subscribes_to("orders")
    assert group.subscribes_to("whatever")


def test_identity_of_static_members():
    group = group_of()
    group.add(member("m", names("a"), "i"))
    assert group.check_identity(MemberId("m"), "i").id == "m"
    assert group.check_identity(MemberId("m"), None).id == "m"
    for member_id, instance_id, code in (
        ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m", "j", ErrorCode.UNKNOWN_MEMBER_ID),
        ("x", "i", ErrorCode.FENCED_INSTANCE_ID),
    ):
        with pytest.raises(ApiError) as refused:
            group.check_identity(MemberId(member_id), instance_id)
        assert refused.value.code == code


def value(**fields) -> GroupMetadataValue:
    one = MemberMetadata(
        member_id="m-1",
        group_instance_id="i-1",
        client_id="app",
        client_host="/127.0.0.1",
        rebalance_timeout=-1,
        session_timeout=10_000,
        subscription=SUBSCRIBED,
        assignment=b"all",
    )
    return GroupMetadataValue(
        **{
            "protocol_type": "consumer",
            "generation": 7,
            "protocol": "range",
            "leader": "m-1",
            "current_state_timestamp": 5,
            "members": [one],
            **fields,
        }
    )


def test_the_log_restores_a_group_with_its_static_members():
    desk = Desk()
    desk.write(Record(GroupMetadataKey(group="g"), value()), live=False)
    desk.restart()
    group = desk.shard.groups.classic(GroupId("g"))
    assert (group.type, group.state, group.generation) == (GroupType.CLASSIC, GroupState.STABLE, 7)
    assert (group.leader, group.protocol, group.state_timestamp) == ("m-1", "range", 5)
    one = group.members[MemberId("m-1")]
    assert one.rebalance_timeout_ms == one.session_timeout_ms == 10_000  # value v0 has only one
    assert one.assignment == b"all"
    assert group.instances == {"i-1": "m-1"}
    assert group.subscribes_to("orders")
    assert not group.subscribes_to("payments")
    assert heartbeat(desk, "m-1", 7) == ErrorCode.NONE
    assert heartbeat(desk, "m-1", 7, group_instance_id="i-1") == ErrorCode.NONE


def test_a_restored_member_has_one_session_to_show_up():
    desk = Desk()
    desk.write(Record(GroupMetadataKey(group="g"), value()), live=False)
    desk.restart()
    desk.wait(9_999)
    assert heartbeat(desk, "m-1", 7) == ErrorCode.NONE
    desk.wait(10_000)
    assert heartbeat(desk, "m-1", 7) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.shard.groups.classic(GroupId("g")).state is GroupState.EMPTY
    assert desk.log[-1].value.members == []


def test_a_protocol_of_null_is_tolerated():
    desk = Desk()
    desk.write(Record(GroupMetadataKey(group="g"), value(protocol=None, leader=None)), live=False)
    desk.restart()
    assert desk.shard.groups.classic(GroupId("g")).subscribes_to("anything")


def test_groups_above_a_lowered_limit_rebalance_after_loading():
    desk = Desk(group_max_size=1)
    desk.write(
        Record(
            GroupMetadataKey(group="g"),
            value(
                members=[
                    *value().members,
                    MemberMetadata(
                        member_id="m-2",
                        client_id="app",
                        client_host="/127.0.0.1",
                        session_timeout=10_000,
                        subscription=SUBSCRIBED,
                        assignment=b"",
                    ),
                ]
            ),
        ),
        live=False,
    )
    desk.restart()
    assert desk.shard.groups.classic(GroupId("g")).state is GroupState.PREPARING_REBALANCE


def test_tombstones_end_groups_and_may_name_none():
    desk = Desk()
    desk.write(
        tombstone(GroupId("other")),
        creation_record(GroupId("g"), START),
        creation_record(GroupId("h"), START),
        tombstone(GroupId("g")),
        live=False,
    )
    desk.restart()
    assert [group.id for group in desk.shard.groups] == ["h"]
