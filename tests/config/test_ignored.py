"""What upstream knows and Kohort does not need, kept apart from what nobody knows."""

import pytest

from kohort.config.broker import BROKER_SETTINGS
from kohort.config.ignored import IGNORED_NAMES, means_nothing_here


@pytest.mark.parametrize(
    "name", ["num.io.threads", "process.roles", "listener.name.external.ssl.key.password"]
)
def test_known_and_useless(name):
    assert means_nothing_here(name)


@pytest.mark.parametrize("name", ["super.users", "allow.everyone.if.no.acl.found"])
def test_settings_of_an_authorizer(name):
    """They stand beside `authorizer.class.name`, and a file with one must start a broker here."""
    assert means_nothing_here("authorizer.class.name")
    assert means_nothing_here(name)


@pytest.mark.parametrize("name", ["num.partitons", "group.consumer.sessions", "nonsense"])
def test_unknown(name):
    assert not means_nothing_here(name)


def test_a_setting_is_used_or_ignored_and_never_both():
    assert not IGNORED_NAMES & set(BROKER_SETTINGS)
    assert not [name for name in BROKER_SETTINGS if means_nothing_here(name)]
