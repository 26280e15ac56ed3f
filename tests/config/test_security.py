# SPDX-License-Identifier: Apache-2.0
"""The settings of certificates, with upstream's names, defaults and kinds."""

import pytest

from kohort.config import BROKER_SETTINGS, BrokerConfig, ConfigError, Kind
from kohort.config.security import ssl_names

SECRETS = {
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
}


def test_secrets_are_of_a_kind_of_their_own() -> None:
    assert ssl_names() < set(BROKER_SETTINGS)
    assert {name for name in ssl_names() if BROKER_SETTINGS[name].kind is Kind.PASSWORD} == SECRETS


def test_defaults_are_upstreams() -> None:
    config = BrokerConfig()
    assert (config.ssl_keystore_type, config.ssl_truststore_type) == ("JKS", "JKS")
    assert (config.ssl_client_auth, config.ssl_principal_mapping_rules) == ("none", "DEFAULT")
    assert config.ssl_enabled_protocols == ("TLSv1.2", "TLSv1.3")
    assert config.ssl_cipher_suites == ()
    assert (config.ssl_allow_dn_changes, config.ssl_allow_san_changes) == (False, False)


def test_versions_that_old_files_name_are_taken() -> None:
    """SEC-13: they are never used."""
    old = BrokerConfig.of({"ssl.enabled.protocols": "TLSv1.2,TLSv1.1,TLSv1"})
    assert old.ssl_enabled_protocols == ("TLSv1.2", "TLSv1.1", "TLSv1")
    with pytest.raises(ConfigError, match=r"ssl\.enabled\.protocols is 'TLSv9'"):
        BrokerConfig.of({"ssl.enabled.protocols": "TLSv9"})
