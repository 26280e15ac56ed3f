# SPDX-License-Identifier: Apache-2.0
"""A batch as a producer sends it, and the checks that it must pass before it is written.

Order and codes of the checks are upstream's, except where upstream fails with -1: content that
cannot be unpacked or read is INVALID_RECORD, an unknown codec is UNSUPPORTED_COMPRESSION_TYPE.
Offset deltas that do not count up are refused, though upstream takes them: consumers would see the
records under other offsets than were acknowledged.
"""

from collections.abc import Sequence
from functools import lru_cache

from kohort.config import TopicConfig
from kohort.config.settings import LONG_MAX
from kohort.errors import ApiError, ErrorCode, WireError
from kohort.machines.effects import Producer
from kohort.terms import Millis
from kohort.wire import batch as batches
from kohort.wire.batch import (
    CODEC_MASK,
    FAULTS_MAX,
    HEADER_SIZE,
    PREFIX_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    RecordFaults,
    Times,
)
from kohort.wire.compression import Compression

_MAGIC_AT = 16
_ATTRIBUTES_AT = 22  # the lower byte
_LEAST_SIZE = 14  # of the oldest format: a smaller size is no batch of any format
_NEWEST_MAGIC = 2
_ZSTD_SINCE = 7  # version of Produce
_NEWEST_COMPRESSION = max(Compression)


class RefusedRecordsError(ApiError):
    """A batch that is refused because of some of its records: their places, and why (KIP-467)."""

    def __init__(self, code: ErrorCode, message: str, records: Sequence[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.records = records


def check_readable(records: bytes | None) -> None:
    """Raises ApiError for damage on the way: upstream then refuses the whole request."""
    if records is not None and len(records) >= PREFIX_SIZE:
        _next_size(records, 0)


def producer_in_transaction(records: bytes | None) -> Producer | None:
    """The producer of a batch that is part of a transaction; None for any other bytes."""
    if records is None or len(records) < HEADER_SIZE or not records[_ATTRIBUTES_AT] & TRANSACTIONAL:
        return None
    try:
        header = batches.peek(records)
    except WireError:
        return None
    return Producer(header.producer_id, header.producer_epoch)


def one_batch(records: bytes | None, version: int) -> bytes:
    """The batch, without bytes behind it that are no batch. Raises ApiError unless there is exactly
    one, of a format that this version of Produce has.
    """
    records = records or b""
    size = _next_size(records, 0)
    if size is None:
        raise ApiError(ErrorCode.INVALID_RECORD, f"no whole batch in {len(records)} bytes")
    if records[_MAGIC_AT] != _NEWEST_MAGIC:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"batch of magic {records[_MAGIC_AT]}, expected {_NEWEST_MAGIC}",
        )
    if size < HEADER_SIZE:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"batch of {size} bytes, expected {HEADER_SIZE} up"
        )
    if version < _ZSTD_SINCE and records[_ATTRIBUTES_AT] & CODEC_MASK == Compression.ZSTD:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd in Produce v{version}, expected v{_ZSTD_SINCE} or newer",
        )
    if size == len(records):
        return records
    if _next_size(records, size) is not None:
        raise ApiError(ErrorCode.INVALID_RECORD, "several batches for one partition, expected one")
    return records[:size]


def _next_size(records: bytes, at: int) -> int | None:
    """The size of the whole batch that begins there, None where there is none. Raises ApiError for
    bytes that cannot begin one.
    """
    left = len(records) - at
    if left < PREFIX_SIZE:
        return None
    size = int.from_bytes(records[at + 8 : at + 12], signed=True)
    if size < _LEAST_SIZE:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"batch of {size} bytes, expected {_LEAST_SIZE} up"
        )
    if left <= _MAGIC_AT:
        return None
    magic = records[at + _MAGIC_AT]
    if magic > _NEWEST_MAGIC:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"batch of magic {magic}, expected {_NEWEST_MAGIC}"
        )
    return size + PREFIX_SIZE if size + PREFIX_SIZE <= left else None


def check(batch: bytes, config: TopicConfig, where: object, now: Millis) -> BatchHeader:
    """The header of a batch that may be written. Raises ApiError, whose text names `where`."""
    try:
        header = batches.header_at(batch)
    except WireError as error:
        raise ApiError(ErrorCode.INVALID_RECORD, f"{where}: {error}") from error
    if header.length != len(batch):
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"{len(batch) - header.length} bytes follow the batch for {where}, expected none",
        )
    if header.base_offset:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"batch for {where} begins at offset {header.base_offset}, expected 0",
        )
    if header.length > config.max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"batch for {where} is {header.length} bytes long, "
            f"expected at most {config.max_message_bytes}",
        )
    try:
        batches.check(batch, 0, header)
    except WireError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{where}: {error}") from error
    _check_shape(header, where)
    times = (
        None
        if config.log_append_time
        else _times(config.timestamp_before_max_ms, config.timestamp_after_max_ms, now)
    )
    try:
        faults = batches.check_contents(batch, header, times, keyed=config.compacted)
    except WireError as error:
        raise ApiError(ErrorCode.INVALID_RECORD, f"{where}: {error}") from error
    _check_faults(faults, where, times)
    if times is not None and header.max_timestamp > times.latest:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            f"batch for {where} has {header.max_timestamp} as its latest time, "
            f"expected at most {times.latest}",
        )
    return header


def _check_shape(header: BatchHeader, where: object) -> None:
    if header.compression > _NEWEST_COMPRESSION:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"batch for {where} is compressed by {header.compression}, expected 0 to 4",
        )
    if header.count < 1 or header.count != header.last_offset_delta + 1:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"batch for {where} has {header.count} records up to offset delta "
            f"{header.last_offset_delta}, expected them to agree",
        )
    if header.is_control:
        raise ApiError(ErrorCode.INVALID_RECORD, f"control batch for {where} from a client")
    if header.is_transactional and header.producer_id < 0:
        raise ApiError(
            ErrorCode.INVALID_RECORD, f"transactional batch for {where} without a producer id"
        )
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"batch for {where} of producer {header.producer_id} has epoch "
            f"{header.producer_epoch} and sequence {header.base_sequence}, expected both",
        )


@lru_cache(maxsize=16)  # many batches come in one millisecond
def _times(before_max_ms: int, after_max_ms: int, now: Millis) -> Times:
    """The times that a producer's clock may tell. No answer could carry one beyond 64 bits."""
    return Times(max(now - before_max_ms, -LONG_MAX - 1), min(now + after_max_ms, LONG_MAX))


def _check_faults(faults: RecordFaults, where: object, times: Times | None) -> None:
    """Raises ApiError, with the records that are at fault, or as many as the look has found. Their
    texts do not name the partition: the answer does, once.
    """
    if faults.keyless:
        text = "record without a key for a topic that is compacted"
        raise _refused(ErrorCode.INVALID_RECORD, where, [(at, text) for at in faults.keyless])
    if faults.out_of_time and times is not None:
        within = f"expected it within {times.earliest} to {times.latest}"
        bad = [(at, f"time {time}, {within}") for at, time in faults.out_of_time]
        raise _refused(ErrorCode.INVALID_TIMESTAMP, where, bad)


def _refused(code: ErrorCode, where: object, bad: Sequence[tuple[int, str]]) -> RefusedRecordsError:
    more = " or more" if len(bad) >= FAULTS_MAX else ""
    text = f"{len(bad)}{more} records for {where} are refused: {bad[0][1]}"
    return RefusedRecordsError(code, text, bad)
