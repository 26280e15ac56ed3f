"""CreateTopics, DeleteTopics, CreatePartitions: topic by topic, each with its own answer."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kohort.config import ConfigError, checked_topic_config
from kohort.coordinator.effects import Call
from kohort.errors import ApiError, ErrorCode, StorageError
from kohort.server.apis.configs import created_configs
from kohort.server.catalog import Topic
from kohort.terms import NO_TOPIC_ID, Millis, TopicId
from kohort.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kohort.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from kohort.server.node import Node

Asked = TypeVar("Asked", CreatableTopic, CreatePartitionsTopic)

_PARTITIONS_MAX = 10_000  # of one topic; upstream takes as many in one request


def create_by_default(node: "Node", name: str, now: Millis) -> None:
    """Create a topic that somebody has asked about. Raises ApiError."""
    config = node.cluster.config
    node.cluster.catalog.refuse_name(name)
    topic = Topic(
        name=name,
        topic_id=TopicId(node.cluster.new_uuid()),
        partitions=config.num_partitions,
        replication_factor=_replication_factor(node, -1),
    )
    try:
        node.cluster.catalog.create(topic)
    except StorageError as error:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
    node.cluster.topics_changed(now)


def create_topics(
    node: "Node", call: Call[CreateTopicsRequest], now: Millis
) -> CreateTopicsResponse:
    """Each topic is created or refused by itself; `validate_only` leaves it at the checks."""
    request = call.request
    judged = _judged(node, request.topics, _checked)
    if not request.validate_only and _write(judged, node.cluster.catalog.create):
        node.cluster.topics_changed(now)
    return CreateTopicsResponse(topics=[_created(node, *one) for one in judged.items()])


def _judged(
    node: "Node",
    asked: Sequence[Asked],
    judge: Callable[["Node", Asked], Topic],
) -> dict[str, Topic | ApiError]:
    """What becomes of each topic that is asked for, by name: one named twice is refused, once."""
    counts = Counter(one.name for one in asked)
    judged: dict[str, Topic | ApiError] = {}
    for one in asked:
        if one.name not in judged:
            try:
                _check_once(counts[one.name], "name")
                judged[one.name] = judge(node, one)
            except ApiError as error:
                judged[one.name] = error
    return judged


def _created(node: "Node", name: str, outcome: Topic | ApiError) -> CreatableTopicResult:
    if isinstance(outcome, ApiError):
        return CreatableTopicResult(
            name=name, error_code=outcome.code, error_message=outcome.message or None, configs=[]
        )
    return CreatableTopicResult(
        name=name,
        topic_id=outcome.topic_id,
        error_code=0,
        error_message=None,
        num_partitions=outcome.partitions,
        replication_factor=outcome.replication_factor,
        configs=created_configs(node, outcome),
    )


def _write(judged: dict[Any, Topic | ApiError], write: Callable[..., None]) -> bool:
    """Write everything that has passed at once, or refuse it; whether something was written."""
    passed = {key: one for key, one in judged.items() if isinstance(one, Topic)}
    if not passed:
        return False
    try:
        write(*passed.values())
    except StorageError as error:
        full = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        judged.update(dict.fromkeys(passed, full))
        return False
    return True


def _check_once(count: int, what: str) -> None:
    """Upstream answers what is named twice once, with an error."""
    if count > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")


def _checked(node: "Node", wanted: CreatableTopic) -> Topic:
    """The topic as it will be. Raises ApiError."""
    node.cluster.catalog.refuse_name(wanted.name)
    configs = _checked_configs(wanted.configs)
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
        given = {one.partition_index: list(one.broker_ids) for one in wanted.assignments}
        if sorted(given) != list(range(len(wanted.assignments))):
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Partitions {sorted(given)} are assigned, expected all from 0 on, once each.",
            )
        factor = _checked_assignment(node, list(given.values()), None)
        partitions = len(given)
    else:
        given = {}
        factor = _replication_factor(node, wanted.replication_factor)
        partitions = _partition_count(node, wanted.num_partitions)
    return Topic(
        name=wanted.name,
        topic_id=TopicId(node.cluster.new_uuid()),
        partitions=partitions,
        replication_factor=factor,
        configs=configs,
        assignments=given,
    )


def _checked_configs(wanted: Sequence[CreatableTopicConfig]) -> dict[str, str]:
    configs: dict[str, str] = {}
    for config in wanted:
        if config.value is None:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Null value not supported for topic configs: {config.name}",
            )
        try:
            configs[config.name] = checked_topic_config(config.name, config.value)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return configs


def _partition_count(node: "Node", wanted: int) -> int:
    if wanted == -1:
        return node.cluster.config.num_partitions
    if wanted < 1:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Number of partitions is {wanted}, expected at least 1, or -1 for the default.",
        )
    if wanted > _PARTITIONS_MAX:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Number of partitions is {wanted}, expected at most {_PARTITIONS_MAX}.",
        )
    return wanted


def _replication_factor(node: "Node", wanted: int) -> int:
    """Replicas as they will be shown: one copy is stored, whatever their number."""
    config = node.cluster.config
    nodes = len(node.cluster.node_ids)
    if wanted == -1:
        wanted = config.default_replication_factor
    elif wanted < 1:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor is {wanted}, expected at least 1, or -1 for the default.",
        )
    if wanted > nodes:
        if not config.auto_adjust_replication_factor:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Replication factor is {wanted}, expected at most {nodes}, the number of nodes "
                "(auto.adjust.replication.factor=true lowers it).",
            )
        return nodes
    return wanted


def _checked_assignment(
    node: "Node", assignment: Sequence[Sequence[int]], factor: int | None
) -> int:
    """The replication factor of an assignment, which is the same for all its partitions."""
    for replicas in assignment:
        if not replicas or len(set(replicas)) < len(replicas):
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment has nodes {replicas}, expected each node once.",
            )
        for node_id in replicas:
            if node_id not in node.cluster.node_ids:
                raise ApiError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"The manual partition assignment includes broker {node_id}, "
                    "but no such broker is registered.",
                )
        if factor is None:
            factor = len(replicas)
        if len(replicas) != factor:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment has {len(replicas)} nodes for a partition, "
                f"expected {factor} as for the others.",
            )
    return factor or 1


# --- DeleteTopics


def delete_topics(
    node: "Node", call: Call[DeleteTopicsRequest], now: Millis
) -> DeleteTopicsResponse:
    """By name, and from v6 on by id. A topic that is named twice is deleted by neither."""
    request = call.request
    if not node.cluster.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
        raise ApiError(code, "delete.topic.enable is false")
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    counts = Counter((one.name, one.topic_id) for one in wanted)
    judged: dict[tuple[str | None, bytes], Topic | ApiError] = {}
    going: set[TopicId] = set()
    for (name, topic_id), count in counts.items():
        try:
            _check_once(count, "id" if name is None else "name")
            topic = _to_delete(node, name, TopicId(topic_id))
            _check_once(2 if topic.topic_id in going else 1, "name and id")
            going.add(topic.topic_id)
            judged[name, topic_id] = topic
        except ApiError as error:
            judged[name, topic_id] = error
    if _write(judged, node.cluster.catalog.delete):
        node.cluster.topics_changed(now)
    return DeleteTopicsResponse(responses=[_deleted(*one) for one in judged.items()])


def _deleted(asked: tuple[str | None, bytes], outcome: Topic | ApiError) -> DeletableTopicResult:
    if isinstance(outcome, ApiError):
        return DeletableTopicResult(
            name=asked[0],
            topic_id=asked[1],
            error_code=outcome.code,
            error_message=outcome.message or None,
        )
    return DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id, error_code=0)


def _to_delete(node: "Node", name: str | None, topic_id: TopicId) -> Topic:
    catalog = node.cluster.catalog
    if name is None:
        if topic_id == NO_TOPIC_ID:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "Neither topic name nor topic id was specified."
            )
        topic = catalog.by_id.get(topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    else:
        if topic_id != NO_TOPIC_ID:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
            )
        topic = catalog.by_name.get(name)
        if topic is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
    if topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Topic {topic.name} is internal and cannot be deleted."
        )
    return topic


# --- CreatePartitions


def create_partitions(
    node: "Node", call: Call[CreatePartitionsRequest], now: Millis
) -> CreatePartitionsResponse:
    """More partitions for topics that exist. Records stay where they are."""
    request = call.request
    judged = _judged(node, request.topics, _grown)
    if not request.validate_only and _write(judged, node.cluster.catalog.change):
        node.cluster.topics_changed(now)
    results = [
        CreatePartitionsTopicResult(
            name=name, error_code=one.code, error_message=one.message or None
        )
        if isinstance(one, ApiError)
        else CreatePartitionsTopicResult(name=name, error_code=0)
        for name, one in judged.items()
    ]
    return CreatePartitionsResponse(results=results)


def _grown(node: "Node", wanted: CreatePartitionsTopic) -> Topic:
    """The topic with more partitions. Raises ApiError."""
    topic = node.cluster.catalog.by_name.get(wanted.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Topic {topic.name} is internal and cannot grow."
        )
    if wanted.count == topic.partitions:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {topic.partitions} partition(s)."
        )
    if wanted.count < topic.partitions or wanted.count > _PARTITIONS_MAX:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {topic.partitions} partition(s); "
            f"{wanted.count} was asked for, expected more, up to {_PARTITIONS_MAX}.",
        )
    assignments = dict(topic.assignments)
    if wanted.assignments is not None:
        missing = wanted.count - topic.partitions
        given = [list(one.broker_ids) for one in wanted.assignments]
        if len(given) != missing:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{len(given)} partitions are assigned, expected {missing}.",
            )
        _checked_assignment(node, given, topic.replication_factor)
        assignments.update(enumerate(given, topic.partitions))
    return Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=wanted.count,
        replication_factor=topic.replication_factor,
        configs=topic.configs,
        assignments=assignments,
    )
