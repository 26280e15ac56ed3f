# SPDX-License-Identifier: Apache-2.0
"""Quotas and tokens of whole brokers: ours, which has none of either, and Apache Kafka."""

import asyncio

import pytest
from tests.client.scripted import asynchronous
from tests.client.whole_brokers import CURRENT_BROKERS, whole_broker
from tests.waiting import SOON_S

from kohort import AdminClient, ApiError, ClientQuotaEntity, ErrorCode

ALICE = ClientQuotaEntity({"user": "alice"})
SOME_CLIENT = ClientQuotaEntity({"user": "alice", "client-id": "c"})
EVERY_CLIENT = ClientQuotaEntity({"client-id": None})
HOST = ClientQuotaEntity({"ip": "127.0.0.9"})


@pytest.fixture(scope="module", params=CURRENT_BROKERS)
def broker(request):
    with whole_broker(request.param) as address:
        yield request.param, address


async def quotas(admin, count):
    """All quotas, as soon as there are so many: Kafka publishes what it has changed."""
    async with asyncio.timeout(SOON_S):
        while len(found := await admin.describe_client_quotas()) != count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


@asynchronous
async def test_quotas_are_set_found_and_taken_away(broker):
    kind, bootstrap = broker
    rates = {"producer_byte_rate": 1e6, "request_percentage": 12.5}
    changes = {
        ALICE: rates,
        SOME_CLIENT: {"consumer_byte_rate": 5},
        EVERY_CLIENT: {"consumer_byte_rate": 7.0},
        HOST: {"connection_creation_rate": 3},
    }
    async with AdminClient(bootstrap) as admin:
        assert await admin.describe_client_quotas() == {}
        altered = await admin.alter_client_quotas(changes)
        if kind != "kafka":
            assert {error.code for error in altered.failed.values()} == {ErrorCode.POLICY_VIOLATION}
            assert list(altered.failed) == list(changes)
            return
        altered.all()
        found = await quotas(admin, 4)
        assert found == changes
        assert list(found) == sorted(changes)
        by = admin.describe_client_quotas
        assert list(await by({"user": "alice"})) == [SOME_CLIENT, ALICE]
        assert list(await by({"user": "alice"}, strict=True)) == [ALICE]
        assert list(await by({"client-id": ...})) == [EVERY_CLIENT, SOME_CLIENT]
        assert list(await by({"client-id": None})) == [EVERY_CLIENT]
        taken = await admin.alter_client_quotas(
            {each: dict.fromkeys(changes[each]) for each in found}
        )
        taken.all()
        await quotas(admin, 0)


@asynchronous
async def test_what_is_no_quota_is_refused(broker):
    _, bootstrap = broker
    async with AdminClient(bootstrap) as admin:
        with pytest.raises(ApiError) as refusal:
            await admin.describe_client_quotas({"ip": ..., "user": ...})
        assert refusal.value.code is ErrorCode.INVALID_REQUEST
        altered = await admin.alter_client_quotas({ClientQuotaEntity({"group": "g"}): {}})
        (error,) = altered.failed.values()
        assert error.code is ErrorCode.INVALID_REQUEST


@asynchronous
async def test_who_has_not_logged_in_gets_no_token(broker):
    _, bootstrap = broker
    async with AdminClient(bootstrap) as admin:
        for call in (
            admin.create_delegation_token(),
            admin.renew_delegation_token(b"x"),
            admin.expire_delegation_token(b"x"),
            admin.describe_delegation_tokens(),
        ):
            with pytest.raises(ApiError) as refusal:
                await call
            assert refusal.value.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
