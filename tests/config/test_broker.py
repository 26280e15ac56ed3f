"""Settings of a broker: upstream's names, checked, refused in words that help."""

import pytest

from kohort.config import BROKER_SETTINGS, BrokerConfig, ConfigError


def refusal(**texts):
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.of({name.replace("_", "."): text for name, text in texts.items()})
    return str(caught.value)


def test_defaults_are_those_of_the_table():
    config = BrokerConfig()

    for name, setting in BROKER_SETTINGS.items():
        assert config.value(name) == setting.default, name
    assert config == BrokerConfig.of({})


@pytest.mark.parametrize("name", BROKER_SETTINGS)
def test_every_default_is_valid_and_documented(name):
    setting = BROKER_SETTINGS[name]

    assert setting.doc.endswith((".", *"abcdefghijklmnopqrstuvwxyz"))
    if setting.default is not None and setting.kind.name not in ("STRING", "LIST", "BOOLEAN"):
        assert setting.parse(str(setting.default)) == setting.default


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
    assert config.retention_ms == -1
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
        (
            "group.consumer.migration.policy",
            "sideways",
            "disabled, upgrade, downgrade, bidirectional",
        ),
        ("group.coordinator.rebalance.protocols", "Classic", "a list out of classic, consumer"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_range(name, text, words):
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
        ("Uniform", "has 'Uniform'"),
        ("range,org.apache.kafka.coordinator.group.assignor.RangeAssignor", "each assignor once"),
    ],
)
def test_assignors_that_cannot_be(text, words):
    assert words in refusal(group_consumer_assignors=text)


def test_what_means_nothing_here_is_taken_and_told():
    config = BrokerConfig.of(
        {"num.network.threads": "x", "ssl.keystore.location": "y", "zookeeper.connect": "z"}
    )

    assert config.ignored == ("num.network.threads", "ssl.keystore.location", "zookeeper.connect")
    assert not config.given


def test_old_names_go_on_working():
    config = BrokerConfig.of({"broker.id": "3", "log.dir": "/data"})

    assert (config.node_id, config.log_dirs) == (3, ("/data",))


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
    assert BrokerConfig.of(texts).retention_ms == expected


def test_segments_roll_by_the_finest_unit():
    assert BrokerConfig().roll_ms == 168 * 3_600_000
    assert BrokerConfig.of({"log.roll.ms": "5"}).roll_ms == 5
