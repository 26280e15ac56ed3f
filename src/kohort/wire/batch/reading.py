# SPDX-License-Identifier: Apache-2.0
"""From a batch to its records, decompressed: all at once and plain, or one by one with everything.

Producers' bytes are read here as well: any fault in them is a WireError.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kohort.errors import WireError
from kohort.wire.batch.header import (
    CODEC_MASK,
    CONTROL_KEY,
    CONTROL_VALUE,
    HEADER_SIZE,
    BatchHeader,
    header_at,
)
from kohort.wire.compression import OUTPUT_LIMIT, decompress, unpacked

Entry = tuple[int, int, bytes | None, bytes | None]
"""offset, timestamp, key, value"""
Headers = list[tuple[str, bytes | None]]
"""name, value"""


class Record(msgspec.Struct, gc=False):
    """One record with everything it carries."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = []


def entries(data: bytes, position: int = 0, limit: int = OUTPUT_LIMIT) -> list[Entry]:
    """Offset, timestamp, key and value of each record, headers skipped: the way to load a log.

    Either every record is whole or nothing is returned. `limit` bounds what decompression may
    unfold.
    """
    header = header_at(data, position)
    body, at, end = plain_records(data, position, header, limit)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.is_append_time else None
    found: list[Entry] = []
    last_delta = -1
    try:
        for _ in range(header.count):
            # One byte is the common length of every varint here, so it is tested inline.
            byte = body[at]
            at += 1
            if byte < 0x80:
                size = (byte >> 1) ^ -(byte & 1)
            else:
                size, at = read_varint(body, at - 1)
            record_end = at + size
            if record_end > end or size < 0:
                raise WireError(f"record of {size} bytes at {at}, {end - at} are left in its batch")
            byte = body[at + 1]  # after the attributes, which have no meaning yet
            at += 2
            if byte < 0x80:
                delta = (byte >> 1) ^ -(byte & 1)
            else:
                delta, at = read_varint(body, at - 1)
            timestamp = base_timestamp + delta if append_time is None else append_time
            byte = body[at]
            at += 1
            if byte < 0x80:
                delta = (byte >> 1) ^ -(byte & 1)
            else:
                delta, at = read_varint(body, at - 1)
            if delta <= last_delta:
                raise WireError(f"record at {at} has offset delta {delta} after {last_delta}")
            last_delta = delta
            byte = body[at]
            at += 1
            if byte < 0x80:
                size = (byte >> 1) ^ -(byte & 1)
            else:
                size, at = read_varint(body, at - 1)
            key: bytes | None = None
            if size >= 0:
                key = body[at : at + size]
                at += size
            byte = body[at]
            at += 1
            if byte < 0x80:
                size = (byte >> 1) ^ -(byte & 1)
            else:
                size, at = read_varint(body, at - 1)
            value: bytes | None = None
            if size >= 0:
                value = body[at : at + size]
                at += size
            if at >= record_end:  # the count of headers has a byte of its own
                raise WireError(f"key and value reach to {at}, their record ends at {record_end}")
            found.append((base_offset + last_delta, timestamp, key, value))
            at = record_end
    except IndexError:
        raise WireError(f"a record is cut at the end of its batch of {end} bytes") from None
    if at != end:
        raise WireError(f"{end - at} bytes follow the {header.count} records of the batch")
    if last_delta > header.last_offset_delta:
        raise WireError(
            f"last record has offset delta {last_delta}, its batch {header.last_offset_delta}"
        )
    return found


