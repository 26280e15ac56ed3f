# SPDX-License-Identifier: Apache-2.0
"""Why a client and a broker do not come together: one line for each reason.

A broker that does not want a client often closes without a word. Then this asks it again, in
another way, to learn which of the reasons it was. Only the way to an error costs that.
"""

import asyncio
from contextlib import suppress
from ssl import CERT_NONE, PROTOCOL_TLS_CLIENT, SSLCertVerificationError, SSLContext, SSLError
from struct import Struct

from kohort.client.network.address import Address
from kohort.errors import AuthenticationError, ErrorCode
from kohort.escaping import visible
from kohort.security.certificates import Certificate, CertificateError, read_certificate
from kohort.security.names import PLAINTEXT, SASL_PLAINTEXT, SASL_SSL, SSL
from kohort.security.settings import Security
from kohort.wire.frames import FrameReader, FrameSizeError

ASKING_S = 1.0  # at most, beyond the failure itself
KAFKA, TLS, HTTP = "Kafka", "TLS", "HTTP"

_API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000000 ffff")  # v0, correlation id 0
_ANSWER_START = Struct(">ii")
_ANSWER_BYTES = 1 << 20

_NOT_YET_VALID, _EXPIRED = 9, 10  # as OpenSSL counts them (X509_V_ERR_...)
_UNTRUSTED = frozenset({2, 18, 19, 20, 21})
_WRONG_NAME = frozenset({62, 64})
_OF_CERTIFICATES = frozenset(
    {
        "BAD_CERTIFICATE",
        "UNSUPPORTED_CERTIFICATE",
        "CERTIFICATE_REVOKED",
        "CERTIFICATE_EXPIRED",
        "CERTIFICATE_UNKNOWN",
        "CERTIFICATE_REQUIRED",
        "UNKNOWN_CA",
        "ACCESS_DENIED",
        "DECRYPT_ERROR",
    }
)
_TIME = "%Y-%m-%d %H:%M:%S UTC"


def other_protocol(address: Address, protocol: str, security: Security) -> AuthenticationError:
    """The port speaks another protocol than the settings say."""
    code = ErrorCode.SECURITY_PROTOCOL_MISMATCH
    if protocol == HTTP:
        text = "speaks HTTP, so it is no Kafka broker; give the port of one"
        return AuthenticationError(code, f"{address} {text}")
    if protocol == TLS:
        speaks, wanted, listener = "TLS", _with_tls(security.protocol), "without TLS"
    else:
        speaks, wanted, listener = "plain text", _without_tls(security.protocol), "with TLS"
    return AuthenticationError(
        code,
        f"{address} speaks {speaks}, and security.protocol is {security.protocol}: expected "
        f"{wanted}, or the port of a listener {listener}",
    )


def _with_tls(protocol: str) -> str:
    return SASL_SSL if protocol == SASL_PLAINTEXT else f"{SSL} or {SASL_SSL}"


def _without_tls(protocol: str) -> str:
    return SASL_PLAINTEXT if protocol == SASL_SSL else f"{PLAINTEXT} or {SASL_PLAINTEXT}"


async def refused_handshake(
    error: OSError, host: str, address: Address, security: Security
) -> AuthenticationError | None:
    """Why a handshake of TLS has failed; None where it may succeed later. `host` is numeric."""
    if isinstance(error, SSLCertVerificationError):
        certificate = await _certificate_at(host, address)
        return _ssl_error(address, _wrong_certificate(error, address, certificate, security))
    alert = alert_of(error)
    if alert:
        return refusing_alert(alert, address, security)
    protocol = await _protocol_at(host, address.port)
    return None if not protocol or protocol == TLS else other_protocol(address, protocol, security)


def alert_of(error: BaseException | None) -> str:
    """The alert by which the other side has ended TLS, "" for any other error."""
    reason = error.reason if isinstance(error, SSLError) else None
    return (reason or "").partition("ALERT_")[2]


def refusing_alert(alert: str, address: Address, security: Security) -> AuthenticationError:
    """What an alert of a broker means for the client."""
    said = alert.lower()
    if alert in _OF_CERTIFICATES:
        if security.context is not None:
            why = "it requires a client certificate, and ssl_context shows none that it takes"
        elif security.identity is None:
            why = (
                "it requires a client certificate, and none is given: expected ssl_certfile "
                "(ssl.keystore.location, ssl.certificate.location)"
            )
        else:
            why = (
                "the client's certificate is of an authority that it does not trust, has expired, "
                "or is not for clients"
            )
    elif alert == "PROTOCOL_VERSION":
        why = "it takes no version of TLS that the client offers"
    elif alert == "HANDSHAKE_FAILURE":
        why = "it has no cipher suite in common with the client, or requires a client certificate"
    else:
        why = "it ended the handshake"
    return _ssl_error(address, f"{why} (alert {said})")


