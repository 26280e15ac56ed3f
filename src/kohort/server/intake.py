"""The requests of one client on their way in: bytes become frames, and frames wait in line.

The bytes that wait are bounded. One connection may have about a megabyte waiting; a frame that is
large enough to come in many pieces needs room in a budget that all connections share, and is not
read before there is some. Only records may fill a frame of more than a few megabytes.
"""

from collections import deque

from kohort.errors import WireError
from kohort.server.budget import Budget
from kohort.wire.apis import APIS
from kohort.wire.frames import FrameReader, FrameSizeError, peek

FRAMES_MAX = 256
WAITING_BYTES_MAX = 1 << 20
LARGE_BYTES = 1 << 16  # from here on a frame needs room in the budget
LONGEST_PLAIN_REQUEST = 8 << 20
CARRY_RECORDS = frozenset({0})  # Produce: as long as socket.request.max.bytes allows


class Intake:
    """`frames` are whole and in order. After `feed`, look at `crowded`: reading should pause."""

    def __init__(self, limit_bytes: int, budget: Budget) -> None:
        self.frames: deque[bytes] = deque()
        self.starved = False  # a large frame is on its way, and there is no room for it
        self._reader = FrameReader(limit_bytes)
        self._budget = budget
        self._waiting_bytes = 0
        self._reserved = 0  # for the frame that is on its way

    @property
    def crowded(self) -> bool:
        return (
            self.starved or self._waiting_bytes > WAITING_BYTES_MAX or len(self.frames) > FRAMES_MAX
        )

    @property
    def holds_room(self) -> bool:
        """Whether an unfinished frame has room that others may be waiting for."""
        return self._reserved > 0

    def feed(self, data: bytes) -> None:
        """Take bytes. Raises WireError when the stream is lost; `frames` has the whole ones."""
        reader = self._reader
        for frame in self._cut(data):
            size = len(frame)
            if size > LARGE_BYTES:
                check_size(peek(frame).api_key, size)
            self.frames.append(frame)
            self._waiting_bytes += size
            if size > LARGE_BYTES:  # counted by its own length from now on
                self._budget.used += size - self._reserved
                self._reserved = 0
        pending = reader.pending_bytes
        if pending == 4:  # a size: is it one?
            self._cut(b"")
        coming = reader.frame_bytes - 4  # without its size, as it is counted when it is whole
        if reader.api_key is not None and coming > LARGE_BYTES:
            check_size(reader.api_key, coming)
            self.reserve()

    def _cut(self, data: bytes) -> list[bytes]:
        try:
            return self._reader.feed(data)
        except FrameSizeError as error:
            if not error.protocol:
                raise
            what = {"TLS": "a TLS handshake"}.get(error.protocol, error.protocol)
            text = f"{error}: it looks like {what}; this port speaks plain Kafka"
            raise WireError(text) from error

    def reserve(self) -> bool:
        """Find room for the large frame that is on its way, if none was found yet."""
        if not self._reserved:
            size = self._reader.frame_bytes
            self.starved = not self._budget.take(size)
            self._reserved = 0 if self.starved else size
        return not self.starved

    def pop(self) -> None:
        """The first frame has been handled."""
        size = len(self.frames.popleft())
        self._waiting_bytes -= size
        if size > LARGE_BYTES:
            self._budget.give(size)

    def clear(self) -> None:
        """Forget everything: nothing more is handled."""
        while self.frames:
            self.pop()
        self._budget.give(self._reserved)
        self._reserved = 0
        self.starved = False


def check_size(api_key: int, size: int) -> None:
    """Raises WireError for a request that is larger than any of its API needs to be."""
    if size > LONGEST_PLAIN_REQUEST and api_key not in CARRY_RECORDS:
        api = APIS.get(api_key)
        name = f"API {api_key}" if api is None else api.name
        raise WireError(f"{name} of {size} bytes, expected at most {LONGEST_PLAIN_REQUEST}")