def times(data: bytes, position: int = 0, limit: int = OUTPUT_LIMIT) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each record. Keys and values are skipped without being copied, which
    matters in a batch that unfolds to a hundred megabytes.
    """
    header = header_at(data, position)
    body, at, end = plain_records(data, position, header, limit, unpacked)
    for _ in range(header.count):
        try:
            size, at = read_varint(body, at)
            record_end = at + size
            if size < 0 or record_end > end:
                raise WireError(f"record of {size} bytes at {at}, {end - at} are left in its batch")
            time_delta, at = read_varint(body, at + 1)
            offset_delta, at = read_varint(body, at)
        except IndexError:
            raise WireError(f"a record is cut at the end of its batch of {end} bytes") from None
        time = header.max_timestamp if header.is_append_time else header.base_timestamp + time_delta
        yield header.base_offset + offset_delta, time
        at = record_end


def records(data: bytes, position: int = 0, limit: int = OUTPUT_LIMIT) -> Iterator[Record]:
    """Every record with its headers. Raises WireError at the first damaged one."""
    header = header_at(data, position)
    body, at, end = plain_records(data, position, header, limit)
    last = header.base_offset - 1
    for _ in range(header.count):
        record, at = read_record(body, at, end, header)
        if not last < record.offset <= header.last_offset:
            raise WireError(
                f"record has offset {record.offset} after {last}, its batch ends at "
                f"{header.last_offset}"
            )
        last = record.offset
        yield record
    if at != end:
        raise WireError(f"{end - at} bytes follow the {header.count} records of the batch")


def marker_commits(key: bytes | None) -> bool:
    """Whether a control record's key commits its producer's transaction (False: it aborts)."""
    if key is None or len(key) < 4:
        raise WireError(f"control record has key {key!r}, expected 4 bytes")
    _, kind = CONTROL_KEY.unpack_from(key)
    if kind not in {0, 1}:
        raise WireError(f"control record is of type {kind}, expected 0 (abort) or 1 (commit)")
    return bool(kind)


def marker_coordinator_epoch(value: bytes | None) -> int:
    """The epoch of the coordinator that has written a marker, from a control record's value."""
    if value is None or len(value) < CONTROL_VALUE.size:
        raise WireError(f"control record has value {value!r}, expected {CONTROL_VALUE.size} bytes")
    epoch: int = CONTROL_VALUE.unpack_from(value)[1]
    return epoch


def plain_records(
    data: bytes,
    position: int,
    header: BatchHeader,
    limit: int,
    unpack: Callable[[int, bytes, int], Any] = decompress,
) -> tuple[Any, int, int]:
    """The plain records: the bytes that hold them, where they begin and where they end."""
    end = position + header.length
    codec = header.attributes & CODEC_MASK
    if codec and header.count:
        body = unpack(codec, bytes(data[position + HEADER_SIZE : end]), limit)
        return body, 0, len(body)
    if codec:
        return b"", 0, 0
    return data, position + HEADER_SIZE, end


def read_varint(body: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of up to ten bytes, and where it ends. IndexError at the end of the bytes."""
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise WireError(f"varint at {at - 10} is longer than ten bytes")
    return (value >> 1) ^ -(value & 1), at


def read_record(body: bytes, at: int, end: int, header: BatchHeader) -> tuple[Record, int]:
    """The record at a place among the plain ones of a batch, and its end. Raises WireError."""
    try:
        size, at = read_varint(body, at)
        record_end = at + size
        if size < 0 or record_end > end:
            raise WireError(f"record of {size} bytes at {at}, {end - at} are left in its batch")
        timestamp_delta, at = read_varint(body, at + 1)
        offset_delta, at = read_varint(body, at)
        key, at = _nullable(body, at, record_end)
        value, at = _nullable(body, at, record_end)
        headers, at = read_headers(body, at, record_end)
    except IndexError:
        raise WireError(f"a record is cut at the end of its batch of {end} bytes") from None
    if at != record_end:
        raise WireError(f"record reads up to {at}, its length says {record_end}")
    timestamp = (
        header.max_timestamp if header.is_append_time else header.base_timestamp + timestamp_delta
    )
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), at


def headers_of_record(tail: bytes) -> Headers:
    """The headers of a record whose bytes behind its value these are. Raises WireError."""
    try:
        headers, at = read_headers(tail, 0, len(tail))
    except IndexError:
        raise WireError(f"headers are cut at the end of their {len(tail)} bytes") from None
    if at != len(tail):
        raise WireError(f"headers read up to {at}, their record ends at {len(tail)}")
    return headers


def read_headers(body: bytes, at: int, end: int) -> tuple[Headers, int]:
    """The headers of a record, from their count on, and where they end. Raises WireError, and
    IndexError at the end of the bytes.
    """
    count, at = read_varint(body, at)
    if not 0 <= count <= end - at:
        raise WireError(f"record has {count} headers in {end - at} bytes")
    headers = []
    for _ in range(count):
        name, at = _nullable(body, at, end)
        if name is None:
            raise WireError(f"header name at {at} is null, expected text")
        item, at = _nullable(body, at, end)
        # What is not UTF-8 must survive a rewrite of the batch.
        headers.append((name.decode("utf-8", "surrogateescape"), item))
    return headers, at


def _nullable(body: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = read_varint(body, at)
    if size < 0:
        return None, at
    if size > end - at:
        raise WireError(f"field of {size} bytes at {at}, {end - at} are left in its record")
    return bytes(body[at : at + size]), at + size
