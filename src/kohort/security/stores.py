# SPDX-License-Identifier: Apache-2.0
"""Keystores and truststores become an `ssl.SSLContext`: PEM files, PEM texts, and PKCS#12 files.

OpenSSL takes a key from a file only. A key that is not in one is handed to it in memory, so that
no second copy of it gets to the disk.
"""

import os
import re
import ssl
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile

from kohort.errors import KohortError
from kohort.runtime.clocks import wall
from kohort.security.certificates import Certificate, CertificateError, read_certificate
from kohort.security.names import CLIENT_AUTH, TLS_VERSIONS
from kohort.security.settings import Store
from kohort.storage.files import system

_VERIFY = dict(zip(CLIENT_AUTH, (ssl.CERT_NONE, ssl.CERT_OPTIONAL, ssl.CERT_REQUIRED), strict=True))
_VERSIONS = dict(zip(TLS_VERSIONS, (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3), strict=True))
_NEWEST_SUITES = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE = 64
OPEN_FILES = "/proc/self/fd"  # their paths, where the system has some
STORE_BYTES_MAX = 1 << 20  # several times what the truststores of systems have
_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_DER_SEQUENCE = b"\x30"


class StoreError(KohortError, ValueError):
    """A store that cannot be used. The message names the store, and no secret."""


class ServerContext(ssl.SSLContext):
    """The context of a listener. `certificate` is the first of the chain that it shows."""

    certificate: Certificate


class _Pem:
    """The blocks of a store: certificates, and a key if there is one."""

    def __init__(self, blocks: Sequence[tuple[str, str]]) -> None:
        self.certificates = [block for label, block in blocks if label == "CERTIFICATE"]
        self.keys = [block for label, block in blocks if label.endswith("PRIVATE KEY")]


def server_context(
    identity: Store,
    *,
    key: Store | None = None,
    trust: Store | None = None,
    client_auth: str = "none",
    protocols: Sequence[str] = TLS_VERSIONS,
    cipher_suites: Sequence[str] = (),
) -> ServerContext:
    """The context of a listener: the certificate that it shows, and those of clients that it takes.

    `client_auth`, `protocols` and `cipher_suites` are as in the settings `ssl.*`. `key` is the key
    where `identity` has only the certificates. Raises StoreError.
    """
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = 0
    _restrict(context, protocols, cipher_suites)
    context.certificate = _load_identity(context, identity, key)
    if client_auth != "none" or trust is not None:
        _load_trust(context, trust)
    context.verify_mode = _VERIFY[client_auth]
    return context


