# SPDX-License-Identifier: Apache-2.0
"""Connections to one broker: each request is known by its number, answers come when they come."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass, field
from typing import Any

from kohort.wire.apis import APIS
from kohort.wire.codec import decode, encode
from kohort.wire.frames import RequestHeader, encode_request

_SIZE = struct.Struct(">i")
ANSWER_SECONDS = 30.0  # after which a request that cannot be parked counts as unanswered


class ClosedError(Exception):
    """The broker has closed the connection instead of answering."""


@dataclass
class PendingRequest:
    """One request that is under way. `answer` is the frame, or None when the connection closed."""

    number: int
    api: Any
    version: int
    came: bool = False
    answer: bytes | None = None

    def decoded(self) -> Any:
        """The answer as a message. Raises WireError for bytes that are none, and ClosedError."""
        if self.answer is None:
            raise ClosedError
        start = 5 if self.api.flexible(self.version) and self.api.key != 18 else 4
        return decode(self.api.response, self.version, self.answer, start)


class Line:
    """One connection. `news` is set whenever something has come."""

    def __init__(self, client_id: str, news: asyncio.Event) -> None:
        self.client_id = client_id
        self.news = news
        self.closed = False
        self.waiting: dict[int, PendingRequest] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self._number = 0

    async def open(self, port: int) -> None:
        reader, self._writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 27)
        self._task = asyncio.create_task(self._read(reader))

    async def send(self, request: Any, version: int, *, answered: bool = True) -> PendingRequest:
        api = APIS[request.api_key]
        self._number += 1
        header = RequestHeader(
            request_api_key=api.key,
            request_api_version=version,
            correlation_id=self._number,
            client_id=self.client_id,
        )
        sent = PendingRequest(self._number, api, version)
        body = encode(request, version)
        if answered:
            self.waiting[self._number] = sent
        else:
            sent.came = True
        assert self._writer is not None
        if self.closed:
            self._gone()
        else:
            self._writer.write(encode_request(header, body, flexible=api.flexible(version)))
            await self._writer.drain()
        return sent

    async def ask(self, request: Any, version: int) -> Any:
        """Send and wait for the answer. Raises TimeoutError, ClosedError."""
        sent = await self.send(request, version)
        await self._come(sent)
        return sent.decoded()

    async def ask_bytes(self, key: int, version: int, body: bytes) -> bytes:
        """The same for an API that Kohort has no messages of: the body of a flexible answer."""
        self._number += 1
        sent = self.waiting[self._number] = PendingRequest(self._number, None, version)
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._number,
            client_id=self.client_id,
        )
        assert self._writer is not None
        self._writer.write(encode_request(header, body, flexible=True))
        await self._come(sent)
        if sent.answer is None:
            raise ClosedError
        return sent.answer[5:]

    async def _come(self, sent: PendingRequest) -> None:
        async with asyncio.timeout(ANSWER_SECONDS):
            while not sent.came:
                self.news.clear()
                await self.news.wait()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._writer is not None:
            self._writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                (size,) = _SIZE.unpack(await reader.readexactly(4))
                frame = await reader.readexactly(size)
                sent = self.waiting.pop(int.from_bytes(frame[:4], "big", signed=True), None)
                if sent is not None:
                    sent.answer, sent.came = frame, True
                    self.news.set()
        except (asyncio.IncompleteReadError, OSError):
            self._gone()

    def _gone(self) -> None:
        self.closed = True
        for sent in self.waiting.values():
            sent.came = True
        self.waiting.clear()
        self.news.set()


@dataclass
class Lines:
    """All connections of one sequence to one broker, by sender."""

    port: int
    news: asyncio.Event = field(default_factory=asyncio.Event)
    by_sender: dict[str, list[Line]] = field(default_factory=dict)

    async def of(self, sender: str, *, idle: bool = True) -> Line:
        """The sender's newest connection; another one when that waits and `idle` is wanted."""
        known = self.by_sender.setdefault(sender, [])
        if known and not known[-1].closed and not (idle and known[-1].waiting):
            return known[-1]
        line = Line(f"c-{sender}", self.news)
        await line.open(self.port)
        known.append(line)
        return line

    def waits(self, sender: str) -> bool:
        known = self.by_sender.get(sender)
        return bool(known and known[-1].waiting)

    def close(self) -> None:
        for lines in self.by_sender.values():
            for line in lines:
                line.close()
        self.by_sender.clear()
