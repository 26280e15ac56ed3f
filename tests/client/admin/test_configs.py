# SPDX-License-Identifier: Apache-2.0
"""Configurations by the admin client: those of groups, and of all else."""

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous

from kohort.client.admin import (
    AdminClient,
    ConfigAppend,
    ConfigResourceType,
    ConfigSubtract,
    GroupConfig,
)
from kohort.errors import ErrorCode, UnsupportedVersionError
from kohort.testing.broker import Broker
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kohort.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kohort.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def test_settings_of_groups_are_changed_and_told():
    """K848-182."""

    @asynchronous
    async def talk(bootstrap):
        async with AdminClient(bootstrap) as admin:
            changed = await admin.alter_group_configs(
                {
                    "g": {SESSION: "50000", HEARTBEAT: "7000"},
                    "h": {HEARTBEAT: "often"},
                }
            )
            assert changed["g"] is None
            assert changed.failed["h"].code is ErrorCode.INVALID_CONFIG
            assert HEARTBEAT in changed.failed["h"].message

            tried = await admin.alter_group_configs({"g": {SESSION: "60000"}}, validate_only=True)
            assert tried["g"] is None
            (await admin.alter_group_configs({"g": {SESSION: None}})).all()
            told = await admin.describe_group_configs(["g", "h", ""])
            assert told["g"][HEARTBEAT] == GroupConfig("7000", own=True)
            assert told["g"][SESSION] == GroupConfig("45000", own=False)
            assert not any(one.own for one in told["h"].values())
            assert told.failed[""].code is ErrorCode.INVALID_REQUEST
            assert list(told["g"]) == sorted(told["g"])

    with Broker(in_memory=True) as broker:
        talk(broker.bootstrap)


@asynchronous
async def test_one_broker_that_hangs_up_leaves_the_question_to_another():
    def answer(asked):
        if asked.node == 0:
            return CLOSE
        told = [
            DescribeConfigsResult(resource_type=32, resource_name=one.resource_name, configs=[])
            for one in asked.request.resources
        ]
        return DescribeConfigsResponse(results=told)

    async with (
        ScriptedCluster(2, {DescribeConfigsRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        assert (await admin.describe_group_configs(["g"])).all() == {"g": {}}


@asynchronous
async def test_a_change_that_may_have_arrived_is_not_sent_again():
    """Somebody else may have changed the same since, and would be overruled."""
    answers = {IncrementalAlterConfigsRequest: lambda _: CLOSE}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        changed = await admin.alter_group_configs({"g": {SESSION: "50000"}})
    assert changed.failed["g"].sent
    assert len(scripted.sent("IncrementalAlterConfigs")) == 1


@asynchronous
async def test_each_broker_is_asked_for_its_own_and_anybody_for_the_rest():
    def answer(asked):
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_type=resource.resource_type, resource_name=resource.resource_name
                )
                for resource in asked.request.resources
            ]
        )

    answers = {DescribeConfigsRequest: answer}
    resources = [("broker", "2"), ("broker", "1"), ("broker_logger", "1"), ("topic", "orders")]
    async with ScriptedCluster(3, answers) as scripted, scripted.admin() as admin:
        described = await admin.describe_configs(resources)
    assert described.all() == {resource: {} for resource in resources}
    asked = {
        one.node: [(each.resource_type, each.resource_name) for each in one.request.resources]
        for one in scripted.sent("DescribeConfigs")
    }
    assert asked == {0: [(2, "orders")], 1: [(4, "1"), (8, "1")], 2: [(4, "2")]}


@asynchronous
async def test_an_old_broker_tells_no_types_and_is_not_asked_for_documentation():
    config = DescribeConfigsResourceResult(name="retention.ms", value="1", config_source=1)
    told = DescribeConfigsResult(resource_type=2, resource_name="orders", configs=[config])
    answers = {DescribeConfigsRequest: lambda _: DescribeConfigsResponse(results=[told])}
    orders = ("topic", "orders")
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        scripted.offer("DescribeConfigs", "1-2")
        (entry,) = (await admin.describe_configs([orders]))[orders].values()
        assert (entry.value, entry.source, entry.type) == ("1", 1, None)
        refused = await admin.describe_configs([orders], include_documentation=True)
    assert refused.failed[orders].code is ErrorCode.UNSUPPORTED_VERSION
    assert "needs v3 (KIP-569, Apache Kafka 2.6)" in refused.failed[orders].message
    assert len(scripted.sent("DescribeConfigs")) == 1


@asynchronous
async def test_what_an_answer_leaves_out_is_an_error_of_its_own():
    told = DescribeConfigsResult(resource_type=2, resource_name="orders")
    newer = DescribeConfigsResult(resource_type=99, resource_name="orders")
    answers = {DescribeConfigsRequest: lambda _: DescribeConfigsResponse(results=[told, newer])}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        described = await admin.describe_configs([("topic", "orders"), ("topic", "gone")])
    assert described.succeeded == {("topic", "orders"): {}}
    assert "lacks an entry for topic 'gone'" in described.failed["topic", "gone"].message


@asynchronous
async def test_the_operations_of_a_change_are_upstreams():
    def answer(asked):
        changed = [
            AlterConfigsResourceResponse(resource_type=2, resource_name=each.resource_name)
            for each in asked.request.resources
        ]
        return IncrementalAlterConfigsResponse(responses=changed)

    changes = {"a": "1", "b": None, "c": ConfigAppend("x,y"), "d": ConfigSubtract("z")}
    answers = {IncrementalAlterConfigsRequest: answer}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        (await admin.alter_configs({("topic", "orders"): changes}, validate_only=True)).all()
    (sent,) = scripted.sent("IncrementalAlterConfigs")
    assert sent.request.validate_only
    (resource,) = sent.request.resources
    assert [(each.name, each.config_operation, each.value) for each in resource.configs] == [
        ("a", 0, "1"),
        ("b", 1, None),
        ("c", 2, "x,y"),
        ("d", 3, "z"),
    ]


@asynchronous
async def test_a_lesser_list_of_resources_is_not_asked_for():
    """v0 has the resources of client metrics alone (KIP-714)."""
    found = ListConfigResourcesResponse(config_resources=[ConfigResource(resource_name="m")])
    answers = {ListConfigResourcesRequest: lambda _: found}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        scripted.offer("ListConfigResources", "0")
        assert await admin.list_config_resources("client_metrics") == (("client_metrics", "m"),)
        for types in (None, "topic", ["client_metrics", "topic"]):
            with pytest.raises(UnsupportedVersionError, match=r"needs v1 \(KIP-1142"):
                await admin.list_config_resources(types)
    assert len(scripted.sent("ListConfigResources")) == 1


@asynchronous
async def test_a_resource_of_a_newer_type_is_listed_as_unknown():
    newer = ConfigResource(resource_name="x", resource_type=64)
    found = ListConfigResourcesResponse(config_resources=[newer])
    answers = {ListConfigResourcesRequest: lambda _: found}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        assert await admin.list_config_resources() == ((ConfigResourceType.UNKNOWN, "x"),)
