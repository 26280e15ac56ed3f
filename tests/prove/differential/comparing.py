# SPDX-License-Identifier: Apache-2.0
"""Two answers to one request: made alike where they may differ, then compared field by field.

Made alike are ids (by the label that each broker's memory has for them), addresses, texts of
errors, and the order of lists that come out of hash maps. Everything else has to be equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.prove.differential.steps import NO_ID, Memory, Step, label_of

from kohort.config.group import CLIENT_SIDE
from kohort.errors import WireError
from kohort.records.consumer_protocol import NEWEST, decode_assignment, encode
from kohort.wire.batch import HEADER_SIZE, header_at

TEXTS = {"error_message", "batch_index_error_message", "documentation", "throttle_time_ms"}
FEATURES = {"finalized_features_epoch", "finalized_features", "supported_features"}
LABELLED = {"member_id", "leader", "topic_id"}
IDENTITY = (
    *("group_id", "name", "topic", "topic_id", "partition_index", "partition", "index"),
    *("member_id", "key", "resource_type", "resource_name", "node_id", "broker_id", "api_key"),
)
LABEL_FIELDS = {"producer_id": "producer", "session_id": "session"}
ASSIGNMENTS = {"assignment", "target_assignment"}


class Difference(NamedTuple):
    """One field that differs. `path` has no indexes: it says which field, not which of a list."""

    path: str
    kafka: Any
    kohort: Any

    def __str__(self) -> str:
        return f"{self.path}: Kafka {_short(self.kafka)}, Kohort {_short(self.kohort)}"


def alike(
    step: Step,
    answer: dict[str, Any],
    memory: Memory,
    *,
    strict: bool = True,
    relative: bool = False,
) -> Any:
    """An answer in the form that is compared. Unless `strict`, of an assignment only the number of
    its partitions counts: where ids are drawn by chance, so is what depends on their order. Where
    it is `relative`, epochs count by their distance from that of the group.
    """
    if relative:
        answer = _relative(step, answer)
    return ordered(_alike(_scoped(step, answer, memory), "", memory, strict=strict))


def _relative(step: Step, answer: dict[str, Any]) -> dict[str, Any]:
    """Without the number of times that a group has changed: in Kafka a deleted topic may be noticed
    once by the metadata and once more by the expression, when any other topic is new.
    """
    if step.api == "ConsumerGroupHeartbeat":
        return {**answer, "member_epoch": min(answer["member_epoch"], 1)}
    if step.api != "ConsumerGroupDescribe":
        return answer
    groups = []
    for group in answer["groups"]:
        epoch = group["group_epoch"]
        members = [{**one, "member_epoch": one["member_epoch"] - epoch} for one in group["members"]]
        behind = group["assignment_epoch"] - epoch
        groups.append({**group, "group_epoch": 0, "assignment_epoch": behind, "members": members})
    return {**answer, "groups": groups}


def differences(kafka: Any, kohort: Any, path: str = "") -> Iterator[Difference]:
    """Every field in which two answers that have been made alike differ."""
    if isinstance(kafka, dict) and isinstance(kohort, dict):
        for key in {**kafka, **kohort}:
            inner = f"{path}.{key}" if path else key
            if key not in kafka or key not in kohort:
                yield Difference(inner, kafka.get(key, "<absent>"), kohort.get(key, "<absent>"))
            else:
                yield from differences(kafka[key], kohort[key], inner)
    elif isinstance(kafka, list) and isinstance(kohort, list):
        if len(kafka) != len(kohort):
            yield Difference(f"{path}[]", kafka, kohort)
            return
        for one, other in zip(kafka, kohort, strict=True):
            yield from differences(one, other, f"{path}[]")
    elif kafka != kohort or type(kafka) is not type(kohort):
        yield Difference(path, kafka, kohort)


def _scoped(step: Step, answer: dict[str, Any], memory: Memory) -> dict[str, Any]:
    """Lists over everything in a broker: only what belongs to this run, and is not ours alone."""
    if step.api == "ListGroups":
        mine = [one for one in answer["groups"] if one["group_id"].startswith(memory.prefix)]
        return {**answer, "groups": mine}
    if step.api == "Metadata" and not step.fields.get("topics"):
        mine = [one for one in answer["topics"] if (one["name"] or "").startswith(memory.prefix)]
        return {**answer, "topics": mine}
    if step.api == "ListConfigResources":
        known = answer["config_resources"]
        mine = [one for one in known if one["resource_name"].startswith(memory.prefix)]
        return {**answer, "config_resources": mine}
    if step.api == "ListTransactions":
        states = answer["transaction_states"]
        mine = [one for one in states if one["transactional_id"].startswith(memory.prefix)]
        return {**answer, "transaction_states": mine}
    if step.api == "DescribeConfigs":
        results = [
            {**one, "configs": [each for each in one["configs"] if each["name"] != CLIENT_SIDE]}
            for one in answer["results"]
        ]
        return {**answer, "results": results}
    if step.api == "Fetch":
        return {**answer, "responses": _merged(answer["responses"])}
    return answer


def _merged(topics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A session that has grown tells one topic in several entries: how many does not matter."""
    found: dict[Any, dict[str, Any]] = {}
    for one in topics:
        key = one.get("topic"), one.get("topic_id")
        known = found.setdefault(key, {**one, "partitions": []})
        known["partitions"] += one["partitions"]
    return list(found.values())


