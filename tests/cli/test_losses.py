# SPDX-License-Identifier: Apache-2.0
"""Which changes of settings can delete records."""

import pytest

from kohort.cli.losses import LOSSES, SettingChange, value_without
from kohort.client.admin import ConfigEntry, ConfigSource, ConfigSynonym
from kohort.config.dynamic import DYNAMIC_NAMES
from kohort.config.topic import TOPIC_SETTINGS


@pytest.mark.parametrize(
    ("name", "before", "after", "loses"),
    [
        ("retention.ms", "604800000", "60000", True),
        ("retention.ms", "60000", "604800000", False),
        ("retention.ms", "60000", "60000", False),
        ("retention.ms", "-1", "60000", True),
        ("retention.ms", "60000", "-1", False),
        ("retention.ms", None, "60000", True),
        ("retention.ms", None, "-1", False),
        ("retention.ms", "60000", None, True),
        ("retention.ms", "60000", "soon", False),
        ("retention.bytes", "-1", "1", True),
        ("local.retention.ms", "-2", "1000", True),
        ("delete.retention.ms", "86400000", "0", True),
        ("log.retention.bytes", "-1", "1024", True),
        ("cleanup.policy", "compact", "delete", True),
        ("cleanup.policy", "delete", "compact", True),
        ("cleanup.policy", "delete", "compact,delete", True),
        ("cleanup.policy", "compact,delete", "compact", False),
        ("cleanup.policy", "delete", "delete", False),
        ("cleanup.policy", "delete, compact", "compact,delete", False),
        ("cleanup.policy", "delete", "", False),
        ("cleanup.policy", None, "delete", True),
        ("unclean.leader.election.enable", "false", "true", True),
        ("unclean.leader.election.enable", "true", "true", False),
        ("unclean.leader.election.enable", "true", "false", False),
        ("segment.bytes", "1073741824", "1048576", False),
    ],
)
def test_a_change_loses_records_or_does_not(name, before, after, loses):
    assert SettingChange(name, before, after).loses is loses


def test_a_change_is_shown_with_both_values():
    change = SettingChange("retention.ms", "604800000", "60000")
    assert change.text == "retention.ms 604800000 (7 d) -> 60000 (1 min)"
    taken_back = SettingChange("retention.ms", "-1", None)
    assert taken_back.text == "retention.ms -1 -> (what holds without it)"
    assert SettingChange("cleanup.policy", "delete", "").text == 'cleanup.policy delete -> ""'


@pytest.mark.parametrize(
    ("synonyms", "value"),
    [
        ([("log.retention.ms", "1000", 5)], "1000"),
        ([("log.retention.hours", "168", 5)], "604800000"),
        ([("log.retention.minutes", "-1", 4), ("log.retention.hours", "168", 5)], "-1"),
        ([("log.cleanup.policy", "delete", 5)], "delete"),
        ([], None),
    ],
)
def test_what_holds_without_the_own_value_comes_from_the_synonyms(synonyms, value):
    """Those of brokers have units of their own."""
    own = ConfigSynonym("retention.ms", "5", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    others = (ConfigSynonym(name, text, ConfigSource(source)) for name, text, source in synonyms)
    entry = ConfigEntry(
        *("retention.ms", "5", own.source),
        read_only=False,
        sensitive=False,
        synonyms=(own, *others),
    )
    assert value_without(entry, {"DYNAMIC_TOPIC_CONFIG"}) == value


def test_each_of_the_settings_is_one_of_topics_or_brokers():
    assert set(LOSSES) <= {*TOPIC_SETTINGS, *DYNAMIC_NAMES, "remote.log.delete.on.disable"}
