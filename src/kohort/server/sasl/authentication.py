# SPDX-License-Identifier: Apache-2.0
"""What a connection may say before its client has proved who it is, and after (KIP-152, KIP-368).

It takes the frames of a connection in place of the dispatcher, and steps aside once the client is
known for good. Where a session ends, it stays in front and looks at the time. A refusal is sent
after a delay, so that guessing takes long; until then nothing more is handled.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from kohort.errors import ApiError, ErrorCode, WireError
from kohort.escaping import visible
from kohort.machines.effects import Client
from kohort.security.oauthbearer import OAuthBearerServer
from kohort.security.sasl import Identity, SaslError, SaslRefusalError, ServerMechanism
from kohort.server.metrics.meters import Authentications
from kohort.server.network.connection import AuthenticationFailedError, Connection
from kohort.terms import Millis
from kohort.wire.apis import APIS, Api
from kohort.wire.codec import decode, encode
from kohort.wire.frames import decode_request_header, encode_response, peek
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kohort.wire.messages.sasl_handshake import SaslHandshakeResponse

HANDSHAKE, API_VERSIONS = 17, 18
_HANDSHAKE_KEY = HANDSHAKE.to_bytes(2)
_ERROR_CODE = slice(8, 10)  # of an answer to ApiVersions: behind its size and its number
LEAST_REAUTHENTICATION_MS = 1000  # from one to the next, as upstream has it
ELEMENTS_MAX = 1000  # of a request that is refused all the same
LONGEST_SHOWN = 200  # characters of what a client has chosen, in a line of the log


@dataclass(slots=True)
class SaslListener:
    """How clients of one listener authenticate.

    `mechanisms` makes the machine for one authentication, by name. `max_reauth_ms` says for each
    how long a session lives; 0: for as long as its connection. A frame may have `receive_bytes`
    before its sender is known. Refusals wait for `delay_ms`.
    """

    mechanisms: Mapping[str, Callable[[], ServerMechanism]]
    max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    receive_bytes: int = 524_288
    delay_ms: int = 100
    counters: Authentications = field(default_factory=Authentications)


class _State(Enum):
    START = auto()  # versions, or a handshake
    HANDSHAKE = auto()
    TOKENS = auto()  # in SaslAuthenticate
    BARE_TOKENS = auto()  # in frames of their own, after a handshake of version 0
    SESSION = auto()
    FAILED = auto()


class Authentication:
    """Handles the frames of one connection until its client is known, or for as long as sessions
    end.
    """

    def __init__(
        self,
        listener: SaslListener,
        connection: Connection,
        later: Callable[[int, Callable[[], None]], None],
    ) -> None:
        """Take over a new connection. `later` calls a function after so many milliseconds."""
        self._listener = listener
        self._later = later
        self._dispatcher = connection.node
        connection.node = self
        self._limit_bytes = connection.request_buffer.limit_bytes
        connection.request_buffer.limit_bytes = min(self._limit_bytes, listener.receive_bytes)
        connection.request_buffer.count_in(connection.memory.unauthenticated)
        self._state = _State.START
        self._mechanism: ServerMechanism | None = None
        self._identity: Identity | None = None  # once the client is known
        self._mechanism_name = ""
        self._ends = Millis(0)  # the session
        self._reauthenticated_at: Millis | None = None

    def take(self, connection: Connection, frame: bytes, now: Millis) -> bool:
        """Handle one frame; False when it must wait. Raises WireError: close the connection."""
        if self._state is _State.SESSION:
            return self._take_in_session(connection, frame, now)
        if connection.slots or self._state is _State.FAILED:
            return False
        if self._state is _State.BARE_TOKENS:
            self._take_token(connection, frame, now, None)
            return True
        key, version, _ = peek(frame)
        api = APIS.get(key)
        if api is None:
            raise WireError(f"API {key} before authentication, expected SaslHandshake")
        if self._state is _State.TOKENS:
            self._take_after_handshake(connection, frame, now, api, version)
        elif key == API_VERSIONS and self._state is _State.START:
            self._dispatcher.take(connection, frame, now)
            parts = connection.slots[-1].parts
            if parts is None or not any(parts[0][_ERROR_CODE]):
                self._state = _State.HANDSHAKE  # else the client may ask again, in a lower version
        elif key == HANDSHAKE:
            self._take_handshake(connection, frame, version)
        else:
            again = "again " if key == API_VERSIONS else ""
            raise WireError(f"{api.name} {again}before authentication, expected SaslHandshake")
        return True

    def lose(self, connection: Connection, error: WireError) -> None:
        """The stream cannot be read on: a frame is too long, or this is another protocol."""
        if self._identity is not None:
            connection.error = error
        elif connection.error is None:
            text = f"Failing SASL authentication due to invalid receive size: {error}"
            self._refuse(connection, text, None, reads_on=True)

    def _take_in_session(self, connection: Connection, frame: bytes, now: Millis) -> bool:
        if frame.startswith(_HANDSHAKE_KEY):
            last = self._reauthenticated_at
            if last is None or now - last >= LEAST_REAUTHENTICATION_MS:
                if connection.slots:
                    return False
                self._reauthenticated_at = now
                self._take_handshake(connection, frame, peek(frame)[1])
                return True
        elif now > self._ends:
            self._listener.counters.expired += 1
            raise WireError(
                f"the session ended {now - self._ends} ms ago, expected that the client had"
                " authenticated again (connections.max.reauth.ms, or the end of its token)"
            )
        return self._dispatcher.take(connection, frame, now)

    def _take_handshake(self, connection: Connection, frame: bytes, version: int) -> None:
        client_id, correlation_id, request = _read(frame, APIS[HANDSHAKE], version)
        listener, name = self._listener, request.mechanism
        response = SaslHandshakeResponse(mechanisms=list(listener.mechanisms))
        make = listener.mechanisms.get(name)
        if make is None:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            answer = _answer(response, version, correlation_id, flexible=False)
            self._refuse(connection, f"Unsupported SASL mechanism {name}", answer)
            return
        connection.put(_answer(response, version, correlation_id, flexible=False))
        if self._identity is not None and name != self._mechanism_name:
            text = (
                f"SASL mechanism '{name}' requested by client is not supported for"
                f" re-authentication of mechanism '{self._mechanism_name}'"
            )
            self._refuse(connection, text, None)
            return
        connection.client = Client(client_id, connection.client.host, connection.client.principal)
        self._mechanism, self._mechanism_name = make(), name
        self._state = _State.TOKENS if version else _State.BARE_TOKENS

    def _take_after_handshake(
        self, connection: Connection, frame: bytes, now: Millis, api: Api, version: int
    ) -> None:
        _, correlation_id, request = _read(frame, api, version)
        if isinstance(request, SaslAuthenticateRequest):
            self._take_token(connection, request.auth_bytes, now, (version, correlation_id))
            return
        name = "".join(f"_{one}" if one.isupper() else one for one in api.name).upper()[1:]
        text = f"Unexpected Kafka request of type {name} during SASL authentication."
        refused = request.refused(ApiError(ErrorCode.ILLEGAL_SASL_STATE, text))
        flexible = api.flexible(version) and api.key != API_VERSIONS
        answer = _answer(refused, version, correlation_id, flexible=flexible)
        self._refuse(connection, text, answer)

    def _take_token(
        self, connection: Connection, token: bytes, now: Millis, head: tuple[int, int] | None
    ) -> None:
        """One token of the mechanism. `head` has version and correlation id of SaslAuthenticate;
        None: a frame that is nothing but a token.
        """
        mechanism = self._mechanism
        assert mechanism is not None
        try:
            answer = mechanism.answer(token, now)
            identity = mechanism.identity
            if identity is not None:
                self._check_principal(identity)
        except SaslError as error:
            self._refuse_token(connection, mechanism, error, head)
            return
        lifetime_ms = 0
        if identity is not None:
            lifetime_ms = self._succeed(connection, identity, now)
        if head is None:
            connection.put(len(answer).to_bytes(4) + answer)
        else:
            response = SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms)
            connection.put(_answer(response, *head, flexible=head[0] >= 2))

    def _check_principal(self, identity: Identity) -> None:
        known = self._identity
        if known is not None and known.name != identity.name:
            raise SaslRefusalError(
                f"Cannot change principals during re-authentication from User.{known.name}:"
                f" User.{identity.name}"
            )

    def _refuse_token(
        self,
        connection: Connection,
        mechanism: ServerMechanism,
        error: SaslError,
        head: tuple[int, int] | None,
    ) -> None:
        again = "" if self._identity is None else "re-"
        text, reason = str(error), ""
        if not isinstance(error, SaslRefusalError):
            reason = f": {text}"
            text = (
                f"Authentication failed during {again}authentication due to invalid credentials"
                f" with SASL mechanism {mechanism.name}"
            )
        elif isinstance(mechanism, OAuthBearerServer) and mechanism.reason:
            reason = f": {mechanism.reason}"
        answer = None
        if head is not None:
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=text
            )
            answer = _answer(response, *head, flexible=head[0] >= 2)
        self._refuse(connection, text + reason, answer)

    def _succeed(self, connection: Connection, identity: Identity, now: Millis) -> int:
        """The client is known. How long, in milliseconds; 0: while the connection lives."""
        counters, client = self._listener.counters, connection.client
        if self._identity is None:
            counters.succeeded += 1
            connection.client = Client(client.id, client.host, f"User:{identity.name}")
            connection.request_buffer.limit_bytes = self._limit_bytes
            connection.request_buffer.count_in(connection.memory.requests)
        else:
            counters.reauthenticated += 1
        self._identity = identity
        limit_ms = self._listener.max_reauth_ms.get(self._mechanism_name, 0)
        left = [] if identity.ends is None else [identity.ends - now]
        lifetime_ms = max(min([*left, limit_ms] if limit_ms > 0 else left, default=0), 0)
        if left or limit_ms > 0:
            self._state = _State.SESSION
            self._ends = Millis(now + lifetime_ms)
        else:
            connection.node = self._dispatcher  # nothing of it is looked at any more
        return lifetime_ms

    def _refuse(
        self, connection: Connection, text: str, answer: bytes | None, *, reads_on: bool = False
    ) -> None:
        """End the connection after the delay. `reads_on`: what came before is still handled."""
        counters, again = self._listener.counters, ""
        if self._identity is None:
            counters.failed += 1
        else:
            counters.reauthentication_failed += 1
            again = "re-"
        if not reads_on:
            self._state = _State.FAILED
        shown = visible(text[:LONGEST_SHOWN])
        connection.error = AuthenticationFailedError(
            f"Failed {again}authentication with {connection.host} ({shown})"
        )
        connection.delayed = True

        def end() -> None:
            if not connection.closed:
                connection.end(answer)

        self._later(self._listener.delay_ms, end)


def _read(frame: bytes, api: Api, version: int) -> tuple[str, int, Any]:
    """The client id, the correlation id and the request. Raises WireError."""
    request: Any = api.request
    if version not in request.versions:
        raise WireError(f"{api.name} v{version} before authentication, expected {request.versions}")
    header, start = decode_request_header(frame, flexible=api.flexible(version))
    body = decode(request, version, frame, start, ELEMENTS_MAX)
    return header.client_id or "", header.correlation_id, body


def _answer(response: Any, version: int, correlation_id: int, *, flexible: bool) -> bytes:
    return encode_response(correlation_id, encode(response, version), flexible=flexible)
