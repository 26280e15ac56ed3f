# SPDX-License-Identifier: Apache-2.0
"""What a broker does not serve is refused by the client, before anything is sent."""

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import ClientQuotaEntity, ErrorCode, FeatureUpdate, Outcomes, UnsupportedVersionError

PLACE = ("t", 0)
TOPIC = ("topic", "t")
CALLS = [
    ("DescribeConfigs", lambda admin: admin.describe_configs([TOPIC])),
    ("IncrementalAlterConfigs", lambda admin: admin.alter_configs({TOPIC: {"a": "1"}})),
    ("ListConfigResources", lambda admin: admin.list_config_resources()),
    ("DescribeCluster", lambda admin: admin.describe_cluster(include_authorized_operations=True)),
    ("DeleteTopics", lambda admin: admin.delete_topics_by_id(bytes(16))),
    ("DeleteRecords", lambda admin: admin.delete_records({PLACE: 1})),
    ("ElectLeaders", lambda admin: admin.elect_leaders("preferred", [PLACE])),
    ("ElectLeaders", lambda admin: admin.elect_leaders()),
    ("DescribeProducers", lambda admin: admin.describe_producers([PLACE])),
    ("ListTransactions", lambda admin: admin.list_transactions()),
    ("DescribeTransactions", lambda admin: admin.describe_transactions("x")),
    ("InitProducerId", lambda admin: admin.fence_producers("x")),
    (
        "WriteTxnMarkers",
        lambda admin: admin.abort_transaction(PLACE, producer_id=1, producer_epoch=1),
    ),
    ("DescribeLogDirs", lambda admin: admin.describe_log_dirs()),
    (
        "AlterPartitionReassignments",
        lambda admin: admin.alter_partition_reassignments({PLACE: [1]}),
    ),
    ("ListPartitionReassignments", lambda admin: admin.list_partition_reassignments()),
    ("DescribeClientQuotas", lambda admin: admin.describe_client_quotas()),
    (
        "AlterClientQuotas",
        lambda admin: admin.alter_client_quotas({ClientQuotaEntity({"user": "u"}): {}}),
    ),
    ("CreateDelegationToken", lambda admin: admin.create_delegation_token()),
    ("RenewDelegationToken", lambda admin: admin.renew_delegation_token(b"hmac")),
    ("ExpireDelegationToken", lambda admin: admin.expire_delegation_token(b"hmac")),
    ("DescribeDelegationToken", lambda admin: admin.describe_delegation_tokens()),
    ("UpdateFeatures", lambda admin: admin.update_features({"f": FeatureUpdate(1)})),
]


@pytest.mark.parametrize(("api", "call"), CALLS)
@asynchronous
async def test_it_is_named_and_not_sent(api, call):
    async with ScriptedCluster(1) as scripted, scripted.admin() as admin:
        scripted.topics = {"t": [0]}
        scripted.offer(api, None)
        try:
            outcomes = await call(admin)
        except UnsupportedVersionError as error:
            said = str(error)
        else:
            assert isinstance(outcomes, Outcomes)
            (error,) = outcomes.failed.values()
            assert error.code is ErrorCode.UNSUPPORTED_VERSION
            said = error.message
    assert f"does not offer {api}" in said
    assert set(scripted.names()) <= {"FindCoordinator"}
