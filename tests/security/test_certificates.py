"""Certificates are read as upstream reads them."""

import json
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
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
