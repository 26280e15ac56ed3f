"""Brokers, topics by id, records and leaders of whole brokers: ours, and Apache Kafka."""

import pytest
from tests.client.scripted import asynchronous
from tests.client.whole_brokers import WHOLE_BROKERS, create_topic, whole_broker

from kohort import AclOperation, AdminClient, TopicPartition

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture(scope="module", params=WHOLE_BROKERS)
def bootstrap(request):
    with whole_broker(request.param) as address:
        create_topic(address, "orders", 2)
        yield address


@asynchronous
async def test_a_cluster_is_described_with_its_rights(bootstrap):
    async with AdminClient(bootstrap) as admin:
        nodes = await admin.describe_cluster()
        assert len(nodes.cluster_id) == 22
        assert nodes.controller_id in [node.node_id for node in nodes]
        assert nodes.authorized_operations is None
        whole = await admin.describe_cluster(
            include_authorized_operations=True, include_fenced_brokers=True
        )
        assert whole == nodes
        assert (whole.cluster_id, whole.away) == (nodes.cluster_id, ())
        assert {AclOperation.ALTER, AclOperation.CREATE} <= whole.authorized_operations
        assert AclOperation.READ not in whole.authorized_operations
