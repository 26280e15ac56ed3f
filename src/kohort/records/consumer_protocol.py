# SPDX-License-Identifier: Apache-2.0
"""The payloads of JoinGroup and SyncGroup, which classic consumers exchange.

A payload begins with its version. Later versions only append fields: a version beyond the last is
read as the last one, and bytes behind the last field are ignored.
"""

from struct import Struct
from typing import TypeVar

from kohort.errors import WireError
from kohort.wire import codec
from kohort.wire.schema import Bytes, Int32, String, at, record, struct

NEWEST = 3
MOST_ELEMENTS = 100_000  # topics and partitions; each takes as long to read as a hundred bytes

_INT16 = Struct(">h")
_Payload = TypeVar("_Payload")


@struct
class TopicPartition:
    """Partitions of one topic."""

    topic: String
    partitions: list[Int32]


@record(versions="0-3")
class ConsumerProtocolSubscription:
    """What a consumer asks for. v1 adds what it owns, v2 the generation of that, v3 its rack."""

    topics: list[String]
    user_data: Bytes | None = None
    owned_partitions: list[TopicPartition] = at("1+")
    generation_id: Int32 = at("2+", default=-1)
    rack_id: String | None = at("3+", default=None)


@record(versions="0-3")
class ConsumerProtocolAssignment:
    """What a consumer is given. All versions have the same fields."""

    assigned_partitions: list[TopicPartition]
    user_data: Bytes | None = None


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """A consumer's subscription. Raises WireError for bytes that are none."""
    return _decode(ConsumerProtocolSubscription, data)


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """A consumer's assignment. Raises WireError for bytes that are none, and for no bytes."""
    return _decode(ConsumerProtocolAssignment, data)


def encode(
    payload: ConsumerProtocolSubscription | ConsumerProtocolAssignment,
    version: int = NEWEST,
) -> bytes:
    """The payload with its version in front."""
    return _INT16.pack(version) + codec.encode(payload, version)


def _decode(cls: type[_Payload], data: bytes) -> _Payload:
    if len(data) < 2:
        raise WireError(f"a {cls.__name__} of {len(data)} bytes has no version")
    (version,) = _INT16.unpack_from(data)
    if version < 0:
        raise WireError(f"{cls.__name__} has version {version}, expected 0 or more")
    return codec.decode(cls, min(version, NEWEST), data, 2, MOST_ELEMENTS)
