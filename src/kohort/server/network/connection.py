# SPDX-License-Identifier: Apache-2.0
"""One client: requests in order in, answers in order out. No sockets here; `sockets.py` has them.

A request whose answer waits for another client (JoinGroup, SyncGroup, a Fetch that found too
little) holds back everything behind it on its connection, as upstream does. Requests that only wait
for the disk do not. Requests are handled only while the client reads its answers.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from kohort.errors import WireError
from kohort.machines.effects import Client
from kohort.server.network.request_buffer import RequestBuffer
from kohort.server.requests.memory_pool import MemoryPools
from kohort.server.scheduler import Over, never
from kohort.terms import Millis
from kohort.wire.frames import encode_response, response_head

PENDING_ANSWERS_MAX = 256
SMALL_FRAME_BYTES = 128
SMALL_FRAMES_AT_ONCE = 8
"""The clock is asked after so many small requests, and after a longer one at once. Nothing small
takes long but what is handled in steps, and of those each is answered before the next is taken. A
compressed batch that fits into a small one unfolds to less than a megabyte.
"""
LARGE_ANSWER_BYTES = 1 << 16  # not worth a copy to put a header in front of

UNBOUNDED = MemoryPools(1 << 62, 1 << 62, 0)


class EncodedResponse(tuple[bytes, ...]):
    """An answer that its maker has encoded, in pieces. Its errors are counted."""

    __slots__ = ()


class Slot(Struct, eq=False):
    """A request's place in the line of its connection, among the slots there. `parts` is its
    answer, once there is one, and `size` is that of the answer.
    """

    connection: "Connection"
    correlation_id: int
    encode: Callable[[Any], bytes]
    flexible: bool
    parts: tuple[bytes, ...] | None = None
    size: int = 0

    def answer(self, response: Any) -> None:
        if type(response) is EncodedResponse:
            self._answer_encoded(response)
            return
        encode = self.encode
        try:
            body = encode(response)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            self.fail(error)
            return
        self.size = size = len(body)
        if size < LARGE_ANSWER_BYTES:
            self.parts = (encode_response(self.correlation_id, body, flexible=self.flexible),)
        else:
            head = response_head(self.correlation_id, size, flexible=self.flexible)
            self.parts = head, body
        self.connection.answered(self)

    def _answer_encoded(self, pieces: EncodedResponse) -> None:
        self.size = sum(map(len, pieces))
        self.parts = response_head(self.correlation_id, self.size, flexible=self.flexible), *pieces
        self.connection.answered(self)

    @property
    def gone(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.connection.closed

    def fail(self, error: Exception) -> None:
        self.connection.fail(error)

    def hold_back(self) -> None:
        """Have what follows on the connection wait until this request has its answer."""
        self.connection.busy = True

    def skip(self) -> None:
        """Leave without an answer: a Produce with acks=0."""
        self.parts = ()
        self.connection.answered(self)


class AuthenticationFailedError(WireError):
    """A client has not proved who it is. The text is the line of the log, without secrets."""


class FrameHandler(Protocol):
    """What takes the frames of a connection: a node of the cluster."""

    def take(self, connection: "Connection", frame: bytes, now: Millis) -> bool:
        """Handle one frame. False: an earlier request of this connection must end first."""

    def lose(self, connection: "Connection", error: WireError) -> None:
        """What follows cannot be read: set the error of the connection."""


class Connection:
    """The state of one client's connection. After `closed` is set nothing more comes out of it."""

    def __init__(
        self,
        node: FrameHandler,
        host: str,
        limit_bytes: int,
        ready: Callable[[], None],
        memory: MemoryPools = UNBOUNDED,
    ) -> None:
        """`ready` is called once when there is something for `output` to fetch."""
        self.node = node
        self.host = "/" + host
        self.client = Client("", self.host)
        # What followed the correlation id last time, which seldom changes; whether that was the
        # header of a flexible request, and where its body began.
        self.head = b""
        self.head_flexible: bool | None = None
        self.body = 0
        self.closed = False
        self.unread = False  # the client does not read its answers: it gets no more of them
        self.busy = False  # the last request waits for another client
        self.slots: deque[Slot] = deque()
        self.request_buffer = RequestBuffer(limit_bytes, memory.requests)
        self.error: Exception | None = None  # why this connection ends
        self.delayed = False  # it must not end before `end` is called
        self.memory = memory
        self._answers = memory.answers
        self._done: list[bytes] = []
        self._call_ready = ready
        self._failed = False
        self._ready = False

    @property
    def idle(self) -> bool:
        """Whether nothing is under way: such a connection may be closed after a long silence."""
        return not self.slots and not self.request_buffer.frames

    @property
    def finished(self) -> bool:
        """Whether it must be closed: it has failed, and all that can be answered is answered."""
        waits = self.slots or self.request_buffer.frames or self._done or self.delayed
        return self.error is not None and not waits

    def receive(self, data: bytes) -> None:
        """Take bytes as they came; `go_on` handles them. Look at `request_buffer.crowded`
        afterwards.
        """
        if self.error is None:
            try:
                self.request_buffer.feed(data)
            except WireError as error:
                self.node.lose(self, error)

    def go_on(self, now: Millis, over: Over = never) -> bool:
        """Hand over the frames that may be handled now, until a slice is over; then true. Look at
        `finished` afterwards.
        """
        request_buffer, slots = self.request_buffer, self.slots
        frames = request_buffer.frames
        handled = 0
        try:
            while frames and not (self.busy or self.unread or self.closed):
                if len(slots) >= PENDING_ANSWERS_MAX or not self.node.take(self, frames[0], now):
                    return False
                if frames:  # a request that fails also ends all requests behind it
                    size = request_buffer.pop(self.busy)
                    handled += 1
                    is_time = size > SMALL_FRAME_BYTES or not handled % SMALL_FRAMES_AT_ONCE
                    if frames and is_time and over():
                        return True
        except WireError as error:
            self.error = error
            self.request_buffer.clear()
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            self.fail(error)
        return False

    def put(self, data: bytes) -> None:
        """An answer that is ready at once. There must be no unanswered request in front of it."""
        self._done.append(data)
        if not self._ready:
            self._ready = True
            self._call_ready()

    def answered(self, slot: Slot) -> None:
        """One of the requests has its answer."""
        if not (self.closed or self._failed):
            self._answers.used += slot.size
            if not self._ready:
                self._ready = True
                self._call_ready()

    def output(self) -> list[bytes]:
        """The answers that may leave, in pieces: those with no unanswered request in front."""
        self._ready = False
        slots = self.slots
        out, self._done = self._done, []
        while slots and (parts := slots[0].parts) is not None:
            self._answers.used -= slots.popleft().size
            out += parts
        if not slots:
            self.busy = False
            if self.request_buffer.parked:
                self.request_buffer.answered()
        return out

    def fail(self, error: Exception) -> None:
        """A request cannot be answered, which should not happen: the connection ends."""
        self.error = self.error or error
        self._failed = True
        self._forget()
        if not self._ready:
            self._ready = True
            self._call_ready()

    def end(self, answer: bytes | None) -> None:
        """The delay of a connection that has an error is over: this answer is its last."""
        assert self.error is not None
        self.delayed = False
        if answer is not None:
            self.put(answer)
        self.fail(self.error)

    def close(self) -> None:
        """Drop what is left; answers that come later are dropped too."""
        self.closed = True
        self._forget()

    def _forget(self) -> None:
        self._answers.used -= sum(slot.size for slot in self.slots)
        self.slots.clear()
        self.request_buffer.clear()
