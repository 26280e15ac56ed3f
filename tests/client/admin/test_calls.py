# SPDX-License-Identifier: Apache-2.0
"""What all calls of the admin client have in common."""

import inspect
import re
from pathlib import Path

import pytest
from tests.client.scripted import asynchronous

from kohort.client.admin import AdminClient, ClientQuotaEntity, FeatureUpdate, OffsetReset

ARGUMENTS = {
    "alter_client_quotas": [{ClientQuotaEntity({"user": "u"}): {"consumer_byte_rate": 1.0}}],
    "alter_partition_reassignments": [{("t", 0): [1]}],
    "expire_delegation_token": [b"hmac"],
    "renew_delegation_token": [b"hmac"],
    "abort_transaction": [("t", 0)],
    "alter_configs": [{("topic", "t"): {"x": "1"}}],
    "alter_group_configs": [{"g": {"x": "1"}}],
    "alter_group_offsets": ["g", {("t", 0): 1}],
    "create_partitions": [{"t": 3}],
    "delete_group_offsets": ["g", "t"],
    "plan_offset_reset": ["g", OffsetReset.earliest()],
    "remove_members": ["g", "i"],
    "delete_records": [{("t", 0): 1}],
    "list_offsets": [{("t", 0): "latest"}],
    "time_lags": [{("t", 0): 1}],
    "update_features": [{"f": FeatureUpdate(1)}],
}
CALLS = [
    name
    for name, value in inspect.getmembers(AdminClient, inspect.isfunction)
    if not name.startswith("_") and name != "close"
]


def awaitable(admin, name, **options):
    """A call with arguments that make sense, as far as any must be given."""
    call = getattr(admin, name)
    needed = [
        each for each in inspect.signature(call).parameters.values() if each.default is each.empty
    ]
    numbers = {each.name: 0 for each in needed if each.kind is each.KEYWORD_ONLY}
    given = [[] for each in needed if each.kind is each.POSITIONAL_OR_KEYWORD]
    return call(*ARGUMENTS.get(name, given), **numbers, **options)


@pytest.mark.parametrize("name", CALLS)
@asynchronous
async def test_a_client_that_is_closed_asks_nothing(name):
    admin = AdminClient("127.0.0.1:1")
    await admin.close()
    with pytest.raises(ValueError, match="the admin client is closed"):
        await awaitable(admin, name)


@pytest.mark.parametrize("name", CALLS)
@asynchronous
async def test_a_timeout_of_a_call_is_looked_at_before_anything_is_asked(name):
    admin = AdminClient("127.0.0.1:1")
    with pytest.raises(ValueError, match="timeout is 0, expected"):
        await awaitable(admin, name, timeout=0)


@pytest.mark.parametrize("name", CALLS)
def test_every_call_may_have_a_timeout_of_its_own(name):
    """K518-28, K709-35."""
    timeout = inspect.signature(getattr(AdminClient, name)).parameters.get("timeout")
    assert timeout is not None
    assert (timeout.kind, timeout.default) == (timeout.KEYWORD_ONLY, None)


JAVA = """
abortTransaction addRaftVoter alterClientQuotas alterConsumerGroupOffsets
alterPartitionReassignments alterReplicaLogDirs alterShareGroupOffsets alterStreamsGroupOffsets
alterUserScramCredentials clientInstanceId close create createAcls createDelegationToken
createPartitions createTopics deleteAcls deleteConsumerGroupOffsets deleteConsumerGroups
deleteRecords deleteShareGroupOffsets deleteShareGroups deleteStreamsGroupOffsets
deleteStreamsGroups deleteTopics describeAcls describeClassicGroups describeClientQuotas
describeCluster describeConfigs describeConsumerGroups describeDelegationToken describeFeatures
describeLogDirs describeMetadataQuorum describeProducers describeReplicaLogDirs describeShareGroups
describeStreamsGroups describeTopics describeTransactions describeUserScramCredentials electLeaders
expireDelegationToken fenceProducers forceTerminateTransaction incrementalAlterConfigs
listClientMetricsResources listConfigResources listConsumerGroupOffsets listConsumerGroups
listGroups listOffsets listPartitionReassignments listShareGroupOffsets listStreamsGroupOffsets
listTopics listTransactions metrics registerMetricForSubscription removeMembersFromConsumerGroup
removeRaftVoter renewDelegationToken unregisterBroker unregisterMetricFromSubscription
updateFeatures
"""
"""The methods of Java's Admin in Apache Kafka 4.3.1."""


def test_the_documents_say_of_every_method_of_java_what_to_call_here():
    text = (Path(__file__).parents[3] / "docs" / "from-other-clients.md").read_text()
    rows = [row.split(" | ") for row in text.splitlines() if row.startswith("| ")]
    named = {name for row in rows for cell in row[:-1] for name in re.findall(r"`(\w+)", cell)}
    assert sorted(set(JAVA.split()) - named) == []
    assert [name for name in CALLS if f"{name}(" not in text and f"`{name}`" not in text] == []
