# SPDX-License-Identifier: Apache-2.0
"""A program that a type checker has nothing against. It is checked, and not run."""

import asyncio
import json
from datetime import UTC, datetime

from kohort import (
    AdminClient,
    ApiError,
    CommittedOffset,
    ConfigAppend,
    ConfigResource,
    ConfigResourceType,
    Consumer,
    ConsumerRecord,
    CreatedTopic,
    FeatureUpdate,
    GroupState,
    Listings,
    MemberToRemove,
    NewTopic,
    OffsetReset,
    Outcomes,
    Producer,
    Security,
    Store,
    SyncAdminClient,
    TopicDescription,
    TopicPartition,
    TransactionState,
)


def amount(record: ConsumerRecord[str, dict[str, int]]) -> int:
    return len(record.key) + record.value["amount"]


async def consume() -> None:
    everything = {"bootstrap.servers": "127.0.0.1:9092", "group.id": "billing"}
    plain = Consumer("orders", bootstrap_servers=everything)
    async with Consumer(
        "orders",
        bootstrap_servers=["127.0.0.1:9092"],
        group_id="billing",
        group_protocol="classic",
        partition_assignment_strategy=("range", "roundrobin"),
        session_timeout_ms=10_000,
        enable_auto_commit=False,
        auto_offset_reset="by_duration:PT1H",
        isolation_level="read_committed",
        key_deserializer=bytes.decode,
        value_deserializer=json.loads,
        socket_connection_setup_timeout_ms=1000,
        security_protocol="SASL_SSL",
        ssl_cafile="ca.pem",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username="u",
        sasl_plain_password="p",
    ) as consumer:
        record: ConsumerRecord[str, dict[str, int]] = await consumer.getone()
        print(amount(record), plain.settings.group_id)
        if record.timestamp_type == "append":
            print(record.timestamp_ms)
        pair, place = ("orders", 0), TopicPartition("orders", 0)
        await consumer.commit({pair: 1})
        await consumer.commit({place: 1})
        await consumer.commit({place: CommittedOffset(1, metadata="x")})
        await consumer.seek_to_time({place: datetime.now(UTC)})
        await consumer.offsets_for_times({pair: "earliest"})
        async with Producer(
            transactional_id="b", acks="all", compression_type="zstd", linger_ms=5
        ) as producer:
            who = consumer.group_metadata()
            await producer.send_offsets_to_transaction({pair: 1}, who)
            await producer.send_offsets_to_transaction({place: 1}, who)
            await producer.send_offsets_to_transaction({place: CommittedOffset(1)}, "billing")


async def prove() -> None:
    async with AdminClient("h:9093", security_protocol="SSL", ssl_check_hostname=False) as admin:
        await admin.list_groups()
    security = Security(protocol="SSL", trust=Store(path="ca.pem"))
    Producer(bootstrap_servers="h:9093", security=security)


async def reset(admin: AdminClient) -> dict[TopicPartition, CommittedOffset]:
    async for group_id, outcome in admin.describe_groups(["billing"], timeout=2):
        if not isinstance(outcome, ApiError):
            print(group_id.upper(), outcome.state)
    asking = asyncio.create_task(admin.list_group_offsets("billing"))
    print((await asking)["billing"].keys(), (await admin.list_groups()).missing)
    plan = await admin.plan_offset_reset("billing", OffsetReset.shift_by(-1), ["orders"])
    (await admin.alter_group_offsets(plan.group_id, plan.offsets)).all()
    await admin.alter_group_offsets("billing", {("orders", 0): 5})
    await admin.delete_group_offsets("billing", ["orders", ("refunds", 0)])
    await admin.remove_members("billing", ["i-1", MemberToRemove("m-1")], reason="gone")
    return plan.offsets


async def administrate() -> None:
    async with AdminClient("127.0.0.1:9092", client_id="me", timeout=3) as admin:
        await admin.list_groups(states=["Stable", GroupState.EMPTY], types=["consumer"])
        await admin.list_groups(states="Empty", types="classic")
        places = [TopicPartition("orders", 0)]
        await admin.list_offsets(dict.fromkeys(places, "latest"))
        await admin.list_offsets({("orders", 0): 17})
        await admin.end_offsets([("orders", 0)])
        await admin.create_topics([NewTopic("orders", 3)])
        print((await admin.describe_cluster()).away)
        await admin.describe_configs([("topic", "orders")], names="retention.ms")
        await admin.alter_configs({("topic", "orders"): {"retention.ms": "1", "x": None}})
        append = ConfigAppend("compact")
        await admin.alter_configs({("topic", "orders"): {"cleanup.policy": append}})
        await admin.delete_records({("orders", 0): 3})
        await admin.delete_records({TopicPartition("orders", 0): "latest"})
        by_bytes: Outcomes[bytes, TopicDescription] = await admin.describe_topics_by_id(bytes(16))
        by_text: Outcomes[str, None] = await admin.delete_topics_by_id(["xqyxgaPuTW2GHwNLcu5D3Q"])
        await admin.list_transactions(states=["Ongoing", TransactionState.EMPTY])
        await admin.elect_leaders("unclean", [("orders", 0)])
        await admin.update_features({"group.version": FeatureUpdate(0, "safe_downgrade")})
        print(by_bytes, by_text)


def administrate_without_asyncio() -> None:
    with SyncAdminClient("127.0.0.1:9092", timeout=3, security_protocol="SSL") as admin:
        listings: Listings = admin.list_groups(states="Stable")
        print([group.group_id.upper() for group in listings], admin.describe_cluster().away)
        topics: Outcomes[str, CreatedTopic] = admin.create_topics([NewTopic("orders", 3)])
        orders = topics["orders"].partitions
        resource = ConfigResource(ConfigResourceType.TOPIC, "orders")
        described = admin.describe_configs([resource], include_synonyms=True)
        print(orders, described[resource]["retention.ms"].value)
        by_text: Outcomes[str, None] = admin.delete_topics_by_id(["xqyxgaPuTW2GHwNLcu5D3Q"])
        failed: dict[str, ApiError] = by_text.failed
        print(failed)
        for group_id, outcome in admin.iterate.describe_groups(["billing"], timeout=5):
            state = outcome.message if isinstance(outcome, ApiError) else outcome.state
            print(group_id.upper(), state)
