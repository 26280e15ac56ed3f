# SPDX-License-Identifier: Apache-2.0
"""The settings of a consumer, under upstream's names with underscores for dots."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from kohort.client.fetcher import FetchOptions, FetchSettings
from kohort.client.members.classic_assigning import PROTOCOLS
from kohort.client.settings import (
    SecurityOptions,
    checked_field,
    choice,
    flag,
    is_given,
    short_repr,
    text,
    whole,
)

GROUP_PROTOCOLS = ("auto", "consumer", "classic")
FALLBACKS = ("none", "uniform")
Strategy = Literal["range", "roundrobin", "cooperative-sticky"]
DEFAULT_STRATEGY = ("range", "cooperative-sticky")


def _strategy(name: str, value: Any) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value
    names = tuple(given) if isinstance(given, Iterable) else ()
    names = tuple(word.strip() if isinstance(word, str) else "" for word in names)
    if not names or len(set(names)) < len(names) or not set(names) <= set(PROTOCOLS):
        raise ValueError(
            f"{name} is {short_repr(value)}, expected some of {', '.join(PROTOCOLS)}, each once"
        )
    return names


# What has no meaning in one of the protocols, and what counts there instead.
OF_THE_OTHER = {
    "consumer": {
        "session_timeout_ms": "the broker decides, by group.consumer.session.timeout.ms",
        "heartbeat_interval_ms": "the broker decides, by group.consumer.heartbeat.interval.ms",
        "partition_assignment_strategy": "group_remote_assignor names an assignor of the broker",
    },
    "classic": {
        "group_remote_assignor": "partition_assignment_strategy names those of the members",
        "group_consumer_session_timeout_ms": "session_timeout_ms is the session there",
    },
}


class ConsumerOptions(FetchOptions, SecurityOptions, total=False):
    """What `ConsumerSettings` and the security are made of, for type checkers."""

    client_id: str
    group_id: str | None
    group_instance_id: str | None
    group_protocol: Literal["auto", "consumer", "classic"]
    group_remote_assignor: str | None
    partition_assignment_strategy: str | Iterable[Strategy]
    session_timeout_ms: int
    group_consumer_session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    assignor_timeout_ms: int
    assignor_fallback: Literal["none", "uniform"]
    max_poll_records: int
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    default_api_timeout_ms: int
    close_timeout_ms: int
    metadata_max_age_ms: int
    socket_connection_setup_timeout_ms: int


@dataclass(frozen=True, kw_only=True)
class ConsumerSettings(FetchSettings):
    """Those of fetching are inherited. Times are milliseconds.

    `group_protocol` is `consumer` (KIP-848), `classic`, or `auto`: KIP-848 where the broker has it.
    `group_remote_assignor` names an assignor of the broker for KIP-848, and
    `partition_assignment_strategy` those that a leader of a classic group may run.
    `assignor_timeout_ms` is the time that an assignor of this member has, `assignor_fallback` what
    computes when it fails, and `close_timeout_ms`
    that of `close` for committing and leaving: names of our own.
    `group_consumer_session_timeout_ms` is the session that the broker gives to members by KIP-848,
    by its setting of that name, which no answer tells: after such a silence all is lost.
    `session_timeout_ms` and `heartbeat_interval_ms` are for the classic protocol; with KIP-848 the
    broker decides.
    """

    client_id: str = text("kohort-consumer")
    group_id: str | None = text()
    group_instance_id: str | None = text()
    group_protocol: str = choice("auto", GROUP_PROTOCOLS)
    group_remote_assignor: str | None = text()
    partition_assignment_strategy: tuple[str, ...] = checked_field(DEFAULT_STRATEGY, _strategy)
    session_timeout_ms: int = whole(45_000, 1)
    group_consumer_session_timeout_ms: int = whole(45_000, 1)
    heartbeat_interval_ms: int = whole(3000, 1)
    max_poll_interval_ms: int = whole(300_000, 1)
    assignor_timeout_ms: int = whole(30_000, 1)
    assignor_fallback: str = choice("none", FALLBACKS)
    max_poll_records: int = whole(500, 1)
    enable_auto_commit: bool = flag(default=True)
    auto_commit_interval_ms: int = whole(5000, 1)
    default_api_timeout_ms: int = whole(60_000, 1)
    close_timeout_ms: int = whole(30_000)
    metadata_max_age_ms: int = whole(300_000, 1)
    socket_connection_setup_timeout_ms: int = whole(10_000, 1)

    def check(self) -> None:
        """Raises ValueError for settings that contradict each other."""
        for name, instead in OF_THE_OTHER.get(self.group_protocol, {}).items():
            if is_given(self, name):
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}, which means nothing with group_protocol "
                    f"{self.group_protocol}: {instead}"
                )
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms is {self.heartbeat_interval_ms}, expected less than "
                f"session_timeout_ms, which is {self.session_timeout_ms}"
            )
        if (
            self.group_id is None
            and self.enable_auto_commit
            and is_given(self, "enable_auto_commit")
        ):
            raise ValueError("enable_auto_commit is true, and there is no group_id to commit for")
        if self.group_instance_id is not None and self.group_id is None:
            raise ValueError("group_instance_id needs a group_id")