def client_context(
    *,
    trust: Store | None = None,
    identity: Store | None = None,
    key: Store | None = None,
    check_hostname: bool = True,
    verify: bool = True,
    protocols: Sequence[str] = TLS_VERSIONS,
    cipher_suites: Sequence[str] = (),
) -> ssl.SSLContext:
    """The context of a client: its certificate, and the authorities that it trusts, by default
    those of the system.

    Raises StoreError, also for a certificate of its own that has expired: no server would take it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _restrict(context, protocols, cipher_suites)
    if identity is not None:
        expired = expired_text(identity, _load_identity(context, identity, key))
        if expired is not None:
            raise StoreError(expired)
    if verify:
        _load_trust(context, trust)
        context.check_hostname = check_hostname
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def certificates(store: Store, what: str = "keystore") -> list[bytes]:
    """The certificates of a store, each as DER, in their order. Raises StoreError."""
    return [_der(_named(store, what), block) for block in _read(store, what).certificates]


def _der(name: str, block: str) -> bytes:
    try:
        return ssl.PEM_cert_to_DER_cert(block)
    except ValueError as error:
        raise StoreError(f"{name} has a certificate that cannot be read: {error}") from None


def expired_text(store: Store, certificate: Certificate) -> str | None:
    """An error about the dates of this certificate of a keystore; None where it is valid now."""
    now = datetime.fromtimestamp(wall(), UTC)  # as OpenSSL asks it: of the machine
    if certificate.not_after < now:
        return (
            f"{_named(store, 'keystore')}: the certificate of {certificate.subject} has expired on"
            f" {certificate.not_after:%Y-%m-%d %H:%M:%S} UTC, expected one that is valid"
        )
    if certificate.not_before > now:
        return (
            f"{_named(store, 'keystore')}: the certificate of {certificate.subject} is valid from"
            f" {certificate.not_before:%Y-%m-%d %H:%M:%S} UTC on, expected one that is valid now"
        )
    return None


def _restrict(
    context: ssl.SSLContext, protocols: Sequence[str], cipher_suites: Sequence[str]
) -> None:
    """Allow these versions and these suites. Python cannot choose among the suites of TLS 1.3: all
    three of them are allowed, or the version is not.
    """
    versions = [version for name, version in _VERSIONS.items() if name in protocols]
    if cipher_suites:
        older = [_openssl_name(suite) for suite in cipher_suites if suite not in _NEWEST_SUITES]
        if not older:
            versions = [one for one in versions if one == ssl.TLSVersion.TLSv1_3]
        elif len(older) == len(cipher_suites):
            versions = [one for one in versions if one == ssl.TLSVersion.TLSv1_2]
        if older:
            try:
                context.set_ciphers(":".join(older))
            except ssl.SSLError:
                raise StoreError(
                    f"none of the cipher suites {', '.join(cipher_suites)} is known here"
                ) from None
    if not versions:
        raise StoreError(
            f"the protocols {', '.join(protocols)} and the cipher suites"
            f" {', '.join(cipher_suites) or '(default)'} leave no version of TLS, expected"
            f" {' or '.join(_VERSIONS)} and suites of it"
        )
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _openssl_name(suite: str) -> str:
    """OpenSSL's name of a cipher suite: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is there
    ECDHE-RSA-AES128-GCM-SHA256.
    """
    exchange, found, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not found:
        return suite
    cipher = cipher.replace("AES_", "AES").replace("_CBC", "").replace("_", "-")
    cipher = cipher.removesuffix("-SHA256") if "CHACHA20" in cipher else cipher
    return cipher if exchange == "RSA" else f"{exchange.replace('_', '-')}-{cipher}"


def _load_trust(context: ssl.SSLContext, trust: Store | None) -> None:
    if trust is None:
        context.load_default_certs(
            ssl.Purpose.CLIENT_AUTH
            if context.protocol == ssl.PROTOCOL_TLS_SERVER
            else ssl.Purpose.SERVER_AUTH
        )
        return
    blocks = _read(trust, "truststore").certificates
    if not blocks:
        raise StoreError(f"{_named(trust, 'truststore')} has no certificate, expected at least one")
    try:
        context.load_verify_locations(cadata="\n".join(blocks))
    except (ssl.SSLError, ValueError) as error:
        raise StoreError(
            f"{_named(trust, 'truststore')} has a certificate that cannot be read: {_reason(error)}"
        ) from None
    # Any certificate of a truststore is trusted, as in Java, and not only one that signed itself.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def _load_identity(context: ssl.SSLContext, identity: Store, key: Store | None) -> Certificate:
    """Show what these stores have. Each is read once, as its file may be replaced at any time.
    Returns the first certificate.
    """
    chain = _read(identity, "keystore")
    holder, what = (identity, "keystore") if key is None else (key, "key")
    keys = chain.keys if key is None else _read(key, what).keys
    name = _named(holder, what)
    if not chain.certificates:
        raise StoreError(
            f"{_named(identity, 'keystore')} has no certificate, expected one, and those that"
            " signed it behind it"
        )
    if len(keys) != 1:
        raise StoreError(f"{name} has {len(keys) or 'no'} private keys, expected one")
    encrypted = "ENCRYPTED" in keys[0]
    if encrypted and not holder.password:
        raise StoreError(f"{name} has an encrypted key, expected its password")
    try:
        with (
            _in_memory("\n".join(chain.certificates)) as certificates_file,
            _in_memory(keys[0]) as key_file,
        ):
            context.load_cert_chain(certificates_file, key_file, lambda: holder.password or "")
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise StoreError(_refusal(identity, name, error, encrypted=encrypted)) from None
    shown = _named(identity, "keystore")
    try:
        return read_certificate(_der(shown, chain.certificates[0]))
    except CertificateError as error:
        raise StoreError(f"{shown}: {error}") from None


def _refusal(identity: Store, name: str, error: Exception, *, encrypted: bool) -> str:
    reason = _reason(error)
    if "VALUES_MISMATCH" in reason or "TYPE_MISMATCH" in reason:
        return (
            f"{name}: the key does not fit the first certificate of"
            f" {_named(identity, 'keystore')}, expected the key of that certificate"
        )
    if encrypted:
        return f"{name}: the key cannot be opened with its password, expected another password"
    return f"{name}: the key and its certificates cannot be read: {reason}"


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)


def _named(store: Store, what: str) -> str:
    return f"{what} {store.path}" if store.text is None else f"{what} (text)"


def _read(store: Store, what: str) -> _Pem:
    """The blocks of a store. Raises StoreError."""
    name = _named(store, what)
    if store.text is not None:
        return _blocks(name, store.text)
    if store.path is None:
        raise StoreError(f"the {what} has neither a path nor a text, expected one of them")
    data = _file_bytes(name, store.path)
    kind = store.type.upper()
    if kind == "PEM":
        if data[:1] == _DER_SEQUENCE:
            raise StoreError(f"{name} is no PEM, expected the type PKCS12 for such a file")
        return _blocks(name, data.decode("latin-1"))
    # Java's type JKS opens PKCS#12 as well, and is the default there.
    if data[:4] in (_JKS, _JCEKS):
        raise StoreError(
            f"{name} is of type JKS, expected PEM or PKCS12: `keytool -importkeystore -srckeystore"
            f" {store.path} -destkeystore {Path(store.path).stem}.p12 -deststoretype PKCS12` makes"
            " one of it"
        )
    if kind not in ("PKCS12", "JKS"):
        raise StoreError(f"{name} is of type {store.type}, expected PEM or PKCS12")
    if data[:1] != _DER_SEQUENCE:
        has_pem = b"-----BEGIN" in data
        why = ": it is a PEM, expected that as its type (ssl.keystore.type, ssl.truststore.type)"
        raise StoreError(f"{name} is no PKCS12{why if has_pem else ''}")
    return _pkcs12(name, data, store.password)


def _file_bytes(name: str, path: str) -> bytes:
    """The bytes of a file. A path may come from afar (AlterConfigs): nothing that it can name
    blocks, or has no end. Raises StoreError.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            data = file.read(STORE_BYTES_MAX + 1) if stat.S_ISREG(status.st_mode) else None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"{name} cannot be read: {reason}") from None
    if data is None:
        raise StoreError(f"{name} cannot be read: it is no regular file, expected one")
    if len(data) > STORE_BYTES_MAX:
        raise StoreError(
            f"{name} cannot be read: it is too long, expected at most {STORE_BYTES_MAX} bytes"
        )
    return data


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # else a pipe waits for who writes to it


