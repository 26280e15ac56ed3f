# SPDX-License-Identifier: Apache-2.0
"""From records to a batch, sealed with its crc."""

from collections.abc import Sequence
from struct import Struct

import google_crc32c

from kohort.wire.batch.header import (
    APPEND_TIME,
    CODEC_MASK,
    CONTROL,
    CONTROL_KEY,
    CONTROL_VALUE,
    HEADER_SIZE,
    PREFIX_SIZE,
    TRANSACTIONAL,
    header_at,
)
from kohort.wire.batch.reading import Record
from kohort.wire.batch.varints import NULL, SMALL, VARINTS, encoded_varint
from kohort.wire.compression import compress

RECORD_SIZE = 24  # what a record without headers takes beside its key and value, at most

_PREFIX = Struct(">qiibI")
_COVERED = Struct(">hiqqqhii")  # the rest of the header: what the crc covers, with the records


_TWO_ZEROS = b"\x00\x00"  # attributes, and no time after the batch's base timestamp


def build(
    entries: Sequence[tuple[bytes | None, bytes | None]],
    timestamp: int,
    *,
    base_offset: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = 0,
    transactional: bool = False,
    control: bool = False,
    compression: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """A batch of keys and values that all happened at one time: what a coordinator writes.

    The base sequence is 0 without a producer too, because that is what Kafka's coordinator writes.
    """
    parts: list[bytes] = []
    varints = VARINTS
    delta = 0
    for key, value in entries:
        offset_delta = varints[delta] if delta < SMALL else encoded_varint(delta)
        size = 3 + len(offset_delta)
        if key is None:
            key_size = NULL
            key_bytes = b""
        else:
            key_bytes = key
            length = len(key)
            key_size = varints[length] if length < SMALL else encoded_varint(length)
            size += length
        if value is None:
            value_size = NULL
            value_bytes = b""
        else:
            value_bytes = value
            length = len(value)
            value_size = varints[length] if length < SMALL else encoded_varint(length)
            size += length
        size += len(key_size) + len(value_size)
        parts += (
            varints[size] if size < SMALL else encoded_varint(size),
            _TWO_ZEROS,
            offset_delta,
            key_size,
            key_bytes,
            value_size,
            value_bytes,
            b"\x00",
        )
        delta += 1
    body = b"".join(parts)
    attributes = compression
    if compression:
        body = compress(compression, body)
    if transactional:
        attributes |= TRANSACTIONAL
    if control:
        attributes |= CONTROL
    covered = (
        _COVERED.pack(
            attributes,
            max(0, delta - 1),
            timestamp,
            timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            delta,
        )
        + body
    )
    return _sealed(covered, base_offset, leader_epoch)


def build_records(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    attributes: int = 0,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    leader_epoch: int = -1,
) -> bytes:
    """A batch of records with offsets, times and headers of their own, gaps included.

    Offsets and times that are not given are those of the first and last record. With the
    append-time attribute the records' own times are dropped, as in Kafka: all have max_timestamp.
    """
    if base_offset is None:
        base_offset = records[0].offset if records else 0
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else -1
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=-1)
    body = b"".join(_encoded_record(record, base_offset, base_timestamp) for record in records)
    if attributes & CODEC_MASK and records:
        body = compress(attributes & CODEC_MASK, body)
    covered = (
        _COVERED.pack(
            attributes,
            last_offset - base_offset,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        )
        + body
    )
    return _sealed(covered, base_offset, leader_epoch)


def seal(
    body: bytes,
    count: int,
    *,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytes:
    """A producer's batch from its encoded records, compressed as `attributes` says."""
    head = _COVERED.pack(
        attributes,
        count - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    crc = google_crc32c.extend(google_crc32c.value(head), body)
    length = HEADER_SIZE - PREFIX_SIZE + len(body)
    return b"".join((_PREFIX.pack(0, length, -1, 2, crc), head, body))


def build_marker(
    *,
    commit: bool,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch that ends a producer's transaction."""
    entry = (CONTROL_KEY.pack(0, int(commit)), CONTROL_VALUE.pack(0, coordinator_epoch))
    return build(
        [entry],
        timestamp,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=-1,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def with_producer(batch: bytes, producer_id: int, producer_epoch: int, sequence: int) -> bytes:
    """The batch as an idempotent producer sends it (KIP-98): its base offset is 0, since brokers
    refuse any other with INVALID_RECORD.
    """
    header = header_at(batch)
    covered = (
        _COVERED.pack(
            header.attributes,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            producer_id,
            producer_epoch,
            sequence,
            header.count,
        )
        + batch[HEADER_SIZE : header.length]
    )
    return _sealed(covered, 0, -1)


def with_append_time(batch: bytes, timestamp: int) -> bytes:
    """The batch with the broker's time for all records (message.timestamp.type=LogAppendTime)."""
    header = header_at(batch)
    covered = (
        _COVERED.pack(
            header.attributes | APPEND_TIME,
            header.last_offset_delta,
            header.base_timestamp,
            timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.count,
        )
        + batch[HEADER_SIZE : header.length]
    )
    return _sealed(covered, header.base_offset, header.partition_leader_epoch)


def _encoded_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    parts = [
        b"\x00",
        encoded_varint(record.timestamp - base_timestamp),
        encoded_varint(record.offset - base_offset),
        *_encoded_nullable(record.key),
        *_encoded_nullable(record.value),
        encoded_varint(len(record.headers)),
    ]
    for name, item in record.headers:
        parts += _encoded_nullable(name.encode("utf-8", "surrogateescape"))
        parts += _encoded_nullable(item)
    body = b"".join(parts)
    return encoded_varint(len(body)) + body


def _encoded_nullable(item: bytes | None) -> tuple[bytes, bytes]:
    if item is None:
        return NULL, b""
    return encoded_varint(len(item)), item


def _sealed(covered: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Put the first 21 bytes in front of what the crc covers."""
    length = 9 + len(covered)  # leader epoch, magic and crc are counted, offset and length are not
    return (
        _PREFIX.pack(base_offset, length, leader_epoch, 2, google_crc32c.value(covered)) + covered
    )
