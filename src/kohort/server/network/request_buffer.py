# SPDX-License-Identifier: Apache-2.0
"""The requests of one client on their way in: bytes become frames, and frames wait in line.

The bytes that wait are bounded. One connection may have about a megabyte waiting. What a connection
holds is counted in a budget that all connections share, by what has come of it and not by what was
announced. Once that is used up, who brings a part of a request waits for its turn
(`backpressure.py`). Only records may fill a frame of more than a few megabytes.
"""

from collections import deque

from kohort.errors import WireError
from kohort.server.requests.memory_pool import RequestMemoryPool
from kohort.wire.apis import APIS
from kohort.wire.frames import FrameReader, FrameSizeError, peek

FRAMES_MAX = 256
WAITING_BYTES_MAX = 1 << 20
FRAME_BYTES = 48  # what a frame costs beside its bytes
UNCOUNTED_BYTES = 1 << 12  # a connection costs more by itself, and max.connections bounds it
LONGEST_PLAIN_REQUEST = 8 << 20
CARRY_RECORDS = frozenset({0})  # Produce: as long as socket.request.max.bytes allows
_API_KEY = slice(4, 6)


class RequestBuffer:
    """`frames` are whole and in order. After `feed`, look at `crowded`: reading should pause.

    `counted_bytes` is its share of the memory pool. `handled` grows with every request that is
    handled.
    """

    def __init__(self, limit_bytes: int, memory: RequestMemoryPool) -> None:
        self.frames: deque[bytes] = deque()
        self.crowded = False
        self.starved = False  # a request is on its way, and there is no room for more of it
        self.counted_bytes = 0
        self.handled = 0
        self.parked = 0  # the bytes of a request whose answer waits for others
        self._reader = FrameReader(limit_bytes)
        self.memory = memory
        self._waiting_bytes = 0

    @property
    def limit_bytes(self) -> int:
        """How long a frame may be."""
        return self._reader.limit_bytes

    @limit_bytes.setter
    def limit_bytes(self, limit_bytes: int) -> None:
        self._reader.limit_bytes = limit_bytes

    @property
    def unfinished(self) -> bool:
        """Whether a part of a frame is there, which its client has to go on with."""
        return bool(self._reader.rest)

    def feed(self, data: bytes) -> None:
        """Take bytes. Raises WireError when the stream is lost; `frames` has the whole ones."""
        reader = self._reader
        try:
            frames = reader.feed(data)
        except FrameSizeError as error:
            raise _recognised(error) from error
        for frame in frames:
            size = len(frame)
            if size > LONGEST_PLAIN_REQUEST:
                check_size(peek(frame)[0], size)
            self.frames.append(frame)
            self._waiting_bytes += size + FRAME_BYTES
        if reader.rest or self._waiting_bytes > UNCOUNTED_BYTES or self.counted_bytes:
            self._look(len(frames))

    def _look(self, new: int) -> None:
        """More is there than small requests that are handled at once: count it."""
        memory, rest = self.memory, self._reader.rest
        if rest:
            self._look_ahead(rest)
        self._count()
        if new and memory.passing is self:  # its request is whole: it is another one's turn
            memory.passing = None
        if self.counted_bytes and memory.used >= memory.limit and memory.passing is not self:
            self.starved = self.crowded = True
            if memory.used > memory.most and (rest or len(self.frames) > new):
                why = memory_exhausted_text(memory)
                rest.clear()
                self._count()
                raise WireError(why)

    def _look_ahead(self, rest: bytearray) -> None:
        """Raises WireError for an unfinished frame that will not be taken."""
        size = self._reader.needed - 4
        if len(rest) == 4:  # a size: is it one?
            try:
                self._reader.feed(b"")
            except FrameSizeError as error:
                raise _recognised(error) from error
        elif size > LONGEST_PLAIN_REQUEST and len(rest) >= _API_KEY.stop:
            check_size(int.from_bytes(rest[_API_KEY], signed=True), size)

    def _count(self) -> None:
        counted_bytes = self._waiting_bytes + len(self._reader.rest) + self.parked
        if counted_bytes <= UNCOUNTED_BYTES:
            counted_bytes = 0
            self.starved = False  # nothing that would have to wait is left
        self.memory.used += counted_bytes - self.counted_bytes
        self.counted_bytes = counted_bytes
        self.crowded = (
            self.starved or self._waiting_bytes > WAITING_BYTES_MAX or len(self.frames) > FRAMES_MAX
        )

    def count_in(self, memory: RequestMemoryPool) -> None:
        """Count what is held in another pool, from now on."""
        self.memory.used -= self.counted_bytes
        memory.used += self.counted_bytes
        self.memory = memory

    def read_on(self) -> None:
        """There is room, or this one may pass the limit."""
        self.starved = False
        self._count()

    def pop(self, parked: bool = False) -> int:  # noqa: FBT001, FBT002  (every request comes here)
        """The first frame has been handled: its size. `parked`: its answer waits, and the request
        with it.
        """
        size = len(self.frames.popleft())
        self._waiting_bytes -= size + FRAME_BYTES
        self.handled += 1
        if parked and size > UNCOUNTED_BYTES:
            self.parked = size
        if self.counted_bytes or self.parked:
            self._count()
        return size

    def answered(self) -> None:
        """The request that was parked has its answer."""
        self.parked = 0
        self._count()

    def clear(self) -> None:
        """Forget everything: nothing more is handled."""
        self.frames.clear()
        self._reader.rest.clear()
        self._waiting_bytes = self.parked = 0
        self._count()
        if self.memory.passing is self:
            self.memory.passing = None


def memory_exhausted_text(memory: RequestMemoryPool) -> str:
    return (
        f"there is no room for a part of its request: requests hold {memory.used} bytes, expected"
        f" at most {memory.ceiling} (queued.max.request.bytes, and one request)"
    )


def _recognised(error: FrameSizeError) -> WireError:
    """The same, with the name of the protocol that a client of another kind speaks."""
    if not error.protocol:
        return error
    what = {"TLS": "a TLS handshake"}.get(error.protocol, error.protocol)
    return WireError(f"{error}: it looks like {what}; this port speaks plain Kafka")


def check_size(api_key: int, size: int) -> None:
    """Raises WireError for a request that is larger than any of its API needs to be."""
    if size > LONGEST_PLAIN_REQUEST and api_key not in CARRY_RECORDS:
        api = APIS.get(api_key)
        name = f"API {api_key}" if api is None else api.name
        raise WireError(f"{name} of {size} bytes, expected at most {LONGEST_PLAIN_REQUEST}")
