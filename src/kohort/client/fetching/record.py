"""What a consumer hands out, and a place in a partition."""

from typing import Any, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class ConsumerRecord(NamedTuple):
    """One record. `key` and `value` are bytes or None, or what the deserializers make of them.

    `timestamp_ms` is the producer's time ("create") or the broker's ("append"). `leader_epoch` is
    -1 where the log does not tell it.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: str
    key: Any
    value: Any
    headers: Headers = ()
    leader_epoch: int = -1


class Place(NamedTuple):
    """The next record of a partition, and the leader epoch of the one before: -1 for unknown."""

    offset: int
    leader_epoch: int = -1