def _alike(value: Any, key: str, memory: Memory, *, strict: bool) -> Any:
    if isinstance(value, dict):
        if key in ASSIGNMENTS and not strict:
            return {"partitions": sum(len(one["partitions"]) for one in value["topic_partitions"])}
        return {
            name: _alike(one, name, memory, strict=strict)
            for name, one in value.items()
            if name not in TEXTS and name not in FEATURES
        }
    if isinstance(value, list):
        return [_alike(one, key, memory, strict=strict) for one in value]
    return _alike_field(value, key, memory)


def _alike_field(value: Any, key: str, memory: Memory) -> Any:
    if key in LABELLED and value:
        return "" if value == NO_ID else label_of(memory, value)
    if key in LABEL_FIELDS and isinstance(value, int) and value > 0:
        return memory.labels.get((LABEL_FIELDS[key], value), value)
    match key:
        case "host" | "cluster_id" if value:
            return key
        case "port" if value > 0:
            return 1
        case "log_append_time_ms" | "last_timestamp" | "transaction_start_time_ms" if value > 0:
            return "now"
        case "timestamp" if value > 0:
            return value - memory.started_ms
        case "records" if value:
            return list(_batches(value, memory))
        case "assignment" | "member_assignment" if value:
            return _consumed(value)
    return value.hex() if isinstance(value, bytes) else value


def _consumed(data: bytes) -> Any:
    """The partitions that a classic consumer is given: topics come in any order."""
    try:
        given = decode_assignment(data)
    except WireError:
        return data.hex()
    version = int.from_bytes(data[:2])
    if version > NEWEST or encode(given, version) != data:
        return data.hex()
    topics = sorted((one.topic, sorted(one.partitions)) for one in given.assigned_partitions)
    return {"version": version, "named": topics, "user_data": f"{given.user_data!r}"}


def _batches(data: bytes, memory: Memory) -> Iterator[dict[str, Any]]:
    """The whole batches of an answer: a last one may be cut, wherever the limit falls."""
    position = 0
    while position < len(data):
        try:
            header = header_at(data, position)
        except WireError:
            return
        producer = memory.labels.get(("producer", header.producer_id))
        yield {
            "offset": header.base_offset,
            "last": header.last_offset,
            "leader_epoch": header.partition_leader_epoch,
            "producer": producer or header.producer_id,
            "records": data[position + HEADER_SIZE : position + header.length].hex(),
        }
        position += header.length


def ordered(value: Any) -> Any:
    """With every list in one order, which goes by what its entries are about."""
    if isinstance(value, dict):
        return {key: ordered(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted((ordered(one) for one in value), key=_place)
    return value


def _place(one: Any) -> tuple[str, str]:
    identity = [one[key] for key in IDENTITY if key in one] if isinstance(one, dict) else []
    return (json.dumps(identity), json.dumps(one, sort_keys=True))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:300]}..."
