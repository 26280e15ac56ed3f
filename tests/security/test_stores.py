# SPDX-License-Identifier: Apache-2.0
"""Keystores and truststores: what is loaded, and what a user is told of one that cannot be."""

import os
import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
from freezegun import freeze_time
from tests.certificates import Authority, Identity

from kohort.client.security_settings import security_of
from kohort.security.settings import Store
from kohort.security.stores import (
    STORE_BYTES_MAX,
    StoreError,
    certificates,
    client_context,
    expired_text,
    server_context,
)
from kohort.storage.files import system

PASSWORD = "key-secret"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def server(authority: Authority) -> Identity:
    return authority.sign("localhost")


def talk(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """A handshake in memory; the server's side of it. Raises SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    client_side = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    for _ in range(5):
        for side in (client_side, server_side):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    client_side.do_handshake()
    server_side.do_handshake()
    return server_side


def one_line(text: str) -> str:
    return " ".join(text.splitlines())


STORES: dict[str, Callable[[Identity, Path], dict[str, Store]]] = {
    "PEM file": lambda one, path: {"identity": Store(path=str(one.write_pem(path)))},
    "PEM file, encrypted": lambda one, path: {
        "identity": Store(path=str(one.write_pem(path, PASSWORD)), password=PASSWORD)
    },
    "PEM text": lambda one, _: {"identity": Store(text=one.pem())},
    "PEM text in one line": lambda one, _: {"identity": Store(text=one_line(one.pem()))},
    "two texts": lambda one, _: {
        "identity": Store(text=one.certificate_pem),
        "key": Store(text=one.key_pem(PASSWORD), password=PASSWORD),
    },
    "PKCS12": lambda one, path: {
        "identity": Store(
            type="PKCS12", path=str(one.write_pkcs12(path, PASSWORD)), password=PASSWORD
        )
    },
    "PKCS12, by Java's default type": lambda one, path: {
        "identity": Store(type="JKS", path=str(one.write_pkcs12(path, PASSWORD)), password=PASSWORD)
    },
}


@pytest.mark.parametrize("store", STORES)
def test_a_store_of_each_kind_serves_a_client(
    store: str, authority: Authority, server: Identity, tmp_path: Path
) -> None:
    """SEC-14."""
    context = server_context(**STORES[store](server, tmp_path / "store"))
    assert talk(context, client_context(trust=Store(text=authority.pem))).version() == "TLSv1.3"


@pytest.mark.parametrize("in_line", [False, True])
def test_a_truststore_may_be_a_file_or_a_text(
    authority: Authority, server: Identity, tmp_path: Path, *, in_line: bool
) -> None:
    context = server_context(Store(text=server.pem()))
    path = authority.write(tmp_path / "ca.pem")
    text = f"# Zürich\n{one_line(authority.pem)}"
    trust = Store(text=text) if in_line else Store(path=str(path))
    talk(context, client_context(trust=trust))
    talk(context, client_context(trust=Store(text=server.certificate_pem)))
    with pytest.raises(ssl.SSLCertVerificationError):
        talk(context, client_context(trust=Store(text=Authority("another").pem)))
    talk(context, client_context(verify=False))


@pytest.mark.parametrize("named", ["trust.jks", "trust.p12"])
@pytest.mark.parametrize("typed", [{}, {"ssl.truststore.type": "JKS"}])
def test_a_truststore_of_keytool_is_opened_by_what_is_in_it(
    authority: Authority, server: Identity, tmp_path: Path, named: str, typed: dict[str, str]
) -> None:
    """It writes PKCS#12 since Java 9, whatever the file is called; Java's own default says JKS."""
    path = server.write_pkcs12(tmp_path / named, PASSWORD)
    security = security_of(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(path),
            "ssl.truststore.password": PASSWORD,
            **typed,
        }
    )
    talk(server_context(Store(text=server.pem())), client_context(trust=security.trust))
    path.write_bytes(b"\xfe\xed\xfe\xed of Java 8")
    with pytest.raises(StoreError, match="is of type JKS, expected PEM or PKCS12: `keytool"):
        client_context(trust=security.trust)


def test_a_client_shows_its_certificate(authority: Authority, server: Identity) -> None:
    trust = Store(text=authority.pem)
    context = server_context(Store(text=server.pem()), trust=trust, client_auth="required")
    alice = authority.sign("alice")
    side = talk(context, client_context(trust=trust, identity=Store(text=alice.pem())))
    assert side.getpeercert(binary_form=True) == certificates(Store(text=alice.pem()))[0]


