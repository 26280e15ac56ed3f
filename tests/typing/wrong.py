# SPDX-License-Identifier: Apache-2.0
"""Mistakes that a type checker finds, each in its line. The program is checked, and not run."""

from kohort import AdminClient, Consumer, ConsumerRecord, Producer, SyncAdminClient

Consumer("orders", grup_id="billing")  # wrong: a name
Consumer("orders", group_id=3)  # wrong: a type
Consumer("orders", group_protocol="clasic")  # wrong: a word
Consumer("orders", isolation_level="committed")  # wrong: a word
Consumer("orders", partition_assignment_strategy=["rang"])  # wrong: a word
Consumer("orders", session_timeout_ms="soon")  # wrong: a type
Consumer("orders", enable_auto_commit="perhaps")  # wrong: a type
Consumer("orders", value_deserializer=3)  # wrong: a type
Consumer("orders", acks="all")  # wrong: of a producer
Consumer("orders", ssl_cafile=3)  # wrong: a type
Consumer("orders", sasl_username="u")  # wrong: of librdkafka
Consumer(["orders"])  # wrong: a list
Consumer({"group.id": "billing"})  # wrong: settings in place of a topic
Producer(acks="alll")  # wrong: a word
Producer(compression_type="zip")  # wrong: a word
Producer(linger=5)  # wrong: a name
Producer(linger_ms="5 s")  # wrong: a type
Producer(enable_idempotence="yes")  # wrong: a type
Producer(group_id="billing")  # wrong: of a consumer
AdminClient("127.0.0.1:9092", clientid="me")  # wrong: a name
AdminClient("127.0.0.1:9092", timeout="3 s")  # wrong: a type


async def call(consumer: Consumer, producer: Producer, admin: AdminClient) -> None:
    await consumer.commit({"orders": 1})  # wrong: no partition
    await consumer.commit({("orders", "0"): 1})  # wrong: no number
    await consumer.commit({("orders", 0): "1"})  # wrong: no offset
    await producer.send_offsets_to_transaction({"orders": 1}, "billing")  # wrong: no partition
    await admin.list_groups(states=["stabel"])  # wrong: no state
    await admin.list_groups(types=["modern"])  # wrong: no type
    await admin.list_offsets({"orders": "latest"})  # wrong: no partition
    await admin.alter_configs({("topic", "orders"): {"retention.ms": 5}})  # wrong: a number
    await admin.delete_records({("orders", 0): None})  # wrong: no offset
    await admin.elect_leaders("uncle")  # wrong: a word
    await admin.describe_topics_by_id([3])  # wrong: no id
    await admin.alter_group_offsets("billing", {"orders": 5})  # wrong: no partition
    await admin.plan_offset_reset("billing", "earliest")  # wrong: no OffsetReset
    async for group in admin.list_groups():
        print(group.group_id)  # wrong: the groups of a broker
    record: ConsumerRecord[str, int] = await consumer.getone()
    record.value.upper()  # wrong: a number
    record.key + 1  # wrong: a text


SyncAdminClient("127.0.0.1:9092", clientid="me")  # wrong: a name
SyncAdminClient("127.0.0.1:9092", timeout="3 s")  # wrong: a type


def wait(admin: SyncAdminClient) -> None:
    admin.list_groups(states=["stabel"])  # wrong: no state
    admin.list_groups(state="Stable")  # wrong: a name
    admin.create_topics("orders", 3)  # wrong: too many
    admin.list_topics()["orders"]  # wrong: a tuple
    admin.list_offsets({"orders": "latest"})  # wrong: no partition
    admin.describe_topics_by_id([3])  # wrong: no id
    admin.describe_cluster().nodes()  # wrong: no attribute
