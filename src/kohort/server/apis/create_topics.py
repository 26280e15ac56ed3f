# SPDX-License-Identifier: Apache-2.0
"""CreateTopics, and topics that are created because a client has asked for them."""

from collections import Counter
from collections.abc import Sequence

from kohort.config import BrokerConfig, ConfigError, check_topic_together, checked_topic_config
from kohort.errors import ApiError, ErrorCode, StorageError
from kohort.machines.effects import Call, Client
from kohort.server.access import DESCRIBE_CONFIGS, TOPIC, may_create
from kohort.server.apis.describe_configs import created_configs
from kohort.server.apis.topic_changes import (
    change_in_parts,
    check_room,
    check_time,
    checked_assignment,
    judged_topics,
)
from kohort.server.catalog import PARTITIONS_MAX, Draft, Topic, check_topic_name
from kohort.server.node import Node
from kohort.server.partitions.disk_work import Finish
from kohort.server.requests.piecewise import answer_in_pieces
from kohort.storage.directory import KAFKA_METADATA
from kohort.terms import Millis, TopicId
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
)


def create_by_default(node: Node, name: str) -> None:
    """Create a topic that a client has asked about, unless another request creates it first. No
    answer waits for it: clients ask again. Raises ApiError for an invalid name.
    """
    check_topic_name(name)

    def change(draft: Draft) -> Finish:
        try:
            draft.refuse_name(name)
            check_room(node, draft, name, node.cluster.config.num_partitions)
            draft.put(
                Topic(
                    name=name,
                    topic_id=TopicId(node.cluster.new_uuid()),
                    partitions=node.cluster.config.num_partitions,
                    replication_factor=_replication_factor(node, -1),
                )
            )
        except ApiError as refused:
            why = refused.message
            return lambda _error: node.cluster.topic_creation_failures.note(name, why)
        return lambda error: _note(node, name, error)

    node.cluster.table.change(change)


def _note(node: Node, name: str, error: StorageError | None) -> None:
    if error is not None:
        node.cluster.topic_creation_failures.note(name, error, failed=True)


def create_topics(node: Node, call: Call[CreateTopicsRequest], _now: Millis) -> None:
    """Each topic is created or refused by itself; `validate_only` leaves it at the checks."""
    request = call.request
    check_time(request.timeout_ms, request.topics)
    _check_size(request.topics, node.cluster.config.num_partitions)

    def check_allowed(name: str) -> None:
        """Raises ApiError. Upstream refuses the log of its controllers before all else."""
        if name == KAFKA_METADATA:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
            )
        if not may_create(node.cluster.may, call.client, name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")

    counts = Counter(topic.name for topic in request.topics)

    def judge(draft: Draft, asked: Sequence[CreatableTopic]) -> dict[str, Topic | ApiError]:
        return judged_topics(node, draft, asked, counts, check_allowed, _checked)

    def answer(judged: dict[str, Topic | ApiError]) -> None:
        told = _Configs(node)
        created = (_created(node, call.client, *item, told) for item in judged.items())
        answer_in_pieces(node, call, "topics", created)

    change_in_parts(node, call, request.topics, judge, answer, validate_only=request.validate_only)


class _Configs:
    """The settings of topics, made once for all that have none of their own: each has dozens."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._default: list[CreatableTopicConfigs] | None = None

    def of(self, topic: Topic) -> list[CreatableTopicConfigs]:
        if topic.configs:
            return created_configs(self._node, topic)
        if self._default is None:
            self._default = created_configs(self._node, topic)
        return self._default


def _created(
    node: Node, client: Client, name: str, outcome: Topic | ApiError, told: _Configs
) -> CreatableTopicResult:
    if isinstance(outcome, ApiError):
        return CreatableTopicResult(
            name=name, error_code=outcome.code, error_message=outcome.message or None, configs=[]
        )
    if not node.cluster.may(client, DESCRIBE_CONFIGS, TOPIC, name):
        return CreatableTopicResult(
            name=name,
            topic_id=outcome.topic_id,
            error_code=0,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            configs=[],
        )
    return CreatableTopicResult(
        name=name,
        topic_id=outcome.topic_id,
        error_code=0,
        error_message=None,
        num_partitions=outcome.partitions,
        replication_factor=outcome.replication_factor,
        configs=told.of(outcome),
    )


def _checked(node: Node, draft: Draft, wanted: CreatableTopic) -> Topic:
    """The topic as it will be. Raises ApiError."""
    draft.refuse_name(wanted.name)
    configs = _checked_configs(wanted.configs, node.cluster.config)
    if wanted.assignments:
        if wanted.replication_factor != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "A manual partition assignment was specified, "
                f"but the replication factor is {wanted.replication_factor}, expected -1.",
            )
        if wanted.num_partitions != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "A manual partition assignment was specified, "
                f"but the number of partitions is {wanted.num_partitions}, expected -1.",
            )
        given = {
            assignment.partition_index: list(assignment.broker_ids)
            for assignment in wanted.assignments
        }
        if sorted(given) != list(range(len(wanted.assignments))):
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Partitions {sorted(given)} are assigned, expected all from 0 on, once each.",
            )
        factor = checked_assignment(node, list(given.values()), None)
        partitions = len(given)
    else:
        given = {}
        # In upstream's order: an impossible factor, then the partitions, then too large a factor.
        _check_factor(wanted.replication_factor)
        partitions = _partition_count(node, wanted.num_partitions)
        factor = _replication_factor(node, wanted.replication_factor)
    check_room(node, draft, wanted.name, partitions)
    return Topic(
        name=wanted.name,
        topic_id=TopicId(node.cluster.new_uuid()),
        partitions=partitions,
        replication_factor=factor,
        configs=configs,
        assignments=given,
    )


def _checked_configs(
    wanted: Sequence[CreatableTopicConfig], broker: BrokerConfig
) -> dict[str, str]:
    """The settings of the topic. If one is given twice, the last counts. Raises ApiError."""
    texts: dict[str, str] = {}
    for config in wanted:
        if config.value is None:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Null value not supported for topic configs: {config.name}",
            )
        texts[config.name] = config.value
    try:
        configs = {name: checked_topic_config(name, text) for name, text in texts.items()}
        check_topic_together(configs, broker)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return configs


def _check_size(wanted: Sequence[CreatableTopic], default: int) -> None:
    """Raises ApiError, for all topics, where they would have too many partitions together."""
    total = 0
    for topic in wanted:
        count = default if topic.num_partitions == -1 else max(topic.num_partitions, 0)
        total += len(topic.assignments) or count
    if total > PARTITIONS_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {total}, "
            f"expected at most {PARTITIONS_MAX}.",
        )


def _partition_count(node: Node, wanted: int) -> int:
    if wanted == -1:
        return node.cluster.config.num_partitions
    if wanted < 1:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Number of partitions is {wanted}, expected at least 1, or -1 for the default.",
        )
    return wanted


def _check_factor(wanted: int) -> None:
    if wanted < 1 and wanted != -1:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor is {wanted}, expected at least 1, or -1 for the default.",
        )


def _replication_factor(node: Node, wanted: int) -> int:
    """The number of replicas to show. One copy is stored, whatever the number."""
    config = node.cluster.config
    nodes = len(node.cluster.placement.node_ids)
    if wanted == -1:
        wanted = config.default_replication_factor
    if wanted > nodes:
        if not config.auto_adjust_replication_factor:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Replication factor is {wanted}, expected at most {nodes}, the number of nodes "
                "(auto.adjust.replication.factor=true lowers it).",
            )
        return nodes
    return wanted
