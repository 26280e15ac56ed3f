# SPDX-License-Identifier: Apache-2.0
"""Records of `__transaction_state` to bytes and back: one for each transactional id.

The layouts are upstream's to the byte. A record type of another broker stays in the log; an unknown
version of a known value is an error, since skipping it would silently forget a transaction.
"""

from struct import Struct

import msgspec

from kohort.errors import WireError
from kohort.wire import codec
from kohort.wire.schema import Int8, Int16, Int32, Int64, String, at, record, struct

_INT16 = Struct(">h")
_TYPE = 0
_WRITTEN = 1


@record()
class TransactionLogKey:
    transactional_id: String


@struct
class PartitionsSchema:
    topic: String
    partition_ids: list[Int32]


@record(versions="0-1", flexible="1+")
class TransactionLogValue:
    """v1 has the tags: the ids before and after this one, and the version of the client (KIP-890).
    No partitions at all, and an empty list of them, are two things to upstream.
    """

    producer_id: Int64
    previous_producer_id: Int64 = at("1+", tag=0, default=-1)
    next_producer_id: Int64 = at("1+", tag=1, default=-1)
    producer_epoch: Int16
    next_producer_epoch: Int16 = at("1+", tag=3, default=-1)
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = at("1+", tag=2, default=0)


class Record(msgspec.Struct):
    """What is known about a transactional id. Without a value, nothing is."""

    transactional_id: str
    value: TransactionLogValue | None = None


class Unknown(msgspec.Struct):
    """A record of a type that is not known here."""

    type: int


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """The key and the value as they stand in the log. Raises WireError where no log has room."""
    key = TransactionLogKey(transactional_id=record.transactional_id)
    encoded = _INT16.pack(_TYPE) + codec.encode(key, 0)
    if record.value is None:
        return encoded, None
    return encoded, _INT16.pack(_WRITTEN) + codec.encode(record.value, _WRITTEN)


def decode(key: bytes, value: bytes | None) -> Record | Unknown:
    """The record. Raises WireError for bytes that are none, and for an unknown version."""
    kind = _leading(key, "key")
    if kind != _TYPE:
        return Unknown(kind)
    transactional_id = codec.decode(TransactionLogKey, 0, key, 2).transactional_id
    if value is None:
        return Record(transactional_id, None)
    version = _leading(value, "value")
    if version not in TransactionLogValue.versions:  # type: ignore[attr-defined]
        raise WireError(
            f"the transaction of {transactional_id!r} has version {version}, expected 0 or 1"
        )
    return Record(transactional_id, codec.decode(TransactionLogValue, version, value, 2))


def _leading(data: bytes, what: str) -> int:
    if len(data) < 2:
        raise WireError(f"a {what} of {len(data)} bytes, expected 2 bytes or more")
    number: int = _INT16.unpack_from(data)[0]
    return number
