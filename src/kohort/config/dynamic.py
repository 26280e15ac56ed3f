"""Settings of brokers that can be changed while they run (KIP-226), and how they lie over the file.

Upstream can change more of them. What is not here is read at the start only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

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


class LeftAside(NamedTuple):
    """A setting that is kept and not in force, and why; `broker` is empty for all brokers."""

    broker: str
    name: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Dynamic:
    """The settings in force, and those of the changed ones that are: texts by name, by broker."""

    config: BrokerConfig
    in_force: dict[str, dict[str, str]]
    left_aside: tuple[LeftAside, ...]


def with_dynamic(file: BrokerConfig, configured: Mapping[str, Mapping[str, str]]) -> Dynamic:
    """The settings of a file; over them those that are set for all brokers, which have the empty
    name; and over both those of the file's own broker.

    A text that contradicts the file, or that cannot be read, is left aside alone: what lies under
    it counts. Of these settings no two bound each other, so their order decides nothing.
    """
    config = file
    in_force = {broker: dict(texts) for broker, texts in configured.items()}
    left_aside = []
    for name in sorted(DYNAMIC_NAMES):
        for broker in (str(file.node_id), ""):
            text = in_force.get(broker, {}).get(name)
            if text is None:
                continue
            try:
                config = _with(config, name, text)
                break
            except ConfigError as error:
                left_aside.append(LeftAside(broker, name, text, str(error)))
                del in_force[broker][name]
    return Dynamic(config, in_force, tuple(left_aside))


def _with(config: BrokerConfig, name: str, text: str) -> BrokerConfig:
    value = BROKER_SETTINGS[name].parse(text)
    changed = replace(config, **{name.replace(".", "_"): value})  # type: ignore[arg-type]
    check_consistent(changed)
    return changed
