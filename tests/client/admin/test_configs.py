"""Settings of groups by the admin client."""

from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous

from kohort.client.admin import AdminClient, GroupConfig
from kohort.errors import ErrorCode
from kohort.testing.broker import Broker
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kohort.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

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
