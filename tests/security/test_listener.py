# SPDX-License-Identifier: Apache-2.0
"""What a listener's settings say of its certificates."""

from typing import Any

import pytest

from kohort.config import ConfigError
from kohort.config.listeners import Listener
from kohort.security.listener import tls_config
from kohort.security.settings import Store

LISTENER = Listener("OUTER", "SSL", "h", 1)


@pytest.mark.parametrize(
    ("texts", "identity", "key", "trust"),
    [
        (
            {"keystore.type": "PEM", "keystore.location": "/k", "key.password": "p"},
            Store(path="/k", password="p"),
            None,
            None,
        ),
        (
            {"keystore.location": "/k", "keystore.password": "p", "truststore.location": "/t"},
            Store(type="JKS", path="/k", password="p"),
            None,
            Store(type="JKS", path="/t"),
        ),
        (
            {
                "keystore.certificate.chain": "C",
                "keystore.key": "K",
                "key.password": "p",
                "truststore.certificates": "T",
            },
            Store(text="C"),
            Store(text="K", password="p"),
            Store(text="T"),
        ),
    ],
)
def test_the_stores(
    texts: dict[str, str], identity: Store, key: Store | None, trust: Store | None
) -> None:
    """SEC-14."""
    found = tls_config(LISTENER, {f"ssl.{name}": text for name, text in texts.items()})
    assert (found.identity, found.key, found.trust) == (identity, key, trust)
    assert (found.client_auth, found.protocols) == ("none", ("TLSv1.2", "TLSv1.3"))


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({}, "it has no certificate to show, expected ssl.keystore.location"),
        ({"keystore.key": "K"}, "ssl.keystore.certificate.chain is missing"),
        ({"keystore.certificate.chain": "C"}, "ssl.keystore.key is missing"),
        ({"keystore.location": "/k", "keystore.key": "K"}, "stands beside texts of it"),
        (
            {"keystore.location": "/k", "keystore.type": "PEM", "keystore.password": "s3cret"},
            "ssl.keystore.password is set for a PEM",
        ),
        (
            {"keystore.location": "/k", "truststore.location": "/t", "truststore.certificates": ""},
            "",
        ),
        (
            {"keystore.location": "/k", "truststore.type": "PEM", "truststore.password": "s3cret"},
            "ssl.truststore.password is set for a PEM",
        ),
        (
            {"keystore.location": "/k", "principal.mapping.rules": "RULE:("},
            "ssl.principal.mapping.rules has 'RULE:('",
        ),
    ],
)
def test_a_listener_that_cannot_be_opened_says_why(texts: dict[str, Any], words: str) -> None:
    named = {f"ssl.{name}": text for name, text in texts.items()}
    if not words:
        assert tls_config(LISTENER, named).trust == Store(type="JKS", path="/t")
        return
    with pytest.raises(ConfigError) as refused:
        tls_config(LISTENER, named)
    assert str(refused.value).startswith("listener OUTER (SSL): ")
    assert words in str(refused.value)
    assert "s3cret" not in str(refused.value)
