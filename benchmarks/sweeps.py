# SPDX-License-Identifier: Apache-2.0
"""One look at all groups of a cluster by an admin client: list, describe, committed offsets.

python benchmarks/sweeps.py kohort|kafka-python|confluent-kafka HOST:PORT

`benchmarks/tools.py` runs each in a process of its own. It prints how many groups and offsets it
found, so that nobody is quick because he missed some.
"""

import asyncio
import sys


async def _kohort(bootstrap: str) -> tuple[int, int]:
    from kohort import AdminClient

    async with AdminClient(bootstrap) as admin:
        ids = [group.group_id for group in await admin.list_groups()]
        described = (await admin.describe_groups(ids)).all()
        offsets = (await admin.list_group_offsets(ids)).all()
    return len(described), sum(map(len, offsets.values()))


def kohort(bootstrap: str) -> tuple[int, int]:
    return asyncio.run(_kohort(bootstrap))


def kafka_python(bootstrap: str) -> tuple[int, int]:
    from kafka import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    ids = [group["group_id"] for group in admin.list_groups()]
    described = admin.describe_groups(ids)
    offsets = admin.list_group_offsets(dict.fromkeys(ids))
    admin.close()
    return len(described), sum(map(len, offsets.values()))


def confluent_kafka(bootstrap: str) -> tuple[int, int]:
    """Its call for offsets takes one group, so they are all asked before the first one answers."""
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    ids = [group.group_id for group in admin.list_consumer_groups().result().valid]
    described = [found.result() for found in admin.describe_consumer_groups(ids).values()]
    asked = [
        found
        for id_ in ids
        for found in admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(id_)]).values()
    ]
    offsets = [found.result() for found in asked]
    return len(described), sum(len(found.topic_partitions) for found in offsets)


CLIENTS = {"kohort": kohort, "kafka-python": kafka_python, "confluent-kafka": confluent_kafka}

if __name__ == "__main__":
    groups, offsets = CLIENTS[sys.argv[1]](sys.argv[2])
    print(groups, offsets)
