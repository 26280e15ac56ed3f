# SPDX-License-Identifier: Apache-2.0
"""Credentials of users by the admin client."""

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import (
    AdminClient,
    ApiError,
    ErrorCode,
    ScramCredential,
    ScramDeletion,
    ScramUpsertion,
)
from kohort.security.scram import salted
from kohort.testing import Broker
from kohort.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kohort.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

SECRET = "hunter2"


def test_users_get_credentials_and_lose_them():
    @asynchronous
    async def talk(bootstrap):
        async with AdminClient(bootstrap) as admin:
            made = await admin.alter_user_scram_credentials(
                [
                    ScramUpsertion("bob", SECRET, "SCRAM-SHA-256", 4096),
                    ScramUpsertion("alice", SECRET),
                    ScramUpsertion("carol", SECRET, iterations=17_000),
                    ScramDeletion("dora"),
                ]
            )
            assert made["alice"] is made["bob"] is None
            assert made.failed["carol"].code is ErrorCode.UNACCEPTABLE_CREDENTIAL
            assert made.failed["dora"].code is ErrorCode.RESOURCE_NOT_FOUND

            found = await admin.describe_user_scram_credentials()
            assert list(found.items()) == [
                ("alice", (ScramCredential("SCRAM-SHA-512", 8192),)),
                ("bob", (ScramCredential("SCRAM-SHA-256", 4096),)),
            ]
            gone = await admin.alter_user_scram_credentials([ScramDeletion("alice")])
            gone.all()
            found = await admin.describe_user_scram_credentials(["alice", "bob"])
            assert found["bob"] == (ScramCredential("SCRAM-SHA-256", 4096),)
        assert found.failed["alice"].code is ErrorCode.RESOURCE_NOT_FOUND

    with Broker(in_memory=True) as broker:
        talk(broker.bootstrap)


@asynchronous
async def test_a_password_is_salted_here_and_not_sent():
    sent = []

    def answer(asked):
        sent.extend(asked.request.upsertions)
        return AlterUserScramCredentialsResponse(
            results=[AlterUserScramCredentialsResult(user="alice")]
        )

    async with (
        ScriptedCluster(1, {AlterUserScramCredentialsRequest: answer}) as scripted,
        AdminClient(scripted.bootstrap) as admin,
    ):
        change = ScramUpsertion("alice", SECRET, iterations=4096)
        assert SECRET not in repr(change)
        for _ in range(2):
            (await admin.alter_user_scram_credentials([change])).all()
    first, second = sent
    assert first.salt != second.salt
    assert first.salted_password == salted("sha512", SECRET, first.salt, 4096)


@asynchronous
async def test_who_may_not_ask_for_users_is_refused():
    def answer(_asked):
        return DescribeUserScramCredentialsResponse(
            error_code=31, error_message="Cluster authorization failed."
        )

    async with (
        ScriptedCluster(1, {DescribeUserScramCredentialsRequest: answer}) as scripted,
        AdminClient(scripted.bootstrap) as admin,
    ):
        with pytest.raises(ApiError) as refusal:
            await admin.describe_user_scram_credentials()
        line = "User:ANONYMOUS is not authorized for Describe on the cluster"
        assert refusal.value.message == line
        assert refusal.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        found = await admin.describe_user_scram_credentials("alice")
        assert found.failed["alice"].message == line
        assert found.failed["alice"].code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
