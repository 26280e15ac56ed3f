# SPDX-License-Identifier: Apache-2.0
"""Everything that the clients of a broker can see of what `mutations` changes."""

from typing import Any

from tests.server.desk import Desk
from tests.server.mutations import (
    ANY,
    BROKER,
    CONCURRENT_TRANSACTIONS,
    GROUP,
    GROUP_ID_NOT_FOUND,
    GROUPS,
    KAFKA_STORAGE_ERROR,
    TOPIC,
)

from kohort.wire import batch as batches
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.describe_acls import DescribeAclsRequest
from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

View = dict[str, Any]


def view(desk: Desk) -> View:
    """Everything, a line for each thing. What cannot be asked for now is an error code."""
    seen: View = {}
    topics = {
        topic.name: len(topic.partitions)
        for topic in desk.ask(MetadataRequest(topics=None), 9).topics
    }
    for name, count in topics.items():
        seen[f"topic {name}"] = count
        if not name.startswith("__"):
            for index in range(count):
                seen[f"records of {name}-{index}"] = _records(desk, name, index, 0)
                seen[f"committed records of {name}-{index}"] = _records(desk, name, index, 1)
    seen |= _configs(desk)
    every = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    seen["acls"] = [one.resource_name for one in desk.ask(every, 3).resources]
    users = desk.ask(DescribeUserScramCredentialsRequest(users=None), 0).results
    seen["scram"] = [user.user for user in users]
    seen |= _groups(desk)
    for name in ("t", "u", "ended"):
        (of,) = desk.ask(
            DescribeTransactionsRequest(transactional_ids=[name]), 0
        ).transaction_states
        under_way = of.transaction_state.startswith("Prepare")
        seen[f"transaction {name}"] = (
            of.error_code
            or under_way * CONCURRENT_TRANSACTIONS
            or (
                of.transaction_state,
                of.producer_epoch,
                sorted((topic.topic, tuple(sorted(topic.partitions))) for topic in of.topics),
            )
        )
    return seen


def _configs(desk: Desk) -> View:
    wanted = [(TOPIC, "orders", "delete.retention.ms"), (TOPIC, "orders", "retention.ms")]
    wanted += [(BROKER, "", "message.max.bytes")]
    wanted += [(GROUP, "configured", "consumer.session.timeout.ms")]
    found = desk.ask(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=[key]
                )
                for kind, name, key in wanted
            ]
        ),
        4,
    ).results
    return {
        f"config {name} {key}": answer.error_code or [config.value for config in answer.configs]
        for (_, name, key), answer in zip(wanted, found, strict=True)
    }


def _records(desk: Desk, topic: str, index: int, isolation: int) -> Any:
    found: list[tuple[int, bytes]] = []
    offset = start = -1
    partition = desk.cluster.partition(topic, index)
    if partition is not None and partition.failed:
        return KAFKA_STORAGE_ERROR  # it is out of service, and what it had is still read
    while True:
        place = FetchPartition(
            partition=index, fetch_offset=max(offset, 0), partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[place])],
        )
        (answer,) = desk.ask(request, 12).responses[0].partitions
        if answer.error_code == 1 and start < 0:  # the log begins later
            assert partition is not None
            offset = start = partition.log.start
            continue
        if answer.error_code:
            return int(answer.error_code)
        if not answer.records:
            return max(start, 0), found
        for at, header in batches.walk(answer.records):
            offset = header.last_offset + 1
            if not header.is_control:
                data = answer.records[at : at + header.length]
                found += [(record.offset, record.value) for record in batches.records(data)]


def _groups(desk: Desk) -> View:
    seen: View = {}
    listed = desk.ask(ListGroupsRequest(), 5)
    (probe,) = desk.ask(DescribeGroupsRequest(groups=["committed"]), 5).groups
    seen["groups"] = listed.error_code or (
        probe.error_code  # a list leaves out what is out of service
        if probe.error_code not in (0, GROUP_ID_NOT_FOUND)
        else sorted((group.group_id, group.group_type) for group in listed.groups)
    )
    for name in GROUPS:
        asked = OffsetFetchRequestGroup(group_id=name, topics=None)
        (group,) = desk.ask(OffsetFetchRequest(groups=[asked]), 9).groups
        seen[f"offsets of {name}"] = group.error_code or [
            (topic.name, [place.committed_offset for place in topic.partitions])
            for topic in group.topics
        ]
    (classic,) = desk.ask(DescribeGroupsRequest(groups=["classic"]), 5).groups
    seen["members of classic"] = classic.error_code or (classic.group_state, len(classic.members))
    (new,) = desk.ask(DescribeGroupsRequest(groups=["new"]), 5).groups
    stable = new.group_state == "Stable"  # before that nothing of a classic group is for good
    seen["members of new"] = new.error_code or (stable, stable and len(new.members))
    seen["groups"] = (
        [row for row in seen["groups"] if row[0] in GROUPS[:-1]]
        if isinstance(seen["groups"], list)
        else seen["groups"]
    )
    request = ConsumerGroupDescribeRequest(
        group_ids=["consumer"], include_authorized_operations=False
    )
    (group,) = desk.ask(request, 1).groups
    seen["members of consumer"] = group.error_code or (
        group.group_epoch,
        sorted(member.member_id for member in group.members),
    )
    return seen
