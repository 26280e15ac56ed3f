"""Settings that change while a broker runs."""

import pytest

from kohort.config import (
    BROKER_SETTINGS,
    DYNAMIC_NAMES,
    BrokerConfig,
    ConfigError,
    checked_dynamic_config,
    with_dynamic,
)


def test_all_of_them_are_settings():
    assert set(BROKER_SETTINGS) >= DYNAMIC_NAMES


def test_the_last_layer_is_the_strongest_and_the_file_the_weakest():
    file = BrokerConfig.of({"log.retention.ms": "1", "log.roll.ms": "1", "message.max.bytes": "1"})
    changed = with_dynamic(
        file, {"log.retention.ms": "2", "log.roll.ms": "2"}, {"log.retention.ms": "3"}
    )
    assert (changed.log_retention_ms, changed.log_roll_ms, changed.message_max_bytes) == (3, 2, 1)
    assert changed.given == file.given
    assert with_dynamic(file, {}, {}) is file


def test_what_contradicts_the_file_is_refused():
    with pytest.raises(ConfigError, match=r"group\.consumer\.max\.assignment\.interval\.ms"):
        with_dynamic(BrokerConfig(), {"group.consumer.assignment.interval.ms": "15001"})


@pytest.mark.parametrize("text", ["0", "soon", "-2"])
def test_texts_are_checked(text):
    assert checked_dynamic_config("log.retention.ms", " 5 ") == "5"
    with pytest.raises(ConfigError, match=r"log\.retention\.ms"):
        checked_dynamic_config("log.retention.ms", text)