async def alert_at_first_read(
    host: str, address: Address, context: SSLContext, security: Security
) -> AuthenticationError | None:
    """What a broker says to a client that sends nothing. In TLS 1.3 the client believes that the
    handshake is done before the broker has looked at its certificate, and a request that is under
    way may cost it the alert.
    """
    try:
        async with asyncio.timeout(ASKING_S):
            reader, writer = await asyncio.open_connection(
                host, address.port, ssl=context, server_hostname=server_name(address)
            )
            try:
                await reader.read(1)
            finally:
                writer.transport.abort()
    except (OSError, ValueError) as error:
        alert = alert_of(error)
        return refusing_alert(alert, address, security) if alert else None
    return None


def wants_sasl(address: Address, offered: list[str], security: Security) -> AuthenticationError:
    """The listener wants SASL, and the settings have none."""
    expected = SASL_SSL if security.protocol == SSL else SASL_PLAINTEXT
    return AuthenticationError(
        ErrorCode.SECURITY_PROTOCOL_MISMATCH,
        f"{address} wants SASL, and security.protocol is {security.protocol}: expected {expected} "
        f"with one of its mechanisms ({_listed(offered)})",
    )


def wants_no_sasl(address: Address, security: Security) -> AuthenticationError:
    """The listener is one without SASL."""
    expected = SSL if security.protocol == SASL_SSL else PLAINTEXT
    return AuthenticationError(
        ErrorCode.SECURITY_PROTOCOL_MISMATCH,
        f"{address} has no SASL, and security.protocol is {security.protocol}: expected "
        f"{expected}, or the port of a listener with SASL",
    )


def other_mechanism(address: Address, offered: list[str], mechanism: str) -> AuthenticationError:
    """The listener has other mechanisms than the client's."""
    return AuthenticationError(
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        f"{address} does not offer {mechanism}: expected sasl.mechanism to be one of "
        f"{_listed(offered)}",
    )


def server_name(address: Address) -> str:
    """The name that a certificate must have: never the number that it stands for."""
    return address.host.removesuffix(".")


def _listed(mechanisms: list[str]) -> str:
    return visible(", ".join(sorted(mechanisms))) or "none is told"


def _ssl_error(address: Address, why: str) -> AuthenticationError:
    return AuthenticationError(
        ErrorCode.SSL_AUTHENTICATION_FAILED, f"TLS with {address} failed: {why}"
    )


def _wrong_certificate(
    error: SSLCertVerificationError,
    address: Address,
    certificate: Certificate | None,
    security: Security,
) -> str:
    code = error.verify_code
    if code in _WRONG_NAME:
        names = certificate.host_names if certificate else []
        shown = ", ".join(names) or (visible(certificate.subject) if certificate else "others")
        return (
            f"its certificate is for {shown}, and not for {visible(server_name(address))}: "
            "expected an address by one of these names"
        )
    if code in _UNTRUSTED:
        of = f" ({visible(certificate.issuer)})" if certificate else ""
        by = "ssl_context"
        if security.context is None:
            by = "ssl_cafile (ssl.truststore.location, ssl.ca.location)"
        return (
            f"its certificate is of an authority that is not trusted{of}: expected one of {by}"
            if security.context is not None or security.trust is not None
            else f"its certificate is of an authority that this system does not trust{of}: give "
            f"the authority by {by}"
        )
    if code == _EXPIRED:
        since = f", on {certificate.not_after:{_TIME}}" if certificate else ""
        return f"its certificate has expired{since}"
    if code == _NOT_YET_VALID:
        until = f" before {certificate.not_before:{_TIME}}" if certificate else " yet"
        return f"its certificate is not valid{until}: is the clock of this machine right?"
    return f"its certificate is refused: {error.verify_message}"


async def _certificate_at(host: str, address: Address) -> Certificate | None:
    """The certificate of a broker, whatever it is worth; None where it shows none in time."""
    context = SSLContext(PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = CERT_NONE
    with suppress(OSError, ValueError, CertificateError):
        async with asyncio.timeout(ASKING_S):
            _, writer = await asyncio.open_connection(
                host, address.port, ssl=context, server_hostname=server_name(address)
            )
            try:
                shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                return read_certificate(shown or b"")
            finally:
                writer.transport.abort()
    return None


async def _protocol_at(host: str, port: int) -> str:
    """What answers to a request in plain text at this port: KAFKA, TLS, HTTP, or "" for silence."""
    with suppress(OSError, asyncio.IncompleteReadError):
        async with asyncio.timeout(ASKING_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(_API_VERSIONS)
                start = await reader.readexactly(4)
                try:
                    FrameReader(_ANSWER_BYTES).feed(start)
                except FrameSizeError as error:
                    return error.protocol
                rest = await reader.readexactly(4)
                return KAFKA if _ANSWER_START.unpack(start + rest)[1] == 0 else ""
            finally:
                writer.transport.abort()
    return ""
