# SPDX-License-Identifier: Apache-2.0
"""Groups by the admin client: every broker of every age, and one entry for each thing asked."""

from copy import copy

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort.client.admin import OffsetReset
from kohort.client.network.connection_errors import RequestTimeoutError
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError
from kohort.records import consumer_protocol
from kohort.security.acls import AclOperation
from kohort.terms import GroupState, GroupType
from kohort.wire.messages import consumer_group_describe as new
from kohort.wire.messages import describe_groups as old
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kohort.wire.messages.metadata import MetadataRequest, MetadataResponse
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

TWO = {
    0: [
        ListedGroup(
            group_id="b", protocol_type="consumer", group_state="Stable", group_type="consumer"
        )
    ],
    1: [
        ListedGroup(
            group_id="c", protocol_type="connect", group_state="Empty", group_type="classic"
        ),
        ListedGroup(group_id="a", protocol_type="", group_state="Brewing", group_type="tea"),
    ],
}


def listing(asked):
    return ListGroupsResponse(groups=TWO[asked.node])


def refused(code):
    return lambda _: ListGroupsResponse(error_code=code)


# --- list


@asynchronous
async def test_every_broker_is_asked_and_the_groups_are_joined():
    """K40-04, K518-16: a state that is not known keeps its text."""
    async with (
        ScriptedCluster(2, {ListGroupsRequest: listing}) as scripted,
        scripted.admin() as admin,
    ):
        listings = await admin.list_groups()
    assert [(one.group_id, one.type, one.state, one.protocol_type) for one in listings] == [
        ("a", "tea", "Brewing", ""),
        ("b", GroupType.CONSUMER, GroupState.STABLE, "consumer"),
        ("c", GroupType.CLASSIC, GroupState.EMPTY, "connect"),
    ]
    assert listings.errors == {}
    assert len(listings) == 3
    assert sorted(one.node for one in scripted.sent("ListGroups")) == [0, 1]


@pytest.mark.parametrize(
    ("newest", "state", "kind"), [(5, "Stable", "consumer"), (4, "Stable", None), (3, None, None)]
)
@asynchronous
async def test_an_old_broker_does_not_tell_states_and_types(newest, state, kind):
    """K518-12, K518-13, K518-15: absent, not made up."""
    async with (
        ScriptedCluster(1, {ListGroupsRequest: listing}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.offer("ListGroups", f"0-{newest}")
        (group,) = await admin.list_groups()
    assert (group.group_id, group.state, group.type) == ("b", state, kind)


@asynchronous
async def test_filters_are_sent_in_the_protocols_own_spelling():
    """K518-15, K518-26."""
    async with (
        ScriptedCluster(1, {ListGroupsRequest: listing}) as scripted,
        scripted.admin() as admin,
    ):
        await admin.list_groups(states=["STABLE", " empty", "stable"], types=[GroupType.CLASSIC])
        await admin.list_groups(states="dead")
    assert scripted.names() == ["ListGroups", "ListGroups"]
    first, second = (one.request for one in scripted.sent("ListGroups"))
    assert (first.states_filter, first.types_filter) == (["Stable", "Empty"], ["classic"])
    assert (second.states_filter, second.types_filter) == (["Dead"], [])


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"states": []}, "no state is given to filter by, expected None for all"),
        ({"types": []}, "no type is given"),
        (
            {"states": ["foo"]},
            "'foo' is not a group state, expected one of PreparingRebalance, Com",
        ),
        ({"types": ["foo"]}, "expected one of classic, consumer, share, streams"),
        ({"protocols": []}, "no protocol is given to filter by, expected None for all"),
        (
            {"protocols": ["connect"], "consumers_only": True},
            "is .'connect'. beside consumers_only, expected one of them",
        ),
    ],
)
@asynchronous
async def test_filters_that_make_no_sense_are_refused(filters, message):
    """K518-14."""
    async with ScriptedCluster() as scripted, scripted.admin() as admin:
        with pytest.raises(ValueError, match=message):
            await admin.list_groups(**filters)
    assert scripted.asked == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"protocols": "connect"}, ["c"]),
        ({"protocols": ["consumer", "connect"]}, ["b", "c"]),
        ({"protocols": [""]}, ["a"]),
        ({"protocols": ["Consumer"]}, []),
        ({"consumers_only": True}, ["a", "b"]),
        ({"protocols": None, "consumers_only": False}, ["a", "b", "c"]),
    ],
)
@asynchronous
async def test_groups_are_listed_by_the_type_of_their_protocol(options, expected):
    """K40-06, K518-29: also where a broker has no filter."""
    answers = {ListGroupsRequest: listing}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        scripted.offer("ListGroups", "0")
        listings = await admin.list_groups(**options)
    assert [one.group_id for one in listings] == expected


