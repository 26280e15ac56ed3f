"""Settings of brokers that can be changed while they run (KIP-226), and how they lie over the file.

Upstream can change more of them. What is not here is read at the start only.
"""

from collections.abc import Mapping
from dataclasses import replace

from kohort.config.broker import BROKER_SETTINGS, BrokerConfig, check_consistent
from kohort.config.settings import ConfigError, text_of

_NAMES = """
compression.gzip.level compression.lz4.level compression.type compression.zstd.level
group.consumer.assignment.interval.ms group.coordinator.cached.buffer.max.bytes
log.cleaner.backoff.ms log.cleaner.delete.retention.ms log.cleaner.max.compaction.lag.ms
log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleanup.policy
log.flush.interval.messages log.flush.interval.ms log.index.interval.bytes
log.index.size.max.bytes log.local.retention.bytes log.local.retention.ms
log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms
log.message.timestamp.type log.preallocate log.retention.bytes log.retention.ms
log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms
message.max.bytes min.insync.replicas unclean.leader.election.enable
"""
DYNAMIC_NAMES = frozenset(_NAMES.split())


def checked_dynamic_config(name: str, text: str) -> str:
    """The text of one of these settings, as kept and shown. Raises ConfigError."""
    value = BROKER_SETTINGS[name].parse(text)
    if name == "log.retention.ms" and value == 0:
        raise ConfigError(f"{name} is {text!r}, expected an integer of at least 1, or -1 for ever")
    return text_of(value) or ""


def with_dynamic(config: BrokerConfig, *layers: Mapping[str, str]) -> BrokerConfig:
    """The settings with those of the layers over them, the last one strongest. The texts have been
    checked. Raises ConfigError where they contradict one another.
    """
    texts = {name: text for layer in layers for name, text in layer.items()}
    values = {
        name.replace(".", "_"): BROKER_SETTINGS[name].parse(text)
        for name, text in texts.items()
        if name in DYNAMIC_NAMES
    }
    if not values:
        return config
    changed = replace(config, **values)  # type: ignore[arg-type]
    check_consistent(changed)
    return changed
