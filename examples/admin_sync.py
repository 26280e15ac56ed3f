# SPDX-License-Identifier: Apache-2.0
"""SyncAdminClient: what an operator does between two incidents, in a program without asyncio.

`python examples/admin_sync.py HOST:PORT` asks your cluster, and changes nothing. Without an address
it asks a broker in memory.
"""

import sys

import kohort
from kohort.testing import Broker

DAY_MS = str(24 * 60 * 60 * 1000)


def report(admin: kohort.SyncAdminClient) -> None:
    nodes = admin.describe_cluster()
    print(f"cluster {nodes.cluster_id}: {len(nodes)} brokers, controller {nodes.controller_id}")

    sizes: dict[str, int] = {}
    for directories in admin.describe_log_dirs().succeeded.values():
        for directory in directories.values():
            for partition, replica in directory.replicas.items():
                sizes[partition.topic] = sizes.get(partition.topic, 0) + replica.size_bytes
    for topic, size in sorted(sizes.items()):
        print(f"topic {topic}: {size} bytes")

    resources = [("topic", topic.name) for topic in admin.list_topics()]
    for resource, entries in admin.describe_configs(resources).succeeded.items():
        for name, entry in entries.items():
            if entry.source is kohort.ConfigSource.DYNAMIC_TOPIC_CONFIG:
                print(f"topic {resource.name} has {name} = {entry.value}")

    stale = admin.list_transactions(states="Ongoing", min_duration_ms=60_000)
    print(f"{len(stale)} transactions are open for more than a minute")


def try_it() -> None:
    """Ask a broker in this process, and change something as well."""
    with Broker(in_memory=True) as broker, kohort.SyncAdminClient(broker.bootstrap) as admin:
        admin.create_topics([kohort.NewTopic("orders", partitions=3)]).all()
        broker.produce("orders", {"id": 1}, {"id": 2})
        changes = {("topic", "orders"): {"retention.ms": DAY_MS}}
        admin.alter_configs(changes, validate_only=True).all()  # a dry run raises what it finds
        admin.alter_configs(changes).all()
        report(admin)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with kohort.SyncAdminClient(sys.argv[1], timeout=10) as client:
            report(client)
    else:
        try_it()
