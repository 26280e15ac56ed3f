# SPDX-License-Identifier: Apache-2.0
"""The topics of the coordinators: their settings, and the one that is made when it is first needed.

A broker has groups from the start, and transactions once somebody asks for them.
"""

from collections.abc import Callable

from kohort.config import BrokerConfig
from kohort.errors import ApiError, ErrorCode, StorageError
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Draft, Topic
from kohort.server.cluster import Cluster
from kohort.server.partitions.disk_work import Finish
from kohort.terms import TopicId


def internal_configs(name: str, config: BrokerConfig) -> dict[str, str]:
    """The settings with which a topic of this name is made; none for any other topic."""
    if name == OFFSETS_TOPIC:
        return _compacted(config.offsets_topic_segment_bytes, "producer")
    if name == TRANSACTIONS_TOPIC:
        return _compacted(config.transaction_state_log_segment_bytes, "uncompressed")
    return {}


def _compacted(segment_bytes: int, compression: str) -> dict[str, str]:
    return {
        "cleanup.policy": "compact",
        "compression.type": compression,
        "segment.bytes": str(segment_bytes),
    }


def create_transactions_topic(cluster: Cluster, then: Callable[[ApiError | None], None]) -> None:
    """Create the topic of transactions, unless it exists by then; tell `then` how that went."""

    def change(draft: Draft) -> Finish:
        count = cluster.config.transaction_state_log_num_partitions
        if TRANSACTIONS_TOPIC not in draft.by_name:
            if draft.partitions + count > cluster.config.max_partitions:
                refusal = ApiError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    f"there is no room for the {count} partitions of {TRANSACTIONS_TOPIC}: "
                    f"max.partitions is {cluster.config.max_partitions}",
                )
                cluster.observe.warning(refusal.message)
                return lambda _error: then(refusal)
            shares = cluster.shares_with(count)
            if shares.missing:
                refused = ApiError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    f"the {count} logs of {TRANSACTIONS_TOPIC} would always be open: {shares}",
                )
                cluster.observe.warning(refused.message)
                return lambda _error: then(refused)
            draft.put(
                Topic(
                    name=TRANSACTIONS_TOPIC,
                    topic_id=TopicId(cluster.new_uuid()),
                    partitions=count,
                    replication_factor=1,
                    configs=internal_configs(TRANSACTIONS_TOPIC, cluster.config),
                )
            )
        return lambda error: then(_refusal(error))

    cluster.table.change(change)


def _refusal(error: StorageError | None) -> ApiError | None:
    if error is None:
        return None
    return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))
