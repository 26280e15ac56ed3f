# SPDX-License-Identifier: Apache-2.0
"""An authority for tests, and what it signs. Keys are of elliptic curves: quick to make."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
LOCALHOST = ("localhost", "127.0.0.1")
CLIENTS, SERVERS = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


def name(common_name: str, organisation: str = "Kohort") -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


@dataclass(frozen=True)
class Identity:
    """A certificate, its key, and the authority that signed it."""

    certificate: x509.Certificate
    key: Key
    authority: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def pem(self, password: str | None = None) -> str:
        return self.key_pem(password) + self.certificate_pem

    def write_pem(self, path: Path, password: str | None = None) -> Path:
        path.write_text(self.pem(password))
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"kohort", self.key, self.certificate, [self.authority], encryption
            )
        )
        return path


class Authority:
    """Signs certificates; its own is `certificate`."""

    def __init__(self, common_name: str = "Kohort Test CA") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = name(common_name)
        self.certificate = (
            _builder(self.name, self.name, self.key, timedelta(days=3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self.key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write(self, path: Path) -> Path:
        path.write_text(self.pem)
        return path

    def sign(
        self,
        subject: x509.Name | str,
        *,
        names: Sequence[str] = LOCALHOST,
        usage: Sequence[x509.ObjectIdentifier] = (CLIENTS, SERVERS),
        valid: timedelta = timedelta(days=365),
        begins: timedelta | None = None,
        key: Key | None = None,
    ) -> Identity:
        """A certificate. One that is `valid` for a negative time has expired."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = name(subject) if isinstance(subject, str) else subject
        builder = _builder(subject, self.name, key, valid, begins)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        if usage:
            builder = builder.add_extension(x509.ExtendedKeyUsage(list(usage)), critical=False)
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(one) for one in names]), critical=False
            )
        return Identity(builder.sign(self.key, hashes.SHA256()), key, self.certificate)


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: Key,
    valid: timedelta,
    begins: timedelta | None = None,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    begin = min(now, now + valid) - timedelta(hours=1) if begins is None else now + begins
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(now + valid)
    )