def _blocks(name: str, text: str) -> _Pem:
    """The PEM blocks of a text. Its lines may be joined, as in a file of properties."""
    blocks = []
    for given, body in _BLOCK.findall(text):
        # Older tools write "X509 CERTIFICATE", which Python's `ssl` does not take.
        label = "CERTIFICATE" if given.endswith("CERTIFICATE") else given
        packed = "".join(body.split())
        has_headers = ":" in body  # a key of the older kind: they need their lines
        wrapped = "\n".join(packed[at : at + _LINE] for at in range(0, len(packed), _LINE))
        lines = body.strip() if has_headers else wrapped
        blocks.append((label, f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"))
    if not blocks:
        raise StoreError(f"{name} has no PEM in it, expected `-----BEGIN …-----`")
    return _Pem(blocks)


def _pkcs12(name: str, data: bytes, password: str | None) -> _Pem:
    try:
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415  (an extra)
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError:
        raise StoreError(
            f"{name} is of type PKCS12, which needs `pip install kohort[security]`; PEM needs"
            " nothing"
        ) from None
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise StoreError(
            f"{name} cannot be opened with its password, expected another password or a PKCS12 that"
            " is whole"
        ) from None
    found = [] if store.cert is None else [store.cert.certificate]
    found += [other.certificate for other in store.additional_certs]
    blocks = [("CERTIFICATE", one.public_bytes(Encoding.PEM).decode()) for one in found]
    if store.key is not None:
        pem = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        blocks.append(("PRIVATE KEY", pem.decode()))
    return _Pem(blocks)


def _has_files_in_memory() -> bool:
    """Whether the system knows files that are on no disk, and gives them paths."""
    try:
        system.stat(OPEN_FILES)
    except OSError:
        return False
    return hasattr(system, "memfd_create")


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """The path of a file that has this text and is on no disk, where the system knows such files;
    else of one that only its owner may read, and that is gone afterwards.
    """
    if _has_files_in_memory():
        descriptor = system.memfd_create("store")
        try:
            system.write(descriptor, text.encode())
            yield f"{OPEN_FILES}/{descriptor}"
        finally:
            system.close(descriptor)
    else:
        with NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            yield file.name
