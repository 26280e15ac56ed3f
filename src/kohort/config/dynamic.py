# SPDX-License-Identifier: Apache-2.0
"""Settings of brokers that can be changed while they run (KIP-226), and how they lie over the file.

Upstream can change more of them, and takes names that it does not know. Of these, what means
nothing here is kept and told of, as in a file; what is left is read at the start only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from kohort.config.broker import (
    BROKER_SETTINGS,
    BrokerConfig,
    check_consistent,
    check_prefixed,
    own_name,
    unknown_setting,
)
from kohort.config.ignored import is_ignored
from kohort.config.listeners import PREFIX
from kohort.config.security import ssl_names
from kohort.config.settings import ConfigError, Kind, text_of
from kohort.config.topic import TOPIC_SETTINGS

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
max.connections max.connections.per.ip message.max.bytes min.insync.replicas
unclean.leader.election.enable
"""
DYNAMIC_NAMES = frozenset(_NAMES.split())

# Of a listener, with its prefix: a new certificate is for connections to come.
LISTENER_NAMES = ssl_names() - {
    "ssl.principal.mapping.rules",
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
}
_LIMIT_OF_LISTENER = "max.connections"  # also one of a listener, and not of one broker alone
_LIMITS = ("max.connections", "max.connections.per.ip")

_UNREAD = """
background.threads follower.replication.throttled.rate leader.replication.throttled.rate
log.cleaner.dedupe.buffer.size log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
log.cleaner.io.max.bytes.per.second log.cleaner.threads max.connection.creation.rate
metric.reporters num.io.threads num.network.threads num.recovery.threads.per.data.dir
num.replica.fetchers replica.alter.log.dirs.io.max.bytes.per.second
transaction.partition.verification.enable
"""
_UNREAD_NAMES = frozenset(_UNREAD.split())
_UNREAD_FAMILIES = ("listener.name.", "sasl.", "ssl.", "remote.log.manager.", "remote.fetch.")
_SECRETS = ("password", "passphrase", "secret", "jaas.config", "keystore.key")

UNREAD_AT_MOST = 32767
"""Bytes of names and texts that are kept for a broker, or for all of them, and read by nothing."""


def is_of_listener(name: str) -> bool:
    """Whether a setting is one of a listener that can be changed while it is open."""
    return is_of_certificate(name) or is_limit_of_listener(name)


def is_of_certificate(name: str) -> bool:
    """Whether a setting is about the certificates of one listener. It is of one broker alone."""
    return name.startswith(PREFIX) and own_name(name) in LISTENER_NAMES


def is_limit_of_listener(name: str) -> bool:
    """Whether a setting says how many connections one listener may have."""
    return name.startswith(PREFIX) and own_name(name) == _LIMIT_OF_LISTENER


def is_secret(name: str) -> bool:
    """Whether the text of a setting must not be shown."""
    setting = BROKER_SETTINGS.get(own_name(name) if name.startswith(PREFIX) else name)
    if setting is not None:
        return setting.kind is Kind.PASSWORD
    return is_unknown(name) or any(secret in name.lower() for secret in _SECRETS)


def is_unused(name: str) -> bool:
    """Whether upstream takes a setting while it runs, and nothing here reads it. Secrets are none
    of these: they would be kept for nothing.
    """
    if (own_name(name) if name.startswith(PREFIX) else name) in BROKER_SETTINGS:
        return False
    if any(secret in name.lower() for secret in _SECRETS):
        return False
    return name in _UNREAD_NAMES or name.startswith(_UNREAD_FAMILIES) or is_unknown(name)


def is_unknown(name: str) -> bool:
    """Whether upstream has no such setting. It takes such ones, and shows them without their texts:
    it cannot know which of them are secrets.
    """
    known = name in BROKER_SETTINGS or name in _UNREAD_NAMES or is_ignored(name)
    return not known and not name.startswith(_UNREAD_FAMILIES)


