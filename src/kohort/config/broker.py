# SPDX-License-Identifier: Apache-2.0
"""Every setting of a broker, under upstream's name, with its default, bounds and meaning here.

The attribute is upstream's name with underscores for dots, so a search for one finds both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

from kohort.config.authentication import MECHANISM_PREFIXES, AuthenticationSettings
from kohort.config.authorizer import STANDARD_AUTHORIZER, check_authorizer, super_users_of
from kohort.config.ignored import is_ignored
from kohort.config.listeners import (
    PREFIX,
    Listener,
    check_listeners,
    client_listeners,
    is_of_listeners,
)
from kohort.config.settings import (
    INT_MAX,
    LONG_MAX,
    ConfigError,
    Setting,
    Value,
    boolean,
    double,
    integer,
    listing,
    long,
    plain,
    short,
    string,
    text_of,
)
from kohort.security.names import PROTOCOLS, SASL_SSL

ASSIGNOR_NAMES = ("uniform", "range")
PROTOCOL_NAMES = ("classic", "consumer", "share", "streams")
COMPRESSION_NAMES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
CLEANUP_POLICIES = ("compact", "delete")
MIGRATION_POLICIES = ("disabled", "upgrade", "downgrade", "bidirectional")

_ASSIGNOR_CLASSES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
_ALIASES = {"broker.id": "node.id", "log.dir": "log.dirs"}  # older names
_HOUR_MS = 3_600_000
_OF_MECHANISMS = ("sasl.", "connections.max.reauth.ms")
LEAST_SEGMENT_BYTES = 1_048_576


def setting_name(given: str) -> str:
    """The name of a setting that is given by this name, or by an older one."""
    return _ALIASES.get(given, given)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig(AuthenticationSettings):
    """The settings of one broker. `BrokerConfig()` is the defaults; `of` checks texts."""

    node_id: int = integer(
        0, "The id of this node, or of the first of several. Also broker.id.", least=0
    )
    broker_rack: str | None = string(
        None,
        "The rack that clients are told; of several nodes one for each, with commas between them, "
        "and fewer are taken in turns.",
    )
    listeners: tuple[str, ...] = listing(
        ("PLAINTEXT://127.0.0.1:9092",), "Where the broker listens: NAME://host:port."
    )
    advertised_listeners: tuple[str, ...] = listing(
        (), "The addresses that clients are told, where they differ from listeners."
    )
    listener_security_protocol_map: tuple[str, ...] = listing(
        (), "The security protocol of each listener: NAME:PROTOCOL."
    )
    controller_listener_names: tuple[str, ...] = listing(
        (), "Listeners of upstream's controllers: they are not opened."
    )
    log_dirs: tuple[str, ...] = listing(
        (), "The data directory, unless a flag names one. Also log.dir."
    )
    max_connections: int = integer(
        INT_MAX,
        "Connections served at once; 50 more of each listener wait. A listener may have its own.",
        least=0,
    )
    max_connections_per_ip: int = integer(
        INT_MAX, "Connections at the same time from one address, of all listeners.", least=0
    )
    connections_max_idle_ms: int = long(
        600_000, "A connection that is silent for longer is closed."
    )
    socket_request_max_bytes: int = integer(
        104_857_600, "The largest request; a larger one closes the connection.", least=1
    )
    queued_max_request_bytes: int = long(
        67_108_864,
        "Bytes of requests that have come and are not handled yet, over all clients; then one "
        "request is received after the other; -1 for no limit.",
    )
    queued_max_response_bytes: int = long(
        67_108_864,
        "Kohort's own: once clients have left this many bytes of answers unread, a Fetch gets "
        "little; -1 for no limit.",
    )
    request_max_elements: int = integer(
        100_000,
        "Kohort's own: groups, topics, partitions and keys that one request may name. For Produce, "
        "Fetch, commits and other requests that cannot be interrupted the limit is a fifth. A "
        "request beyond it ends its connection, and the broker's log says why.",
        least=1,
    )

    authorizer_class_name: str = string(
        "",
        f"{STANDARD_AUTHORIZER}: rules (ACLs) can be made, and clients may do what they allow. "
        "Nothing: there are no rules, and every client may do everything.",
    )
    super_users: str = string(
        "", "Principals that may do everything, with semicolons: User:admin;User:CN=tool,O=here."
    )
    allow_everyone_if_no_acl_found: bool = boolean(
        False, "Whether everybody may do everything with what no rule covers."
    )

    auto_create_topics_enable: bool = boolean(
        True, "Whether a request that names a topic creates it."
    )
    delete_topic_enable: bool = boolean(True, "Whether topics can be deleted.")
    num_partitions: int = integer(1, "Partitions of a new topic that names no number.", least=1)
    max_partitions: int = integer(
        50_000, "Kohort's own: partitions of all topics together.", least=1
    )
    default_replication_factor: int = integer(
        1, "Replicas of a new topic that names no number.", least=1
    )
    auto_adjust_replication_factor: bool = boolean(
        False, "Kohort's own: a replication factor above the number of nodes is lowered to it."
    )
    api_versions_max: tuple[str, ...] = listing(
        (), "Kohort's own, for tests: the highest version offered of an API, as OffsetFetch:7."
    )
    min_insync_replicas: int = integer(1, "Shown, and without effect: one copy is stored.", least=1)
    unclean_leader_election_enable: bool = boolean(False, "Shown, and without effect.")
    max_request_partition_size_limit: int = integer(
        2000, "Partitions in one answer to DescribeTopicPartitions.", least=1
    )
    fetch_max_bytes: int = integer(57_671_680, "Bytes in one answer to Fetch.", least=1024)
    max_incremental_fetch_session_cache_slots: int = integer(
        1000, "Fetch sessions that are kept.", least=0
    )
    producer_id_expiration_ms: int = integer(
        86_400_000, "An idempotent producer that is silent for longer is forgotten.", least=1
    )
    message_max_bytes: int = integer(1_048_588, "The largest batch of records.", least=0)
    compression_type: str = string(
        "producer",
        "Shown, and without effect: batches are stored as they came.",
        choices=COMPRESSION_NAMES,
    )
    compression_gzip_level: int = integer(-1, "Shown, and without effect.", least=-1, most=9)
    compression_lz4_level: int = integer(9, "Shown, and without effect.", least=1, most=17)
    compression_zstd_level: int = integer(3, "Shown, and without effect.", least=-131_072, most=22)

    log_sync: str = string(
        "group",
        "Kohort's own: when logs are synced. group: before answers leave; none: never.",
        choices=("group", "none"),
    )
    log_segment_bytes: int = integer(
        1_073_741_824, "The size of a segment file.", least=LEAST_SEGMENT_BYTES
    )
    log_roll_ms: int | None = long(None, "The age at which a segment is closed.", least=1)
    log_roll_hours: int = integer(
        168, "The age at which a segment is closed, unless log.roll.ms is set.", least=1
    )
    log_roll_jitter_ms: int | None = long(None, "Shown, and without effect.", least=0)
    log_roll_jitter_hours: int = integer(0, "Shown, and without effect.", least=0)
    log_retention_ms: int | None = long(None, "How long records are kept, -1 for ever.", least=-1)
    log_retention_minutes: int | None = integer(
        None, "How long records are kept, unless log.retention.ms is set.", least=-1
    )
    log_retention_hours: int = integer(
        168, "How long records are kept, unless log.retention.ms or .minutes is set.", least=-1
    )
    log_retention_bytes: int = long(-1, "Bytes of a partition that are kept, -1 for all.")
    log_retention_check_interval_ms: int = long(300_000, "How often retention is applied.", least=1)
    log_initial_task_delay_ms: int = long(
        30_000, "How long after the start retention is first applied.", least=0
    )
    log_flush_offset_checkpoint_interval_ms: int = long(
        60_000, "How often it is written down up to where logs have been synced.", least=0
    )
    log_cleanup_policy: tuple[str, ...] = listing(
        ("delete",), "What happens to old records.", choices=CLEANUP_POLICIES
    )
    log_cleaner_enable: bool = boolean(True, "Whether compacted topics are compacted.")
    log_cleaner_backoff_ms: int = long(15_000, "How often the cleaner looks for work.", least=0)
    log_cleaner_min_cleanable_ratio: float = double(
        0.5, "The share of uncleaned bytes from which a log is cleaned.", least=0, most=1
    )
    log_cleaner_min_compaction_lag_ms: int = long(0, "Younger records are not compacted.", least=0)
    log_cleaner_max_compaction_lag_ms: int = long(
        LONG_MAX, "Shown, and without effect yet.", least=1
    )
    log_cleaner_delete_retention_ms: int = long(
        86_400_000, "How long tombstones are kept.", least=0
    )
    log_segment_delete_delay_ms: int = long(60_000, "Shown, and without effect.", least=0)
    log_flush_interval_messages: int = long(
        LONG_MAX, "Shown, and without effect: log.sync decides.", least=1
    )
    log_flush_interval_ms: int | None = long(None, "Shown, and without effect: log.sync decides.")
    log_flush_scheduler_interval_ms: int = long(
        LONG_MAX, "Shown, and without effect: log.sync decides."
    )
    log_index_interval_bytes: int = integer(4096, "Bytes between two index entries.", least=0)
    log_index_size_max_bytes: int = integer(10_485_760, "Shown, and without effect.", least=4)
    log_local_retention_bytes: int = long(-2, "Shown, and without effect.", least=-2)
    log_local_retention_ms: int = long(-2, "Shown, and without effect.", least=-2)
    log_message_timestamp_type: str = string(
        "CreateTime",
        "Whose clock gives records their time: the producer's or the broker's.",
        choices=TIMESTAMP_TYPES,
    )
    log_message_timestamp_before_max_ms: int = long(
        LONG_MAX, "How far in the past a record's time may be.", least=0
    )
    log_message_timestamp_after_max_ms: int = long(
        _HOUR_MS, "How far in the future a record's time may be.", least=0
    )
    log_preallocate: bool = boolean(False, "Shown, and without effect.")

    offset_metadata_max_bytes: int = integer(4096, "The longest metadata of a committed offset.")
    offsets_load_buffer_size: int = integer(5_242_880, "Shown, and without effect.", least=1)
    offsets_retention_minutes: int = integer(
        10_080,
        "How long the offsets of a group without members are kept, and those of topics that a "
        "group does not subscribe to.",
        least=1,
    )
    offsets_retention_check_interval_ms: int = long(
        600_000, "How often expired offsets are looked for.", least=1
    )
    offsets_commit_timeout_ms: int = integer(5000, "Shown, and without effect.", least=1)
    offsets_topic_num_partitions: int = integer(
        4, "Partitions of __consumer_offsets in a new directory (upstream 50).", least=1
    )
    offsets_topic_replication_factor: int = short(
        3, "Shown, and without effect: one copy is stored.", least=1
    )
    offsets_topic_segment_bytes: int = integer(
        104_857_600, "The size of a segment of __consumer_offsets.", least=LEAST_SEGMENT_BYTES
    )
    offsets_topic_compression_codec: int = integer(
        0, "Shown, and without effect yet: group records are plain.", least=0, most=4
    )

    transaction_max_timeout_ms: int = integer(
        900_000, "The longest transaction.timeout.ms that a producer may ask for.", least=1
    )
    transactional_id_expiration_ms: int = integer(
        604_800_000, "A transactional id that is unused for longer is forgotten.", least=1
    )
    transaction_state_log_num_partitions: int = integer(
        4, "Partitions of __transaction_state when it is created (upstream 50).", least=1
    )
    transaction_state_log_segment_bytes: int = integer(
        104_857_600, "The size of a segment of __transaction_state.", least=LEAST_SEGMENT_BYTES
    )

    group_coordinator_rebalance_protocols: tuple[str, ...] = listing(
        ("classic", "consumer"), "The protocols that groups may use.", choices=PROTOCOL_NAMES
    )
    group_coordinator_threads: int = integer(4, "Checked, and without effect.", least=1)
    group_coordinator_append_linger_ms: int = integer(-1, "Checked, and without effect.", least=-1)
    group_coordinator_background_threads: int = integer(2, "Checked, and without effect.", least=1)
    group_coordinator_cached_buffer_max_bytes: int = integer(
        1_048_588, "Checked, and without effect.", least=524_288
    )
    group_min_session_timeout_ms: int = integer(6000, "The shortest session of a classic member.")
    group_max_session_timeout_ms: int = integer(
        1_800_000, "The longest session of a classic member."
    )
    group_initial_rebalance_delay_ms: int = integer(
        3000, "How long a new classic group waits for more members."
    )
    group_max_size: int = integer(
        INT_MAX, "The largest number of members of a classic group.", least=1
    )
    group_consumer_session_timeout_ms: int = integer(
        45_000, "A member of a consumer group that is silent for longer is removed.", least=1
    )
    group_consumer_min_session_timeout_ms: int = integer(
        45_000, "The lower bound of group.consumer.session.timeout.ms.", least=1
    )
    group_consumer_max_session_timeout_ms: int = integer(
        60_000, "The upper bound of group.consumer.session.timeout.ms.", least=1
    )
    group_consumer_heartbeat_interval_ms: int = integer(
        5000, "The interval at which members of consumer groups must heartbeat.", least=1
    )
    group_consumer_min_heartbeat_interval_ms: int = integer(
        5000, "The lower bound of group.consumer.heartbeat.interval.ms.", least=1
    )
    group_consumer_max_heartbeat_interval_ms: int = integer(
        15_000, "The upper bound of group.consumer.heartbeat.interval.ms.", least=1
    )
    group_consumer_max_size: int = integer(
        INT_MAX, "The largest number of members of a consumer group.", least=1
    )
    group_consumer_assignors: tuple[str, ...] = listing(
        ASSIGNOR_NAMES,
        "Server-side assignors, the first is the default: uniform, range, and those that installed "
        "packages bring.",
    )
    group_consumer_client_assignors_enable: bool = boolean(
        True,
        "Kohort's own: whether members of consumer groups may compute assignments themselves "
        "(client-side assignors of KIP-848). Without it the APIs for that are not offered.",
    )
    group_consumer_client_assignors_timeout_ms: int = integer(
        30_000,
        "Kohort's own: how long a member may compute an assignment at most. It has its rebalance "
        "timeout, where that is shorter; then another member is asked.",
        least=1,
    )
    group_consumer_migration_policy: str = string(
        "bidirectional",
        "Which groups with members go over to the other protocol: those that a member of the "
        "consumer protocol joins (upgrade), those that the last one leaves (downgrade), both, or "
        "none: " + ", ".join(MIGRATION_POLICIES) + ".",
    )
    group_consumer_regex_refresh_interval_ms: int = integer(
        600_000,
        "How long after the last time all topics are matched with a regular expression again. New "
        "topics are matched at once.",
        least=10_000,
    )
    group_consumer_assignment_interval_ms: int = integer(
        0, "The shortest time between two assignments of a group (upstream 1000).", least=0
    )
    group_consumer_min_assignment_interval_ms: int = integer(
        0, "The lower bound of group.consumer.assignment.interval.ms.", least=0
    )
    group_consumer_max_assignment_interval_ms: int = integer(
        15_000, "The upper bound of group.consumer.assignment.interval.ms.", least=0
    )

    given: frozenset[str] = frozenset()  # upstream's names of those that were set
    ignored: tuple[str, ...] = ()  # upstream's names that have no effect here
    # Texts of settings of one listener, by their whole names: there are secrets among them.
    prefixed: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, texts: Mapping[str, str | float]) -> "BrokerConfig":
        """The configuration with these settings: texts, or numbers and booleans for their texts.
        Raises ConfigError for the first bad one.
        """
        named: dict[str, str] = {}
        for given, text in plain(texts).items():
            name = setting_name(given)
            if named.setdefault(name, text) != text:
                both = next(alias for alias in _ALIASES if _ALIASES[alias] == name)
                raise ConfigError(
                    f"{both} and {name} are names of one setting and are given as "
                    f"{texts[both]} and {texts[name]}, expected one of them"
                )
        return cls._of(named)

    @classmethod
    def _of(cls, texts: Mapping[str, str]) -> "BrokerConfig":
        values: dict[str, Value] = {}
        prefixed = {}
        ignored = []
        for name, text in texts.items():
            setting = BROKER_SETTINGS.get(name)
            if setting is not None:
                values[name.replace(".", "_")] = _special(name, setting, text)
            elif is_ignored(own_name(name) if name.startswith(PREFIX) else name):
                _check_ignored(name, text)
                ignored.append(name)
            elif name.startswith(PREFIX):
                check_prefixed(name, text)
                prefixed[name] = text.strip()
            else:
                raise unknown_setting(name, BROKER_SETTINGS)
        given = frozenset(texts).difference(ignored, prefixed)
        config = cls(given=given, prefixed=prefixed, **values)  # type: ignore[arg-type]
        check_consistent(config)
        ignored += _without_listener(config)
        return replace(config, ignored=tuple(ignored))

    @classmethod
    def mistakes(cls, texts: Mapping[str, str]) -> dict[str, ConfigError]:
        """What is wrong with each of these settings alone, by the names given."""
        found = {}
        for given, text in texts.items():
            name = setting_name(given)
            setting = BROKER_SETTINGS.get(name)
            try:
                if setting is not None:
                    _special(name, setting, text)
                elif is_ignored(own_name(name) if name.startswith(PREFIX) else name):
                    _check_ignored(name, text)
                elif name.startswith(PREFIX):
                    check_prefixed(name, text)
                else:
                    raise unknown_setting(name, BROKER_SETTINGS)
            except ConfigError as error:
                found[given] = error
        return found

    def value(self, name: str) -> Value:
        """The value of a setting by its upstream name."""
        found: Value = getattr(self, name.replace(".", "_"))
        return found

    def without_effect(self) -> list[str]:
        """The settings whose values are checked and shown, but have no effect here."""
        return [
            name
            for name, setting in BROKER_SETTINGS.items()
            if name in self.given
            and "without effect" in setting.doc
            and self.value(name) != setting.default
        ]


def _setting(field: Field[Any]) -> Setting:
    name = field.name.replace("_", ".")
    default: Any = field.default
    return Setting(name=name, default=default, **field.metadata)


BROKER_SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (_setting(field) for field in fields(BrokerConfig) if field.metadata)
}


def unknown_setting(name: str, known: Iterable[str]) -> ConfigError:
    near = get_close_matches(name, list(known), n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return ConfigError(f"{name} is not a setting{hint}")


def _check_ignored(name: str, text: str) -> None:
    """Raises ConfigError for a text that means nothing anywhere."""
    if name == "security.inter.broker.protocol" and text.strip().upper() not in PROTOCOLS:
        raise ConfigError(f"{name} is {text!r}, expected one of {', '.join(PROTOCOLS)}")


def own_name(name: str) -> str:
    """A setting of a listener without the prefix, or without that and the name of a mechanism."""
    rest = name.removeprefix(PREFIX).partition(".")[2]
    own = rest.partition(".")[2]
    return own if rest.startswith(MECHANISM_PREFIXES) and own.startswith(_OF_MECHANISMS) else rest


def check_prefixed(name: str, text: str) -> None:
    """Raises ConfigError for a setting of a listener that is none, or that has a wrong text."""
    own = own_name(name)
    setting = BROKER_SETTINGS.get(own)
    if setting is None:
        prefix = name.removesuffix(own)
        raise unknown_setting(name, [f"{prefix}{one}" for one in BROKER_SETTINGS])
    try:
        setting.parse(text)
    except ConfigError as error:
        raise ConfigError(str(error).replace(own, name, 1)) from None


def listener_settings(config: BrokerConfig, listener: Listener) -> dict[str, str]:
    """The settings of a listener as texts, as far as they were given: its own, without its prefix,
    and those for all listeners under them.

    Those of a mechanism have its name before them still. A listener of SASL_SSL asks for
    certificates only where its own setting says so.
    """
    found = {
        name: text
        for name in sorted(config.given)
        if is_of_listeners(name)
        and not (name == "ssl.client.auth" and listener.protocol == SASL_SSL)
        and (text := text_of(config.value(name))) is not None
    }
    for name, text in config.prefixed.items():
        if name.startswith(listener.prefix):
            found[name.removeprefix(listener.prefix)] = text
    return found


def _without_listener(config: BrokerConfig) -> list[str]:
    """The settings of a listener that no listener reads. Upstream passes over such ones too."""
    prefixes = tuple(listener.prefix for listener in client_listeners(config))
    return [
        name
        for name in config.prefixed
        if not (name.startswith(prefixes) and is_of_listeners(own_name(name)))
    ]


def _special(name: str, setting: Setting, text: str) -> Value:
    """The value of a text, for settings that take more than their kind allows."""
    value = setting.parse(text)
    match name:
        case "group.consumer.assignors":
            assert isinstance(value, tuple)
            return _assignors(value)
        case "group.consumer.migration.policy":
            assert isinstance(value, str)
            if value.lower() not in MIGRATION_POLICIES:
                raise ConfigError(
                    f"{name} is {text!r}, expected one of {', '.join(MIGRATION_POLICIES)}"
                )
            return value.lower()
        case "authorizer.class.name":
            assert isinstance(value, str)
            check_authorizer(value)
            return value
        case "super.users":
            assert isinstance(value, str)
            super_users_of(value)
            return value
        case "log.retention.ms" | "log.retention.minutes" | "log.retention.hours" if value == 0:
            raise ConfigError(
                f"{name} is {text!r}, expected an integer of at least 1, or -1 for ever"
            )
        case _:
            return value


def _assignors(names: tuple[str, ...]) -> tuple[str, ...]:
    """Short names, also from class names. One assignor under both its names is refused. Whether
    others are installed is found out when the broker starts.
    """
    short_names = tuple(_ASSIGNOR_CLASSES.get(name, name) for name in names)
    if not short_names:
        raise ConfigError("group.consumer.assignors is empty, expected at least one assignor")
    if len(set(short_names)) < len(short_names):
        raise ConfigError(
            f"group.consumer.assignors is {','.join(names)!r}, expected each assignor once"
        )
    return short_names


_BOUNDED = (
    "group.consumer.session.timeout.ms",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.assignment.interval.ms",
)


def check_consistent(config: BrokerConfig) -> None:
    """Raises ConfigError for settings that contradict one another."""
    for name in _BOUNDED:
        least = name.replace("group.consumer.", "group.consumer.min.")
        most = name.replace("group.consumer.", "group.consumer.max.")
        _at_least(config, most, least)
        _at_least(config, name, least)
        _at_most(config, name, most)
    heartbeat = config.group_consumer_heartbeat_interval_ms
    session = config.group_consumer_session_timeout_ms
    if heartbeat >= session:
        raise ConfigError(
            f"group.consumer.heartbeat.interval.ms is {heartbeat}, "
            f"expected less than group.consumer.session.timeout.ms, which is {session}"
        )
    check_listeners(config)
    _at_least(config, "log.cleaner.max.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms")
    _at_least(config, "group.max.session.timeout.ms", "group.min.session.timeout.ms")
    if "classic" not in config.group_coordinator_rebalance_protocols:
        named = ",".join(config.group_coordinator_rebalance_protocols)
        raise ConfigError(
            f"group.coordinator.rebalance.protocols is {named!r}, expected classic among them"
        )


def _at_least(config: BrokerConfig, name: str, other: str) -> None:
    value, bound = config.value(name), config.value(other)
    assert isinstance(value, int)
    assert isinstance(bound, int)
    if value < bound:
        raise ConfigError(f"{name} is {value}, expected at least {other}, which is {bound}")


def _at_most(config: BrokerConfig, name: str, other: str) -> None:
    value, bound = config.value(name), config.value(other)
    assert isinstance(value, int)
    assert isinstance(bound, int)
    if value > bound:
        raise ConfigError(f"{name} is {value}, expected at most {other}, which is {bound}")
