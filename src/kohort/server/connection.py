"""One client: requests in order in, answers in order out. No sockets here; `broker.py` has them.

A request whose answer waits for somebody else (JoinGroup, SyncGroup, a Fetch that found too little)
holds back everything behind it on its connection, as upstream does. Requests that wait only for the
disk do not.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from kohort.coordinator.effects import Client
from kohort.errors import WireError
from kohort.terms import Millis
from kohort.wire.frames import FrameReader, encode_response

PENDING_FRAMES_MAX = 256
PENDING_ANSWERS_MAX = 256  # answers may be large: the next requests wait until these have left


class Slot:
    """A request's place in the line of its connection."""

    __slots__ = ("connection", "correlation_id", "data", "encode", "flexible")

    def __init__(
        self,
        connection: "Connection",
        correlation_id: int,
        encode: Callable[[Any], bytes],
        *,
        flexible: bool,
    ) -> None:
        self.connection = connection
        self.correlation_id = correlation_id
        self.encode = encode
        self.flexible = flexible
        self.data: bytes | None = None

    def answer(self, response: Any) -> None:
        try:
            body = self.encode(response)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            self.fail(error)
            return
        self.data = encode_response(self.correlation_id, body, flexible=self.flexible)
        self.connection.answered()

    def fail(self, error: Exception) -> None:
        self.connection.fail(error)

    def skip(self) -> None:
        """Leave without an answer: a Produce with acks=0."""
        self.data = b""
        self.connection.answered()


class Door(Protocol):
    """Who takes the frames of a connection: a node of the cluster."""

    def take(self, connection: "Connection", frame: bytes, now: Millis) -> bool:
        """Handle one frame. False: not yet, an earlier request of this connection must end
        first.
        """


class Connection:
    """The state of one client's connection. After `closed` is set nothing more comes out of it."""

    def __init__(
        self,
        node: Door,
        host: str,
        limit_bytes: int,
        ready: Callable[[], None],
    ) -> None:
        """`ready` is called once when there is something for `output` to fetch."""
        self.node = node
        self.host = "/" + host
        self.client = Client("", self.host)
        self.head = b""  # what stood behind the correlation id last time: it seldom changes
        self.closed = False
        self.unread = False  # the client does not take its answers: it gets no more of them
        self.busy = False  # the last request waits for somebody else's step
        self.slots: deque[Slot] = deque()
        self.frames: deque[bytes] = deque()
        self.error: Exception | None = None  # why this connection ends
        self._done: list[bytes] = []
        self._reader = FrameReader(limit_bytes)
        self._call_ready = ready
        self._ready = False

    @property
    def idle(self) -> bool:
        """Nothing is under way: such a connection may be closed when it stays silent for long."""
        return not self.slots and not self.frames

    @property
    def crowded(self) -> bool:
        """So much is waiting that reading should pause."""
        return len(self.frames) + len(self.slots) > PENDING_FRAMES_MAX

    @property
    def finished(self) -> bool:
        """Whether it is to be closed: it has failed, and all that can be answered is."""
        return self.error is not None and not self.slots

    def receive(self, data: bytes, now: Millis) -> None:
        """Take bytes as they came. Look at `finished` afterwards."""
        if self.error is None:
            try:
                self.frames.extend(self._reader.feed(data))
                if self._reader.pending_bytes == 4:  # a size: is it one?
                    self._reader.feed(b"")
            except WireError as error:
                self.go_on(now)
                self.error = self.error or error
            self.go_on(now)

    def go_on(self, now: Millis) -> None:
        """Hand over the frames that may be handled now."""
        frames = self.frames
        try:
            while frames and not (self.busy or self.unread or self.closed):
                if len(self.slots) >= PENDING_ANSWERS_MAX:
                    return
                if not self.node.take(self, frames[0], now):
                    return
                if frames:  # a request that fails takes all behind it along
                    frames.popleft()
        except WireError as error:
            self.error = error
            frames.clear()

    def slot(self, correlation_id: int, encode: Callable[[Any], bytes], *, flexible: bool) -> Slot:
        slot = Slot(self, correlation_id, encode, flexible=flexible)
        self.slots.append(slot)
        return slot

    def put(self, data: bytes) -> None:
        """An answer that is ready at once. There must be no unanswered request in front of it."""
        self._done.append(data)
        self.answered()

    def answered(self) -> None:
        if not self._ready:
            self._ready = True
            self._call_ready()

    def output(self) -> bytes:
        """The answers that may leave: those with no unanswered request in front of them."""
        self._ready = False
        slots = self.slots
        out, self._done = self._done, []
        while slots and slots[0].data is not None:
            out.append(slots.popleft().data or b"")
        if not slots:
            self.busy = False
        return b"".join(out) if len(out) != 1 else out[0]

    def fail(self, error: Exception) -> None:
        """A request cannot be answered, which should not happen: the connection ends."""
        self.error = self.error or error
        self.slots.clear()
        self.frames.clear()
        self.answered()

    def close(self) -> None:
        """Drop what is left; answers that still come find nobody."""
        self.closed = True
        self.slots.clear()
        self.frames.clear()
