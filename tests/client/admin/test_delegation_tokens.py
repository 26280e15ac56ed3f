# SPDX-License-Identifier: Apache-2.0
"""Delegation tokens, as a cluster answers that has a key for them."""

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import ApiError, DelegationToken, ErrorCode, UnsupportedVersionError
from kohort.wire.messages import create_delegation_token as creation
from kohort.wire.messages import describe_delegation_token as description
from kohort.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kohort.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

SECRET = b"secret"


def created(asked):
    request = asked.request
    return creation.CreateDelegationTokenResponse(
        principal_type="User",
        principal_name=request.owner_principal_name or "alice",
        token_requester_principal_type="User",
        token_requester_principal_name="alice",
        issue_timestamp_ms=1,
        expiry_timestamp_ms=2,
        max_timestamp_ms=3,
        token_id="t",
        hmac=SECRET,
    )


@asynchronous
async def test_a_token_is_made_and_its_secret_is_not_shown():
    async with (
        ScriptedCluster(1, {creation.CreateDelegationTokenRequest: created}) as scripted,
        scripted.admin() as admin,
    ):
        token = await admin.create_delegation_token("User:bob")
        await admin.create_delegation_token(owner="User:carol:x", max_lifetime_ms=60_000)
    assert token == DelegationToken("t", "User:alice", "User:alice", 1, 2, 3, SECRET, ("User:bob",))
    assert "secret" not in repr(token)
    first, second = [asked.request for asked in scripted.sent("CreateDelegationToken")]
    assert (first.owner_principal_name, first.max_lifetime_ms) == (None, -1)
    assert [(each.principal_type, each.principal_name) for each in first.renewers] == [
        ("User", "bob")
    ]
    assert (second.owner_principal_type, second.owner_principal_name) == ("User", "carol:x")
    assert second.max_lifetime_ms == 60_000


@asynchronous
async def test_a_broker_that_knows_no_other_owner_is_not_asked_for_one():
    """KIP-373."""
    async with (
        ScriptedCluster(1, {creation.CreateDelegationTokenRequest: created}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.offer("CreateDelegationToken", "1-2")
        assert (await admin.create_delegation_token()).requester is None
        with pytest.raises(UnsupportedVersionError, match="a token for another owner"):
            await admin.create_delegation_token(owner="User:bob")
    assert len(scripted.sent("CreateDelegationToken")) == 1


@asynchronous
async def test_a_token_is_renewed_and_ended():
    answers = {
        RenewDelegationTokenRequest: lambda _: RenewDelegationTokenResponse(expiry_timestamp_ms=9),
        ExpireDelegationTokenRequest: lambda asked: ExpireDelegationTokenResponse(
            error_code=0 if asked.request.hmac == SECRET else 62, expiry_timestamp_ms=8
        ),
    }
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        assert await admin.renew_delegation_token(SECRET, renew_period_ms=5) == 9
        assert await admin.renew_delegation_token(SECRET) == 9
        assert await admin.expire_delegation_token(SECRET) == 8
        with pytest.raises(ApiError) as refusal:
            await admin.expire_delegation_token(b"other", expiry_period_ms=7)
    assert refusal.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    renewed = [asked.request.renew_period_ms for asked in scripted.sent("RenewDelegationToken")]
    assert renewed == [5, -1]
    ended = [
        asked.request.expiry_time_period_ms for asked in scripted.sent("ExpireDelegationToken")
    ]
    assert ended == [-1, 7]


@asynchronous
async def test_tokens_are_described_by_their_owners():
    def answer(_asked):
        return description.DescribeDelegationTokenResponse(
            tokens=[
                description.DescribedDelegationToken(
                    principal_type="User",
                    principal_name="alice",
                    token_requester_principal_type="User",
                    token_requester_principal_name="admin",
                    token_id=name,
                    hmac=SECRET,
                    renewers=[
                        description.DescribedDelegationTokenRenewer(
                            principal_type="User", principal_name="bob"
                        )
                    ],
                )
                for name in ("b", "a")
            ]
        )

    async with (
        ScriptedCluster(1, {description.DescribeDelegationTokenRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        found = await admin.describe_delegation_tokens()
        await admin.describe_delegation_tokens(["User:alice"])
    assert [token.token_id for token in found] == ["a", "b"]
    first = found[0]
    assert (first.owner, first.requester, first.renewers) == (
        "User:alice",
        "User:admin",
        ("User:bob",),
    )
    every, one = [asked.request.owners for asked in scripted.sent("DescribeDelegationToken")]
    assert every is None
    assert [(owner.principal_type, owner.principal_name) for owner in one] == [("User", "alice")]


@asynchronous
async def test_what_is_no_principal_and_no_secret_is_refused_before_anything_is_asked():
    async with ScriptedCluster(1) as scripted, scripted.admin() as admin:
        with pytest.raises(ValueError, match="renewers has 'bob', expected a principal, as 'User"):
            await admin.create_delegation_token(["bob"])
        with pytest.raises(TypeError, match="hmac is of type str, expected bytes") as refusal:
            await admin.renew_delegation_token("c2VjcmV0")
        assert "c2VjcmV0" not in str(refusal.value)
        with pytest.raises(ValueError, match="expiry_period_ms is -1, expected 0"):
            await admin.expire_delegation_token(SECRET, expiry_period_ms=-1)
    assert scripted.asked == []
