# SPDX-License-Identifier: Apache-2.0
"""Records of `__consumer_offsets` to bytes and back.

A record type that is not in RECORDS is kept unchanged: another broker wrote it, and may read it
again. An unknown version of a known value is an error, since skipping it would silently forget a
group. Nearly all records are committed offsets, so these have a fast path in both directions; an
unusual one takes the general path, and a test compares the two.
"""

import struct
from contextlib import suppress
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple, cast

import msgspec

from kohort.errors import WireError
from kohort.records.schemas import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupSettingsKey,
    GroupSettingsValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kohort.terms import NO_TOPIC_ID
from kohort.wire import codec

Key = (
    LegacyOffsetCommitKey
    | OffsetCommitKey
    | GroupMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
    | GroupSettingsKey
)
Value = (
    LegacyOffsetCommitValue
    | OffsetCommitValue
    | GroupMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
    | GroupSettingsValue
)


class Record(msgspec.Struct):
    """A key and its value. Without a value, what the key names is gone."""

    key: Key
    value: Value | None = None


class Unknown(msgspec.Struct):
    """A record of an unknown type, as bytes."""

    type: int
    key: bytes
    value: bytes | None


class RecordType(NamedTuple):
    """A row of RECORDS. `written` is the version in which the value is written."""

    number: int
    key: type[Any]
    value: type[Any]
    written: int = 0


