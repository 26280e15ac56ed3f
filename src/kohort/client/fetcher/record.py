# SPDX-License-Identifier: Apache-2.0
"""What a consumer hands out, and a place in a partition."""

from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

Headers = tuple[tuple[str, bytes | None], ...]


Key = TypeVar("Key")
Value = TypeVar("Value")


class ConsumerRecord(NamedTuple, Generic[Key, Value]):
    """One record. `key` and `value` are bytes or None, or what the deserializers make of them: a
    program that knows says so, as `record: ConsumerRecord[str, Order]`.

    `timestamp_ms` is the producer's time ("create") or the broker's ("append"). `leader_epoch` is
    -1 where the log does not tell it.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: Literal["create", "append"]
    key: Key
    value: Value
    headers: Headers = ()
    leader_epoch: int = -1


AnyRecord: TypeAlias = ConsumerRecord[Any, Any]
"""What a consumer hands out: only the program knows what its deserializers return."""


class OffsetAndEpoch(NamedTuple):
    """The next record of a partition, and the leader epoch of the one before: -1 for unknown."""

    offset: int
    leader_epoch: int = -1
