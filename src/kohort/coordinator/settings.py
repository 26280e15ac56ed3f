"""The settings of groups, as values: a group never asks the broker's configuration itself."""

from dataclasses import dataclass
from typing import Self

from kohort.config import BrokerConfig


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """The settings of one consumer group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    max_size: int
    assignors: tuple[str, ...]  # the default first

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        """The settings of a group that has none of its own."""
        return cls(
            config.group_consumer_session_timeout_ms,
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_assignment_interval_ms,
            config.group_consumer_max_size,
            config.group_consumer_assignors,
        )


@dataclass(frozen=True, slots=True)
class ExpirySettings:
    """How long offsets are kept that nobody needs, and how often they are looked for."""

    retention_ms: int
    check_interval_ms: int

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(
            config.offsets_retention_minutes * 60_000,
            config.offsets_retention_check_interval_ms,
        )


@dataclass(frozen=True, slots=True)
class ClassicSettings:
    """The settings of every classic group of a broker: a group has none of its own."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    max_size: int

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(
            config.group_min_session_timeout_ms,
            config.group_max_session_timeout_ms,
            config.group_initial_rebalance_delay_ms,
            config.group_max_size,
        )
