# SPDX-License-Identifier: Apache-2.0
"""The pipe to the process of a broker under test: whole messages, whatever interrupts the test.

The handler of a signal may raise in the main thread at any moment, as that of pytest-timeout does.
So threads of its own send and receive, and no signal reaches them: what interrupts a test never
leaves a part of a message behind, which would be read as the beginning of the next one.
"""

import _socket
import pickle
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from queue import Empty, SimpleQueue
from typing import Any

from kohort.storage.files import system
from kohort.testing.threads import Threads

__tracebackhide__ = True
_THREADS = 2  # one sends, one receives


class CommandPipe:
    """One end of a pipe that is a pair of sockets. Its threads begin with `start` and end with
    `close`.
    """

    def __init__(self, end: "Connection[Any, Any]") -> None:
        self._end = end
        self._outgoing: SimpleQueue[memoryview | None] = SimpleQueue()
        self._incoming: SimpleQueue[bytes | None] = SimpleQueue()
        self._threads = Threads(_THREADS, "kohort-testing-pipe")

    def start(self) -> None:
        """Begin to send and to receive. `close` ends that, also where this was interrupted."""
        self._threads.start()
        self._threads.submit(self._send)
        self._threads.submit(self._receive)

    def send(self, message: Any) -> None:
        """Send it in a moment. Raises what pickling it raises; then nothing is sent."""
        self._outgoing.put(ForkingPickler.dumps(message))

    def receive(self, seconds: float) -> Any:
        """The next message; None when none comes in these seconds. Raises EOFError behind the last
        one.
        """
        try:
            message = self._incoming.get(timeout=seconds)
        except Empty:
            return None
        if message is None:
            self._incoming.put(None)  # whoever asks next is answered the same
            raise EOFError
        return pickle.loads(message)  # noqa: S301  (our own process)

    def close(self) -> None:
        """End it at both ends. It may be called again where it was interrupted."""
        if self._end.closed:
            return
        sock = _socket.socket(fileno=system.dup(self._end.fileno()))
        with suppress(OSError):  # it was ended before
            sock.shutdown(_socket.SHUT_RDWR)  # neither thread waits for the process any more
        sock.close()
        self._outgoing.put(None)
        self._threads.shutdown()
        self._end.close()

    def _send(self) -> None:
        while (message := self._outgoing.get()) is not None:
            try:
                self._end.send_bytes(message)
            except OSError:  # the process has ended, as `receive` says
                return

    def _receive(self) -> None:
        try:
            while True:
                self._incoming.put(self._end.recv_bytes())
        except (EOFError, OSError):
            self._incoming.put(None)
