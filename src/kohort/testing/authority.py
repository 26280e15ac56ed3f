# SPDX-License-Identifier: Apache-2.0
"""A throw-away authority for the certificates of a broker under test and of its clients.

Its files are made when somebody asks for them and end with the broker. Certificates go by the clock
of the machine, as OpenSSL does, wherever the clock of the broker stands.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from random import SystemRandom
from tempfile import gettempdir
from typing import NamedTuple

from kohort.errors import KohortError, how_to_install
from kohort.runtime.clocks import wall
from kohort.storage.files import system
from kohort.testing.arguments import check_text

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise KohortError(
        "certificates for listeners of TLS are made by the package cryptography, which is not"
        f" installed: {how_to_install('security')}"
    ) from None

__tracebackhide__ = True
_CHANCE = SystemRandom()  # nobody has seeded it
_TEMPORARY = gettempdir()  # a test may name another one, or take it away
_VALID = timedelta(days=365)
_BEFORE = timedelta(hours=1)  # a client's clock may be behind
_PRIVATE_FOLDER, _PRIVATE = 0o700, 0o600
_NAME_MAX = 64  # of a common name: X.520 counts characters, cryptography its bytes of UTF-8


class CertificateFiles(NamedTuple):
    """The paths of a certificate, of its key, and of a file with both, the key first. All are PEM,
    and the key has no password.
    """

    certificate_file: str
    key_file: str
    keystore_file: str


class Identity(NamedTuple):
    """A key and its certificate, as PEM texts."""

    key: str
    certificate: str


class Authority:
    """Signs certificates that its broker and the broker's clients trust.

    `ca_file` is what clients trust: the path of its own certificate, a PEM. `other_ca_file` is that
    of an authority that has signed nothing here, for tests of a client that must not connect.
    """

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kohort.testing")
        self._certificate = self._own(self._key, self._name)
        self._folder: Path | None = None
        self._files: dict[str, str] = {}  # paths, by the names of the files

    def __repr__(self) -> str:
        return "<authority of kohort.testing>"

    @property
    def pem(self) -> str:
        """Its own certificate, as a PEM text."""
        return _pem(self._certificate)

    @property
    def ca_file(self) -> str:
        return self._file("ca.pem", self.pem)

    @property
    def other_ca_file(self) -> str:
        name = "other-ca.pem"
        if name not in self._files:
            key = ec.generate_private_key(ec.SECP256R1())
            self._file(name, _pem(self._own(key, _name("somebody else"))))
        return self._files[name]

    def client(self, name: str) -> CertificateFiles:
        """A certificate for a client, the same one each time: its subject is CN=`name`, so its
        principal is `User:CN=NAME` unless ssl.principal.mapping.rules says otherwise.

        Raises KohortError for a name that no certificate can have.
        """
        check_text("name", name)
        if not name.isprintable() or not 0 < len(name.encode()) <= _NAME_MAX:
            raise KohortError(
                f"name is {name!r}, expected printable characters of 1 to {_NAME_MAX} bytes in"
                " UTF-8, as a certificate has them"
            )
        stem = f"client-{name.encode().hex()}"
        if f"{stem}.key" not in self._files:
            own = self._sign(name, [], ExtendedKeyUsageOID.CLIENT_AUTH)
            self._file(f"{stem}.crt", own.certificate)
            self._file(f"{stem}.pem", own.key + own.certificate)
            self._file(f"{stem}.key", own.key)
        return CertificateFiles(*(self._files[f"{stem}.{end}"] for end in ("crt", "key", "pem")))

    def server(self) -> Identity:
        """A certificate for a broker on the loopback interface."""
        names: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.IPAddress(IPv4Address("127.0.0.1")),
            x509.IPAddress(IPv6Address("::1")),
        ]
        return self._sign("kohort.testing broker", names, ExtendedKeyUsageOID.SERVER_AUTH)

    def close(self) -> None:
        """Remove its files."""
        for path in self._files.values():
            with suppress(FileNotFoundError):  # a test may have removed one of them, or all
                system.unlink(path)
        if self._folder is not None:
            with suppress(FileNotFoundError):
                system.rmdir(str(self._folder))
        self._files.clear()
        self._folder = None

    def _own(self, key: ec.EllipticCurvePrivateKey, name: x509.Name) -> x509.Certificate:
        usage = dict.fromkeys(_KEY_USAGES, False) | {"key_cert_sign": True, "crl_sign": True}
        builder = _builder(name, name, key, key)
        builder = builder.add_extension(x509.KeyUsage(**usage), critical=True)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        return builder.sign(key, hashes.SHA256())

    def _sign(
        self, name: str, names: list[x509.GeneralName], usage: x509.ObjectIdentifier
    ) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name), self._name, key, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        text = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return Identity(text.decode(), _pem(builder.sign(self._key, hashes.SHA256())))

    def _file(self, name: str, text: str) -> str:
        """The path of a file with this text, which only its owner may read."""
        if name in self._files:
            return self._files[name]
        if self._folder is None:
            folder = Path(_TEMPORARY) / f"kohort-tls-{_CHANCE.getrandbits(64):016x}"
            system.mkdir(str(folder), _PRIVATE_FOLDER)
            system.chmod(str(folder), _PRIVATE_FOLDER)  # whatever the test's umask is
            self._folder = folder
        path = str(self._folder / name)
        descriptor = system.open(path, system.O_WRONLY | system.O_CREAT | system.O_EXCL, _PRIVATE)
        try:
            system.write(descriptor, text.encode())
        finally:
            system.close(descriptor)
        system.chmod(path, _PRIVATE)
        self._files[name] = path
        return path


_KEY_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = datetime.fromtimestamp(wall(), UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(_CHANCE.getrandbits(159) | 1)
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _VALID)
        # Python 3.13 takes no certificate without these two.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
