# SPDX-License-Identifier: Apache-2.0
"""How a value of a setting about security is read."""

import pytest

from kohort.client import security_values as read


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ca.pem", "PEM"),
        ("ca.crt", "PEM"),
        ("ca", "PEM"),
        ("own.P12", "PKCS12"),
        ("a.pfx", "PKCS12"),
        ("a.jks", "JKS"),
    ],
)
def test_a_store_without_a_type_has_that_of_its_name(path, expected):
    assert read.type_of_file(path) == expected


def test_librdkafkas_probe_is_the_authorities_of_the_system():
    assert read.authorities("ssl.ca.location", "probe") == {}


@pytest.mark.parametrize(
    ("value", "expected"), [("https", True), ("HTTPS", True), ("", False), ("none", False)]
)
def test_the_host_check_has_the_words_of_java_and_of_librdkafka(value, expected):
    found = read.host_check("ssl.endpoint.identification.algorithm", value)
    assert found == {"check_hostname": expected}


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ('unsecuredLoginStringClaim_scope="x"', "unsecuredLoginStringClaim_sub"),
        (
            'unsecuredLoginStringClaim_sub="a" unsecuredLoginLifetimeSeconds="ten"',
            "LifetimeSeconds",
        ),
        ('unsecuredLoginNumberClaim_exp="5"', "unsecuredLoginNumberClaim_exp"),
        ('clientSecret="hunter2" clientld="me"', "clientld"),
    ],
)
def test_an_option_of_the_login_module_of_tokens_is_refused_by_its_name(given, option):
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    with pytest.raises(ValueError, match=option) as refusal:
        read.jaas("sasl.jaas.config", f"{module} required {given};")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("given", ["a", "=b", "a=1,b"])
def test_extensions_are_pairs(given):
    with pytest.raises(ValueError, match="not a list of key=value"):
        read.extensions("sasl.oauthbearer.extensions", given)
