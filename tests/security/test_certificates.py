# SPDX-License-Identifier: Apache-2.0
"""Certificates are read as upstream reads them."""

import json
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from tests.certificates import Authority

from kohort.security.certificates import CertificateError, read_certificate

RECORDED = json.loads((Path(__file__).parents[1] / "data/security/certificates.json").read_text())
SUBJECTS = {
    name: (ssl.PEM_cert_to_DER_cert(one["certificate"]), one["principal_default"])
    for name, one in RECORDED["certificates"].items()
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_subject_is_the_text_that_upstream_makes_of_it(name: str) -> None:
    """SEC-20. Upstream refuses an empty one, SEC-15."""
    der, principal = SUBJECTS[name]
    subject = read_certificate(der).subject
    assert (f"User:{subject}" if subject else None) == principal


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("123", _ASN1Type.NumericString, "#1203313233"),
        ("a", _ASN1Type.UniversalString, "#1c0400000061"),
        ("a\0bc", _ASN1Type.UTF8String, "a\\00bc"),
        ("\rab", _ASN1Type.UTF8String, "\\\rab"),
        ("ab\r", _ASN1Type.IA5String, "ab\\\r"),
        ("a  b\r ", _ASN1Type.UTF8String, "a  b\\\r\\ "),
        ("\na", _ASN1Type.UTF8String, "\na"),
        ("  ", _ASN1Type.UTF8String, "\\ \\ "),
        (" #a ", _ASN1Type.UTF8String, "\\ \\#a\\ "),
    ],
)
def test_a_value_is_written_as_java_does(value: str, kind: _ASN1Type, text: str) -> None:
    """As measured with X500Principal.getName("RFC2253") of Java 17."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, value, _type=kind)])
    der = ssl.PEM_cert_to_DER_cert(Authority().sign(subject).certificate_pem)
    assert read_certificate(der).subject == f"CN={text}"


def test_the_times_and_the_alternative_names() -> None:
    identity = Authority().sign("localhost", valid=timedelta(days=40 * 365))
    der = ssl.PEM_cert_to_DER_cert(identity.certificate_pem)
    certificate = read_certificate(der)
    assert certificate.not_after == identity.certificate.not_valid_after_utc
    assert certificate.not_before == identity.certificate.not_valid_before_utc
    names = identity.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert len(certificate.alternative_names) == len(list(names.value)) == 2
    assert b"\x82\x09localhost" in certificate.alternative_names
    assert certificate.host_names == ["127.0.0.1", "localhost"]
    assert certificate.issuer.startswith("CN=")


def test_what_is_no_certificate_is_refused() -> None:
    der = SUBJECTS["carol"][0]
    read_certificate(der)
    for size in range(len(der)):
        with pytest.raises(CertificateError, match=r"are no X\.509 certificate"):
            read_certificate(der[:size])
    for at in range(len(der)):
        for value in (0, 0x80, 0xFF):
            try:
                read_certificate(der[:at] + bytes([value]) + der[at + 1 :])
            except CertificateError:
                continue