def checked_dynamic_config(name: str, text: str) -> str:
    """The text of one of these settings, as kept and shown. Raises ConfigError."""
    if is_unused(name):
        return text
    if is_of_listener(name):
        check_prefixed(name, text)
    if is_of_certificate(name):
        return text.strip()
    is_limit = name in _LIMITS or is_limit_of_listener(name)
    value = BROKER_SETTINGS[own_name(name) if is_of_listener(name) else name].parse(text)
    if is_limit and value == 0:
        why = "nobody could connect to change it back"
        raise ConfigError(f"{name} is {text!r}, expected an integer of at least 1: {why}")
    if name == "log.retention.ms" and value == 0:
        raise ConfigError(f"{name} is {text!r}, expected an integer of at least 1, or -1 for ever")
    return text_of(value) or ""


class IneffectiveSetting(NamedTuple):
    """A setting that is kept and not in force, and why; `broker` is empty for all brokers."""

    broker: str
    name: str
    text: str
    why: str

    def __str__(self) -> str:
        """A line for the log of the broker, without a text that may be a secret."""
        setting = self.name if is_secret(self.name) else f"{self.name}={self.text}"
        whose = f"broker {self.broker}" if self.broker else "all brokers"
        return f"{setting}, set for {whose}, is kept and not in force: {self.why}"


@dataclass(frozen=True, slots=True)
class DynamicConfig:
    """The settings in force, and those of the changed ones that are: texts by name, by broker.
    `unread` are those that nothing here reads.
    """

    config: BrokerConfig
    in_force: dict[str, dict[str, str]]
    ineffective: tuple[IneffectiveSetting, ...]
    unread: tuple[IneffectiveSetting, ...]


def with_dynamic(file: BrokerConfig, configured: Mapping[str, Mapping[str, str]]) -> DynamicConfig:
    """The settings of a file; over them those that are set for all brokers, which have the empty
    name; and over both those of the file's own broker.

    A text that contradicts the others, or that cannot be read, is left aside alone: what lies under
    it counts. Where two of them bound each other, the second goes first if only that is possible.
    """
    config = file
    whose = (str(file.node_id), "")
    in_force: dict[str, dict[str, str]] = {}
    ineffective, unread = [], []
    for broker, texts in configured.items():
        in_force[broker] = {name: text for name, text in texts.items() if _is_read(name)}
        unread += [
            IneffectiveSetting(broker, name, text, _why_unread(name))
            for name, text in texts.items()
            if not _is_read(name)
        ]
    later = []
    for name in sorted(DYNAMIC_NAMES):
        layers = [in_force[broker] for broker in whose if name in in_force.get(broker, {})]
        try:
            config = _with(config, name, layers[0][name]) if layers else config
        except ConfigError:
            later.append(name)
    for name in later:
        for broker in whose:
            text = in_force.get(broker, {}).get(name)
            if text is None:
                continue
            try:
                config = _with(config, name, text)
                break
            except ConfigError as error:
                ineffective.append(IneffectiveSetting(broker, name, text, str(error)))
                del in_force[broker][name]
    of_listeners = {
        name: text
        for broker in reversed(whose)
        for name, text in in_force.get(broker, {}).items()
        if is_of_listener(name)
    }
    if of_listeners:
        config = replace(config, prefixed={**config.prefixed, **of_listeners})
    return DynamicConfig(config, in_force, tuple(ineffective), tuple(unread))


def _is_read(name: str) -> bool:
    return name in DYNAMIC_NAMES or is_of_listener(name)


def _why_unread(name: str) -> str:
    if is_unknown(name):
        return str(unknown_setting(name, DYNAMIC_NAMES))
    return "nothing here reads it"


def _with(config: BrokerConfig, name: str, text: str) -> BrokerConfig:
    value = BROKER_SETTINGS[name].parse(text)
    changed = replace(config, **{name.replace(".", "_"): value})  # type: ignore[arg-type]
    check_consistent(changed)
    if name.startswith(("log.retention.", "log.local.retention.")):
        _check_local_retention(changed, name.rpartition(".")[2])
    return changed


def _check_local_retention(config: BrokerConfig, kind: str) -> None:
    """Upstream looks at these two together only where they change while it runs. -2 follows the
    other, -1 is for ever.
    """
    name = f"log.local.retention.{kind}"
    local = config.value(name)
    whole = TOPIC_SETTINGS[f"retention.{kind}"].followed(config)
    assert isinstance(local, int)
    assert isinstance(whole, int)
    if whole >= 0 and local != -2 and not 0 <= local <= whole:
        raise ConfigError(
            f"{name} is {local}, expected at most log.retention.{kind}, which is {whole}"
        )
