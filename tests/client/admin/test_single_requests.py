# SPDX-License-Identifier: Apache-2.0
"""Questions with one answer, and the broker that each is for."""

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort.errors import ApiError, ErrorCode
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kohort.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

ORDERS = ListConfigResourcesResponse(
    config_resources=[ConfigResource(resource_name="orders", resource_type=2)]
)


@asynchronous
async def test_another_broker_answers_where_one_hangs_up():
    def answer(asked):
        return CLOSE if asked.node == 0 else ORDERS

    answers = {ListConfigResourcesRequest: answer}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        assert await admin.list_config_resources() == (("topic", "orders"),)
    assert [asked.node for asked in scripted.sent("ListConfigResources")] == [0, 1]


@asynchronous
async def test_a_code_that_passes_is_asked_again_and_another_is_raised():
    loading = ListConfigResourcesResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    denied = ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    answers = {ListConfigResourcesRequest: in_turn(loading, ORDERS, denied)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        assert len(await admin.list_config_resources()) == 1
        with pytest.raises(ApiError, match="User:ANONYMOUS is not authorized for the cluster"):
            await admin.list_config_resources()
    assert len(scripted.sent("ListConfigResources")) == 3


@asynchronous
async def test_a_broker_that_is_not_there_is_named_at_once_and_the_others_are_asked():
    def answer(asked):
        (resource,) = asked.request.resources
        told = DescribeConfigsResult(resource_type=4, resource_name=resource.resource_name)
        return DescribeConfigsResponse(results=[told])

    first, second, missing = ("broker", "0"), ("broker", "1"), ("broker", "7")
    answers = {DescribeConfigsRequest: answer}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        described = await admin.describe_configs([second, missing, first])
    assert described.succeeded == {second: {}, first: {}}
    error = described.failed[missing]
    assert error.code is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert error.message == "broker 7 is not in the cluster, expected one of 0, 1"
    assert sorted(asked.node for asked in scripted.sent("DescribeConfigs")) == [0, 1]