RECORDS = {
    row.number: row
    for row in (
        RecordType(0, LegacyOffsetCommitKey, LegacyOffsetCommitValue),
        RecordType(1, OffsetCommitKey, OffsetCommitValue, 4),  # see `written_version`
        RecordType(2, GroupMetadataKey, GroupMetadataValue, 3),
        RecordType(3, ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
        RecordType(4, ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
        RecordType(5, ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
        RecordType(
            6,
            ConsumerGroupTargetAssignmentMetadataKey,
            ConsumerGroupTargetAssignmentMetadataValue,
        ),
        RecordType(
            7,
            ConsumerGroupTargetAssignmentMemberKey,
            ConsumerGroupTargetAssignmentMemberValue,
        ),
        RecordType(
            8,
            ConsumerGroupCurrentMemberAssignmentKey,
            ConsumerGroupCurrentMemberAssignmentValue,
        ),
        RecordType(16, ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    )
}
OWN_RECORDS = {20000: RecordType(20000, GroupSettingsKey, GroupSettingsValue)}
"""Types that only Kohort writes. Other brokers skip them when they load."""

_ROWS = RECORDS | OWN_RECORDS
BY_KEY = {row.key: row for row in _ROWS.values()}

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_COMMIT_HEAD = Struct(">hqi")  # value version, offset, leader epoch
_COMMIT_PLAIN = Struct(">hqiBqBBB16s")  # all of a v4 without metadata
_COMMIT_TAIL = Struct(">qBBB16s")  # timestamp; one tag, its number 0 and size 16; topic id


def written_version(value: Value) -> int:
    """The version that upstream writes: only v1 of a committed offset has room for an expiry."""
    if type(value) is OffsetCommitValue and value.expire_timestamp != -1:
        return 1
    return _BY_VALUE[type(value)].written


_BY_VALUE = {row.value: row for row in _ROWS.values()}


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """The key and the value as they stand in the log."""
    key, value = record.key, record.value
    if type(key) is OffsetCommitKey:
        encoded = _commit_key_head(key.group, key.topic) + _INT32.pack(key.partition)
        if type(value) is OffsetCommitValue:
            return encoded, encode_commit_value(value)
        return encoded, None if value is None else encode_value(value)
    return encode_key(key), None if value is None else encode_value(value)


def encode_key(key: Key) -> bytes:
    """Any key, by the general path."""
    return _INT16.pack(BY_KEY[type(key)].number) + codec.encode(key, 0)


def encode_value(value: Value, version: int | None = None) -> bytes:
    """Any value, by the general path, in the version that we write or in another one."""
    if version is None:
        version = written_version(value)
    return _INT16.pack(version) + codec.encode(value, version)


@lru_cache(maxsize=256)  # a commit is of several partitions, and groups commit again and again
def _commit_key_head(group_id: str, topic: str) -> bytes:
    """All of the key but the partition."""
    group = group_id.encode()
    name = topic.encode()
    return b"".join((b"\x00\x01", _INT16.pack(len(group)), group, _INT16.pack(len(name)), name))


def encode_commit_value(value: OffsetCommitValue) -> bytes:
    topic_id = value.topic_id
    if value.expire_timestamp != -1 or topic_id == NO_TOPIC_ID:
        return encode_value(value)
    if not value.metadata:
        return _COMMIT_PLAIN.pack(
            4, value.offset, value.leader_epoch, 1, value.commit_timestamp, 1, 0, 16, topic_id
        )
    metadata = value.metadata.encode()
    size = len(metadata)
    if size > 126:
        return encode_value(value)
    return b"".join(
        (
            _COMMIT_HEAD.pack(4, value.offset, value.leader_epoch),
            (size + 1).to_bytes(),
            metadata,
            _COMMIT_TAIL.pack(value.commit_timestamp, 1, 0, 16, topic_id),
        )
    )


def decode(key: bytes, value: bytes | None) -> Record | Unknown:
    """The key and value of a record. Bytes behind the last field are ignored, as upstream does.

    Raises WireError for bytes that are no such record, and for an unknown version of a value: the
    partition then cannot be loaded.
    """
    if key[:2] == b"\x00\x01":
        commit = decode_commit_key(key)
        if value is None:
            return Record(commit, None)
        return Record(commit, decode_commit_value(value))
    if len(key) < 2:
        raise WireError(f"a record key of {len(key)} bytes has no type, expected 2 bytes or more")
    (kind,) = _INT16.unpack_from(key)
    row = RECORDS.get(kind)
    if row is None:
        return _own_or_unknown(kind, key, value)
    decoded = codec.decode(row.key, 0, key, 2)
    return Record(decoded, None if value is None else decode_value(row, value))


def _own_or_unknown(kind: int, key: bytes, value: bytes | None) -> Record | Unknown:
    """Somebody else may use the numbers of our own types; such a record is unknown, as upstream
    takes it.
    """
    row = OWN_RECORDS.get(kind)
    if row is not None:
        with suppress(WireError):
            decoded = codec.decode(row.key, 0, key, 2)
            return Record(decoded, None if value is None else decode_value(row, value))
    return Unknown(kind, key, value)


def decode_value(row: RecordType, value: bytes) -> Any:
    """Any value, by the general path. Raises WireError, as `decode` does."""
    if len(value) < 2:
        raise WireError(f"a {row.value.__name__} of {len(value)} bytes has no version")
    (version,) = _INT16.unpack_from(value)
    if version not in row.value.versions:
        raise WireError(
            f"{row.value.__name__} has version {version}, expected {row.value.versions}",
        )
    return codec.decode(row.value, version, value, 2)


def decode_commit_key(key: bytes) -> OffsetCommitKey:
    try:
        end = 4 + (key[2] << 8 | key[3])
        start = end + 2
        stop = start + (key[end] << 8 | key[end + 1])
        if stop + 4 == len(key) and key[2] < 128 and key[end] < 128:
            return OffsetCommitKey(
                group=key[4:end].decode(),  # type: ignore[arg-type]  # no call for every record
                topic=key[start:stop].decode(),
                partition=_INT32.unpack_from(key, stop)[0],
            )
    except (IndexError, UnicodeDecodeError):
        pass
    return codec.decode(OffsetCommitKey, 0, key, 2)


def decode_commit_value(value: bytes) -> OffsetCommitValue:
    try:
        if len(value) == _COMMIT_PLAIN.size:
            version, offset, leader_epoch, length, timestamp, tags, tag, size, topic_id = (
                _COMMIT_PLAIN.unpack(value)
            )
            if version == 4 and length == 1 and tags == 1 and tag == 0 and size == 16:
                return OffsetCommitValue(
                    offset=offset,
                    leader_epoch=leader_epoch,
                    metadata="",
                    commit_timestamp=timestamp,
                    topic_id=topic_id,
                )
        version, offset, leader_epoch = _COMMIT_HEAD.unpack_from(value)
        if version == 4:
            end = 14 + value[14]
            if 0 < value[14] < 128 and len(value) == end + _COMMIT_TAIL.size:
                timestamp, tags, tag, size, topic_id = _COMMIT_TAIL.unpack_from(value, end)
                if tags == 1 and tag == 0 and size == 16:
                    return OffsetCommitValue(
                        offset=offset,
                        leader_epoch=leader_epoch,
                        metadata=value[15:end].decode(),
                        commit_timestamp=timestamp,
                        topic_id=topic_id,
                    )
        elif version == 3:
            end = 16 + (value[14] << 8 | value[15])
            if len(value) == end + 8 and value[14] < 128:
                return OffsetCommitValue(
                    offset=offset,
                    leader_epoch=leader_epoch,
                    metadata=value[16:end].decode(),
                    commit_timestamp=_INT64.unpack_from(value, end)[0],
                    topic_id=NO_TOPIC_ID,
                )
    except (IndexError, struct.error, UnicodeDecodeError):
        pass
    return cast("OffsetCommitValue", decode_value(RECORDS[1], value))
