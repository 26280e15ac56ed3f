# SPDX-License-Identifier: Apache-2.0
"""Settings of a broker: upstream's names, checked, refused in words that help."""

from pathlib import Path

import pytest

import kohort
from kohort.config import (
    BROKER_SETTINGS,
    GROUP_SETTINGS,
    TOPIC_SETTINGS,
    BrokerConfig,
    ConfigError,
    TopicConfig,
)


def refusal(**texts):
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.of({name.replace("_", "."): text for name, text in texts.items()})
    return str(caught.value)


def test_defaults_are_those_of_the_table():
    config = BrokerConfig()

    for name, setting in BROKER_SETTINGS.items():
        assert config.value(name) == setting.default, name
    assert config == BrokerConfig.of({})


def test_the_settings_of_consumer_groups_are_kafkas():
    """K848-125."""
    prefix = "group.consumer."
    assert {
        name.removeprefix(prefix): setting.default
        for name, setting in BROKER_SETTINGS.items()
        if name.startswith(prefix) and name.endswith((".ms", ".size")) and "assign" not in name
    } == {
        "session.timeout.ms": 45_000,
        "min.session.timeout.ms": 45_000,
        "max.session.timeout.ms": 60_000,
        "heartbeat.interval.ms": 5000,
        "min.heartbeat.interval.ms": 5000,
        "max.heartbeat.interval.ms": 15_000,
        "max.size": 2**31 - 1,
        "regex.refresh.interval.ms": 600_000,
    }


@pytest.mark.parametrize("name", BROKER_SETTINGS)
def test_every_default_is_valid_and_documented(name):
    setting = BROKER_SETTINGS[name]

    assert setting.doc.endswith((".", *"abcdefghijklmnopqrstuvwxyz"))
    if setting.default is not None and setting.kind.name not in ("STRING", "LIST", "BOOLEAN"):
        assert setting.parse(str(setting.default)) == setting.default


SOURCE = Path(kohort.__file__).parent
READERS = "".join(  # clients have settings of the same names
    path.read_text(encoding="utf-8")
    for path in sorted(SOURCE.rglob("*.py"))
    if path.relative_to(SOURCE).as_posix() not in ("config/broker.py", "config/topic.py")
    and path.relative_to(SOURCE).parts[0] != "client"
)

SASL_READER = (SOURCE / "server" / "sasl" / "settings.py").read_text(encoding="utf-8")

RENAMED = {  # what TopicConfig calls some settings of a topic
    "cleanup.policy": "compacted",
    "message.timestamp.type": "log_append_time",
    "message.timestamp.after.max.ms": "timestamp_after_max_ms",
    "message.timestamp.before.max.ms": "timestamp_before_max_ms",
}


def followers(name):
    """The attributes of TopicConfig and ConsumerSettings that follow a setting of the broker."""
    groups = [
        group.removeprefix("consumer.").replace(".", "_")
        for group, row in GROUP_SETTINGS.items()
        if row.broker_name == name
    ]
    return groups + [
        RENAMED.get(topic, topic.replace(".", "_"))
        for topic, row in TOPIC_SETTINGS.items()
        if name in [synonym.name for synonym in row.synonyms]
    ]


@pytest.mark.parametrize("name", BROKER_SETTINGS)
def test_a_setting_that_nobody_reads_says_so(name):
    """K848-025, K848-126."""
    attribute = name.replace(".", "_")
    read = any(f".{one}" in READERS for one in [attribute, *followers(name)])
    read = read or f'value("{name}")' in READERS or f'{" " * 12}"{name}",\n' in READERS
    read = read or f'"{name}"' in SASL_READER
    bound = attribute.startswith(("group_consumer_min_", "group_consumer_max_")) and not (
        attribute.endswith("max_size")
    )

    assert read or bound or "without effect" in BROKER_SETTINGS[name].doc
    if "without effect" in BROKER_SETTINGS[name].doc:
        assert f".{attribute}" not in READERS


