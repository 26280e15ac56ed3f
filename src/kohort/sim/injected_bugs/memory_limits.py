# SPDX-License-Identifier: Apache-2.0
"""Bugs in what one client may make the broker hold: it takes the room of the others."""

from collections.abc import Iterator
from typing import Any

from kohort.server.apis import offset_fetch
from kohort.server.network import backpressure
from kohort.server.network.request_buffer import RequestBuffer
from kohort.server.network.sockets import ClientProtocol
from kohort.server.requests.fetch_purgatory import FetchPurgatory
from kohort.server.requests.steps import Steps
from kohort.sim.injected_bugs.replace_attribute import replace_attribute


def announced_room() -> Iterator[None]:
    """A request takes the room that it has announced."""
    count = RequestBuffer._count  # noqa: SLF001

    def announced(self: RequestBuffer) -> None:
        count(self)
        reader = self._reader
        if reader.rest:
            missing = reader.needed - len(reader.rest)
            self.memory.used += missing
            self.counted_bytes += missing

    with replace_attribute(RequestBuffer, "_count", announced):
        yield


def endless_turn() -> Iterator[None]:
    """Whose turn it is to send more keeps it, also where nothing comes."""
    with replace_attribute(backpressure, "TURN_SECONDS", 60.0):
        yield


def unread_answers() -> Iterator[None]:
    """Requests are handled, whether the client reads their answers or not."""
    with replace_attribute(ClientProtocol, "pause_writing", lambda _self: None):
        yield


def lasting_room() -> Iterator[None]:
    """The room of a request that waits outlives its connection."""
    clear = RequestBuffer.clear

    def clear_frames(self: RequestBuffer) -> None:
        parked = self.parked
        clear(self)
        self.memory.used += parked

    with replace_attribute(RequestBuffer, "clear", clear_frames):
        yield


def lasting_fetch() -> Iterator[None]:
    """A fetch that waits outlives its connection."""
    with replace_attribute(FetchPurgatory, "cancel", lambda _self, _token: None):
        yield


def repeated_group() -> Iterator[None]:
    """A group that is named again is looked at again."""

    def all_of_them(groups: list[Any]) -> Steps[list[Any]]:
        yield from ()
        return groups

    with replace_attribute(offset_fetch, "_distinct", all_of_them):
        yield
