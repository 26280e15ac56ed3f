"""Record batches, magic 2: build, look at, check and walk them.

The base offset and the leader epoch stand in front of what the crc covers, so a log stamps both
into the bytes it was given and never computes a checksum.
"""

import struct
from collections.abc import Iterator, Sequence
from struct import Struct

import google_crc32c
import msgspec

from kohort.errors import WireError
from kohort.wire.compression import OUTPUT_LIMIT, compress, decompress

HEADER_SIZE = 61
PREFIX_SIZE = 12  # base offset and length: what the length field does not count
_HEADER = Struct(">qiibIhiqqqhii")
_OFFSET = Struct(">q")
_EPOCH = Struct(">i")
_PREFIX = Struct(">qiibI")
_COVERED = Struct(">hiqqqhii")  # the rest of the header: what the crc covers, with the records
_CONTROL_KEY = Struct(">hh")
_CONTROL_VALUE = Struct(">hi")

CODEC_MASK = 0x07
APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

Entry = tuple[int, int, bytes | None, bytes | None]
"""offset, timestamp, key, value"""


class BatchHeader(msgspec.Struct, gc=False):
    """The 61 bytes in front of a batch's records. `length` is of the whole batch."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def last_offset(self) -> int:
        """What the batch ends with, even where compaction has removed the record itself."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, or -1; sequences wrap after 2^31 - 1."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_append_time(self) -> bool:
        """All records carry max_timestamp: the broker's clock, not the producer's."""
        return bool(self.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """When cleaning may drop this batch's tombstones; the first cleaning sets it (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


class Record(msgspec.Struct, gc=False):
    """One record with everything it carries."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] = []


def peek(data: bytes, position: int = 0) -> BatchHeader:
    """The header alone: the records behind it need not be there. Raises WireError."""
    try:
        header = BatchHeader(*_HEADER.unpack_from(data, position))
    except struct.error:
        raise WireError(
            f"batch at {position} is cut: {len(data) - position} bytes, expected {HEADER_SIZE} up"
        ) from None
    if header.magic != 2:
        raise WireError(f"batch at {position} has magic {header.magic}, expected 2")
    header.length += PREFIX_SIZE
    if header.length < HEADER_SIZE:
        raise WireError(f"batch at {position} is {header.length} bytes, expected {HEADER_SIZE} up")
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.count < 0:
        raise WireError(
            f"batch at {position} has base offset {header.base_offset}, last offset delta "
            f"{header.last_offset_delta} and {header.count} records, expected none below 0"
        )
    return header


def header_at(data: bytes, position: int = 0) -> BatchHeader:
    """The header of a batch that is there as a whole. Raises WireError when cut or not magic 2."""
    header = peek(data, position)
    if header.length > len(data) - position:
        raise WireError(
            f"batch at {position} is cut: {header.length} bytes, {len(data) - position} are there"
        )
    return header


def check(data: bytes, position: int, header: BatchHeader) -> None:
    """Raises WireError unless the crc is that of the bytes. Must follow header_at."""
    crc = google_crc32c.value(bytes(data[position + 21 : position + header.length]))
    if crc != header.crc:
        raise WireError(
            f"batch at {position} (base offset {header.base_offset}) has crc {crc:08x}, "
            f"its header says {header.crc:08x}"
        )


def walk(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch of a contiguous run. Raises WireError at a cut one."""
    position = 0
    size = len(data)
    while position < size:
        header = header_at(data, position)
        yield position, header
        position += header.length


def stamp(batch: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The batch with its place in a log written into it; the crc stays true."""
    return b"".join(
        (
            _OFFSET.pack(base_offset),
            batch[8:12],
            _EPOCH.pack(leader_epoch),
            batch[16:],
        )
    )


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


# ---- reading


def entries(data: bytes, position: int = 0, limit: int = OUTPUT_LIMIT) -> list[Entry]:
    """Offset, timestamp, key and value of each record, headers skipped: the way to load a log.

    Nothing is answered unless every record is whole. `limit` bounds what decompression may unfold.
    """
    header = header_at(data, position)
    body, at, end = _body(data, position, header, limit)
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
                size, at = _varint(body, at - 1)
            record_end = at + size
            if record_end > end or size < 0:
                raise WireError(f"record of {size} bytes at {at}, {end - at} are left in its batch")
            byte = body[at + 1]  # after the attributes, which have no meaning yet
            at += 2
            if byte < 0x80:
                delta = (byte >> 1) ^ -(byte & 1)
            else:
                delta, at = _varint(body, at - 1)
            timestamp = base_timestamp + delta if append_time is None else append_time
            byte = body[at]
            at += 1
            if byte < 0x80:
                delta = (byte >> 1) ^ -(byte & 1)
            else:
                delta, at = _varint(body, at - 1)
            if delta <= last_delta:
                raise WireError(f"record at {at} has offset delta {delta} after {last_delta}")
            last_delta = delta
            byte = body[at]
            at += 1
            if byte < 0x80:
                size = (byte >> 1) ^ -(byte & 1)
            else:
                size, at = _varint(body, at - 1)
            key: bytes | None = None
            if size >= 0:
                key = body[at : at + size]
                at += size
            byte = body[at]
            at += 1
            if byte < 0x80:
                size = (byte >> 1) ^ -(byte & 1)
            else:
                size, at = _varint(body, at - 1)
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


def records(data: bytes, position: int = 0, limit: int = OUTPUT_LIMIT) -> Iterator[Record]:
    """Every record with its headers. Raises WireError at the first damaged one."""
    header = header_at(data, position)
    body, at, end = _body(data, position, header, limit)
    last = header.base_offset - 1
    for _ in range(header.count):
        record, at = _record(body, at, end, header)
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
    """Whether the key of a control record commits its producer's transaction, or aborts it."""
    if key is None or len(key) < 4:
        raise WireError(f"control record has key {key!r}, expected 4 bytes")
    _, kind = _CONTROL_KEY.unpack_from(key)
    if kind not in {0, 1}:
        raise WireError(f"control record is of type {kind}, expected 0 (abort) or 1 (commit)")
    return bool(kind)


def _body(data: bytes, position: int, header: BatchHeader, limit: int) -> tuple[bytes, int, int]:
    """The plain records: where they are, where they begin and where they end."""
    end = position + header.length
    codec = header.attributes & CODEC_MASK
    if codec and header.count:
        body = decompress(codec, bytes(data[position + HEADER_SIZE : end]), limit)
        return body, 0, len(body)
    if codec:
        return b"", 0, 0
    return data, position + HEADER_SIZE, end


def _varint(body: bytes, at: int) -> tuple[int, int]:
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


def _record(body: bytes, at: int, end: int, header: BatchHeader) -> tuple[Record, int]:
    try:
        size, at = _varint(body, at)
        record_end = at + size
        if size < 0 or record_end > end:
            raise WireError(f"record of {size} bytes at {at}, {end - at} are left in its batch")
        timestamp_delta, at = _varint(body, at + 1)
        offset_delta, at = _varint(body, at)
        key, at = _nullable(body, at, record_end)
        value, at = _nullable(body, at, record_end)
        count, at = _varint(body, at)
        if not 0 <= count <= record_end - at:
            raise WireError(f"record has {count} headers in {record_end - at} bytes")
        headers = []
        for _ in range(count):
            name, at = _nullable(body, at, record_end)
            if name is None:
                raise WireError(f"header name at {at} is null, expected text")
            item, at = _nullable(body, at, record_end)
            # What is not UTF-8 must survive a rewrite of the batch.
            headers.append((name.decode("utf-8", "surrogateescape"), item))
    except IndexError:
        raise WireError(f"a record is cut at the end of its batch of {end} bytes") from None
    if at != record_end:
        raise WireError(f"record reads up to {at}, its length says {record_end}")
    timestamp = (
        header.max_timestamp if header.is_append_time else header.base_timestamp + timestamp_delta
    )
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), at


def _nullable(body: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = _varint(body, at)
    if size < 0:
        return None, at
    if size > end - at:
        raise WireError(f"field of {size} bytes at {at}, {end - at} are left in its record")
    return bytes(body[at : at + size]), at + size


# ---- building


def _encoded_varint(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = 2048
_VARINTS = [_encoded_varint(number) for number in range(_SMALL)]
_NULL = b"\x01"  # the varint -1
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
    varints = _VARINTS
    delta = 0
    for key, value in entries:
        offset_delta = varints[delta] if delta < _SMALL else _encoded_varint(delta)
        size = 3 + len(offset_delta)
        if key is None:
            key_size = _NULL
            key_bytes = b""
        else:
            key_bytes = key
            length = len(key)
            key_size = varints[length] if length < _SMALL else _encoded_varint(length)
            size += length
        if value is None:
            value_size = _NULL
            value_bytes = b""
        else:
            value_bytes = value
            length = len(value)
            value_size = varints[length] if length < _SMALL else _encoded_varint(length)
            size += length
        size += len(key_size) + len(value_size)
        parts += (
            varints[size] if size < _SMALL else _encoded_varint(size),
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
    append-time attribute the records' own times are not kept, as in Kafka: all have max_timestamp.
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
    entry = (_CONTROL_KEY.pack(0, int(commit)), _CONTROL_VALUE.pack(0, coordinator_epoch))
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


def _encoded_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    parts = [
        b"\x00",
        _encoded_varint(record.timestamp - base_timestamp),
        _encoded_varint(record.offset - base_offset),
        *_encoded_nullable(record.key),
        *_encoded_nullable(record.value),
        _encoded_varint(len(record.headers)),
    ]
    for name, item in record.headers:
        parts += _encoded_nullable(name.encode("utf-8", "surrogateescape"))
        parts += _encoded_nullable(item)
    body = b"".join(parts)
    return _encoded_varint(len(body)) + body


def _encoded_nullable(item: bytes | None) -> tuple[bytes, bytes]:
    if item is None:
        return _NULL, b""
    return _encoded_varint(len(item)), item


def _sealed(covered: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Puts the first 21 bytes in front of what the crc covers."""
    length = 9 + len(covered)  # leader epoch, magic and crc are counted, offset and length are not
    return (
        _PREFIX.pack(base_offset, length, leader_epoch, 2, google_crc32c.value(covered)) + covered
    )
