# SPDX-License-Identifier: Apache-2.0
"""Frames: four bytes of size, a header, a body; the same, however the stream is cut."""

from struct import Struct

from kohort.errors import WireError
from kohort.wire.codec import decode_from, encode
from kohort.wire.schema import Int16, Int32, String, at, record

HEADER_TAGS_MAX = 1000  # upstream has none yet

_SIZE = Struct(">i")
_INT16 = Struct(">h")
FIXED_HEADER = Struct(">hhi")
_TLS_RECORDS = range(0x14, 0x18)  # change of cipher, alert, handshake, data (RFC 8446, section 5.1)
_TLS_MAJOR = 3
_HTTP = frozenset({b"HTTP", b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"CONN", b"PRI "})


class FrameSizeError(WireError):
    """A size that no frame may have. Its bytes are often the start of another protocol."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"a frame of {size} bytes, expected 0 to {limit}")
        self.size = size

    @property
    def protocol(self) -> str:
        """The protocol that begins with these four bytes: TLS, HTTP, or "" for neither."""
        start = _SIZE.pack(self.size)
        if start[0] in _TLS_RECORDS and start[1] == _TLS_MAJOR:
            return "TLS"
        return "HTTP" if start in _HTTP else ""


@record(versions="1-2", flexible="2+")
class RequestHeader:
    """The header of a request. Version 2, with tags, belongs to flexible requests."""

    request_api_key: Int16
    request_api_version: Int16
    correlation_id: Int32
    client_id: String | None = at("1+", default="", classic=True)


@record(versions="0-1", flexible="1+")
class ResponseHeader:
    """The header of a response. Version 1, with tags, belongs to flexible ones but ApiVersions."""

    correlation_id: Int32


class FrameReader:
    """Cuts a stream into frames. After a WireError the stream is lost: close it.

    `rest` is what has come of an unfinished frame, with its size; `needed` is how long it must be.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.rest = bytearray()  # grows in place: a long frame comes in many pieces
        self.needed = 4
        self.limit_bytes = limit_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that `data` completes, without their sizes.

        Raises WireError for a size that is negative or above the limit, before any of that frame is
        kept. Whole frames in front of it are returned first; then the next call raises.
        """
        rest = self.rest
        if not rest and len(data) >= 4:
            (size,) = _SIZE.unpack_from(data)
            if size == len(data) - 4 and size <= self.limit_bytes:
                return [data[4:]]  # one frame and nothing else, as nearly always
        source: bytes | memoryview = data
        if rest:
            rest += data
            if len(rest) < self.needed:
                return []
            source = memoryview(rest)  # an answer may have megabytes: each is copied once
            self.rest = bytearray()
        frames: list[bytes] = []
        position, end = 0, len(source)
        self.needed = 4
        while end - position >= 4:
            (size,) = _SIZE.unpack_from(source, position)
            if not 0 <= size <= self.limit_bytes:
                if frames:
                    self.rest += source[position : position + 4]
                    return frames
                raise FrameSizeError(size, self.limit_bytes)
            stop = position + 4 + size
            if stop > end:
                self.needed = stop - position
                break
            frames.append(bytes(source[position + 4 : stop]))
            position = stop
        if position < end:
            self.rest += source[position:]
        return frames


def peek(frame: bytes) -> tuple[int, int, int]:
    """API key, version and correlation id of a request: what all versions of its header begin with.
    Raises WireError where these are missing.
    """
    if len(frame) < FIXED_HEADER.size:
        raise WireError(f"a request of {len(frame)} bytes, expected at least {FIXED_HEADER.size}")
    key, version, correlation_id = FIXED_HEADER.unpack_from(frame)
    return key, version, correlation_id


def decode_request_header(frame: bytes, *, flexible: bool) -> tuple[RequestHeader, int]:
    """The header of a request, and where its body starts."""
    return decode_from(RequestHeader, 2 if flexible else 1, frame, 0, HEADER_TAGS_MAX)


def encode_request(header: RequestHeader, body: bytes, *, flexible: bool) -> bytes:
    """A request as it goes to the socket: size, header, body."""
    head = encode(header, 2 if flexible else 1)
    return _SIZE.pack(len(head) + len(body)) + head + body


def encode_response(correlation_id: int, body: bytes, *, flexible: bool) -> bytes:
    """A response as it goes to the socket. `flexible` is false for every version of ApiVersions."""
    if flexible:
        return _RESPONSE_1.pack(len(body) + 5, correlation_id, 0) + body
    return _RESPONSE_0.pack(len(body) + 4, correlation_id) + body


def response_head(correlation_id: int, size: int, *, flexible: bool) -> bytes:
    """The bytes in front of a body that is too large to be copied behind them."""
    if flexible:
        return _RESPONSE_1.pack(size + 5, correlation_id, 0)
    return _RESPONSE_0.pack(size + 4, correlation_id)


_RESPONSE_0 = Struct(">ii")
_RESPONSE_1 = Struct(">iiB")
