# SPDX-License-Identifier: Apache-2.0
"""What upstream knows and Kohort does not need, kept apart from what nobody knows."""

import pytest

from kohort.config import BROKER_SETTINGS, BrokerConfig
from kohort.config.ignored import IGNORED_NAMES, is_ignored


@pytest.mark.parametrize("name", ["num.io.threads", "process.roles", "ssl.trustmanager.algorithm"])
def test_known_and_useless(name):
    assert is_ignored(name)


def test_settings_of_an_authorizer():
    """A file with one starts a broker here, and all of it has an effect."""
    config = BrokerConfig.of(
        {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:CN=broker,O=here",
            "allow.everyone.if.no.acl.found": "true",
        }
    )
    assert config.super_users == "User:admin;User:CN=broker,O=here"
    assert config.without_effect() == []


@pytest.mark.parametrize("name", ["num.partitons", "group.consumer.sessions", "nonsense"])
def test_unknown(name):
    assert not is_ignored(name)


def test_a_setting_is_used_or_ignored_and_never_both():
    assert not IGNORED_NAMES & set(BROKER_SETTINGS)
    assert not [name for name in BROKER_SETTINGS if is_ignored(name)]
