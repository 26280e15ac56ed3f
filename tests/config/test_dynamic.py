# SPDX-License-Identifier: Apache-2.0
"""Settings that change while a broker runs."""

import pytest

from kohort.config import (
    BROKER_SETTINGS,
    DYNAMIC_NAMES,
    BrokerConfig,
    ConfigError,
    IneffectiveSetting,
    checked_dynamic_config,
    is_of_listener,
    is_secret,
    is_unknown,
    is_unused,
    with_dynamic,
)


def test_all_of_them_are_settings():
    assert set(BROKER_SETTINGS) >= DYNAMIC_NAMES


def test_the_last_layer_is_the_strongest_and_the_file_the_weakest():
    file = BrokerConfig.of({"log.retention.ms": "1", "log.roll.ms": "1", "message.max.bytes": "1"})
    configured = {
        "": {"log.retention.ms": "2", "log.roll.ms": "2"},
        str(file.node_id): {"log.retention.ms": "3"},
        "another": {"log.roll.ms": "4"},
    }
    dynamic = with_dynamic(file, configured)
    changed = dynamic.config
    assert (changed.log_retention_ms, changed.log_roll_ms, changed.message_max_bytes) == (3, 2, 1)
    assert changed.given == file.given
    assert dynamic.in_force == configured
    assert dynamic.ineffective == ()
    assert with_dynamic(file, {}).config is file


def test_what_contradicts_the_file_is_left_aside_alone():
    interval = "group.consumer.assignment.interval.ms"
    file = BrokerConfig()
    own = str(file.node_id)
    configured = {
        "": {interval: "15001", "log.roll.ms": "2"},
        own: {interval: "15002", "log.preallocate": "perhaps"},
    }
    dynamic = with_dynamic(file, configured)
    bound = "expected at most group.consumer.max.assignment.interval.ms, which is 15000"
    readable = "log.preallocate is 'perhaps', expected true or false"
    assert dynamic.ineffective == (
        IneffectiveSetting(own, interval, "15002", f"{interval} is 15002, {bound}"),
        IneffectiveSetting("", interval, "15001", f"{interval} is 15001, {bound}"),
        IneffectiveSetting(own, "log.preallocate", "perhaps", readable),
    )
    assert dynamic.in_force == {"": {"log.roll.ms": "2"}, own: {}}
    assert dynamic.config == with_dynamic(file, dynamic.in_force).config
    assert dynamic.config.log_roll_ms == 2


def test_under_a_setting_that_is_left_aside_lies_that_of_all_brokers():
    interval = "group.consumer.assignment.interval.ms"
    file = BrokerConfig()
    dynamic = with_dynamic(file, {"": {interval: "7"}, str(file.node_id): {interval: "15001"}})
    assert dynamic.config.group_consumer_assignment_interval_ms == 7


LAG, LEAST_LAG = "log.cleaner.max.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {LAG: "10", LEAST_LAG: "10"}),
        ({LEAST_LAG: "100"}, {LAG: "10", LEAST_LAG: "5"}),
        ({LAG: "10"}, {LAG: "200", LEAST_LAG: "100"}),
        ({LAG: "200", LEAST_LAG: "100"}, {LAG: "20", LEAST_LAG: "10"}),
        ({LAG: "20", LEAST_LAG: "10"}, {LAG: "200", LEAST_LAG: "100"}),
        ({"log.retention.ms": "5"}, {"log.local.retention.ms": "9", "log.retention.ms": "10"}),
    ],
)
def test_two_that_bound_each_other_change_together(before, after):
    """Whatever stood in the file, and whichever goes first."""
    dynamic = with_dynamic(BrokerConfig.of(before), {"": after})
    assert dynamic.ineffective == ()
    for name, text in after.items():
        assert dynamic.config.value(name) == int(text)


