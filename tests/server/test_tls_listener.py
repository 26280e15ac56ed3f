# SPDX-License-Identifier: Apache-2.0
"""A listener's certificate is replaced while it is open."""

import asyncio
import ssl
import struct
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from tests.certificates import Authority, Identity
from tests.observer import RecordingObserver
from tests.server.tls_broker import API_VERSIONS, TlsBroker, exchange

from kohort.config import BrokerConfig, ConfigError
from kohort.config.listeners import client_listeners
from kohort.errors import ErrorCode, KohortError
from kohort.server.broker import Broker
from kohort.server.secure_listeners import check_security
from kohort.server.tls_listener import Certificates
from kohort.wire.codec import decode, encode
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

NAME = "listener.name.ssl.ssl.keystore.location"
PASSWORD = "store-s3cret"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def keystore(authority: Authority, tmp_path: Path) -> Path:
    return authority.sign("localhost").write_pem(tmp_path / "server.pem")


@pytest.fixture
def broker(authority: Authority, keystore: Path, tmp_path: Path) -> Iterator[TlsBroker]:
    with TlsBroker(settings(authority, keystore, tmp_path)) as broker:
        yield broker


def settings(authority: Authority, keystore: Path, tmp_path: Path) -> dict[str, str]:
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,OTHER://127.0.0.1:0",
        "listener.security.protocol.map": "OTHER:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.write(tmp_path / "ca.pem")),
    }


def ask(broker: TlsBroker, request, version: int, answer: type):
    head = struct.pack(">hhihs", request.api_key, version, 7, 1, b"c")
    with broker.connect("PLAINTEXT") as sock:
        frame = exchange(sock, head + encode(request, version))
    return decode(answer, version, frame, 4)


def alter(
    broker: TlsBroker, texts: dict[str, str | None], node: str = "0"
) -> tuple[int, str | None]:
    configs = [
        AlterableConfig(name=name, config_operation=int(text is None), value=text)
        for name, text in texts.items()
    ]
    resource = AlterConfigsResource(resource_type=4, resource_name=node, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (found,) = ask(broker, request, 0, IncrementalAlterConfigsResponse).responses
    return found.error_code, found.error_message


def shown(broker: TlsBroker, authority: Authority, listener: str = "SSL") -> bytes:
    """The certificate that a new connection is shown."""
    context = ssl.create_default_context(cadata=authority.pem)
    with broker.connect_tls(listener, context) as sock:
        assert exchange(sock, API_VERSIONS)
        found = sock.getpeercert(binary_form=True)
    assert found is not None
    return found


def der(identity: Identity) -> bytes:
    return ssl.PEM_cert_to_DER_cert(identity.certificate_pem)


def test_a_new_certificate_is_for_new_connections(
    broker: TlsBroker, authority: Authority, keystore: Path, tmp_path: Path
) -> None:
    """SEC-23: another path, and the same one again; other listeners keep theirs."""
    old = shown(broker, authority)
    second, third = authority.sign("localhost"), authority.sign("localhost")
    path = second.write_pem(tmp_path / "second.pem")
    context = ssl.create_default_context(cadata=authority.pem)
    with broker.connect_tls("SSL", context) as sock:
        assert alter(broker, {NAME: str(path)}) == (0, None)
        assert shown(broker, authority) == der(second)
        assert shown(broker, authority, "OTHER") == old
        third.write_pem(path)
        assert alter(broker, {NAME: str(path)}) == (0, None)
        assert shown(broker, authority) == der(third)
        assert alter(broker, {NAME: None}) == (0, None)
        assert shown(broker, authority) == old
        assert exchange(sock, API_VERSIONS)
    assert any("listener SSL shows the certificate of CN=localhost" in one for one in broker.lines)


def test_all_are_read_anew_on_demand(
    broker: TlsBroker, authority: Authority, keystore: Path
) -> None:
    """As SIGHUP does it. One that is broken meanwhile leaves the old one."""
    new = authority.sign("localhost")
    new.write_pem(keystore)
    broker.call(broker.broker.reload_certificates)
    assert {shown(broker, authority, one) for one in ("SSL", "OTHER")} == {der(new)}
    keystore.write_text("nothing")
    broker.call(broker.broker.reload_certificates)
    assert shown(broker, authority) == der(new)
    assert (
        "has no PEM in it, expected `-----BEGIN …-----`; the old certificate stays"
        in (broker.observer.warnings[-1])
    )


def test_a_certificate_that_is_no_better_is_refused(
    broker: TlsBroker, authority: Authority, tmp_path: Path
) -> None:
    """SEC-23: the old one stays."""
    old = shown(broker, authority)
    other_subject = authority.sign("elsewhere").write_pem(tmp_path / "subject.pem")
    fewer_names = authority.sign("localhost", names=("localhost",)).write_pem(tmp_path / "few.pem")
    expired = authority.sign("localhost", valid=timedelta(days=-1)).write_pem(tmp_path / "old.pem")
    for path, words in (
        (expired, "has expired on"),
        (tmp_path / "missing.pem", "cannot be read: No such file or directory"),
        (other_subject, "expected 'CN=localhost,O=Kohort', as before, or ssl.allow.dn.changes"),
        (fewer_names, "lacks 1 of the 2 alternative names that the old one has"),
    ):
        code, text = alter(broker, {NAME: str(path)})
        assert code == ErrorCode.INVALID_REQUEST
        assert words in str(text)
    assert str(text).startswith(f"{NAME} has a certificate that lacks")
    assert shown(broker, authority) == old


def test_a_chain_that_is_a_text_is_named_by_its_setting(authority: Authority) -> None:
    own, other = authority.sign("localhost"), authority.sign("elsewhere")
    names = "ssl.keystore.certificate.chain", "ssl.keystore.key"
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        **dict(zip(names, (own.certificate_pem, own.key_pem()), strict=True)),
    }
    with TlsBroker(given) as broker:
        prefixed = [f"listener.name.ssl.{name}" for name in names]
        texts = other.certificate_pem, other.key_pem()
        code, text = alter(broker, dict(zip(prefixed, texts, strict=True)))
    assert code == ErrorCode.INVALID_REQUEST
    assert str(text).startswith(f"{prefixed[0]} has a certificate of 'CN=elsewhere")