@pytest.mark.parametrize(
    ("newest", "filters", "words"),
    [
        (3, {"states": ["Stable"]}, "v0-3; filtering by state needs v4 (KIP-518"),
        (4, {"types": ["classic"]}, "v0-4; filtering by type needs v5 (KIP-848"),
        (3, {"states": ["Stable"], "types": ["classic"]}, "filtering by type needs v5"),
    ],
)
@asynchronous
async def test_a_filter_is_never_dropped_in_silence(newest, filters, words):
    """K518-11, K848-170: nothing is sent."""
    async with (
        ScriptedCluster(2, {ListGroupsRequest: listing}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.offer("ListGroups", f"0-{newest}")
        with pytest.raises(UnsupportedVersionError) as caught:
            await admin.list_groups(**filters)
    assert words in str(caught.value)
    assert scripted.names() == []


@asynchronous
async def test_one_broker_that_is_too_old_does_not_hide_the_others():
    """K518-17."""
    async with (
        ScriptedCluster(2, {ListGroupsRequest: listing}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.nodes[1].offer("ListGroups", "0-3")
        listings = await admin.list_groups(states=["Stable"])
    assert [one.group_id for one in listings] == ["b"]
    assert list(listings.errors) == [1]
    assert listings.errors[1].code is ErrorCode.UNSUPPORTED_VERSION


@asynchronous
async def test_one_broker_that_is_down_does_not_hide_the_others():
    """K518-17."""
    async with (
        ScriptedCluster(2, {ListGroupsRequest: listing}) as scripted,
        scripted.admin() as admin,
    ):
        await scripted.stop(1)
        listings = await admin.list_groups()
        port = scripted.nodes[1].port
    assert [one.group_id for one in listings] == ["b"]
    assert listings.errors[1].message == f"cannot connect to 127.0.0.1:{port}: refused"


@asynchronous
async def test_one_broker_that_hangs_does_not_hide_the_others():
    """K518-17."""

    def answer(asked):
        return listing(asked) if asked.node == 0 else None

    async with (
        ScriptedCluster(2, {ListGroupsRequest: answer}) as scripted,
        scripted.admin(0.5) as admin,
    ):
        listings = await admin.list_groups()
    assert [one.group_id for one in listings] == ["b"]
    assert listings.errors[1].code is ErrorCode.REQUEST_TIMED_OUT


@asynchronous
async def test_a_broker_that_loads_is_asked_again():
    """K40-07."""
    answer = in_turn(refused(14), refused(15), listing)
    async with (
        ScriptedCluster(1, {ListGroupsRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        assert [one.group_id for one in await admin.list_groups()] == ["b"]
    assert len(scripted.sent("ListGroups")) == 3


@asynchronous
async def test_when_no_broker_answers_that_is_an_error():
    async with (
        ScriptedCluster(2, {ListGroupsRequest: refused(31)}) as scripted,
        scripted.admin() as admin,
    ):
        with pytest.raises(ApiError) as caught:
            await admin.list_groups()
    assert caught.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@asynchronous
async def test_a_cluster_that_names_no_brokers_is_an_error():
    async with (
        ScriptedCluster(1, {ListGroupsRequest: listing}) as scripted,
        scripted.admin(0.5) as admin,
    ):
        scripted.answers[MetadataRequest] = lambda _: MetadataResponse()
        with pytest.raises(ApiError, match="names no brokers"):
            await admin.list_groups()


# --- describe

MEMBER = new.Member(
    member_id="m",
    member_epoch=7,
    client_id="c",
    client_host="/10.0.0.1",
    subscribed_topic_names=["orders"],
    subscribed_topic_regex="",
    assignment=new.Assignment(
        topic_partitions=[new.TopicPartitions(topic_name="orders", partitions=[1, 0])]
    ),
    target_assignment=new.Assignment(
        topic_partitions=[new.TopicPartitions(topic_name="orders", partitions=[0])]
    ),
    member_type=1,
)
NEW_GROUP = new.DescribedGroup(
    group_id="new",
    group_state="Reconciling",
    group_epoch=8,
    assignment_epoch=7,
    assignor_name="uniform",
    members=[MEMBER],
)
SUBSCRIPTION = consumer_protocol.encode(
    consumer_protocol.ConsumerProtocolSubscription(topics=["orders"], owned_partitions=[])
)
ASSIGNMENT = consumer_protocol.encode(
    consumer_protocol.ConsumerProtocolAssignment(
        assigned_partitions=[consumer_protocol.TopicPartition(topic="orders", partitions=[2, 1])]
    )
)


def describe_new(asked):
    known = {"new": NEW_GROUP}
    missing = [
        new.DescribedGroup(group_id=one, error_code=69, error_message=f"Group {one} not found.")
        for one in asked.request.group_ids
        if one not in known
    ]
    found = [known[one] for one in asked.request.group_ids if one in known]
    return new.ConsumerGroupDescribeResponse(groups=[*missing, *found])


def classic(group_id, protocol_type="consumer", assignment=ASSIGNMENT, metadata=SUBSCRIPTION):
    member = old.DescribedGroupMember(
        member_id="m",
        client_id="c",
        client_host="/10.0.0.1",
        member_metadata=metadata,
        member_assignment=assignment,
    )
    return old.DescribedGroup(
        group_id=group_id,
        group_state="Stable",
        protocol_type=protocol_type,
        protocol_data="range",
        members=[member],
    )


def describe_old(asked):
    known = {
        "classic": classic("classic"),
        "connect": classic("connect", "connect", b"\x00\x01opaque", b"opaque"),
        "damaged": classic("damaged", "consumer", b"\x00\x00\xff", b"\xff"),
    }
    groups = []
    for one in asked.request.groups:
        missing = old.DescribedGroup(group_id=one, group_state="Dead")
        if asked.version >= 6:
            missing.error_code, missing.error_message = 69, f"Group {one} not found."
        groups.append(known.get(one, missing))
    return old.DescribeGroupsResponse(groups=groups)


DESCRIBE = {ConsumerGroupDescribeRequest: describe_new, DescribeGroupsRequest: describe_old}


@asynchronous
async def test_both_protocols_give_one_view():
    """K848-174, K40-31: the second call is for those only which the first does not know."""
    async with ScriptedCluster(1, DESCRIBE) as scripted, scripted.admin() as admin:
        described = await admin.describe_groups(["new", "classic"])
    assert list(described) == ["new", "classic"]
    group = described["new"]
    assert (group.type, group.state, group.assignor) == ("consumer", "Reconciling", "uniform")
    assert (group.group_epoch, group.assignment_epoch, group.coordinator_id) == (8, 7, 0)
    (member,) = group.members
    assert (member.member_epoch, member.type, member.subscribed_regex) == (7, "consumer", None)
    assert member.subscribed_topics == ("orders",)
    assert member.assignment == {"orders": (0, 1)}
    assert member.target_assignment == {"orders": (0,)}

    group = described["classic"]
    assert (group.type, group.state, group.assignor) == ("classic", "Stable", "range")
    assert (group.group_epoch, group.assignment_epoch) == (None, None)
    (member,) = group.members
    assert (member.member_epoch, member.target_assignment) == (None, None)
    assert member.assignment == {"orders": (1, 2)}
    assert scripted.names() == ["FindCoordinator", "ConsumerGroupDescribe", "DescribeGroups"]
    assert scripted.sent("DescribeGroups")[0].request.groups == ["classic"]


@pytest.mark.parametrize(
    ("asked_for", "told"),
    [(True, frozenset({AclOperation.READ, AclOperation.DESCRIBE})), (False, None)],
)
@asynchronous
async def test_what_a_client_may_do_with_a_group_is_told_when_it_is_asked_for(asked_for, told):
    """K40-33, K848-186: one option for groups of both protocols."""
    bits = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE

    def with_rights(answer):
        def describe(asked):
            answered = answer(asked)
            answered.groups = [copy(one) for one in answered.groups]
            if asked.request.include_authorized_operations:
                for one in answered.groups:
                    one.authorized_operations = bits
            return answered

        return describe

    answers = {request: with_rights(answer) for request, answer in DESCRIBE.items()}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        described = await admin.describe_groups(
            ["new", "classic"], include_authorized_operations=asked_for
        )
    assert [group.authorized_operations for group in described.succeeded.values()] == [told, told]


@asynchronous
async def test_rights_are_never_left_out_in_silence():
    """K40-33: below v3 nobody could tell them."""
    async with ScriptedCluster(1, DESCRIBE) as scripted, scripted.admin() as admin:
        scripted.offer("DescribeGroups", "0-2")
        described = await admin.describe_groups(
            ["new", "classic"], include_authorized_operations=True
        )
    assert described["new"].group_id == "new"
    assert "v0-2; authorized operations needs v3 (KIP-430, Apache Kafka 2.3)" in str(
        described.failed["classic"]
    )


@pytest.mark.parametrize(("newest", "consumer"), [(6, "0-1"), (5, "0-0"), (5, None), (0, None)])
@asynchronous
async def test_an_unknown_group_is_not_found_whatever_the_brokers_age(newest, consumer):
    """K40-13, K848-171: below v6 a broker calls it Dead."""
    async with ScriptedCluster(1, DESCRIBE) as scripted, scripted.admin() as admin:
        scripted.offer("DescribeGroups", f"0-{newest}")
        scripted.offer("ConsumerGroupDescribe", consumer)
        described = await admin.describe_groups(["nobody", "classic"])
    assert described["classic"].members[0].assignment == {"orders": (1, 2)}
    with pytest.raises(ApiError, match="GROUP_ID_NOT_FOUND: Group nobody not found"):
        described["nobody"]
    assert list(described.failed) == ["nobody"]
    assert list(described.succeeded) == ["classic"]


def not_described(group_id, by_consumer, by_classic):
    """Answers of a coordinator that knows the group as neither."""

    def answer(say, response, group):
        return lambda _: response(
            groups=[group(group_id=group_id, error_code=69, error_message=say)]
        )

    return {
        ConsumerGroupDescribeRequest: answer(
            by_consumer, new.ConsumerGroupDescribeResponse, new.DescribedGroup
        ),
        DescribeGroupsRequest: answer(by_classic, old.DescribeGroupsResponse, old.DescribedGroup),
    }


SHARE = not_described(
    "share", "Group share is not a consumer group.", "Group share is not a classic group."
)


@asynchronous
async def test_a_group_of_another_kind_is_named_as_what_it_is_not():
    """That a share group is no classic group would send one looking for it elsewhere."""
    async with ScriptedCluster(1, SHARE) as scripted, scripted.admin() as admin:
        described = await admin.describe_groups(["share"])
    assert described.failed["share"].code is ErrorCode.GROUP_ID_NOT_FOUND
    assert described.failed["share"].message == "Group share is not a consumer group."


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (SHARE, "Group share is not a consumer group."),
        (not_described("share", "Group share not found.", ""), "Group share not found."),
    ],
)
@asynchronous
async def test_a_plan_keeps_what_was_said_of_a_group_that_is_not_described(answers, message):
    answers = answers | {
        OffsetFetchRequest: lambda _: OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id="share")]
        )
    }
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        plan = await admin.plan_offset_reset("share", OffsetReset.earliest())
    assert (plan.state, plan.partitions, plan.refusal) == (GroupState.DEAD, {}, None)
    assert plan.describe_error.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert plan.describe_error.message == message


@pytest.mark.parametrize("code", [15, 16])
@asynchronous
async def test_a_group_whose_coordinator_has_moved_is_looked_up_and_described_again(code):
    """K40-21: the others are not asked for twice."""

    def moving(answer, group):
        def moved(asked):
            if asked.node == 1:
                scripted.coordinators["classic"] = scripted.coordinators["new"] = 0
                ids = getattr(asked.request, "group_ids", None) or asked.request.groups
                return type(answer(asked))(
                    groups=[group(group_id=one, error_code=code) for one in ids]
                )
            return answer(asked)

        return moved

    answers = {
        ConsumerGroupDescribeRequest: moving(describe_new, new.DescribedGroup),
        DescribeGroupsRequest: moving(describe_old, old.DescribedGroup),
    }
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        scripted.coordinators = {"classic": 1, "new": 1}
        described = await admin.describe_groups(["new", "classic", "connect"])
    assert {name: one.coordinator_id for name, one in described.all().items()} == {
        "new": 0,
        "classic": 0,
        "connect": 0,
    }
    looked_up = [one.request.coordinator_keys for one in scripted.sent("FindCoordinator")]
    assert looked_up == [["new", "classic", "connect"], ["new", "classic"]]


@asynchronous
async def test_a_group_that_one_partition_describes_and_another_denies_is_there():
    """Apache Kafka 3.9 answers for each partition of its log that has one of the groups."""

    def denied(group_id):
        return new.DescribedGroup(group_id=group_id, error_code=69, error_message="not here")

    def answer(asked):
        assert asked.request.group_ids == ["new", "classic"]
        groups = [denied("classic"), NEW_GROUP, denied("new"), denied("classic")]
        return new.ConsumerGroupDescribeResponse(groups=groups)

    answers = {ConsumerGroupDescribeRequest: answer, DescribeGroupsRequest: describe_old}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        described = (await admin.describe_groups(["new", "classic"])).all()
    assert (described["new"].type, described["classic"].type) == ("consumer", "classic")
    assert scripted.sent("DescribeGroups")[0].request.groups == ["classic"]


@asynchronous
async def test_when_classic_groups_cannot_be_described_the_others_can():
    """The second of two answers of one coordinator is no message, or does not come."""
    for spoiled, timeout in ((CLOSE, 5), (None, 2)):
        answers = {**DESCRIBE, DescribeGroupsRequest: lambda _, spoiled=spoiled: spoiled}
        async with ScriptedCluster(1, answers) as scripted, scripted.admin(timeout) as admin:
            described = await admin.describe_groups(["new", "classic"])
        assert described["new"].state == "Reconciling"
        assert list(described.failed) == ["classic"]


@asynchronous
async def test_the_group_without_a_name_is_described_by_the_old_call():
    """Offsets of simple consumers may be in it; the new call does not take its id."""

    def refused(asked):
        groups = [
            new.DescribedGroup(group_id=one, error_code=24 if one == "" else 69)
            for one in asked.request.group_ids
        ]
        return new.ConsumerGroupDescribeResponse(groups=groups)

    def described(asked):
        groups = [
            old.DescribedGroup(group_id=one, group_state="Empty") for one in asked.request.groups
        ]
        return old.DescribeGroupsResponse(groups=groups)

    answers = {ConsumerGroupDescribeRequest: refused, DescribeGroupsRequest: described}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        assert (await admin.describe_groups(""))[""].state is GroupState.EMPTY


@asynchronous
async def test_the_new_protocol_may_be_switched_off():
    def off(asked):
        groups = [
            new.DescribedGroup(group_id=one, error_code=35) for one in asked.request.group_ids
        ]
        return new.ConsumerGroupDescribeResponse(groups=groups)

    answers = {**DESCRIBE, ConsumerGroupDescribeRequest: off}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        assert (await admin.describe_groups("classic"))["classic"].state == "Stable"


@asynchronous
async def test_bytes_of_other_protocols_come_as_they_are():
    """K40-19: damaged ones of consumers too."""
    async with ScriptedCluster(1, DESCRIBE) as scripted, scripted.admin() as admin:
        described = await admin.describe_groups(["connect", "damaged"])
    (member,) = described["connect"].members
    assert not described["connect"].is_consumer
    assert (member.assignment, member.subscribed_topics) == (None, None)
    assert (member.subscription_bytes, member.assignment_bytes) == (b"opaque", b"\x00\x01opaque")
    (member,) = described["damaged"].members
    assert (member.assignment, member.subscribed_topics) == (None, None)
    assert member.assignment_bytes == b"\x00\x00\xff"


@asynchronous
async def test_a_member_that_has_nothing_yet():
    answers = {
        **DESCRIBE,
        DescribeGroupsRequest: lambda _: old.DescribeGroupsResponse(
            groups=[classic("g", assignment=b"", metadata=b"")]
        ),
    }
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        (member,) = (await admin.describe_groups(["g"]))["g"].members
    assert (member.assignment, member.subscribed_topics) == ({}, None)


@asynchronous
async def test_a_broker_without_describe_is_refused_by_name():
    """K40-24."""
    async with ScriptedCluster(1, DESCRIBE) as scripted, scripted.admin() as admin:
        scripted.offer("DescribeGroups", None)
        scripted.offer("ConsumerGroupDescribe", None)
        described = await admin.describe_groups(["g"])
    assert described.failed["g"].code is ErrorCode.UNSUPPORTED_VERSION
    assert "does not offer DescribeGroups (KIP-40" in described.failed["g"].message


# --- delete


def deletion(codes):
    def answer(asked):
        results = [
            DeletableGroupResult(group_id=one, error_code=codes.get(one, 0))
            for one in asked.request.groups_names
        ]
        return DeleteGroupsResponse(results=results)

    return answer


@asynchronous
async def test_each_group_is_deleted_or_refused_by_itself():
    """K229-15, K229-16, K229-18: one request per coordinator."""
    answers = {DeleteGroupsRequest: deletion({"busy": 68, "nobody": 69, "denied": 30})}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        scripted.coordinators = {"busy": 1, "denied": 1}
        deleted = await admin.delete_groups(["empty", "busy", "nobody", "denied", "empty"])
    assert list(deleted) == ["empty", "busy", "nobody", "denied"]
    assert deleted.succeeded == {"empty": None}
    assert {name: error.code for name, error in deleted.failed.items()} == {
        "busy": ErrorCode.NON_EMPTY_GROUP,
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
        "denied": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
    assert "group busy has members, expected none" in deleted.failed["busy"].message
    shares = {one.node: one.request.groups_names for one in scripted.sent("DeleteGroups")}
    assert shares == {0: ["empty", "nobody"], 1: ["busy", "denied"]}


@asynchronous
async def test_a_group_whose_coordinator_has_moved_is_looked_up_and_deleted():
    """K229-16."""

    def answer(asked):
        if asked.node == 1:
            scripted.coordinators["b"] = 0
            return deletion({"b": 16})(asked)
        return deletion({})(asked)

    async with (
        ScriptedCluster(2, {DeleteGroupsRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.coordinators = {"b": 1}
        deleted = await admin.delete_groups(["a", "b"])
    assert deleted.succeeded == {"a": None, "b": None}
    asked = sorted((one.node, one.request.groups_names) for one in scripted.sent("DeleteGroups"))
    assert asked == [(0, ["a"]), (0, ["b"]), (1, ["b"])]


@asynchronous
async def test_a_deletion_that_an_attempt_before_may_have_done_says_so():
    """The coordinator had written it, and then too few replicas followed."""
    answers = {DeleteGroupsRequest: in_turn(deletion({"a": 15}), deletion({"a": 69, "b": 69}))}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        deleted = await admin.delete_groups(["a"])
        never = await admin.delete_groups(["b"])
    assert deleted.failed["a"].code is ErrorCode.GROUP_ID_NOT_FOUND
    assert "it may have been deleted by the attempt before" in deleted.failed["a"].message
    assert never.failed["b"].message == "Group b not found."


@asynchronous
async def test_what_is_no_group_id_is_refused_before_sending():
    """K229-10."""
    async with ScriptedCluster() as scripted, scripted.admin() as admin:
        with pytest.raises(TypeError, match="group_ids has None, expected texts"):
            await admin.delete_groups([None])
    assert scripted.asked == []


@asynchronous
async def test_a_broker_without_delete_is_refused_by_name():
    """K229-19."""
    async with ScriptedCluster() as scripted, scripted.admin() as admin:
        scripted.offer("DeleteGroups", None)
        deleted = await admin.delete_groups(["g"])
    assert "does not offer DeleteGroups (KIP-229" in deleted.failed["g"].message


@asynchronous
async def test_a_deletion_that_may_have_arrived_is_not_sent_again():
    answers = {DeleteGroupsRequest: lambda _: CLOSE}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        deleted = await admin.delete_groups(["g"])
    assert deleted.failed["g"].code is ErrorCode.NETWORK_EXCEPTION
    assert len(scripted.sent("DeleteGroups")) == 1


@asynchronous
async def test_a_deletion_whose_look_up_has_no_answer_was_never_sent():
    """The coordinator has moved, and nobody says where to: no broker has the second request."""
    answers = {DeleteGroupsRequest: deletion({"a": 16})}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin(0.5) as admin:
        scripted.answers[FindCoordinatorRequest] = in_turn(
            scripted.answers[FindCoordinatorRequest], None
        )
        deleted = await admin.delete_groups(["a"])
    assert isinstance(deleted.failed["a"], RequestTimeoutError)
    assert not deleted.failed["a"].sent


@asynchronous
async def test_a_deletion_whose_look_up_was_lost_is_looked_up_again():
    """Only what was lost itself may have been done: a look-up changes nothing."""
    answers = {DeleteGroupsRequest: deletion({})}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        look_up = scripted.answers[FindCoordinatorRequest]
        scripted.answers[FindCoordinatorRequest] = in_turn(CLOSE, look_up)
        deleted = await admin.delete_groups(["g"])
    assert deleted["g"] is None
    assert scripted.names() == ["FindCoordinator", "FindCoordinator", "DeleteGroups"]


@asynchronous
async def test_a_deletion_whose_connection_never_stood_is_sent():
    """The coordinator closes during the handshake: the request itself was never on its way."""
    async with ScriptedCluster(2, {DeleteGroupsRequest: deletion({})}) as scripted:
        scripted.coordinators["g"] = 1
        shake = scripted.answers[ApiVersionsRequest]
        closes = [True]

        def once(asked):
            return CLOSE if asked.node == 1 and closes and closes.pop() else shake(asked)

        scripted.answers[ApiVersionsRequest] = once
        async with scripted.admin() as admin:
            deleted = await admin.delete_groups(["g"])
    assert deleted["g"] is None
    assert [one.node for one in scripted.sent("DeleteGroups")] == [1]


@asynchronous
async def test_nothing_asked_is_nothing_sent():
    async with ScriptedCluster() as scripted, scripted.admin() as admin:
        assert len(await admin.describe_groups([])) == 0
        assert len(await admin.delete_groups([])) == 0
        assert len(await admin.list_group_offsets({})) == 0
        assert len(await admin.list_offsets({})) == 0
    assert scripted.asked == []


@asynchronous
async def test_when_no_broker_can_be_reached_that_is_an_error():
    async with ScriptedCluster() as scripted, scripted.admin() as admin:
        await scripted.stop(0)
        for asking in (admin.describe_groups(["g"]), admin.delete_groups(["g"])):
            with pytest.raises(ApiError, match=r"cannot connect to .*: refused"):
                await asking