@pytest.mark.parametrize(
    ("texts", "aside"),
    [
        ({LAG: "10", LEAST_LAG: "11"}, LEAST_LAG),
        ({"log.local.retention.ms": "6", "log.retention.ms": "5"}, "log.retention.ms"),
        ({"log.local.retention.ms": "604800001"}, "log.local.retention.ms"),
        ({"log.local.retention.ms": "-1"}, "log.local.retention.ms"),
        ({"log.local.retention.bytes": "8", "log.retention.bytes": "7"}, "log.retention.bytes"),
    ],
)
def test_of_two_that_contradict_each_other_one_is_left_aside(texts, aside):
    (left,) = with_dynamic(BrokerConfig(), {"": texts}).ineffective
    assert left.name == aside


@pytest.mark.parametrize("text", ["0", "soon", "-2"])
def test_texts_are_checked(text):
    assert checked_dynamic_config("log.retention.ms", " 5 ") == "5"
    with pytest.raises(ConfigError, match=r"log\.retention\.ms"):
        checked_dynamic_config("log.retention.ms", text)


@pytest.mark.parametrize(
    ("name", "unread", "unknown"),
    [
        ("no.such.setting", True, True),
        ("num.io.threads", True, False),
        ("ssl.protocol", True, False),
        ("listener.name.external.ssl.protocol", True, False),
        ("ssl.key.password", False, False),
        ("ssl.client.auth", False, False),
        ("listener.name.external.ssl.client.auth", False, False),
        ("listener.name.external.plian.ssl.keystore.location", True, False),
        ("listener.name.external.plain.ssl.keystore.password", False, False),
        ("listener.name.external.ssl.allow.dn.changes", False, False),
        ("my.Secret", False, True),
        ("message.max.bytes", False, False),
        ("broker.rack", False, False),
        ("log.sync", False, False),
    ],
)
def test_what_is_kept_and_read_by_nothing(name, unread, unknown):
    assert (is_unused(name), is_unknown(name)) == (unread, unknown)


def test_what_may_be_a_secret_is_not_told():
    told = [
        str(one) for one in with_dynamic(BrokerConfig(), {"": {"x.y": "z", "ssl.a": "b"}}).unread
    ]
    assert told == [
        "x.y, set for all brokers, is kept and not in force: x.y is not a setting",
        "ssl.a=b, set for all brokers, is kept and not in force: nothing here reads it",
    ]


def test_what_is_changed_of_a_listener_stands_above_the_file():
    """SEC-23."""
    name = "listener.name.plaintext.ssl.client.auth"
    file = BrokerConfig.of({name: "required", "listener.name.plaintext.ssl.key.password": "a"})
    found = with_dynamic(file, {"0": {name: "none"}, "": {name: "requested"}})
    assert found.config.prefixed == file.prefixed | {name: "none"}
    assert checked_dynamic_config(name, " none ") == "none"
    with pytest.raises(ConfigError, match=r"listener\.name\.plaintext\.ssl\.client\.auth is 'x'"):
        checked_dynamic_config(name, "x")


def test_a_limit_of_a_listener_may_be_set_for_all_brokers_and_for_one():
    """KIP-402: as upstream, unlike its certificates."""
    name = "listener.name.out.max.connections"
    file = BrokerConfig.of({"node.id": "1"})
    assert with_dynamic(file, {"": {name: "7"}}).config.prefixed == {name: "7"}
    assert with_dynamic(file, {"1": {name: "8"}, "": {name: "7"}}).config.prefixed == {name: "8"}
    assert with_dynamic(file, {"2": {name: "8"}}).config.prefixed == {}
    assert checked_dynamic_config(name, " 5 ") == "5"
    with pytest.raises(ConfigError, match="expected"):
        checked_dynamic_config(name, "-1")


def test_a_mechanism_has_no_certificate_of_its_own():
    """Nothing would read it."""
    assert is_of_listener("listener.name.a.ssl.keystore.location")
    for word in ("plian", "plain"):
        assert not is_of_listener(f"listener.name.a.{word}.ssl.keystore.location")


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("listener.name.a.ssl.keystore.password", True),
        ("ssl.keystore.key", True),
        ("listener.name.a.ssl.keystore.location", False),
        ("sasl.jaas.config", True),
        ("message.max.bytes", False),
        ("whatever.this.is", True),
    ],
)
def test_what_must_not_be_shown(name, secret):
    assert is_secret(name) is secret
