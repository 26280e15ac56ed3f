# SPDX-License-Identifier: Apache-2.0
"""Configurations of whole brokers: ours, and Apache Kafka."""

import asyncio

import pytest
from tests.client.scripted import asynchronous
from tests.client.whole_brokers import CURRENT_BROKERS, create_topic, whole_broker
from tests.waiting import SOON_S

from kohort import (
    AdminClient,
    ConfigAppend,
    ConfigResourceType,
    ConfigSource,
    ConfigSubtract,
    ConfigType,
    ErrorCode,
)

ORDERS = ("topic", "orders")
SESSION = "consumer.session.timeout.ms"


@pytest.fixture(scope="module", params=CURRENT_BROKERS)
def bootstrap(request):
    with whole_broker(request.param) as address:
        create_topic(address, "orders", 1)
        yield address


async def value(admin, resource, name):
    return (await admin.describe_configs([resource], names=name))[resource][name].value


async def becomes(admin, resource, name, expected):
    """A broker of Kafka's hears of a change a little later than the controller that answers it."""
    async with asyncio.timeout(SOON_S):
        while await value(admin, resource, name) != expected:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@asynchronous
async def test_configs_are_described_with_where_they_come_from(bootstrap):
    async with AdminClient(bootstrap) as admin:
        first = str((await admin.describe_cluster())[0].node_id)
        described = await admin.describe_configs(
            [ORDERS, ("broker", first), ("group", "g"), ("topic", "missing"), ("broker", "77")],
            names=["retention.ms", "message.max.bytes", SESSION],
            include_synonyms=True,
            include_documentation=True,
        )
        (retention,) = described[ORDERS].values()
        assert (retention.name, retention.value) == ("retention.ms", "604800000")
        assert (retention.source, retention.type) == (ConfigSource.DEFAULT_CONFIG, ConfigType.LONG)
        assert not retention.read_only
        assert not retention.sensitive
        assert retention.synonyms == ()
        assert retention.documentation
        largest = described["broker", first]["message.max.bytes"]
        assert largest.type is ConfigType.INT
        (synonym,) = largest.synonyms
        assert (synonym.name, synonym.source) == ("message.max.bytes", 5)
        assert synonym.value == largest.value
        assert described.failed["topic", "missing"].message == "topic missing does not exist"
        assert described.failed["broker", "77"].code is ErrorCode.BROKER_ID_NOT_REGISTERED

        everything = (await admin.describe_configs([ORDERS]))[ORDERS]
        assert len(everything) > 20
        assert list(everything) == sorted(everything)
        assert everything["retention.ms"].synonyms is None
        assert everything["retention.ms"].documentation is None


@asynchronous
async def test_configs_are_changed_and_taken_back(bootstrap):
    async with AdminClient(bootstrap) as admin:
        await admin.alter_configs({ORDERS: {"retention.ms": "5"}}, validate_only=True)
        assert await value(admin, ORDERS, "retention.ms") == "604800000"

        changed = await admin.alter_configs(
            {
                ORDERS: {"retention.ms": "60000", "cleanup.policy": ConfigAppend("compact")},
                ("group", "g"): {SESSION: "50000"},
                ("topic", "missing"): {"retention.ms": "1"},
                ("broker", ""): {"process.roles": "broker"},
                ("broker", "77"): {"message.max.bytes": "2000000"},
            }
        )
        assert list(changed.succeeded) == [ORDERS, ("group", "g")]
        assert {key: error.code for key, error in changed.failed.items()} == {
            ("topic", "missing"): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("broker", ""): ErrorCode.INVALID_REQUEST,
            ("broker", "77"): ErrorCode.BROKER_ID_NOT_REGISTERED,
        }
        await becomes(admin, ORDERS, "retention.ms", "60000")
        own = await admin.describe_configs([ORDERS], names="retention.ms", include_synonyms=True)
        retention = own[ORDERS]["retention.ms"]
        assert (retention.value, retention.source) == ("60000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
        assert retention.synonyms[0].value == "60000"
        await becomes(admin, ORDERS, "cleanup.policy", "delete,compact")
        await becomes(admin, ("group", "g"), SESSION, "50000")

        # All or nothing: the second is wrong, so the first is not made.
        both = {"retention.ms": "70000", "min.insync.replicas": "many"}
        refused = await admin.alter_configs({ORDERS: both})
        assert refused.failed[ORDERS].code is ErrorCode.INVALID_CONFIG
        back = {"retention.ms": None, "cleanup.policy": ConfigSubtract("compact")}
        (await admin.alter_configs({ORDERS: back, ("group", "g"): {SESSION: None}})).all()
        await becomes(admin, ORDERS, "retention.ms", "604800000")
        await becomes(admin, ORDERS, "cleanup.policy", "delete")


@asynchronous
async def test_a_broker_is_changed_by_itself(bootstrap):
    name = "message.max.bytes"
    async with AdminClient(bootstrap) as admin:
        first = ("broker", str((await admin.describe_cluster())[0].node_id))
        before = await value(admin, first, name)
        for change, after in (("2000000", "2000000"), (None, before)):
            (await admin.alter_configs({first: {name: change}})).all()
            await becomes(admin, first, name, after)


@asynchronous
async def test_what_has_configs_is_listed(bootstrap):
    async with AdminClient(bootstrap) as admin:
        (await admin.alter_configs({("group", "listed"): {SESSION: "50000"}})).all()
        nodes = await admin.describe_cluster()
        assert await admin.list_config_resources("broker") == tuple(
            ("broker", str(node.node_id)) for node in nodes
        )
        await becomes(admin, ("group", "listed"), SESSION, "50000")
        assert ORDERS in await admin.list_config_resources(["topic", "group"])
        everything = await admin.list_config_resources()
        assert {("group", "listed"), ORDERS} <= set(everything)
        assert list(everything) == sorted(everything)
        assert all(isinstance(resource.type, ConfigResourceType) for resource in everything)
        (await admin.alter_configs({("group", "listed"): {SESSION: None}})).all()
