# SPDX-License-Identifier: Apache-2.0
"""One row at a time: every record type, by the broker's own codec.

Where the broker reads text that is not UTF-8 with replacement characters, a table must not: two
groups could become one.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any

from kohort.errors import WireError
from kohort.pipeline.columns.times import microseconds_or_none
from kohort.pipeline.schemas import KINDS, MARKER, OTHER, QUARANTINE, TOMBSTONE
from kohort.pipeline.schemas.rows import COMPUTATION
from kohort.records.codec import (
    RECORDS,
    RecordType,
    decode_value,
)
from kohort.records.consumer_protocol import decode_assignment, decode_subscription
from kohort.records.schemas import (
    Computation,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataValue,
    MemberMetadata,
)
from kohort.terms import NO_TOPIC_ID, uuid_text
from kohort.wire import codec
from kohort.wire.batch import marker_commits

Row = dict[str, Any]

_INT16 = Struct(">h")
_FOREIGN = (11, 17)  # share and streams groups: a group id is all of their key
_MEMBER_STATES = {0: "stable", 1: "unrevoked_partitions", 2: "unreleased_partitions"}
_KEY_NAMES = {
    "group": "group_id",
    "group_id": "group_id",
    "topic": "topic",
    "partition": "topic_partition",
    "member_id": "member_id",
    "regular_expression": "regular_expression",
}


def decode_row(key: bytes | None, value: bytes | None, *, control: bool) -> Row:
    """What a record says: `kind` and the columns of that kind, or `error`."""
    row: Row = {}
    try:
        _read(row, key, value, control=control)
    except WireError as error:
        row["kind"] = QUARANTINE
        row["error"] = str(error)
    return row


def _read(row: Row, key: bytes | None, value: bytes | None, *, control: bool) -> None:
    """Adds columns as far as they can be read; what raises is in quarantine with the rest."""
    if control:
        row["commits"] = marker_commits(key)
        row["kind"] = MARKER
        return
    if key is None or len(key) < 2:
        size = "no key" if key is None else f"a key of {len(key)} bytes"
        raise WireError(f"the record has {size}, expected 2 bytes or more")
    (number,) = _INT16.unpack_from(key)
    row["type"] = number
    record_type = RECORDS.get(number)
    if record_type is None:
        row["kind"] = OTHER
        if number in _FOREIGN:
            row["group_id"] = _foreign_group_or_none(key)
        return
    row.update(_key_columns(record_type, key))
    if value is None:
        row["kind"] = TOMBSTONE
        return
    if len(value) >= 2:
        (row["value_version"],) = _INT16.unpack_from(value)
    decoded = _strict_value(record_type, value)
    if number < 2:
        row.update(_commit_columns(decoded))
    else:
        row[KINDS[number]] = _DETAILS[number](decoded)
    row["kind"] = KINDS[number]


def _key_columns(record_type: RecordType, key: bytes) -> Row:
    decoded = codec.decode(record_type.key, 0, key, 2)
    _refuse_other_text(record_type.key, 0, key)
    return {_KEY_NAMES[name]: getattr(decoded, name) for name in decoded.__struct_fields__}


def _strict_value(record_type: RecordType, value: bytes) -> Any:
    decoded = decode_value(record_type, value)
    _refuse_other_text(record_type.value, _INT16.unpack_from(value)[0], value)
    return decoded


def _refuse_other_text(cls: Any, version: int, data: bytes) -> None:
    try:
        codec.decoder(cls, version)(data, 2)
    except UnicodeDecodeError as error:
        raise WireError(f"{cls.__name__} v{version} has text that is not UTF-8: {error}") from error


def _foreign_group_or_none(key: bytes) -> str | None:
    try:
        group_id = codec.decode(ConsumerGroupMetadataKey, 0, key, 2).group_id
        _refuse_other_text(ConsumerGroupMetadataKey, 0, key)
    except WireError:
        return None
    return group_id


def _commit_columns(value: Any) -> Row:
    topic_id = getattr(value, "topic_id", NO_TOPIC_ID)
    return {
        "committed_offset": value.offset,
        "leader_epoch": getattr(value, "leader_epoch", -1),
        "metadata": value.metadata,
        "commit_timestamp": microseconds_or_none(value.commit_timestamp),
        "expire_timestamp": microseconds_or_none(getattr(value, "expire_timestamp", -1)),
        "topic_id": None if topic_id == NO_TOPIC_ID else topic_id,
    }


def _group_metadata(value: GroupMetadataValue) -> Row:
    is_consumer = value.protocol_type == "consumer"
    return {
        "protocol_type": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
        "current_state_timestamp": microseconds_or_none(value.current_state_timestamp),
        "members": [_classic_member(member, is_consumer) for member in value.members],
    }


def _classic_member(member: MemberMetadata, is_consumer: bool) -> Row:  # noqa: FBT001
    row: Row = {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout_ms": member.rebalance_timeout,
        "session_timeout_ms": member.session_timeout,
        "subscription": member.subscription,
        "assignment": member.assignment,
    }
    if is_consumer:
        row.update(_subscription(member.subscription))
        row.update(_assignment(member.assignment))
    return row


def _subscription(data: bytes) -> Row:
    try:
        subscription = decode_subscription(data)
    except WireError:
        return {}
    return {
        "subscribed_topics": subscription.topics,
        "owned_partitions": [
            {"topic": topic.topic, "partitions": topic.partitions}
            for topic in subscription.owned_partitions
        ],
        "rack_id": subscription.rack_id,
    }


def _assignment(data: bytes) -> Row:
    try:
        assignment = decode_assignment(data)
    except WireError:
        return {}
    return {
        "assigned_partitions": [
            {"topic": topic.topic, "partitions": topic.partitions}
            for topic in assignment.assigned_partitions
        ]
    }


def _consumer_group_metadata(value: ConsumerGroupMetadataValue) -> Row:
    return {"epoch": value.epoch, "metadata_hash": value.metadata_hash}


def _partition_metadata(value: ConsumerGroupPartitionMetadataValue) -> Row:
    return {
        "topics": [
            {
                "topic_id": uuid_text(topic.topic_id),
                "topic_name": topic.topic_name,
                "num_partitions": topic.num_partitions,
            }
            for topic in value.topics
        ]
    }


def _member_metadata(value: ConsumerGroupMemberMetadataValue) -> Row:
    classic = value.classic_member_metadata
    return {
        "instance_id": value.instance_id,
        "rack_id": value.rack_id,
        "client_id": value.client_id,
        "client_host": value.client_host,
        "subscribed_topic_names": value.subscribed_topic_names,
        "subscribed_topic_regex": value.subscribed_topic_regex,
        "rebalance_timeout_ms": value.rebalance_timeout_ms,
        "server_assignor": value.server_assignor,
        "classic_session_timeout_ms": None if classic is None else classic.session_timeout_ms,
        "classic_protocols": None
        if classic is None
        else [protocol.name for protocol in classic.supported_protocols],
    }


def _target_metadata(value: ConsumerGroupTargetAssignmentMetadataValue) -> Row:
    computed = value.assignment_timestamp  # 0 is the default of a field that was not written
    return {
        "assignment_epoch": value.assignment_epoch,
        "assignment_timestamp": microseconds_or_none(computed) if computed else None,
        "computation": None if value.computation is None else _computation(value.computation),
    }


def _computation(value: Computation) -> Row:
    return {name: getattr(value, name) for name in COMPUTATION}


def _target_member(value: ConsumerGroupTargetAssignmentMemberValue) -> Row:
    return {"target_partitions": _topic_ids(value.topic_partitions)}


def _current_member(value: ConsumerGroupCurrentMemberAssignmentValue) -> Row:
    return {
        "member_epoch": value.member_epoch,
        "previous_member_epoch": value.previous_member_epoch,
        "state": _MEMBER_STATES.get(value.state, str(value.state)),
        "assigned_partitions": _topic_ids(value.assigned_partitions),
        "partitions_pending_revocation": _topic_ids(value.partitions_pending_revocation),
    }


def _regular_expression(value: ConsumerGroupRegularExpressionValue) -> Row:
    return {
        "topics": value.topics,
        "version": value.version,
        "resolved_at": microseconds_or_none(value.timestamp),
    }


def _topic_ids(topics: list[Any]) -> list[Row]:
    return [
        {"topic_id": uuid_text(topic.topic_id), "partitions": topic.partitions} for topic in topics
    ]


_DETAILS: dict[int, Callable[[Any], Row]] = {
    2: _group_metadata,
    3: _consumer_group_metadata,
    4: _partition_metadata,
    5: _member_metadata,
    6: _target_metadata,
    7: _target_member,
    8: _current_member,
    16: _regular_expression,
}