def test_texts_become_values_of_their_kind():
    config = BrokerConfig.of(
        {
            "node.id": " 7 ",
            "auto.create.topics.enable": "FALSE",
            "log.cleaner.min.cleanable.ratio": "0.001",
            "log.cleanup.policy": "compact, delete",
            "log.retention.ms": "-1",
        }
    )

    assert config.node_id == 7
    assert config.auto_create_topics_enable is False
    assert config.log_cleaner_min_cleanable_ratio == 0.001
    assert config.log_cleanup_policy == ("compact", "delete")
    assert config.log_retention_ms == -1
    assert "node.id" in config.given


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("num.partitions", "0", "num.partitions is '0', expected an integer of at least 1"),
        ("num.partitions", "many", "expected an integer of at least 1"),
        ("num.partitions", "1_0", "num.partitions is '1_0'"),
        ("num.partitions", "2147483648", "num.partitions is '2147483648'"),
        ("offset.metadata.max.bytes", "", "an integer from -2147483648 to 2147483647"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "a number from 0 to 1"),
        ("log.cleaner.min.cleanable.ratio", "nan", "a number from 0 to 1"),
        ("auto.create.topics.enable", "yes", "expected true or false"),
        ("log.sync", "always", "expected one of group, none"),
        ("log.cleanup.policy", "compact,keep", "expected a list out of compact, delete"),
        ("log.retention.hours", "0", "at least 1, or -1 for ever"),
        ("offsets.topic.segment.bytes", "1048575", "an integer of at least 1048576"),
        (
            "group.consumer.migration.policy",
            "sideways",
            "disabled, upgrade, downgrade, bidirectional",
        ),
        ("group.coordinator.rebalance.protocols", "Classic", "a list out of classic, consumer"),
        ("group.coordinator.threads", "0", "expected an integer of at least 1"),
        ("group.consumer.max.size", "0", "expected an integer of at least 1"),
        ("group.consumer.regex.refresh.interval.ms", "9999", "an integer of at least 10000"),
        ("group.consumer.assignment.interval.ms", "-1", "an integer of at least 0"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_range(name, text, words):
    """K848-025, K848-125, K848-126."""
    assert words in refusal(**{name.replace(".", "_"): text})


def test_an_unknown_name_is_refused_with_what_it_may_have_meant():
    assert "did you mean group.max.size" in refusal(group_max_sizes="4")
    assert refusal(nothing_like_it="1") == "nothing.like.it is not a setting"


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (
            {"group.consumer.session.timeout.ms": "30000"},
            "at least group.consumer.min.session.timeout.ms, which is 45000",
        ),
        (
            {"group.consumer.session.timeout.ms": "70000"},
            "at most group.consumer.max.session.timeout.ms, which is 60000",
        ),
        (
            {
                "group.consumer.min.session.timeout.ms": "5000",
                "group.consumer.session.timeout.ms": "5000",
            },
            "less than group.consumer.session.timeout.ms, which is 5000",
        ),
        (
            {"log.cleaner.max.compaction.lag.ms": "5", "log.cleaner.min.compaction.lag.ms": "6"},
            "log.cleaner.max.compaction.lag.ms is 5, expected at least",
        ),
        (
            {"group.consumer.max.heartbeat.interval.ms": "4000"},
            "group.consumer.max.heartbeat.interval.ms is 4000, expected at least",
        ),
        (
            {"group.consumer.assignment.interval.ms": "20000"},
            "at most group.consumer.max.assignment.interval.ms",
        ),
        ({"group.max.session.timeout.ms": "5000"}, "at least group.min.session.timeout.ms"),
        ({"group.coordinator.rebalance.protocols": "consumer"}, "expected classic among them"),
        ({"group.coordinator.rebalance.protocols": ""}, "expected classic among them"),
    ],
)
def test_settings_must_agree_with_each_other(texts, words):
    """K848-029, K848-125."""
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.of(texts)

    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("range, uniform", ("range", "uniform")),
        ("uniform,uniform", ("uniform",)),
        ("org.apache.kafka.coordinator.group.assignor.RangeAssignor", ("range",)),
    ],
)
def test_assignors_go_by_short_and_class_names(text, expected):
    assert BrokerConfig.of({"group.consumer.assignors": text}).group_consumer_assignors == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected at least one"),
        ("range,org.apache.kafka.coordinator.group.assignor.RangeAssignor", "each assignor once"),
    ],
)
def test_assignors_that_cannot_be(text, words):
    """K848-051."""
    assert words in refusal(group_consumer_assignors=text)


def test_what_means_nothing_here_is_taken_and_told():
    """K229-22."""
    config = BrokerConfig.of(
        {"num.network.threads": "x", "ssl.provider": "y", "zookeeper.connect": "z"}
    )

    assert config.ignored == ("num.network.threads", "ssl.provider", "zookeeper.connect")
    assert not config.given


def test_old_names_go_on_working():
    config = BrokerConfig.of({"broker.id": "3", "log.dir": "/data"})

    assert (config.node_id, config.log_dirs) == (3, ("/data",))


def test_an_old_and_a_new_name_do_not_contradict_each_other():
    """Kafka refuses two ids as well; of two directories it would leave one out."""
    assert BrokerConfig.of({"broker.id": "3", "node.id": "3"}).node_id == 3
    for old, new in (("broker.id", "node.id"), ("log.dir", "log.dirs")):
        with pytest.raises(ConfigError) as caught:
            BrokerConfig.of({new: "2", old: "1"})
        assert str(caught.value) == (
            f"{old} and {new} are names of one setting and are given as 1 and 2, "
            "expected one of them"
        )


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({}, 7 * 24 * 3_600_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_retention_decides(texts, expected):
    assert TopicConfig.of(BrokerConfig.of(texts), {}).retention_ms == expected


def test_segments_roll_by_the_finest_unit():
    assert TopicConfig.of(BrokerConfig(), {}).segment_ms == 168 * 3_600_000
    assert TopicConfig.of(BrokerConfig.of({"log.roll.ms": "5"}), {}).segment_ms == 5


def test_settings_without_effect_are_known_when_they_were_set_to_something():
    given = {"log.preallocate": "true", "min.insync.replicas": "1", "num.partitions": "3"}
    assert BrokerConfig.of(given).without_effect() == ["log.preallocate"]
    assert BrokerConfig().without_effect() == []


def test_values_of_python_stand_for_their_texts():
    config = BrokerConfig.of({"num.partitions": 3, "auto.create.topics.enable": False})
    assert config.num_partitions == 3
    assert config.auto_create_topics_enable is False
    with pytest.raises(ConfigError, match=r"num.partitions is \[3\], expected a text, a number"):
        BrokerConfig.of({"num.partitions": [3]})
