# SPDX-License-Identifier: Apache-2.0
"""The settings of a broker that are about certificates (`ssl.*`). `BrokerConfig` has them.

Each can be written for one listener alone: `listener.name.<name in small letters>.<setting>`.
"""

from dataclasses import dataclass

from kohort.config.settings import boolean, listing, password, string
from kohort.security.names import CLIENT_AUTH, TLS_VERSIONS

STORE_TYPES = ("PEM", "PKCS12", "JKS")
OLD_PROTOCOLS = ("TLSv1", "TLSv1.1", "SSLv3", "SSLv2Hello")  # named in old files
_TYPES = "PEM, PKCS12, or JKS, which opens PKCS12 as well; files of JKS itself are refused."


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """What listeners of SSL and SASL_SSL show their clients and ask of them."""

    ssl_keystore_type: str = string(
        "JKS", f"The kind of the keystore: {_TYPES}", choices=STORE_TYPES
    )
    ssl_keystore_location: str | None = string(
        None,
        "The file with the key of a listener, its certificate, and those that signed that; a PEM "
        "has them one behind the other.",
    )
    ssl_keystore_password: str | None = password("The password of a keystore that is PKCS12.")
    ssl_keystore_key: str | None = password(
        "The key of a listener as a PEM text, instead of a keystore."
    )
    ssl_keystore_certificate_chain: str | None = password(
        "The certificates that belong to ssl.keystore.key, as PEM texts."
    )
    ssl_key_password: str | None = password("The password of the key in a PEM.")
    ssl_truststore_type: str = string(
        "JKS", f"The kind of the truststore: {_TYPES}", choices=STORE_TYPES
    )
    ssl_truststore_location: str | None = string(
        None,
        "The file with the certificates that are trusted to sign those of clients; without one it "
        "is those of the system.",
    )
    ssl_truststore_password: str | None = password("The password of a truststore that is PKCS12.")
    ssl_truststore_certificates: str | None = password(
        "The same certificates as PEM texts, instead of a truststore."
    )
    ssl_client_auth: str = string(
        "none",
        "Whether clients are asked for a certificate: none, requested (they may show one), "
        "required. A listener of SASL_SSL has only its own, with its prefix.",
        choices=CLIENT_AUTH,
    )
    ssl_principal_mapping_rules: str = string(
        "DEFAULT",
        "How the subject of a client's certificate becomes the name of a user: "
        "RULE:pattern/replacement/, with L or U behind it, or DEFAULT, with commas between them.",
    )
    ssl_enabled_protocols: tuple[str, ...] = listing(
        TLS_VERSIONS,
        "The versions of TLS: TLSv1.2 and TLSv1.3. Older ones may be named and are never used.",
        choices=(*TLS_VERSIONS, *OLD_PROTOCOLS),
    )
    ssl_cipher_suites: tuple[str, ...] = listing(
        (),
        "The cipher suites, by Java's names; without any those that OpenSSL recommends. TLS 1.3 "
        "has all its three or none.",
    )
    ssl_allow_dn_changes: bool = boolean(
        False, "Whether a new certificate may have another subject when it is read again."
    )
    ssl_allow_san_changes: bool = boolean(
        False, "Whether a new certificate may lack alternative names that the old one has."
    )


def ssl_names() -> frozenset[str]:
    """The names of these settings."""
    return frozenset(name.replace("_", ".") for name in SecuritySettings.__slots__)
