# SPDX-License-Identifier: Apache-2.0
"""A socket that speaks TLS. What is inside of it is handled as on any other (`sockets.py`)."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import cast

from kohort.errors import KohortError
from kohort.machines.effects import Client
from kohort.server.network.sockets import ClientProtocol, Host
from kohort.server.network.tls import (
    HANDSHAKE,
    PLAIN_TEXT_ALERT,
    WRITTEN_AT_ONCE,
    TlsError,
    TlsSession,
)
from kohort.server.scheduler import Over
from kohort.server.tls_listener import TlsListener

ENCRYPTED_AT_ONCE = 1 << 18  # half a millisecond; what is left waits for slices
AHEAD_BYTES = 1 << 20  # encrypted ones that the client has not taken yet
UNCOUNTED_BYTES = 1 << 14  # nearly every handshake has less, also one with certificates


class TlsTransport:
    """Encrypts on the way out. `session` is there once its client has sent something.

    A large answer is encrypted a part at a time: some milliseconds for each megabyte are too much
    for one go. `hold_back` is called where a part of it is left for later, and `encrypt` goes on.
    """

    def __init__(self, below: asyncio.Transport, hold_back: Callable[[], None]) -> None:
        self.below = below
        self.session: TlsSession | None = None
        self.get_extra_info = below.get_extra_info
        self.pause_reading = below.pause_reading
        self.resume_reading = below.resume_reading
        self.abort = below.abort
        self._hold_back = hold_back
        self._left: deque[memoryview] = deque()
        self._left_bytes = 0
        self._ends = False  # it closes once nothing is left

    def is_closing(self) -> bool:
        return self._ends or self.below.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._left_bytes + self.below.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Send these bytes; nothing once it closes, as sockets of asyncio do."""
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[bytes]) -> None:
        if self.is_closing():
            return
        was_empty = not self._left
        for data in list_of_data:
            if data:
                self._left.append(memoryview(data))
                self._left_bytes += len(data)
        if was_empty:
            self._encrypt(ENCRYPTED_AT_ONCE)
            if self._left:
                self._hold_back()

    def encrypt(self, over: Over) -> bool:
        """Go on with what is left until the slice is over; true while the client takes it and there
        is more.
        """
        while self._left and self.below.get_write_buffer_size() < AHEAD_BYTES:
            self._encrypt(WRITTEN_AT_ONCE)
            if over():
                break
        if not self._left and self._ends:
            self._ends = False
            self.close()
        return bool(self._left) and self.below.get_write_buffer_size() < AHEAD_BYTES

    @property
    def left_bytes(self) -> int:
        """Those that are not encrypted yet."""
        return self._left_bytes

    def _encrypt(self, most: int) -> None:
        session, parts = self.session, []
        assert session is not None
        while self._left and most > 0:
            view = self._left[0]
            part = view[:WRITTEN_AT_ONCE]
            parts += session.send(part)
            most -= len(part)
            self._left_bytes -= len(part)
            if len(part) == len(view):
                self._left.popleft()
            else:
                self._left[0] = view[len(part) :]
        if len(parts) == 1:
            self.below.write(parts[0])
        elif parts:
            self.below.writelines(parts)

    def forget(self) -> None:
        """The connection is lost: nothing that is left goes anywhere."""
        self._left.clear()
        self._left_bytes = 0

    def close(self) -> None:
        """Close it; what is left is sent first."""
        if self._left:
            self._ends = True
            return
        if self.session is not None and self.session.established and not self.is_closing():
            self.below.write(self.session.close())
        self.below.close()


