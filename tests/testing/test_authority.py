# SPDX-License-Identifier: Apache-2.0
"""The throw-away authority of a broker under test."""

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from freezegun import freeze_time

from kohort.errors import KohortError
from kohort.testing.authority import Authority


@pytest.fixture
def authority():
    authority = Authority()
    yield authority
    authority.close()


def certificate(path):
    return x509.load_pem_x509_certificate(Path(path).read_bytes())


def test_what_it_signs_is_its_own(authority):
    root, other = certificate(authority.ca_file), certificate(authority.other_ca_file)
    alice = certificate(authority.client("alice").certificate_file)
    server = x509.load_pem_x509_certificate(authority.server().certificate.encode())
    for signed in (root, alice, server):
        signed.verify_directly_issued_by(root)
        with pytest.raises(ValueError, match="Issuer"):
            signed.verify_directly_issued_by(other)
    assert alice.subject.rfc4514_string() == "CN=alice"
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]


def test_the_same_client_has_the_same_files(authority):
    files = authority.client("alice")
    assert authority.client("alice") == files
    assert authority.client("Alice") != files
    assert authority.client("größe/..") != files
    key, shown = (Path(path).read_text() for path in (files.key_file, files.certificate_file))
    assert Path(files.keystore_file).read_text() == key + shown


def test_its_files_are_for_their_owner_and_end_with_it(authority, monkeypatch):
    before = os.umask(0o777)
    try:
        files = [authority.ca_file, *authority.client("alice")]
    finally:
        os.umask(before)
    folder = Path(files[0]).parent
    assert {stat.S_IMODE(Path(file).stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    authority.close()
    assert not folder.exists()
    authority.close()
    assert Path(authority.ca_file).read_text() == authority.pem  # of a broker that starts again
    Path(authority.ca_file).unlink()  # by a test that clears its temporary folder
    authority.close()


def test_a_file_that_a_test_has_removed_leaves_no_other_one_behind(authority):
    files = [authority.ca_file, *authority.client("alice")]
    Path(authority.client("alice").certificate_file).unlink()
    authority.close()
    assert not [file for file in files if Path(file).exists()]
    assert not Path(files[0]).parent.exists()


def test_dates_are_those_of_the_machine(authority):
    now = datetime.now(UTC)
    with freeze_time("1999-01-01"):
        found = certificate(authority.client("frozen").certificate_file)
    assert found.not_valid_before_utc < now < found.not_valid_after_utc - timedelta(days=300)


@pytest.mark.parametrize("name", ["", "a" * 65, "é" * 33, "a\n", "\ud800", 5])
def test_a_name_that_no_certificate_can_have(authority, name):
    with pytest.raises(KohortError, match=r"^name is "):
        authority.client(name)


@pytest.mark.parametrize("name", ["a" * 64, "é" * 32])
def test_the_longest_names_that_a_certificate_can_have(authority, name):
    found = certificate(authority.client(name).certificate_file)
    assert found.subject.rfc4514_string() == f"CN={name}"
