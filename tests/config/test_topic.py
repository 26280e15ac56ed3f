# SPDX-License-Identifier: Apache-2.0
"""Settings of topics, their bounds and what they follow."""

import pytest

from kohort.config import (
    TOPIC_SETTINGS,
    BrokerConfig,
    ConfigError,
    TopicConfig,
    check_topic_together,
    checked_topic_config,
)


def test_defaults_follow_the_broker():
    """A topic that sets nothing is as the broker's defaults say, and those are the topic's own."""
    broker = BrokerConfig()
    for name, row in TOPIC_SETTINGS.items():
        assert row.followed(broker) == row.setting.default, name


def test_the_strongest_synonym_decides():
    broker = BrokerConfig.of({"log.retention.minutes": "5", "log.retention.hours": "1"})

    assert TOPIC_SETTINGS["retention.ms"].followed(broker) == 300_000
    assert TopicConfig.of(broker, {}).retention_ms == 300_000
    assert TopicConfig.of(broker, {"retention.ms": "7"}).retention_ms == 7


def test_unlimited_stays_unlimited_in_every_unit():
    broker = BrokerConfig.of({"log.retention.hours": "-1"})

    assert TopicConfig.of(broker, {}).retention_ms == -1


def test_overrides_are_read():
    config = TopicConfig.of(
        BrokerConfig(),
        {
            "cleanup.policy": "compact,delete",
            "message.timestamp.type": "LogAppendTime",
            "min.cleanable.dirty.ratio": "0.1",
            "segment.bytes": "1048576",
        },
    )

    assert config.compacted
    assert config.deleted
    assert config.log_append_time
    assert config.min_cleanable_dirty_ratio == 0.1
    assert config.segment_bytes == 1048576


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("retention.ms", " 100 ", "100"),
        ("cleanup.policy", "compact , delete", "compact,delete"),
        ("preallocate", "FALSE", "false"),
        ("min.cleanable.dirty.ratio", "0.50", "0.5"),
        ("leader.replication.throttled.replicas", " 0:1, 12:3,", "0:1,12:3"),
        ("leader.replication.throttled.replicas", "*", "*"),
        ("follower.replication.throttled.replicas", "", ""),
    ],
)
def test_texts_are_kept_in_one_form(name, text, kept):
    assert checked_topic_config(name, text) == kept


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("no.such.config", "1", "Unknown topic config name: no.such.config"),
        ("retention.ms", "soon", "retention.ms is 'soon', expected an integer of at least -1"),
        ("cleanup.policy", "keep", "a list out of compact, delete"),
        ("compression.type", "brotli", "one of uncompressed, zstd"),
        ("segment.bytes", "10", "at least 1048576"),
        ("remote.storage.enable", "true", "there is no tiered storage"),
        ("leader.replication.throttled.replicas", "all", "has 'all', expected PARTITION:NODE"),
        ("leader.replication.throttled.replicas", "*,0:1", "has '[*]', expected PARTITION:NODE"),
        ("follower.replication.throttled.replicas", "0:1,2", "has '2', expected PARTITION:NODE"),
        (
            "leader.replication.throttled.replicas",
            ",".join(f"{index}:1" for index in range(9000)),
            "has 61889 bytes, expected at most 32767",
        ),
    ],
)
def test_bad_texts_are_refused(name, text, words):
    with pytest.raises(ConfigError, match=words.replace(".", r"\.")):
        checked_topic_config(name, text)


@pytest.mark.parametrize(
    ("broker", "own", "fine"),
    [
        ({}, {"max.compaction.lag.ms": "5", "min.compaction.lag.ms": "5"}, True),
        ({}, {"max.compaction.lag.ms": "5", "min.compaction.lag.ms": "6"}, False),
        ({"log.cleaner.min.compaction.lag.ms": "6"}, {"max.compaction.lag.ms": "5"}, False),
        ({"log.cleaner.max.compaction.lag.ms": "5"}, {"min.compaction.lag.ms": "6"}, False),
        ({"log.cleaner.max.compaction.lag.ms": "5"}, {"min.compaction.lag.ms": "5"}, True),
    ],
)
def test_the_longest_compaction_lag_is_no_shorter_than_the_shortest(broker, own, fine):
    """As in Kafka, whichever of them the topic has from the broker."""
    config = BrokerConfig.of(broker)
    if fine:
        check_topic_together(own, config)
        return
    with pytest.raises(ConfigError, match=r"^min\.compaction\.lag\.ms is 6, expected at most max"):
        check_topic_together(own, config)
