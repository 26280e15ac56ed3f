# SPDX-License-Identifier: Apache-2.0
"""The settings of groups: bounds, and the words in which upstream refuses."""

import pytest

from kohort.config import GROUP_SETTINGS, BrokerConfig, ConfigError
from kohort.config.group import check_together, checked_group_config, in_force

BROKER = BrokerConfig.of({"group.consumer.min.assignment.interval.ms": "0"})
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        (SESSION, "45000", "45000"),
        (SESSION, " 60000\t", "60000"),
        (HEARTBEAT, "15000", "15000"),
        ("consumer.assignment.interval.ms", "0", "0"),
        ("share.auto.offset.reset", "earliest", "earliest"),
        ("share.auto.offset.reset", "by_duration:P1DT2H3M4.5S", "by_duration:P1DT2H3M4.5S"),
        ("share.isolation.level", "read_committed", "read_committed"),
        ("share.renew.acknowledge.enable", "FALSE", "false"),
        ("streams.num.standby.replicas", "1", "1"),
    ],
)
def test_what_is_taken(name, text, kept):
    assert checked_group_config(name, text, BROKER) == kept


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("bad", "1", "Unknown group config name: bad"),
        (
            SESSION,
            "abc",
            f"Invalid value abc for configuration {SESSION}: Not a number of type INT",
        ),
        (SESSION, "1_000", "Not a number of type INT"),
        (SESSION, "2147483648", "Not a number of type INT"),
        (SESSION, "0", "Value must be at least 1"),
        (
            SESSION,
            "44999",
            f"{SESSION} must be greater than or equal to group.consumer.min.session",
        ),
        (SESSION, "60001", f"{SESSION} must be less than or equal to group.consumer.max.session"),
        (HEARTBEAT, "4999", "group.consumer.min.heartbeat.interval.ms, which is 5000"),
        ("consumer.assignment.interval.ms", "-1", "Value must be at least 0"),
        ("consumer.assignment.interval.ms", "15001", "max.assignment.interval.ms, which is 15000"),
        ("share.auto.offset.reset", "never", "Invalid value never for configuration share.auto"),
        ("share.auto.offset.reset", "by_duration:P", "by_duration:<PnDTnHnMn.nS>"),
        ("share.auto.offset.reset", "by_duration:PT", "by_duration:<PnDTnHnMn.nS>"),
        ("share.isolation.level", "none", "expected one of read_committed, read_uncommitted"),
        ("share.renew.acknowledge.enable", "maybe", "expected true or false"),
        ("share.delivery.count.limit", "11", "Value must be no more than 10"),
    ],
)
def test_what_is_refused(name, text, why):
    with pytest.raises(ConfigError) as refused:
        checked_group_config(name, text, BROKER)
    assert why in str(refused.value)


def test_a_session_must_be_longer_than_the_interval_of_heartbeats():
    check_together({}, BROKER)
    with pytest.raises(ConfigError, match="must be greater than"):
        check_together(
            {SESSION: "5000", HEARTBEAT: "5000"},
            BrokerConfig.of({"group.consumer.min.session.timeout.ms": "1000"}),
        )


@pytest.mark.parametrize(
    ("text", "value"),
    [(None, 45_000), ("50000", 50_000), ("1", 45_000), ("99999", 60_000), ("x", 45_000)],
)
def test_what_counts_is_within_the_bounds_of_this_broker(text, value):
    own = {} if text is None else {SESSION: text}
    assert in_force(SESSION, own, BROKER) == value


def test_all_settings_of_upstream_are_there():
    """K848-127."""
    own = "consumer.client.assignors.enable"
    assert len(GROUP_SETTINGS.keys() - {own}) == 17
    for name, row in GROUP_SETTINGS.items():
        assert row.setting.name == name
        assert row.followed(BROKER) is not None
