# SPDX-License-Identifier: Apache-2.0
"""Rules of access by the admin client."""

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    AdminClient,
    ApiError,
    ErrorCode,
    PatternType,
    ResourceType,
)
from kohort.testing import Broker
from kohort.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
READ = AclBinding(ResourceType.GROUP, "billing", "User:alice", AclOperation.READ)
PREFIX = AclBinding(
    ResourceType.TOPIC,
    "ord",
    "User:*",
    AclOperation.WRITE,
    AclPermission.DENY,
    PatternType.PREFIXED,
    "127.0.0.1",
)


@pytest.fixture(scope="module")
def broker():
    with Broker(AUTHORIZER, in_memory=True) as running:
        yield running.bootstrap


def test_rules_are_made_told_and_taken_away(broker):
    @asynchronous
    async def talk():
        async with AdminClient(broker) as admin:
            wrong = AclBinding(ResourceType.CLUSTER, "other", "User:alice", AclOperation.ALTER)
            made = await admin.create_acls([READ, PREFIX, wrong, READ])
            assert made[READ] is made[PREFIX] is None
            assert made.failed[wrong].code is ErrorCode.INVALID_REQUEST

            assert await admin.describe_acls() == (PREFIX, READ)
            of_orders = AclFilter(ResourceType.TOPIC, "orders", pattern=PatternType.MATCH)
            assert await admin.describe_acls(of_orders) == (PREFIX,)
            assert await admin.describe_acls(AclFilter(principal="User:alice")) == (READ,)

            nobodys, allowed = (
                AclFilter(principal="User:x"),
                AclFilter(permission=AclPermission.ALLOW),
            )
            gone = await admin.delete_acls([nobodys, allowed])
            assert (gone[nobodys], gone[allowed]) == ((), (READ,))
            assert await admin.describe_acls() == (PREFIX,)
            await admin.delete_acls([AclFilter()])

    talk()


def test_a_cluster_without_rules_says_so():
    @asynchronous
    async def talk(bootstrap):
        async with AdminClient(bootstrap) as admin:
            with pytest.raises(ApiError, match="No Authorizer is configured") as refusal:
                await admin.describe_acls()
            assert refusal.value.code is ErrorCode.SECURITY_DISABLED
            made = await admin.create_acls([READ])
            assert made.failed[READ].code is ErrorCode.SECURITY_DISABLED

    with Broker(in_memory=True) as plain:
        talk(plain.bootstrap)


@asynchronous
async def test_what_is_newer_than_this_client_is_unknown_and_one_failure_is_that_of_its_filter():
    def answer(_asked):
        newer = DeleteAclsMatchingAcl(
            resource_type=99,
            resource_name="x",
            principal="User:a",
            host="*",
            operation=99,
            permission_type=3,
        )
        refused = DeleteAclsMatchingAcl(error_code=31, error_message="no")
        return DeleteAclsResponse(
            filter_results=[
                DeleteAclsFilterResult(matching_acls=[newer]),
                DeleteAclsFilterResult(matching_acls=[newer, refused]),
            ]
        )

    first, second = AclFilter(), AclFilter(principal="User:a")
    async with (
        ScriptedCluster(1, {DeleteAclsRequest: answer}) as scripted,
        AdminClient(scripted.bootstrap) as admin,
    ):
        gone = await admin.delete_acls([first, second])
    (found,) = gone[first]
    assert (found.resource_type, found.operation) == (ResourceType.UNKNOWN, AclOperation.UNKNOWN)
    assert gone.failed[second].code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