def test_changes_of_names_can_be_allowed(
    authority: Authority, keystore: Path, tmp_path: Path
) -> None:
    """SEC-23."""
    allowed = {"ssl.allow.dn.changes": "true", "ssl.allow.san.changes": "true"}
    new = authority.sign("elsewhere", names=("localhost",))
    with TlsBroker(settings(authority, keystore, tmp_path) | allowed) as broker:
        path = new.write_pem(tmp_path / "new.pem")
        assert alter(broker, {NAME: str(path)}) == (0, None)
        assert shown(broker, authority) == der(new)


@pytest.mark.parametrize(
    ("name", "node", "words"),
    [
        ("ssl.client.auth", "0", "Cannot update these configs dynamically: ssl.client.auth"),
        (NAME, "", f"Cannot update these configs at default cluster level: {NAME}"),
        (
            "listener.name.none.ssl.client.auth",
            "0",
            "no listener that speaks TLS has this name, expected one of SSL, OTHER",
        ),
        (
            "listener.name.ssl.ssl.allow.dn.changes",
            "0",
            "Cannot update these configs dynamically: listener.name.ssl.ssl.allow.dn.changes",
        ),
    ],
)
def test_what_cannot_be_changed(broker: TlsBroker, name: str, node: str, words: str) -> None:
    code, text = alter(broker, {name: "required"}, node)
    assert code == ErrorCode.INVALID_REQUEST
    assert words in str(text)


def test_a_password_is_not_shown(broker: TlsBroker, authority: Authority, tmp_path: Path) -> None:
    """SEC-23: neither by DescribeConfigs nor in the log."""
    path = authority.sign("localhost").write_pkcs12(tmp_path / "server.p12", PASSWORD)
    prefix = NAME.removesuffix("location")
    changes = {NAME: str(path), f"{prefix}type": "PKCS12", f"{prefix}password": PASSWORD}
    assert alter(broker, changes) == (0, None)
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=4, resource_name="0")],
        include_synonyms=True,
    )
    (result,) = ask(broker, request, 3, DescribeConfigsResponse).results
    configs = {one.name: one for one in result.configs}
    password, location = configs[f"{prefix}password"], configs[NAME]
    assert (password.value, password.is_sensitive, password.read_only) == (None, True, False)
    assert (location.value, location.config_source) == (str(path), 2)
    secret = configs["ssl.keystore.password"]
    assert (secret.value, secret.is_sensitive, secret.config_type) == (None, True, 9)
    assert PASSWORD not in repr(result)
    assert not any(PASSWORD in line for line in (*broker.lines, *broker.observer.warnings))
    wrong = PASSWORD + "x"
    _, text = alter(broker, {f"{prefix}password": wrong})
    assert "cannot be opened with its password" in str(text)
    assert PASSWORD not in str(text)