class TlsProtocol(ClientProtocol):
    """One socket of a listener of TLS. Handshakes wait in the line of clients for their slices, so
    that many of them hold nobody else up.
    """

    def __init__(self, host: Host, node: int, listener: int, tls: TlsListener) -> None:
        super().__init__(host, node, listener)
        self._tls = tls
        self._below: TlsTransport | None = None
        self._handshake_bytes = 0  # that are counted among those of clients not known yet
        self._is_full = False  # the socket: it calls `resume_writing` once its client has read

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._below = TlsTransport(cast("asyncio.Transport", transport), self._hold_back)
        super().connection_made(cast("asyncio.BaseTransport", self._below))

    def data_received(self, data: bytes) -> None:
        below = self._below
        if below is None or self._scheduler is None or self._connection is None:
            self._hold(data)
            return
        session = below.session
        if session is None or not session.established:
            self._greet(below, session, data)
            return
        self.heard = self._loop.time()
        self._receive(below, session, data)

    def _receive(self, below: TlsTransport, session: TlsSession, data: bytes = b"") -> None:
        try:
            plain = session.receive(data)
        except TlsError as error:
            self._refuse(below, session.output(), str(error))
            return
        self._send_answers(below, session)
        if plain:
            super().data_received(plain)
        if session.ended and not below.is_closing():
            below.close()

    def _send_answers(self, below: TlsTransport, session: TlsSession) -> None:
        """Records may want an answer of TLS itself (KeyUpdate). It leaves at once, so that a client
        that reads none is held back as any other.
        """
        answers = session.output()
        if answers:
            below.below.write(answers)
            self._count_unsent(below.get_write_buffer_size())

    def _greet(self, below: TlsTransport, session: TlsSession | None, data: bytes) -> None:
        """Take bytes of the handshake. Nothing more is read before they had their slice."""
        assert self._scheduler is not None
        self.heard = self._loop.time()
        if session is None:
            if data[0] != HANDSHAKE:
                what = (
                    f"its first bytes are no TLS ({data[:8]!r}), expected a client that speaks it"
                )
                self._refuse(below, PLAIN_TEXT_ALERT, what)
                return
            session = below.session = TlsSession(self._tls.context)
        session.feed(data)
        if session.fed_bytes > UNCOUNTED_BYTES:
            self._count_handshake(session.fed_bytes)
            self._host.sockets.make_room(self)
        below.pause_reading()
        self._scheduler.enter(self)
        self._host.schedule_turn()

    def run(self, over: Over) -> bool:
        below = self._below
        session = None if below is None else below.session
        if below is None or session is None:
            return super().run(over)
        if session.established:
            return self._send_on(below, over) or super().run(over)
        if self._connection is not None and not below.is_closing():
            try:
                self._step(below, session)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's)
                self.break_off(error)
        return False

    def _hold_back(self) -> None:
        """A part of an answer is left: no request is handled before it is on its way."""
        super().pause_writing()
        if self._scheduler is not None:
            self._scheduler.enter(self)
            self._host.schedule_turn()

    def _send_on(self, below: TlsTransport, over: Over) -> bool:
        """Encrypt more of an answer; true while there is more."""
        if not below.left_bytes:
            return False
        try:
            more = below.encrypt(over)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's)
            self.break_off(error)
            return False
        self._count_unsent(below.get_write_buffer_size())
        if not below.left_bytes and not self._is_full:
            super().resume_writing()
        return more

    def pause_writing(self) -> None:
        self._is_full = True
        super().pause_writing()

    def resume_writing(self) -> None:
        self._is_full = False
        if self._below is None or not self._below.left_bytes:
            super().resume_writing()
        elif self._scheduler is not None:
            self._count_unsent(self._below.get_write_buffer_size())
            self._scheduler.enter(self)
            self._host.schedule_turn()

    def _step(self, below: TlsTransport, session: TlsSession) -> None:
        try:
            session.step()
            principal = self._tls.principal(session.certificate) if session.established else None
        except (TlsError, KohortError) as error:
            self._refuse(below, session.output(), str(error))
            return
        below.below.write(session.output())
        below.resume_reading()
        if not session.established:
            return
        self._count_handshake(0)
        connection = self._connection
        if principal is not None and connection is not None:
            connection.client = Client("", connection.host, principal)
        self._receive(below, session)  # what has come with the end of the handshake

    def _count_handshake(self, size: int) -> None:
        self._host.sockets.memory.unauthenticated.used += size - self._handshake_bytes
        self._handshake_bytes = size

    @property
    def unauthenticated_bytes(self) -> int:
        return self._handshake_bytes or super().unauthenticated_bytes

    def give_way(self, why: str) -> None:
        self._count_handshake(0)
        super().give_way(why)

    def connection_lost(self, exc: Exception | None) -> None:
        self._count_handshake(0)
        if self._below is not None:
            self._below.forget()
        super().connection_lost(exc)

    def _refuse(self, below: TlsTransport, alert: bytes, why: str) -> None:
        """Send an alert and close the connection. What waits in it is not handled."""
        connection = self._connection
        if connection is not None and not connection.closed:
            self._host.sockets.observe.info(
                f"connection from {connection.host} on listener {self._tls.name}, which speaks TLS,"
                f" closed: {why}"
            )
            connection.close()
        below.below.write(alert)
        below.below.close()

    def close_if_silent_since(self, limit: float) -> None:
        session = None if self._below is None else self._below.session
        connection = self._connection
        if connection is not None and self.heard < limit and not (session and session.established):
            self._host.sockets.observe.info(
                f"connection from {connection.host} on listener {self._tls.name}, which speaks TLS,"
                f" closed: it has {'begun no' if session is None else 'not ended its'} handshake"
            )
        super().close_if_silent_since(limit)
