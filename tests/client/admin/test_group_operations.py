# SPDX-License-Identifier: Apache-2.0
"""Groups administered on whole brokers: offsets set and taken away."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.client.joining import ConsumerMember, coordinator, join_classic, leave_classic
from tests.client.scripted import asynchronous
from tests.client.whole_brokers import WHOLE_BROKERS, create_topic, whole_broker

from kohort.client.admin import AclOperation, AdminClient, CommittedOffset, MemberToRemove
from kohort.errors import ApiError, ErrorCode
from kohort.terms import uuid_text

TOPIC = "orders"
OTHER = "refunds"
MEMBER_ID = uuid_text(b"an id of a member"[:16])


@pytest.fixture(scope="module", params=WHOLE_BROKERS)
def bootstrap(request):
    with whole_broker(request.param) as address:
        create_topic(address, TOPIC, 3)
        create_topic(address, OTHER, 2)
        yield address


def is_older(request):
    return request.node.callspec.params["bootstrap"] == "kafka-older"


@asynccontextmanager
async def member_of(bootstrap: str, group_id: str, protocol: str) -> AsyncIterator[str]:
    """A group with one member that reads all of `TOPIC`, and the id of the member."""
    async with coordinator(bootstrap, group_id) as connection:
        if protocol == "consumer":
            member = ConsumerMember(connection, group_id, MEMBER_ID)
            await member.join(TOPIC)
            yield MEMBER_ID
            await member.leave()
        else:
            member_id = await join_classic(connection, group_id, TOPIC, [0, 1, 2])
            yield member_id
            await leave_classic(connection, group_id, member_id)


@asynchronous
async def test_offsets_are_set_and_taken_away(bootstrap):
    """For a group that there was not, partition by partition."""
    async with AdminClient(bootstrap) as admin:
        new = {(TOPIC, 0): 5, (OTHER, 1): CommittedOffset(7, 0, "by hand"), (TOPIC, 9): 1}
        altered = await admin.alter_group_offsets("set", new)
        assert list(altered) == list(new)
        assert altered.succeeded == {(TOPIC, 0): None, (OTHER, 1): None}
        assert altered.failed[TOPIC, 9].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert altered.failed[TOPIC, 9].message == "partition orders:9 does not exist"
        assert (await admin.list_group_offsets("set"))["set"] == {
            (TOPIC, 0): CommittedOffset(5, None, ""),
            (OTHER, 1): CommittedOffset(7, 0, "by hand"),
        }

        deleted = await admin.delete_group_offsets("set", [OTHER, (TOPIC, 1), (TOPIC, 9)])
        assert deleted.succeeded == {(TOPIC, 1): None, (OTHER, 1): None}
        assert deleted.failed[TOPIC, 9].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert list((await admin.list_group_offsets("set"))["set"]) == [(TOPIC, 0)]
        assert list(await admin.delete_group_offsets("set", OTHER)) == []
        with pytest.raises(ApiError, match=r"UNKNOWN_TOPIC_OR_PARTITION: .*nope"):
            await admin.delete_group_offsets("set", [TOPIC, "nope"])
        assert list((await admin.list_group_offsets("set"))["set"]) == [(TOPIC, 0)]


@asynchronous
async def test_offsets_of_no_group_are_not_there(bootstrap):
    async with AdminClient(bootstrap) as admin:
        result = await admin.delete_group_offsets("nobody", [(TOPIC, 0)])
        assert result.failed[TOPIC, 0].code is ErrorCode.GROUP_ID_NOT_FOUND
        with pytest.raises(ApiError, match="GROUP_ID_NOT_FOUND"):
            await admin.delete_group_offsets("nobody", TOPIC)


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
@asynchronous
async def test_a_group_with_members_keeps_its_offsets(bootstrap, protocol):
    async with AdminClient(bootstrap) as admin:
        group_id = f"busy-{protocol}"
        before = {(TOPIC, 0): CommittedOffset(3), (OTHER, 0): CommittedOffset(4)}
        (await admin.alter_group_offsets(group_id, before)).all()
        async with member_of(bootstrap, group_id, protocol):
            altered = await admin.alter_group_offsets(group_id, {(TOPIC, 0): 1, (TOPIC, 1): 1})
            assert len(altered.failed) == 2
            error = altered.failed[TOPIC, 1]
            assert error.code is ErrorCode.UNKNOWN_MEMBER_ID
            assert error.message == (
                f"group {group_id} has members, expected none: stop its consumers first"
            )
            deleted = await admin.delete_group_offsets(group_id, [TOPIC, OTHER])
            assert deleted.succeeded == {(OTHER, 0): None}  # nobody reads it
            assert deleted.failed[TOPIC, 0].code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            assert deleted.failed[TOPIC, 0].message == (
                f"group {group_id} reads topic orders, expected nobody: stop its consumers"
            )
            left = (await admin.list_group_offsets(group_id))[group_id]
            assert left == {(TOPIC, 0): CommittedOffset(3)}


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
@asynchronous
async def test_members_are_removed_one_by_one_and_all(bootstrap, protocol, request):
    """K848-192: of groups of either kind, static ones by the instance, with a reason."""
    if protocol == "consumer" and is_older(request):
        pytest.skip("Apache Kafka 3.9 removes members of the classic protocol alone")
    group_id = f"removed-{protocol}"
    async with AdminClient(bootstrap) as admin, coordinator(bootstrap, group_id) as connection:
        for reason in ("it is gone", None):
            if protocol == "consumer":
                member = ConsumerMember(connection, group_id, MEMBER_ID)
                await member.join(TOPIC, instance_id="i-1")
            else:
                await join_classic(connection, group_id, TOPIC, [0], instance_id="i-1")
            if reason:
                result = await admin.remove_members(group_id, ["i-1", "i-2"], reason=reason)
                assert result.succeeded == {"i-1": None}
                assert result.failed["i-2"].message == f"group {group_id} has no instance i-2"
            else:
                result = await admin.remove_members(group_id)
                assert result.all() == {MemberToRemove(instance_id="i-1"): None}
            assert (await admin.describe_groups(group_id))[group_id].members == ()
        assert list(await admin.remove_members(group_id)) == []  # nobody is left


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
@asynchronous
async def test_a_member_is_removed_by_its_id(bootstrap, protocol, request):
    """K848-192."""
    group_id = f"by-id-{protocol}"
    async with AdminClient(bootstrap) as admin, coordinator(bootstrap, group_id) as connection:
        if protocol == "consumer":
            await ConsumerMember(connection, group_id, MEMBER_ID).join(TOPIC)
        else:
            await join_classic(connection, group_id, TOPIC, [0])
        (member,) = (await admin.describe_groups(group_id))[group_id].members
        by_id = MemberToRemove(member.member_id)
        unknown = MemberToRemove("nobody")
        result = await admin.remove_members(group_id, [unknown, by_id])
        if protocol == "consumer" and is_older(request):  # which has no way to do it
            assert result.failed[by_id].code is ErrorCode.UNKNOWN_MEMBER_ID
            return
        assert result.succeeded == {by_id: None}
        assert result.failed[unknown].code is ErrorCode.UNKNOWN_MEMBER_ID
        assert (await admin.describe_groups(group_id))[group_id].members == ()
        with pytest.raises(ApiError, match="GROUP_ID_NOT_FOUND"):
            await admin.remove_members("nobody")
        missing = await admin.remove_members("nobody", [by_id])
        assert missing.failed[by_id].code is ErrorCode.UNKNOWN_MEMBER_ID


@asynchronous
async def test_groups_say_what_may_be_done_with_them(bootstrap, request):
    """K40-33, K848-186: without an authorizer everything that can be done with a group."""
    everything = {AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE}
    if not is_older(request):  # groups have settings since Apache Kafka 4.0
        everything |= {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
    async with (
        AdminClient(bootstrap) as admin,
        member_of(bootstrap, "may-new", "consumer"),
        member_of(bootstrap, "may-old", "classic"),
    ):
        described = await admin.describe_groups(
            ["may-new", "may-old"], include_authorized_operations=True
        )
        assert [group.authorized_operations for group in described.all().values()] == [
            everything,
            everything,
        ]
        plain = await admin.describe_groups(["may-new", "may-old"])
        assert {group.authorized_operations for group in plain.all().values()} == {None}
        listed = await admin.list_groups(consumers_only=True)
        assert {"may-new", "may-old"} <= {group.group_id for group in listed}
        assert list(await admin.list_groups(protocols=["connect"])) == []


@asynchronous
async def test_answers_come_one_by_one_and_are_the_same(bootstrap):
    """K518-27, K709-34, K229-25: of all coordinators, with those that there are not."""
    names = [f"one-by-one-{number}" for number in range(8)]
    async with AdminClient(bootstrap) as admin:
        for name in names:
            (await admin.alter_group_offsets(name, {(TOPIC, 0): 1})).all()
        listed = {
            group.group_id
            async for _, groups in admin.list_groups()
            if not isinstance(groups, ApiError)
            for group in groups
        }
        assert set(names) <= listed
        assert listed == {group.group_id for group in await admin.list_groups()}
        asked = [*names, "nobody"]
        described = {key: outcome async for key, outcome in admin.describe_groups(asked)}
        at_once = await admin.describe_groups(asked)
        assert {key: described[key] for key in names} == at_once.succeeded
        assert described["nobody"].code is at_once.failed["nobody"].code
        offsets = {key: outcome async for key, outcome in admin.list_group_offsets(asked)}
        assert offsets == dict((await admin.list_group_offsets(asked)).items())
        deleted = {key: outcome async for key, outcome in admin.delete_groups(asked)}
        assert [key for key, outcome in deleted.items() if outcome is not None] == ["nobody"]
        assert not set(names) & {group.group_id for group in await admin.list_groups()}
