"""One connection to one broker: version handshake, then requests and answers in order.

A broker answers the requests of a connection in their order, so callers wait in a queue. An answer
with another correlation id than the head's means that the stream is lost.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from struct import Struct
from typing import Any, NamedTuple

from kohort.client.network.address import PORT_MAX, Address
from kohort.client.network.connection_errors import (
    ConnectionFailedError,
    RequestTimeoutError,
    failure_of,
)
from kohort.client.network.happy_eyeballs import PATIENCE_S, first_of
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError, WireError, api_error
from kohort.wire.apis import APIS
from kohort.wire.codec import decode, decode_from, encode
from kohort.wire.frames import (
    FrameReader,
    FrameSizeError,
    RequestHeader,
    ResponseHeader,
    encode_request,
)
from kohort.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.wire.schema import Versions

FRAME_LIMIT_BYTES = 256 * 1024 * 1024
SOFTWARE_NAME = "kohort"
HOLD_MAX_S = 30.0
"""How long a broker may have a client wait for its quota at a time, whatever it says: what is sent
after that is delayed by the broker itself, as it delays clients that do not wait."""

# What to do about a port that speaks another protocol.
_OTHER_PROTOCOLS = {
    "TLS": "speaks TLS, which Kohort does not speak yet; give the port of a PLAINTEXT listener",
    "HTTP": "speaks HTTP, so it is no Kafka broker; give the port of one",
}
_API_VERSIONS = 18
_SAYS_FIRST = 2  # the version of ApiVersions that came with KIP-219
_INT16 = Struct(">h")
_INT32 = Struct(">i")

# For readers of a refusal: the KIP and the Apache Kafka release that brought an API.
_SINCE = {
    10: "Apache Kafka 0.9",
    15: "KIP-40, Apache Kafka 0.9",
    16: "KIP-40, Apache Kafka 0.9",
    19: "KIP-4, Apache Kafka 0.10.1",
    20: "KIP-4, Apache Kafka 0.10.1",
    42: "KIP-229, Apache Kafka 1.1",
    47: "KIP-496, Apache Kafka 2.4",
    69: "KIP-848, Apache Kafka 3.7",
}


class Need(NamedTuple):
    """The oldest version that a request needs, its purpose, and the release that brought it."""

    version: int
    purpose: str
    since: str


@contextmanager
def _refusals_at(address: Address) -> Iterator[None]:
    """What goes wrong before a connection is open, as the two errors that it has."""
    try:
        yield
    except TimeoutError:
        text = f"cannot connect to {address}: no answer in time"
        raise RequestTimeoutError(text, sent=False) from None
    except OSError as error:
        text = f"cannot connect to {address}: {_reason(error)}"
        raise ConnectionFailedError(text, sent=False) from None
    except (ValueError, OverflowError) as error:  # a broker may name any host and any port
        raise ConnectionFailedError(
            f"cannot connect to {address}: {error}, expected a host and a port from 1 to "
            f"{PORT_MAX}",
            sent=False,
        ) from None


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

    def __init__(self, address: Address, client_id: str) -> None:
        self.address = address
        self.client_id = client_id
        self.offered: dict[int, Versions] = {}
        self.features: dict[str, int] = {}  # level by name, as finalized (KIP-584)
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader(FRAME_LIMIT_BYTES)
        self._queue: deque[_PendingRequest] = deque()
        self._next_id = 0
        self._written = 0  # bytes, of which the last ones may still wait in the transport
        self._left = 0  # those that did not wait when it was last looked at
        self._why = ""
        self._has_answered = False  # a request after the handshake
        self.held_until = 0.0  # nothing is sent before, on the loop's clock (KIP-219)
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._may_write = asyncio.Event()
        self._may_write.set()

    @classmethod
    async def open(cls, address: Address, *, client_id: str, deadline: float) -> "Connection":
        """Connect and learn what the broker offers, by `deadline` on the loop's clock.

        A name may have several addresses. When one says nothing for a second, the next is tried
        beside it. Raises ConnectionFailedError or RequestTimeoutError.
        """
        with _refusals_at(address):
            async with asyncio.timeout_at(deadline):
                hosts = await address.hosts()
        if len(hosts) == 1:
            return await cls._open_at(hosts[0], address, client_id, deadline)
        left_s = deadline - asyncio.get_running_loop().time()
        try:
            return await first_of(
                [partial(cls._open_at, host, address, client_id, deadline) for host in hosts],
                min(PATIENCE_S, max(0.0, left_s / 2)),
                (ConnectionFailedError, RequestTimeoutError),
                discard=cls.abort,
            )
        except ExceptionGroup as group:
            failure = failure_of(group)
        raise failure

    @classmethod
    async def _open_at(
        cls, host: str, address: Address, client_id: str, deadline: float
    ) -> "Connection":
        loop = asyncio.get_running_loop()
        with _refusals_at(address):
            async with asyncio.timeout_at(deadline):
                _, connection = await loop.create_connection(
                    lambda: cls(address, client_id), host, address.port
                )
        try:
            await connection.handshake(deadline)
        except RequestTimeoutError as error:
            await connection.close()
            raise RequestTimeoutError(error.message, sent=False) from None
        except (ConnectionFailedError, WireError) as error:
            await connection.close()
            # Only the handshake was sent, not the caller's request.
            text = error.message if isinstance(error, ApiError) else str(error)
            raise ConnectionFailedError(text, sent=False) from None
        except BaseException:
            await connection.close()
            raise
        return connection

    @property
    def is_open(self) -> bool:
        """Whether a request can still be sent."""
        return self._transport is not None and not self._why

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
        if self.held_until:
            await self._wait_for_quota(deadline)
        cls = type(request)
        version = self._agreed(cls, need, at_most)
        api = APIS[cls.api_key]
        flexible = api.flexible(version)

        def read(frame: bytes) -> Any:
            start = decode_from(ResponseHeader, 1 if flexible else 0, frame, 0)[1]
            return decode(api.response, version, frame, start)

        answer = await self._exchange(request, version, read, deadline=deadline, flexible=flexible)
        throttle_ms = getattr(answer, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._hold(throttle_ms / 1000)
        return answer

    async def tell(self, request: Any, *, need: Need | None = None, at_most: int = 32767) -> None:
        """Send a request that has no answer: Produce with acks=0. Waits until it can be written.

        Raises as `ask` does, but nobody tells whether it arrives.
        """
        cls = type(request)
        version = self._agreed(cls, need, at_most)
        self._write(request, version, flexible=APIS[cls.api_key].flexible(version))
        await self._may_write.wait()

    def _hold(self, seconds: float) -> None:
        """A broker before Apache Kafka 2.0 has waited itself, before it answered."""
        if self.offers(ApiVersionsRequest, _SAYS_FIRST):
            now = asyncio.get_running_loop().time()
            self.held_until = now + min(seconds, HOLD_MAX_S)

    async def _wait_for_quota(self, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        if self.held_until >= deadline:
            await asyncio.sleep(deadline - loop.time())
            text = f"{self.address} takes nothing for {self.held_until - loop.time():.1f} s more"
            raise RequestTimeoutError(f"{text}: a quota is used up", sent=False)
        while (left_s := self.held_until - loop.time()) > 0:  # noqa: ASYNC110  (a later answer moves it)
            await asyncio.sleep(left_s)
        self.held_until = 0.0

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
            since = _SINCE.get(key)
            return f"{self.address} does not offer {name}" + (f" ({since})" if since else "")
        has = f"{self.address} offers {name} v{theirs}"
        if need is None:
            return f"{has}, expected one of v{request.versions}"
        return f"{has}; {need.purpose} needs v{need.version} ({need.since})"

    async def handshake(self, deadline: float) -> None:
        """ApiVersions in our newest version, and lower when the broker says so (KIP-511).

        A broker that does not know the version answers in v0, and names the versions it has. One
        that names none, or whose refusal cannot be read, is asked in v0.
        """
        version = APIS[_API_VERSIONS].request.versions.last
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

    async def _api_versions(self, version: int, deadline: float) -> ApiVersionsResponse:
        def read(frame: bytes) -> ApiVersionsResponse:
            if _INT16.unpack_from(frame, 4)[0] != ErrorCode.UNSUPPORTED_VERSION or not version:
                return decode(ApiVersionsResponse, version, frame, 4)
            try:
                return decode(ApiVersionsResponse, 0, frame, 4)
            except WireError:  # librdkafka's mock broker: only the code is valid
                return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)

        from_us = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=software_version()
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
            raise ConnectionFailedError(self._why or f"{self.address} is closed", sent=False)
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
        if self._transport is not None and not self._why:
            self._left = self._written - self._transport.get_write_buffer_size()

    def _fail(self, why: str) -> None:
        """Close, and give the reason to every caller that waits."""
        if self._why:
            return
        self._count()  # what is aborted waits no more
        self._why = why
        self._may_write.set()
        if self._transport is not None:
            self._transport.abort()
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.answer.done():
                error = ConnectionFailedError(why, sent=self._has_left(waiting.end))
                waiting.answer.set_exception(error)

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
            said = _OTHER_PROTOCOLS.get(protocol, f"sent {error}")
            text = f"{self.address} does not speak the Kafka protocol in plain text: it {said}"
            self._fail(text)

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
        self._closed(_reason(exc) if isinstance(exc, OSError) else "")
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
        if not self.offered:
            guess = ": it may want TLS, which Kohort does not speak yet, or be no Kafka broker"
            return " at once", guess
        if self._queue and not self._has_answered:
            guess = ": it may want SASL, which Kohort does not speak yet"
            return " at the first request", guess
        return "", ""


@cache
def software_version() -> str:
    """The version of this package, as clients tell it to brokers (KIP-511)."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  (start-up time)

    try:
        return version("kohort")
    except PackageNotFoundError:
        return "0"


def _reason(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if isinstance(error, ConnectionResetError):
        return "reset"
    if "Connect call failed" in str(error):  # several addresses of one name, each of them refused
        return "refused"
    return (error.strerror or str(error)).lower()
