# SPDX-License-Identifier: Apache-2.0
"""Upstream's settings that have an effect here: frozen, bounded, documented."""

from kohort.config.authorizer import STANDARD_AUTHORIZER, super_users_of
from kohort.config.broker import (
    ASSIGNOR_NAMES,
    BROKER_SETTINGS,
    BrokerConfig,
    listener_settings,
    own_name,
    setting_name,
    unknown_setting,
)
from kohort.config.dynamic import (
    DYNAMIC_NAMES,
    LISTENER_NAMES,
    UNREAD_AT_MOST,
    DynamicConfig,
    IneffectiveSetting,
    checked_dynamic_config,
    is_limit_of_listener,
    is_of_certificate,
    is_of_listener,
    is_secret,
    is_unknown,
    is_unused,
    with_dynamic,
)
from kohort.config.group import GROUP_SETTINGS, GroupSetting
from kohort.config.ignored import is_ignored
from kohort.config.properties import read_numbered, read_properties
from kohort.config.settings import ConfigError, Kind, Setting, Value, text_of
from kohort.config.topic import (
    TOPIC_SETTINGS,
    TopicConfig,
    TopicSetting,
    check_topic_together,
    checked_topic_config,
)

__all__ = [
    "ASSIGNOR_NAMES",
    "BROKER_SETTINGS",
    "DYNAMIC_NAMES",
    "GROUP_SETTINGS",
    "LISTENER_NAMES",
    "STANDARD_AUTHORIZER",
    "TOPIC_SETTINGS",
    "UNREAD_AT_MOST",
    "BrokerConfig",
    "ConfigError",
    "DynamicConfig",
    "GroupSetting",
    "IneffectiveSetting",
    "Kind",
    "Setting",
    "TopicConfig",
    "TopicSetting",
    "Value",
    "check_topic_together",
    "checked_dynamic_config",
    "checked_topic_config",
    "is_ignored",
    "is_limit_of_listener",
    "is_of_certificate",
    "is_of_listener",
    "is_secret",
    "is_unknown",
    "is_unused",
    "listener_settings",
    "own_name",
    "read_numbered",
    "read_properties",
    "setting_name",
    "super_users_of",
    "text_of",
    "unknown_setting",
    "with_dynamic",
]
