# SPDX-License-Identifier: Apache-2.0
"""Which authorizer there is, and who may do everything."""

import pytest

from kohort.config import STANDARD_AUTHORIZER, BrokerConfig, ConfigError, super_users_of


def test_the_one_authorizer_that_there_is():
    config = BrokerConfig.of({"authorizer.class.name": f" {STANDARD_AUTHORIZER} "})
    assert config.authorizer_class_name == STANDARD_AUTHORIZER
    assert BrokerConfig.of({"authorizer.class.name": ""}) == BrokerConfig.of(
        {"authorizer.class.name": " "}
    )


@pytest.mark.parametrize("name", ["kafka.security.authorizer.AclAuthorizer", "yes"])
def test_another_one_is_refused_by_name(name):
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.of({"authorizer.class.name": name})
    (line,) = str(refused.value).splitlines()
    assert name in line
    assert STANDARD_AUTHORIZER in line


def test_super_users_stand_between_semicolons():
    """SEC-63: a certificate's name has commas."""
    assert super_users_of("") == ()
    text = " User:admin;;User:CN=super,O=Kohort ;User:admin; User: "
    assert super_users_of(text) == ("User:admin", "User:CN=super,O=Kohort", "User:")


@pytest.mark.parametrize("text", ["admin", "User:a,b;c", ":admin"])
def test_a_text_that_is_no_principal_is_refused(text):
    with pytest.raises(ConfigError, match=r"super\.users names"):
        BrokerConfig.of({"super.users": text})
