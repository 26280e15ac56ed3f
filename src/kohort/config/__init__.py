"""Upstream's settings that have an effect here: frozen, bounded, documented."""

from kohort.config.broker import ASSIGNOR_NAMES, BROKER_SETTINGS, BrokerConfig
from kohort.config.dynamic import DYNAMIC_NAMES, checked_dynamic_config, with_dynamic
from kohort.config.group import GROUP_SETTINGS, GroupSetting
from kohort.config.properties import read_properties
from kohort.config.settings import ConfigError, Kind, Setting, Value, text_of
from kohort.config.topic import TOPIC_SETTINGS, TopicConfig, TopicSetting, checked_topic_config

__all__ = [
    "ASSIGNOR_NAMES",
    "BROKER_SETTINGS",
    "DYNAMIC_NAMES",
    "GROUP_SETTINGS",
    "TOPIC_SETTINGS",
    "BrokerConfig",
    "ConfigError",
    "GroupSetting",
    "Kind",
    "Setting",
    "TopicConfig",
    "TopicSetting",
    "Value",
    "checked_dynamic_config",
    "checked_topic_config",
    "read_properties",
    "text_of",
    "with_dynamic",
]
