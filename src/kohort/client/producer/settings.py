# SPDX-License-Identifier: Apache-2.0
"""The settings of a producer, under upstream's names with underscores for dots."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from kohort.client.settings import (
    SecurityOptions,
    checked_field,
    choice,
    flag,
    function,
    short_repr,
    text,
    whole,
)
from kohort.wire.compression import Compression

CODECS = {codec.name.lower(): int(codec) for codec in Compression}
_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1, -1: -1, 0: 0, 1: 1}

_FLAGS = {"true": True, "false": False}


def _acks(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or value not in _ACKS:
        raise ValueError(f"{name} is {short_repr(value)}, expected all, 0 or 1")
    return _ACKS[value]


def _idempotence(name: str, value: Any) -> bool | None:
    found = _FLAGS.get(value.lower(), value) if isinstance(value, str) else value
    if found is not None and not isinstance(found, bool):
        raise ValueError(f"{name} is {short_repr(value)}, expected true or false")
    return found


class ProducerOptions(SecurityOptions, total=False):
    """What `ProducerSettings` and the security are made of, for type checkers."""

    client_id: str
    acks: Literal["all", "-1", "0", "1", -1, 0, 1]
    enable_idempotence: bool | None
    linger_ms: int
    batch_size: int
    buffer_memory: int
    max_request_size: int
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    max_in_flight_requests_per_connection: int
    request_timeout_ms: int
    delivery_timeout_ms: int
    max_block_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    socket_connection_setup_timeout_ms: int
    partitioner_ignore_keys: bool
    transactional_id: str | None
    transaction_timeout_ms: int
    key_serializer: Callable[[Any], bytes] | None
    value_serializer: Callable[[Any], bytes] | None


@dataclass(frozen=True, kw_only=True)
class ProducerSettings:
    """Times are milliseconds, sizes bytes.

    `acks` is `all`, 1 or 0. `enable_idempotence` is on where nothing is said and `acks` is `all`.
    `batch_size` counts records before they are compressed. `max_block_ms` bounds what `send`
    waits for room and for a topic, and what the calls of transactions wait for the cluster.
    Serializers are called with what `send` was given, never with None, and return bytes.
    """

    client_id: str = text("kohort-producer")
    acks: int = checked_field(-1, _acks)
    enable_idempotence: bool | None = checked_field(None, _idempotence)
    linger_ms: int = whole(5)
    batch_size: int = whole(16_384)
    buffer_memory: int = whole(32 << 20, 1, 1 << 62)
    max_request_size: int = whole(1 << 20, 1)
    compression_type: str = choice("none", CODECS)
    max_in_flight_requests_per_connection: int = whole(5, 1)
    request_timeout_ms: int = whole(30_000, 1)
    delivery_timeout_ms: int = whole(120_000, 1)
    max_block_ms: int = whole(60_000, 1)
    retry_backoff_ms: int = whole(100)
    retry_backoff_max_ms: int = whole(1000)
    metadata_max_age_ms: int = whole(300_000, 1)
    socket_connection_setup_timeout_ms: int = whole(10_000, 1)
    partitioner_ignore_keys: bool = flag(default=False)
    transactional_id: str | None = text()
    transaction_timeout_ms: int = whole(60_000, 1)
    key_serializer: Callable[[Any], bytes] | None = function()  # noqa: RUF009  (a field)
    value_serializer: Callable[[Any], bytes] | None = function()  # noqa: RUF009  (a field)

    @property
    def is_idempotent(self) -> bool:
        """Whether the cluster recognises what is sent twice."""
        return self.acks == -1 if self.enable_idempotence is None else self.enable_idempotence

    def check(self) -> None:
        """Raises ValueError for settings that contradict each other."""
        if self.is_idempotent and self.acks != -1:
            raise ValueError(f"enable_idempotence needs acks=all, not {self.acks}")
        if self.is_idempotent and self.max_in_flight_requests_per_connection > 5:
            raise ValueError(
                "max_in_flight_requests_per_connection is "
                f"{self.max_in_flight_requests_per_connection}, expected 5 at most with "
                "enable_idempotence"
            )
        if self.transactional_id is not None and not self.is_idempotent:
            raise ValueError("transactional_id needs enable_idempotence and acks=all")
        if self.delivery_timeout_ms < self.linger_ms + self.request_timeout_ms:
            raise ValueError(
                f"delivery_timeout_ms is {self.delivery_timeout_ms}, expected linger_ms "
                f"({self.linger_ms}) and request_timeout_ms ({self.request_timeout_ms}) together, "
                "or more"
            )
