# SPDX-License-Identifier: Apache-2.0
"""TLS of one connection, without its socket: bytes of the wire in, bytes of requests out, and the
reverse.

The handshake is taken in steps, whenever its caller has time for one: a step is a signature, and
costs as much as many requests.
"""

import ssl
from contextlib import suppress

PLAIN_TEXT_ALERT = bytes.fromhex("15030300020250")
"""What upstream answers to bytes that are no TLS: a fatal alert, internal_error."""

HANDSHAKE = 0x16  # the type of the first record
HANDSHAKE_BYTES_MAX = 1 << 17  # as much as OpenSSL takes of certificates, and what is around them
FED_AT_ONCE = 1 << 15  # OpenSSL keeps the room of the most that it has been given
WRITTEN_AT_ONCE = 1 << 16


class TlsError(Exception):
    """The connection cannot go on. Send `output`, which has the alert, and close it."""


class TlsSession:
    """The server's side. Until `established`, `feed` it and call `step`; then `receive`, `send`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_side=True)
        self.fed_bytes = 0  # of the handshake
        self.established = False
        self.ended = False  # the client sends nothing more

    def feed(self, data: bytes) -> None:
        """Take bytes of the handshake. `receive` returns what follows the handshake in them."""
        self.fed_bytes += len(data)
        self._in.write(data)

    def step(self) -> None:
        """Go on with the handshake, as far as its bytes have come. Raises TlsError."""
        try:
            self._object.do_handshake()
            self.established = True
        except ssl.SSLWantReadError:
            if self.fed_bytes > HANDSHAKE_BYTES_MAX:
                raise TlsError(
                    f"the handshake has {self.fed_bytes} bytes and does not end, expected at most"
                    f" {HANDSHAKE_BYTES_MAX}"
                ) from None
        except ssl.SSLError as error:
            raise TlsError(_reason(error)) from error

    def receive(self, data: bytes = b"") -> bytes:
        """What bytes of the wire mean; nothing where a record is not whole yet. Raises TlsError."""
        plain: list[bytes] = []
        view = memoryview(data)
        for at in range(0, max(len(data), 1), FED_AT_ONCE):
            self._in.write(view[at : at + FED_AT_ONCE])
            self._read(plain)
        return plain[0] if len(plain) == 1 else b"".join(plain)

    def _read(self, plain: list[bytes]) -> None:
        """Read whole records. To ask for more than there is would be an exception each time."""
        bio, tls = self._in, self._object
        try:
            while (bio.pending or tls.pending()) and not self.ended:
                part = tls.read(FED_AT_ONCE)
                if part:
                    plain.append(part)
                else:
                    self.ended = True
        except ssl.SSLWantReadError:
            return
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self.ended = True
        except ssl.SSLError as error:
            raise TlsError(_reason(error)) from error

    def send(self, data: bytes | memoryview) -> list[bytes]:
        """The bytes for the wire that carry these."""
        view = memoryview(data)
        parts = []
        for at in range(0, len(data), WRITTEN_AT_ONCE):
            self._object.write(view[at : at + WRITTEN_AT_ONCE])
            parts.append(self._out.read())
        return parts

    def output(self) -> bytes:
        """Bytes of the handshake, or an alert, that must be sent."""
        return self._out.read()

    def close(self) -> bytes:
        """The bytes that say that nothing more comes."""
        with suppress(ssl.SSLError):  # the other end has not said so yet, and need not
            self._object.unwrap()
        return self._out.read()

    @property
    def certificate(self) -> bytes | None:
        """The certificate that the client has shown and that is trusted, as DER."""
        return self._object.getpeercert(binary_form=True)


_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client shows no certificate, and one is required",
    "UNSUPPORTED_PROTOCOL": "the client offers none of the versions of TLS that are enabled",
    "NO_SHARED_CIPHER": "the client offers none of the cipher suites that are enabled",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the authority of the certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not take the certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not take the certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client finds that the certificate has expired",
}


def _reason(error: ssl.SSLError) -> str:
    """Why a handshake has failed, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not taken: {error.verify_message}"
    reason = error.reason or str(error)
    return _REASONS.get(reason, reason.replace("_", " ").lower())
