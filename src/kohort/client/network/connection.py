# SPDX-License-Identifier: Apache-2.0
"""One connection to one broker: version handshake, then requests and answers in order.

A broker answers the requests of a connection in their order, so callers wait in a queue. An answer
with another correlation id than the head's means that the stream is lost.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, NamedTuple

from kohort.client.network.address import Address
from kohort.client.network.api_releases import SINCE
from kohort.client.network.connecting import connect, hosts_of, reason_of
from kohort.client.network.connection_errors import (
    ConnectionFailedError,
    RequestTimeoutError,
    failure_of,
)
from kohort.client.network.credentials import Credentials
from kohort.client.network.happy_eyeballs import PATIENCE_S, first_of
from kohort.client.network.login import RENEWAL_S, Session
from kohort.client.network.refusals import (
    ASKING_S,
    alert_at_first_read,
    alert_of,
    other_protocol,
    refusing_alert,
    wants_sasl,
)
from kohort.errors import (
    ApiError,
    AuthenticationError,
    ErrorCode,
    UnsupportedVersionError,
    WireError,
    api_error,
)
from kohort.security.settings import NO_SECURITY
from kohort.version import VERSION
from kohort.wire.codec import decode, decode_from, encode
from kohort.wire.frames import (
    FrameReader,
    FrameSizeError,
    RequestHeader,
    ResponseHeader,
    encode_request,
)
from kohort.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest
from kohort.wire.schema import Versions

FRAME_LIMIT_BYTES = 256 * 1024 * 1024
SOFTWARE_NAME = "kohort"
HOLD_MAX_S = 30.0
"""How long a broker may have a client wait for its quota at a time, whatever it says: what is sent
after that is delayed by the broker itself, as it delays clients that do not wait."""

_API_VERSIONS = 18
_SAYS_FIRST = 2  # the version of ApiVersions that came with KIP-219
_INT16 = Struct(">h")
_INT32 = Struct(">i")


class Need(NamedTuple):
    """The oldest version that a request needs, its purpose, and the release that brought it."""

    version: int
    purpose: str
    since: str


_SASL = Need(1, "SASL", "KIP-152, Apache Kafka 1.0")


class _PendingRequest(NamedTuple):
    """`end` is how many bytes were written to the connection when its request was."""

    correlation_id: int
    end: int
    name: str
    answer: asyncio.Future[Any]
    read: Callable[[bytes], Any]


class Connection(asyncio.Protocol):
    """Opened by `open`. Any number of tasks may `ask` at once; each gets its own answer.

    When an answer does not come in time, the connection is closed, since no later answer could come
    either.
    """

    def __init__(
        self, address: Address, client_id: str, credentials: Credentials | None = None
    ) -> None:
        self.address = address
        self.client_id = client_id
        self._credentials = credentials
        self._security = NO_SECURITY if credentials is None else credentials.security
        self._session: Session | None = None
        self.offered: dict[int, Versions] = {}
        self.features: dict[str, int] = {}  # level by name, as finalized (KIP-584)
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader(FRAME_LIMIT_BYTES)
        self._queue: deque[_PendingRequest] = deque()
        self._next_id = 0
        self._written = 0  # bytes, of which the last ones may still wait in the transport
        self._left = 0  # those that did not wait when it was last looked at
        self._why = ""
        self._ended_by: AuthenticationError | None = None  # where this is why
        self._has_answered = False  # a request after the handshake
        self.held_until = 0.0  # nothing is sent before, on the loop's clock (KIP-219)
        self._must_wait = False  # whoever sends something: for a quota, or for a session
        self._may_want_sasl = False
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._may_write = asyncio.Event()
        self._may_write.set()

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        client_id: str,
        deadline: float,
        credentials: Credentials | None = None,
    ) -> "Connection":
        """Connect, learn what the broker offers, and log in, by `deadline` on the loop's clock.

        A name may have several addresses. When one says nothing for a second, the next is tried
        beside it. Raises ConnectionFailedError, RequestTimeoutError or AuthenticationError.
        """
        hosts = await hosts_of(address, deadline)
        if len(hosts) == 1:
            return await cls._open_at(hosts[0], address, client_id, deadline, credentials)
        left_s = deadline - asyncio.get_running_loop().time()
        try:
            return await first_of(
                [
                    partial(cls._open_at, host, address, client_id, deadline, credentials)
                    for host in hosts
                ],
                min(PATIENCE_S, max(0.0, left_s / 2)),
                (ConnectionFailedError, RequestTimeoutError, AuthenticationError),
                discard=cls.abort,
            )
        except ExceptionGroup as group:
            failure = failure_of(group)
        raise failure

    @classmethod
    async def _open_at(
        cls,
        host: str,
        address: Address,
        client_id: str,
        deadline: float,
        credentials: Credentials | None,
    ) -> "Connection":
        connection = await connect(
            lambda: cls(address, client_id, credentials), host, address, credentials, deadline
        )
        try:
            await connection.handshake(deadline)
        except RequestTimeoutError as error:
            await connection.close()
            raise RequestTimeoutError(error.message, sent=False) from None
        except (ConnectionFailedError, WireError) as error:
            await connection.close()
            refusal = await connection.refusal()
            # Only the handshake was sent, not the caller's request.
            text = error.message if isinstance(error, ApiError) else str(error)
            raise refusal or ConnectionFailedError(text, sent=False) from None
        except BaseException:
            await connection.close()
            raise
        return connection

    @property
    def _peer(self) -> str:
        """The numeric address of the broker, one of those that its name has."""
        peer = self._transport.get_extra_info("peername") if self._transport else None
        return str(peer[0]) if peer else self.address.host

    async def _log_in(self, deadline: float) -> None:
        if self._credentials is None or not self._security.uses_sasl:
            return
        self._credentials.warn_of_readable(self._peer)
        self._session = Session(self, self._credentials)
        await self._session.begin(deadline)

    async def refusal(self) -> AuthenticationError | None:
        """Why the broker has closed the connection, where it can be learned by asking again."""
        if self.offered or self._credentials is None or not self._security.uses_tls:
            return None
        context = await self._credentials.context()
        return await alert_at_first_read(self._peer, self.address, context, self._security)

    @property
    def is_open(self) -> bool:
        """Whether a request can still be sent."""
        return self._transport is not None and not self._why

    @property
    def login(self) -> str:
        """Who has logged in by SASL, as errors name it; empty where nobody has."""
        return "" if self._session is None else self._session.who

    @property
    def waiting(self) -> int:
        """How many requests have no answer yet."""
        return len(self._queue)

    def offers(self, request: type[Any], version: int = 0) -> bool:
        """Whether the broker has this version, or a higher one that is known here."""
        return self.version(request) >= version

    def version(self, request: type[Any], at_most: int = 32767) -> int:
        """The highest version that both sides know, -1 when there is none."""
        ours: Versions = request.versions
        theirs = self.offered.get(request.api_key)
        if theirs is None:
            return -1
        best = min(ours.last, theirs.last, at_most)
        return best if best >= max(ours.first, theirs.first) else -1

    async def ask(
        self, request: Any, *, deadline: float, need: Need | None = None, at_most: int = 32767
    ) -> Any:
        """Send a request in the highest common version and wait for its answer.

        `at_most` is the highest version whose layout the caller knows. Raises
        UnsupportedVersionError, before anything is sent, when the broker has no such version or
        none that meets `need`; ConnectionFailedError; RequestTimeoutError; WireError for an answer
        that is no message.

        Where the last answer has said that a quota is used up, this waits for as long as it said,
        and `HOLD_MAX_S` at most (KIP-219).
        """
        if self._must_wait:
            await self._wait(deadline)
        cls = type(request)
        version = self._agreed(cls, need, at_most)
        flexible = version in cls.flexible
        read = partial(_answer_in, cls.response, version, flexible)
        try:
            answer = await self._exchange(
                request, version, read, deadline=deadline, flexible=flexible
            )
        except ConnectionFailedError as error:
            raise (await self._sasl_refusal() if self._may_want_sasl else None) or error from None
        throttle_ms = getattr(answer, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._hold(throttle_ms / 1000)
        return answer

    async def tell(self, request: Any, *, need: Need | None = None, at_most: int = 32767) -> None:
        """Send a request that has no answer: Produce with acks=0. Waits until it can be written.

        Raises as `ask` does, but nobody tells whether it arrives.
        """
        if self._session is not None and self._session.is_renewing:
            await self._wait_for_session(asyncio.get_running_loop().time() + RENEWAL_S)
        cls = type(request)
        version = self._agreed(cls, need, at_most)
        self._write(request, version, flexible=version in cls.flexible)
        await self._may_write.wait()

    def _hold(self, seconds: float) -> None:
        """A broker before Apache Kafka 2.0 has waited itself, before it answered."""
        if self.offers(ApiVersionsRequest, _SAYS_FIRST):
            now = asyncio.get_running_loop().time()
            self.held_until = now + min(seconds, HOLD_MAX_S)
            self._must_wait = True

    async def _wait(self, deadline: float) -> None:
        """Until the broker takes requests again."""
        while self._must_wait:
            if self._session is not None and self._session.is_renewing:
                await self._wait_for_session(deadline)
            if self.held_until:
                await self._wait_for_quota(deadline)
            self._must_wait = self._session is not None and self._session.is_renewing

    async def _wait_for_session(self, deadline: float) -> None:
        assert self._session is not None
        try:
            await self._session.renewed(deadline)
        except TimeoutError:
            text = f"{self.address} did not renew the session in time"
            raise RequestTimeoutError(text, sent=False) from None

    async def _wait_for_quota(self, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        if self.held_until >= deadline:
            await asyncio.sleep(deadline - loop.time())
            text = f"{self.address} takes nothing for {self.held_until - loop.time():.1f} s more"
            raise RequestTimeoutError(f"{text}: a quota is used up", sent=False)
        while (left_s := self.held_until - loop.time()) > 0:  # noqa: ASYNC110  (a later answer moves it)
            await asyncio.sleep(left_s)
        self.held_until = 0.0

    # What a session needs.

    async def ask_sasl(self, deadline: float, request: Any) -> Any:
        """Ask SaslHandshake or SaslAuthenticate. Raises as `ask` does."""
        cls = type(request)
        version = self._agreed(cls, _SASL if cls is SaslHandshakeRequest else None, 32767)
        flexible = version in cls.flexible
        read = partial(_answer_in, cls.response, version, flexible)
        return await self._exchange(request, version, read, deadline=deadline, flexible=flexible)

    async def drain(self) -> None:
        """Wait for the answers to all that was sent, but those whose callers have given up."""
        for pending in tuple(self._queue):
            await asyncio.wait({pending.answer})

    def hold(self) -> None:
        """Whoever sends something waits for the session first."""
        self._must_wait = True

    def end(self, error: ConnectionFailedError | AuthenticationError) -> None:
        """Close the connection for this reason."""
        self._fail(error.message, error if isinstance(error, AuthenticationError) else None)

    async def close(self) -> None:
        """Close, and wait until the socket is gone. Callers that still wait get an error."""
        self.abort()
        if self._transport is not None:
            await asyncio.shield(self._gone)

    def abort(self) -> None:
        """Close as `close` does, and wait for nothing."""
        self._fail(f"the connection to {self.address} was closed")

    def _agreed(self, request: type[Any], need: Need | None, at_most: int) -> int:
        version = self.version(request, at_most)
        if version < 0 or (need is not None and version < need.version):
            raise UnsupportedVersionError(self._refusal(request, need))
        return version

    def _refusal(self, request: type[Any], need: Need | None) -> str:
        name, key = request.name, request.api_key
        theirs = self.offered.get(key)
        if theirs is None:
            since = SINCE.get(key)
            return f"{self.address} does not offer {name}" + (f" ({since})" if since else "")
        if theirs.first > theirs.last:  # no broker, or a broken one
            which = f"v{theirs.first} to v{theirs.last}, which is no version"
            return f"{self.address} offers {name} {which}, expected one of v{request.versions}"
        has = f"{self.address} offers {name} v{theirs}"
        if need is None:
            return f"{has}, expected one of v{request.versions}"
        return f"{has}; {need.purpose} needs v{need.version} ({need.since})"

    async def handshake(self, deadline: float) -> None:
        """ApiVersions in our newest version, and lower when the broker says so (KIP-511); then SASL
        where the settings say so.

        A broker that does not know the version answers in v0, and names the versions it has. One
        that names none, or whose refusal cannot be read, is asked in v0.
        """
        ours: type[Any] = ApiVersionsRequest
        version = ours.versions.last
        answer = await self._api_versions(version, deadline)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and version > 0:
            highest = max(
                (api.max_version for api in answer.api_keys if api.api_key == _API_VERSIONS),
                default=0,
            )
            answer = await self._api_versions(max(0, min(version, highest)), deadline)
        if answer.error_code:
            refusal = api_error(answer.error_code)
            raise ConnectionFailedError(
                f"{self.address} refused ApiVersions: {refusal.message or refusal.code.name}",
                sent=False,
            )
        self.offered = {
            api.api_key: Versions(api.min_version, api.max_version) for api in answer.api_keys
        }
        self.features = {
            feature.name: feature.max_version_level for feature in answer.finalized_features
        }
        await self._log_in(deadline)

    async def _api_versions(self, version: int, deadline: float) -> ApiVersionsResponse:
        def read(frame: bytes) -> ApiVersionsResponse:
            if _INT16.unpack_from(frame, 4)[0] != ErrorCode.UNSUPPORTED_VERSION or not version:
                return decode(ApiVersionsResponse, version, frame, 4)
            try:
                return decode(ApiVersionsResponse, 0, frame, 4)
            except WireError:  # librdkafka's mock broker: only the code is valid
                return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)

        from_us = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=VERSION
        )
        answer: ApiVersionsResponse = await self._exchange(
            from_us, version, read, deadline=deadline, flexible=version >= 3
        )
        return answer

    async def _exchange(
        self,
        request: Any,
        version: int,
        read: Callable[[bytes], Any],
        *,
        deadline: float,
        flexible: bool,
    ) -> Any:
        correlation_id = self._write(request, version, flexible=flexible)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        end = self._written
        self._queue.append(_PendingRequest(correlation_id, end, request.name, answer, read))
        try:
            async with asyncio.timeout_at(deadline):
                return await answer
        except TimeoutError:
            text = f"{self.address} did not answer {request.name} in time"
            has_left = self._has_left(end)
            self._fail(text)
            raise RequestTimeoutError(text, sent=has_left) from None

    def _write(self, request: Any, version: int, *, flexible: bool) -> int:
        """Put a request on the wire; its correlation id."""
        if self._why or self._transport is None:
            raise self._failure(sent=False)
        body = encode(request, version)
        correlation_id = self._next_id
        self._next_id = (correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=self.client_id,
        )
        frame = encode_request(header, body, flexible=flexible)
        self._written += len(frame)
        self._transport.write(frame)
        return correlation_id

    def _has_left(self, end: int) -> bool:
        """Whether all of a request has been given to the system: a broker carries out no part of
        one. What still waits in the transport when the connection is closed never leaves.
        """
        self._count()
        return end <= self._left

    def _count(self) -> None:
        if self._transport is None or self._why:
            return
        if self._security.uses_tls:  # what waits there is longer than what was written
            self._left = self._written
        else:
            self._left = self._written - self._transport.get_write_buffer_size()

    def _failure(self, *, sent: bool) -> ApiError:
        if self._ended_by is not None:  # to each caller one of his own: it has his traceback
            return AuthenticationError(self._ended_by.code, self._ended_by.message)
        return ConnectionFailedError(self._why or f"{self.address} is closed", sent=sent)

    def _fail(self, why: str, refusal: AuthenticationError | None = None) -> None:
        """Close, and give the reason to every caller that waits."""
        if self._why:
            return
        self._count()  # what is aborted waits no more
        self._why, self._ended_by = why, refusal
        if self._session is not None:
            self._session.close()
        self._may_write.set()
        if self._transport is not None:
            self._transport.abort()
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.answer.done():
                waiting.answer.set_exception(self._failure(sent=self._has_left(waiting.end)))

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self._deliver(frame)
        except WireError as error:
            if self.offered:
                self._fail(f"{self.address} sent {error}")
                return
            protocol = error.protocol if isinstance(error, FrameSizeError) else ""
            if protocol:
                self.end(other_protocol(self.address, protocol, self._security))
            else:
                self._fail(f"{self.address} does not speak the Kafka protocol: it sent {error}")

    def _deliver(self, frame: bytes) -> None:
        correlation_id = _INT32.unpack_from(frame)[0] if len(frame) >= 4 else -1
        if not self._queue or self._queue[0].correlation_id != correlation_id:
            raise WireError(f"an answer with correlation id {correlation_id} that nobody waits for")
        waiting = self._queue.popleft()
        self._has_answered = bool(self.offered)
        if waiting.answer.done():  # the caller was cancelled; the answer keeps its place
            return
        try:
            waiting.answer.set_result(waiting.read(frame))
        except Exception as error:  # noqa: BLE001  (bytes of a stranger: whoever asked is told)
            waiting.answer.set_exception(
                WireError(
                    f"{self.address} sent an answer to {waiting.name} that cannot be read: {error}"
                )
            )

    def eof_received(self) -> None:
        self._closed("")  # while it is still known what has not left

    def connection_lost(self, exc: Exception | None) -> None:
        alert = alert_of(exc)
        if alert and not self.offered:
            self.end(refusing_alert(alert, self.address, self._security))
        self._closed(reason_of(exc) if isinstance(exc, OSError) else "")
        if not self._gone.done():
            self._gone.set_result(None)

    def _closed(self, reason: str) -> None:
        where, guess = self._guess()
        shown = where + (f" ({reason})" if reason else "")
        self._fail(f"{self.address} closed the connection{shown}{guess}")

    def _guess(self) -> tuple[str, str]:
        """How far the handshake came before the broker closed without a word; what that may mean.

        A port that wants SASL answers ApiVersions, and closes at any other request.
        """
        says = f"security.protocol is {self._security.protocol}"
        if not self.offered:
            guess = f": it may want TLS ({says}), or be no Kafka broker"
            if self._security.uses_tls:
                guess = ": it may require a client certificate, or be no Kafka broker"
            return " at once", guess
        if self._queue and not self._has_answered and not self._security.uses_sasl:
            self._may_want_sasl = True
            return " at the first request", f": it may want SASL ({says})"
        return "", ""

    async def _sasl_refusal(self) -> AuthenticationError | None:
        """Whether the broker has closed since it wants SASL: it names its mechanisms when asked for
        one that nobody has.
        """
        deadline = asyncio.get_running_loop().time() + ASKING_S
        parts = (self.address, self.client_id, deadline, self._credentials)
        try:
            other = await self._open_at(self._peer, *parts)
        except (ApiError, UnsupportedVersionError):
            return None
        try:
            answer = await other.ask_sasl(deadline, SaslHandshakeRequest(mechanism=""))
        except (ApiError, WireError, UnsupportedVersionError):
            return None
        finally:
            other.abort()
        if answer.error_code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            return None
        return wants_sasl(self.address, answer.mechanisms, self._security)


def _answer_in(response: type[Any], version: int, flexible: bool, frame: bytes) -> Any:  # noqa: FBT001
    tagged = flexible and response is not ApiVersionsResponse  # KIP-511: every client can read it
    start = decode_from(ResponseHeader, 1 if tagged else 0, frame, 0)[1]
    return decode(response, version, frame, start)
