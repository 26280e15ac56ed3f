# SPDX-License-Identifier: Apache-2.0
"""The settings of one topic, as CreateTopics and IncrementalAlterConfigs take them.

A topic that does not set one follows the broker's setting of another name (its synonym).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kohort.config.broker import (
    BROKER_SETTINGS,
    CLEANUP_POLICIES,
    COMPRESSION_NAMES,
    LEAST_SEGMENT_BYTES,
    TIMESTAMP_TYPES,
    BrokerConfig,
)
from kohort.config.settings import LONG_MAX, ConfigError, Kind, Setting, Value, text_of


class Synonym(NamedTuple):
    """A broker setting that a topic follows, and how many of the topic's units its unit is."""

    name: str
    unit: int = 1


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """A row of the table: the setting, and the broker's settings behind it, strongest first."""

    setting: Setting
    synonyms: tuple[Synonym, ...] = ()

    def followed(self, broker: BrokerConfig) -> Value:
        """The value that the broker's settings give a topic that does not set this one."""
        for name, unit in self.synonyms:
            value = broker.value(name)
            if value is not None:
                return value * unit if unit > 1 and isinstance(value, int) and value > 0 else value
        return self.setting.default


def _row(
    name: str,
    kind: Kind,
    default: Value,
    *synonyms: str | Synonym,
    least: float | None = None,
    most: float | None = None,
    choices: tuple[str, ...] = (),
) -> TopicSetting:
    behind = tuple(
        synonym if isinstance(synonym, Synonym) else Synonym(synonym) for synonym in synonyms
    )
    doc = BROKER_SETTINGS[behind[0].name].doc if behind else "Shown, and without effect."
    return TopicSetting(Setting(name, kind, default, doc, least, most, choices), behind)


_ROWS = (
    _row("cleanup.policy", Kind.LIST, ("delete",), "log.cleanup.policy", choices=CLEANUP_POLICIES),
    _row("compression.gzip.level", Kind.INT, -1, "compression.gzip.level", least=-1, most=9),
    _row("compression.lz4.level", Kind.INT, 9, "compression.lz4.level", least=1, most=17),
    _row(
        "compression.type", Kind.STRING, "producer", "compression.type", choices=COMPRESSION_NAMES
    ),
    _row("compression.zstd.level", Kind.INT, 3, "compression.zstd.level", least=-131_072, most=22),
    _row("delete.retention.ms", Kind.LONG, 86_400_000, "log.cleaner.delete.retention.ms", least=0),
    _row("file.delete.delay.ms", Kind.LONG, 60_000, "log.segment.delete.delay.ms", least=0),
    _row("flush.messages", Kind.LONG, LONG_MAX, "log.flush.interval.messages", least=1),
    _row(
        "flush.ms",
        Kind.LONG,
        LONG_MAX,
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
        least=0,
    ),
    _row("follower.replication.throttled.replicas", Kind.LIST, ()),
    _row("index.interval.bytes", Kind.INT, 4096, "log.index.interval.bytes", least=0),
    _row("leader.replication.throttled.replicas", Kind.LIST, ()),
    _row("local.retention.bytes", Kind.LONG, -2, "log.local.retention.bytes", least=-2),
    _row("local.retention.ms", Kind.LONG, -2, "log.local.retention.ms", least=-2),
    _row(
        "max.compaction.lag.ms", Kind.LONG, LONG_MAX, "log.cleaner.max.compaction.lag.ms", least=1
    ),
    _row("max.message.bytes", Kind.INT, 1_048_588, "message.max.bytes", least=0),
    _row(
        "message.timestamp.after.max.ms",
        Kind.LONG,
        3_600_000,
        "log.message.timestamp.after.max.ms",
        least=0,
    ),
    _row(
        "message.timestamp.before.max.ms",
        Kind.LONG,
        LONG_MAX,
        "log.message.timestamp.before.max.ms",
        least=0,
    ),
    _row(
        "message.timestamp.type",
        Kind.STRING,
        "CreateTime",
        "log.message.timestamp.type",
        choices=TIMESTAMP_TYPES,
    ),
    _row(
        "min.cleanable.dirty.ratio",
        Kind.DOUBLE,
        0.5,
        "log.cleaner.min.cleanable.ratio",
        least=0,
        most=1,
    ),
    _row("min.compaction.lag.ms", Kind.LONG, 0, "log.cleaner.min.compaction.lag.ms", least=0),
    _row("min.insync.replicas", Kind.INT, 1, "min.insync.replicas", least=1),
    _row("preallocate", Kind.BOOLEAN, False, "log.preallocate"),
    _row("remote.log.copy.disable", Kind.BOOLEAN, False),
    _row("remote.log.delete.on.disable", Kind.BOOLEAN, False),
    _row("remote.storage.enable", Kind.BOOLEAN, False),
    _row("retention.bytes", Kind.LONG, -1, "log.retention.bytes"),
    _row(
        "retention.ms",
        Kind.LONG,
        604_800_000,
        "log.retention.ms",
        Synonym("log.retention.minutes", 60_000),
        Synonym("log.retention.hours", 3_600_000),
        least=-1,
    ),
    _row("segment.bytes", Kind.INT, 1_073_741_824, "log.segment.bytes", least=LEAST_SEGMENT_BYTES),
    _row("segment.index.bytes", Kind.INT, 10_485_760, "log.index.size.max.bytes", least=4),
    _row(
        "segment.jitter.ms",
        Kind.LONG,
        0,
        "log.roll.jitter.ms",
        Synonym("log.roll.jitter.hours", 3_600_000),
        least=0,
    ),
    _row(
        "segment.ms",
        Kind.LONG,
        604_800_000,
        "log.roll.ms",
        Synonym("log.roll.hours", 3_600_000),
        least=1,
    ),
    _row("unclean.leader.election.enable", Kind.BOOLEAN, False, "unclean.leader.election.enable"),
)
TOPIC_SETTINGS: dict[str, TopicSetting] = {row.setting.name: row for row in _ROWS}


