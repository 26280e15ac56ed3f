# SPDX-License-Identifier: Apache-2.0
"""Who writes: asked for until there is an answer, and told where there will be none."""

import pytest
from tests.client.producer.scripted_leaders import identified, producer, scripted, taken
from tests.client.scripted import CLOSE, asynchronous, in_turn

from kohort.errors import ApiError, ErrorCode
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


@asynchronous
async def test_it_is_asked_for_until_there_is_one() -> None:
    async with scripted(taken) as world:
        loading = refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        world.answers[InitProducerIdRequest] = in_turn(CLOSE, loading, identified)
        async with producer(world) as client:
            await client.send_and_wait("t", b"v")
        asked = world.sent("InitProducerId")
    assert len(asked) == 3
    assert {one.request.transactional_id for one in asked} == {None}


@asynchronous
async def test_a_refusal_for_good_is_told_to_everybody() -> None:
    async with scripted(taken) as world:
        world.answers[InitProducerIdRequest] = in_turn(
            refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        )
        async with producer(world) as client:
            with pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED"):
                await client.send_and_wait("t", b"v")
            with pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED"):
                await client.send("t", b"v")
    assert world.sent("Produce") == []


@asynchronous
async def test_an_old_broker_needs_another_setting() -> None:
    async with scripted(taken) as world:
        world.offer("InitProducerId", None)
        async with producer(world) as client:
            with pytest.raises(ApiError, match="set enable_idempotence to false"):
                await client.send_and_wait("t", b"v")
        async with producer(world, enable_idempotence=False) as client:
            assert (await client.send_and_wait("t", b"v")).offset == 100
