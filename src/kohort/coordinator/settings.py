# SPDX-License-Identifier: Apache-2.0
"""The settings of groups, as values: a group never asks the broker's configuration itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from kohort.config import BrokerConfig
from kohort.config.group import ASSIGNMENT, CLIENT_SIDE, HEARTBEAT, SESSION, in_force, is_on

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """The settings of one consumer group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    regex_refresh_interval_ms: int
    max_size: int
    assignors: tuple[str, ...]  # the default first
    client_assignors: bool  # whether members may compute assignments
    computation_timeout_ms: int  # how long one of them may do so at most

    @classmethod
    def of(cls, config: BrokerConfig, overrides: Mapping[str, str] = NOTHING) -> Self:
        """The settings of a group that has set these of its own. Members always have the time for
        a heartbeat within their session.
        """
        session_timeout_ms = in_force(SESSION, overrides, config)
        return cls(
            session_timeout_ms,
            max(min(in_force(HEARTBEAT, overrides, config), session_timeout_ms - 1), 1),
            in_force(ASSIGNMENT, overrides, config),
            config.group_consumer_regex_refresh_interval_ms,
            config.group_consumer_max_size,
            config.group_consumer_assignors,
            is_on(CLIENT_SIDE, overrides, config),
            config.group_consumer_client_assignors_timeout_ms,
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


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    """Which conversions of groups with members a broker makes (KIP-848)."""

    upgrades: bool  # a classic group that a member of the consumer protocol joins
    downgrades: bool  # a consumer group whose last member of that protocol goes

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        policy = config.group_consumer_migration_policy
        return cls(
            upgrades=policy in ("upgrade", "bidirectional"),
            downgrades=policy in ("downgrade", "bidirectional"),
        )

    @property
    def mixes(self) -> bool:
        """Whether a consumer group takes in members of the classic protocol."""
        return self.upgrades or self.downgrades