def checked_topic_config(name: str, text: str) -> str:
    """The text of a topic's setting, as kept and shown. Raises ConfigError."""
    row = TOPIC_SETTINGS.get(name)
    if row is None:
        raise ConfigError(f"Unknown topic config name: {name}")
    value = row.setting.parse(text)
    if name == "remote.storage.enable" and value is True:
        raise ConfigError(
            "remote.storage.enable is 'true', expected false: there is no tiered storage"
        )
    if name in _THROTTLED and isinstance(value, tuple):
        _check_throttled(name, value)
    return text_of(value) or ""


def check_topic_together(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raises ConfigError for settings of a topic that contradict one another, or those of the
    broker that it follows.
    """
    most, least = (in_force(name, overrides, broker) for name in _COMPACTION_LAGS)
    assert isinstance(most, int)
    assert isinstance(least, int)
    if least > most:
        raise ConfigError(
            f"min.compaction.lag.ms is {least}, expected at most max.compaction.lag.ms, "
            f"which is {most}"
        )


def in_force(name: str, overrides: Mapping[str, str], broker: BrokerConfig) -> Value:
    """The value that counts for a topic with these texts of its own, already checked."""
    row = TOPIC_SETTINGS[name]
    own = overrides.get(name)
    return row.followed(broker) if own is None else row.setting.parse(own)


_COMPACTION_LAGS = ("max.compaction.lag.ms", "min.compaction.lag.ms")
_THROTTLED = ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas")
_THROTTLED_BYTES_MAX = 32_767
_THROTTLED_REPLICA = re.compile("[0-9]+:[0-9]+")


def _check_throttled(name: str, replicas: Sequence[str]) -> None:
    """Raises ConfigError for what names no replicas, and for very many: they are kept."""
    wrong = [text for text in replicas if not _THROTTLED_REPLICA.fullmatch(text)]
    if wrong and replicas != ("*",):
        raise ConfigError(f"{name} has {wrong[0]!r}, expected PARTITION:NODE for each, or * alone")
    size = len(",".join(replicas))
    if size > _THROTTLED_BYTES_MAX:
        raise ConfigError(f"{name} has {size} bytes, expected at most {_THROTTLED_BYTES_MAX}")


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """What the data plane needs of one topic: its own settings over the broker's."""

    compacted: bool
    deleted: bool
    max_message_bytes: int
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    delete_retention_ms: int
    min_compaction_lag_ms: int
    min_cleanable_dirty_ratio: float
    index_interval_bytes: int

    @classmethod
    def of(cls, broker: BrokerConfig, overrides: Mapping[str, str]) -> "TopicConfig":
        """The settings of a topic that has these texts of its own, already checked."""

        def value(name: str) -> Value:
            return in_force(name, overrides, broker)

        def number(name: str) -> int:
            found = value(name)
            assert isinstance(found, int)
            return found

        policy = value("cleanup.policy")
        ratio = value("min.cleanable.dirty.ratio")
        assert isinstance(policy, tuple)
        assert isinstance(ratio, float | int)
        return cls(
            compacted="compact" in policy,
            deleted="delete" in policy,
            max_message_bytes=number("max.message.bytes"),
            log_append_time=value("message.timestamp.type") == "LogAppendTime",
            timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
            retention_ms=number("retention.ms"),
            retention_bytes=number("retention.bytes"),
            segment_bytes=number("segment.bytes"),
            segment_ms=number("segment.ms"),
            delete_retention_ms=number("delete.retention.ms"),
            min_compaction_lag_ms=number("min.compaction.lag.ms"),
            min_cleanable_dirty_ratio=float(ratio),
            index_interval_bytes=number("index.interval.bytes"),
        )