@pytest.mark.parametrize(
    ("suites", "version", "cipher"),
    [
        ((), "TLSv1.3", "TLS_AES_256_GCM_SHA384"),
        (("TLS_AES_128_GCM_SHA256",), "TLSv1.3", "TLS_AES_256_GCM_SHA384"),
        (
            ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",),
            "TLSv1.2",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (
            ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"),
            "TLSv1.2",
            "ECDHE-ECDSA-AES128-SHA256",
        ),
        (
            ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",),
            "TLSv1.2",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
    ],
)
def test_cipher_suites_have_the_names_of_java(
    authority: Authority, server: Identity, suites: tuple[str, ...], version: str, cipher: str
) -> None:
    context = server_context(Store(text=server.pem()), cipher_suites=suites)
    side = talk(context, client_context(trust=Store(text=authority.pem)))
    found = side.cipher()
    assert found is not None
    assert (side.version(), found[0]) == (version, cipher)


def test_protocols_are_those_enabled(authority: Authority, server: Identity) -> None:
    """SEC-13: older ones are named in old files of settings, and are never enabled."""
    identity, trust = Store(text=server.pem()), Store(text=authority.pem)
    old = server_context(identity, protocols=("TLSv1.2", "TLSv1.1", "TLSv1"))
    assert talk(old, client_context(trust=trust)).version() == "TLSv1.2"
    with pytest.raises(StoreError, match=r"leave no version of TLS, expected TLSv1\.2 or TLSv1\.3"):
        server_context(identity, protocols=("TLSv1.1",))
    with pytest.raises(StoreError, match="none of the cipher suites TLS_NONE is known here"):
        server_context(identity, cipher_suites=("TLS_NONE",))


REFUSED: list[tuple[Callable[[Identity, Path], dict[str, Store]], str]] = [
    (
        lambda _one, path: {"identity": Store(path=str(path))},
        "keystore .*/store cannot be read: No such file or directory",
    ),
    (
        lambda one, path: {"identity": Store(path=str(one.write_pem(path, PASSWORD)))},
        "keystore .*/store has an encrypted key, expected its password",
    ),
    (
        lambda one, path: {
            "identity": Store(path=str(one.write_pem(path, PASSWORD)), password="wrong-one")
        },
        "keystore .*/store: the key cannot be opened with its password, expected another password",
    ),
    (
        lambda one, path: {
            "identity": Store(
                type="PKCS12", path=str(one.write_pkcs12(path, PASSWORD)), password="wrong-one"
            )
        },
        "keystore .*/store cannot be opened with its password",
    ),
    (
        lambda one, _: {"identity": Store(text=one.certificate_pem)},
        r"keystore \(text\) has no private keys, expected one",
    ),
    (
        lambda one, _: {"identity": Store(text=one.key_pem())},
        r"keystore \(text\) has no certificate, expected one",
    ),
    (
        lambda one, _: {
            "identity": Store(text=one.certificate_pem),
            "key": Store(text=Authority().sign("x").key_pem()),
        },
        r"key \(text\): the key does not fit the first certificate of keystore \(text\)",
    ),
    (lambda *_: {"identity": Store(text="nothing")}, "has no PEM in it, expected `-----BEGIN …"),
    (lambda *_: {"identity": Store()}, "the keystore has neither a path nor a text"),
    (
        lambda one, path: {"identity": Store(type="JKS", path=str(one.write_pem(path)))},
        "keystore .*/store is no PKCS12: it is a PEM, expected that as its type",
    ),
    (
        lambda one, path: {"identity": Store(path=str(one.write_pkcs12(path, PASSWORD)))},
        "keystore .*/store is no PEM, expected the type PKCS12",
    ),
    (
        lambda one, path: {"identity": Store(type="BCFKS", path=str(one.write_pem(path)))},
        "keystore .*/store is of type BCFKS, expected PEM or PKCS12",
    ),
]


@pytest.mark.parametrize(("store", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_a_store_that_cannot_be_used_says_why_in_one_line(
    server: Identity,
    tmp_path: Path,
    store: Callable[[Identity, Path], dict[str, Store]],
    text: str,
) -> None:
    with pytest.raises(StoreError, match=text) as refused:
        server_context(**store(server, tmp_path / "store"))
    assert "\n" not in str(refused.value)
    assert PASSWORD not in str(refused.value)
    assert "wrong-one" not in str(refused.value)


def test_a_keystore_of_java_says_how_to_convert_it(server: Identity, tmp_path: Path) -> None:
    path = tmp_path / "server.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    with pytest.raises(StoreError, match="is of type JKS, expected PEM or PKCS12: `keytool -i"):
        server_context(Store(type="JKS", path=str(path)))
    with pytest.raises(StoreError, match=r"truststore .*server\.jks is of type JKS"):
        server_context(Store(text=server.pem()), trust=Store(type="JKS", path=str(path)))


def test_a_truststore_without_a_certificate_is_refused(server: Identity) -> None:
    with pytest.raises(StoreError, match="has no certificate, expected at least one"):
        client_context(trust=Store(text=server.key_pem()))
    broken = server.certificate_pem.replace("MII", "MIA", 1)
    with pytest.raises(StoreError, match="a certificate that cannot be read"):
        client_context(trust=Store(text=broken))


def test_a_certificate_that_is_not_valid_now_is_named(authority: Authority) -> None:
    """A server with one starts and warns, as its clients may not look; a client would be refused by
    every server that asks.
    """
    expired = Store(text=authority.sign("old", valid=timedelta(days=-2)).pem())
    old = server_context(expired).certificate
    assert "certificate of CN=old,O=Kohort has expired on 20" in (expired_text(expired, old) or "")
    new = Store(text=authority.sign("new").pem())
    assert expired_text(new, server_context(new).certificate) is None
    with pytest.raises(StoreError, match=r"has expired on .* UTC, expected one that is valid"):
        client_context(trust=Store(text=authority.pem), identity=expired)


def test_no_key_is_left_on_the_disk(
    server: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system has no files in memory, a file for the owner alone is there for a moment."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for there in (True, False):
        if not there:
            monkeypatch.delattr(system, "memfd_create")
        server_context(Store(text=server.pem()))
        assert not list(tmp_path.iterdir())


def test_dates_are_those_of_the_machine(authority: Authority) -> None:
    """OpenSSL goes by them. A test in whose process a broker runs may have frozen Python's."""
    store = Store(text=authority.sign("server").pem())
    with freeze_time("2076-01-01"), mock.patch.multiple(os, stat=None, write=None, close=None):
        assert expired_text(store, server_context(store).certificate) is None


def test_labels_of_older_tools_are_certificates_too(authority: Authority, server: Identity) -> None:
    def older(pem: str) -> str:
        return pem.replace("N CERTIFICATE", "N X509 CERTIFICATE").replace(
            "D CERTIFICATE", "D X509 CERTIFICATE"
        )

    store, trust = Store(text=older(server.pem())), Store(text=older(authority.pem))
    talk(server_context(store), client_context(trust=trust))
    assert certificates(store) == certificates(Store(text=server.pem()))


def test_a_certificate_that_is_none_is_named(server: Identity) -> None:
    broken = "-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n" + server.key_pem()
    for read in (certificates, server_context):
        with pytest.raises(StoreError, match=r"keystore \(text\)"):
            read(Store(text=broken))


def test_a_system_without_proc_has_a_file_for_a_moment(
    server: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is memory for a file there, and no path of it."""
    monkeypatch.setattr("kohort.security.stores.OPEN_FILES", str(tmp_path / "proc"))
    server_context(Store(text=server.pem()))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(StoreError, match="No such file or directory"):
        server_context(Store(text=server.pem()))


@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
def test_a_keystore_is_read_once(
    kind: str, server: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is replaced meanwhile would give a context and a certificate of two files."""
    store = STORES["PEM file" if kind == "PEM" else kind](server, tmp_path / "store")["identity"]
    opened = []
    descriptor_of = os.open

    def spy(path: str, flags: int) -> int:
        opened.append(path)
        return descriptor_of(path, flags)

    monkeypatch.setattr(os, "open", spy)
    context = server_context(store)
    assert opened == [store.path]
    assert context.certificate.subject == "CN=localhost,O=Kohort"


def test_only_a_regular_file_of_bounded_size_is_read(tmp_path: Path) -> None:
    """A path comes over the wire too (AlterConfigs): a pipe would hold the broker, a device end
    it.
    """
    pipe, long = tmp_path / "pipe", tmp_path / "long"
    os.mkfifo(pipe)
    with long.open("wb") as file:
        file.truncate(STORE_BYTES_MAX + 1)
    for path, words in (
        (str(pipe), "it is no regular file, expected one"),
        ("/dev/zero", "it is no regular file, expected one"),
        (str(tmp_path), "Is a directory"),
        ("zero\0byte", "embedded null byte"),
        (str(long), "it is too long, expected at most 1048576 bytes"),
    ):
        for role in ("identity", "trust"):
            with pytest.raises(StoreError, match=words):
                client_context(**{role: Store(path=path)})  # type: ignore[arg-type]