def test_a_change_outlasts_the_broker(authority: Authority, keystore: Path, tmp_path: Path) -> None:
    """One whose file is gone at the next start gives way to that of the file."""
    given = settings(authority, keystore, tmp_path) | {"log.dirs": str(tmp_path / "data")}
    new = authority.sign("localhost")
    path = new.write_pem(tmp_path / "new.pem")
    data = tmp_path / "data"
    with TlsBroker(given, data_dir=data) as broker:
        assert alter(broker, {NAME: str(path)}) == (0, None)
    with TlsBroker(given, data_dir=data) as broker:
        assert shown(broker, authority) == der(new)
    path.unlink()
    with TlsBroker(given, data_dir=data) as broker:
        assert shown(broker, authority) != der(new)
        assert any("that of the file is shown instead" in one for one in broker.observer.warnings)


def test_a_listener_starts_whose_first_certificate_is_gone(
    authority: Authority, keystore: Path, tmp_path: Path
) -> None:
    """The one that stands above it is there. Each listener has a choice of its own: the other's
    is gone, and it shows that of the file.
    """
    file = settings(authority, keystore, tmp_path)
    own = authority.sign("localhost")
    file["listener.name.other.ssl.keystore.location"] = str(own.write_pem(tmp_path / "own.pem"))
    data = tmp_path / "data"
    file["log.dirs"] = str(data)
    new = authority.sign("localhost")
    path = new.write_pem(tmp_path / "new.pem")
    passing = authority.sign("localhost").write_pem(tmp_path / "passing.pem")
    with TlsBroker(file, data_dir=data) as broker:
        assert alter(broker, {NAME: str(path)}) == (0, None)
        assert alter(broker, {NAME.replace(".ssl.", ".other.", 1): str(passing)}) == (0, None)
    keystore.unlink()
    passing.unlink()
    check_security(BrokerConfig.of(file), client_listeners(BrokerConfig.of(file)), data)
    with TlsBroker(file, data_dir=data) as broker:
        assert shown(broker, authority) == der(new)
        assert shown(broker, authority, "OTHER") == der(own)
        (warning,) = [one for one in broker.observer.warnings if "instead" in one]
        assert "listener OTHER: keystore" in warning
    path.unlink()
    with pytest.raises(ConfigError, match=r"listener SSL: keystore .* cannot be read"):
        asyncio.run(Broker(file, data_dir=data).start())


def test_one_that_has_expired_is_shown_with_a_warning(authority: Authority, tmp_path: Path) -> None:
    keystore = authority.sign("localhost", valid=timedelta(days=-1)).write_pem(tmp_path / "old.pem")
    with TlsBroker(settings(authority, keystore, tmp_path)) as broker:
        assert any("has expired on" in one for one in broker.observer.warnings)


def test_a_client_has_no_name_without_end(authority: Authority, tmp_path: Path) -> None:
    """It would be kept with all that is remembered of the client."""
    keystore = authority.sign("localhost").write_pem(tmp_path / "server.pem")
    config = BrokerConfig.of(
        settings(authority, keystore, tmp_path) | {"ssl.client.auth": "required"}
    )
    certificates = Certificates(config, client_listeners(config), RecordingObserver())
    certificates.open(config)
    listener = certificates.of[1]
    units = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "u" * 60)]
    fine, long = (authority.sign(x509.Name(units * count), names=()) for count in (5, 20))
    assert str(listener.principal(der(fine))).startswith("User:OU=uuu")
    with pytest.raises(KohortError, match="a name of 1279 bytes, expected at most 1024"):
        listener.principal(der(long))
