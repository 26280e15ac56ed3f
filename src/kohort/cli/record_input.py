# SPDX-License-Identifier: Apache-2.0
"""What `kohort produce` reads: stdin or files, whole or piece by piece, as it comes."""

import asyncio
import os
import sys
from asyncio import AbstractEventLoop, Future
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from kohort.errors import KohortError

READ_BYTES = 1 << 16
PIECE_BYTES = 1 << 24  # of a line: longer ones would fill the memory, and brokers take 1 MiB


class Piece(NamedTuple):
    """A line or a whole file. `number` counts the lines of its file from 1; 0 is a whole file."""

    file: str
    number: int
    data: bytes

    def __str__(self) -> str:
        return place_text(self.file, self.number)


def place_text(file: str, first: int, last: int | None = None) -> str:
    """`line 3`, `lines 3 to 7`, the same behind the name of a file, or the name alone."""
    if not first:
        return file or "stdin"
    before = f"{file}, " if file else ""
    if last is None or last == first:
        return f"{before}line {first:,}"
    return f"{before}lines {first:,} to {last:,}"


class RecordInput:
    """The pieces of stdin, or of these files one after the other, until they end or `stop` is done.
    `ended` says that nothing is left.

    All files are opened before the first one is read: raises KohortError for one that cannot be.
    """

    def __init__(self, files: Sequence[str], delimiter: bytes | None, stop: "Future[None]") -> None:
        """`delimiter` ends a piece; None takes each file whole."""
        self._files = [(name, _opened(name)) for name in files]
        self._delimiter = delimiter
        self._stop = stop
        self.ended = False  # all that was there was read
        self._reader = _ThreadedReader()

    async def pieces(self) -> AsyncIterator[Piece]:
        """Each piece, as soon as it is there. The last one may lack its delimiter. Raises
        KohortError for one that is too long, and for a file that cannot be read.
        """
        for name, number in self._files or [("", sys.stdin.fileno())]:
            walk = self._whole if self._delimiter is None else self._split
            async for piece in walk(name, number):
                yield piece
            if self._stop.done():
                return
            if name:
                os.close(number)
        self.ended = True

    async def _split(self, name: str, file: int) -> AsyncIterator[Piece]:
        number, rest = 0, b""
        while data := await self._reader.read(file, name, self._stop):
            lines = (rest + data).split(self._delimiter)
            rest = lines.pop()
            for line in lines:
                number += 1
                yield Piece(name, number, line)
            _check_size(name, number + 1, rest)
        if rest and not self._stop.done():  # else it may be a part of a line
            yield Piece(name, number + 1, rest)

    async def _whole(self, name: str, file: int) -> AsyncIterator[Piece]:
        found = b""
        while data := await self._reader.read(file, name, self._stop):
            found += data
            _check_size(name, 0, found)
        if not self._stop.done():  # what was not read to its end is no record
            yield Piece(name, 0, found)


def _check_size(file: str, number: int, data: bytes) -> None:
    if len(data) > PIECE_BYTES:
        raise KohortError(f"{place_text(file, number)} is longer than {PIECE_BYTES:,} bytes")


def _opened(name: str) -> int:
    try:
        return os.open(name, os.O_RDONLY)
    except OSError as error:
        raise KohortError(f"cannot read {name}: {error.strerror}") from None


class _ThreadedReader:
    """Reads in a thread that nothing waits for: an interrupt ends the command at once, and the
    loop keeps its connections alive while it waits for a person.
    """

    def __init__(self) -> None:
        self._wanted: SimpleQueue[tuple[AbstractEventLoop, Future[bytes], int, str]] = SimpleQueue()
        Thread(target=self._serve, daemon=True).start()

    async def read(self, file: int, name: str, stop: "Future[None]") -> bytes:
        """What is there, or what comes next; nothing at the end, and once `stop` is done."""
        if stop.done():
            return b""
        loop = asyncio.get_running_loop()
        answer: Future[bytes] = loop.create_future()
        self._wanted.put((loop, answer, file, name))
        waiting: list[Future[Any]] = [answer, stop]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return b"" if stop.done() else answer.result()

    def _serve(self) -> None:
        while True:
            loop, answer, file, name = self._wanted.get()
            found: bytes | KohortError
            try:
                found = os.read(file, READ_BYTES)
            except OSError as error:
                found = KohortError(f"cannot read {name or 'stdin'}: {error.strerror}")
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(_settle, answer, found)


def _settle(answer: "Future[bytes]", found: bytes | KohortError) -> None:
    if answer.cancelled():
        return
    if isinstance(found, KohortError):
        answer.set_exception(found)
    else:
        answer.set_result(found)
