# SPDX-License-Identifier: Apache-2.0
"""What was made once and is used again, within so many bytes.

A hand goes round the entries, as that of a clock. Where there is no room for another one, the entry
under the hand gives way, unless it was used since the hand was there last (its second chance). In
that case the newcomer stays outside. So whoever asks for more entries than there is room for, one
after the other, finds those that were first, and not always those that have just gone.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class CacheEntry(Protocol):
    """`size` is what the entry takes, in bytes; whoever uses it sets `used`."""

    size: int
    used: bool

    def holds(self) -> bool:
        """Whether what it was made from is as it was. One that does not hold is dropped."""


_Key = TypeVar("_Key")
_Entry = TypeVar("_Entry", bound=CacheEntry)


class BoundedCache(Generic[_Key, _Entry]):
    """`get(key)` is an entry or None. The caller checks whether it holds, and sets `used`."""

    __slots__ = ("_by_key", "_limit_bytes", "_ring", "bytes", "get")

    def __init__(self, limit_bytes: int) -> None:
        self.bytes = 0  # of all entries
        self._limit_bytes = limit_bytes
        self._by_key: dict[_Key, _Entry] = {}
        self._ring: deque[_Key] = deque()  # the next to be looked at first
        self.get: Callable[[_Key], _Entry | None] = self._by_key.get

    def __len__(self) -> int:
        return len(self._by_key)

    def put(self, key: _Key, entry: _Entry) -> None:
        """Keep an entry in the place of any other with its key, if there is room for it."""
        if entry.size > self._limit_bytes:
            return
        is_full = self._lacks_room(key, entry)
        while self._lacks_room(key, entry):
            if not self._pass_next(lacks_room=True):
                return
        if not is_full:
            # Two for each that comes: what does not hold is never much more than what does.
            self._pass_next(lacks_room=False)
            self._pass_next(lacks_room=False)
        former = self._by_key.get(key)
        self.bytes += entry.size - (0 if former is None else former.size)
        if former is None:
            self._ring.append(key)
        entry.used = True  # it has a round before anybody asks whether it was
        self._by_key[key] = entry

    def clear(self) -> None:
        """Forget everything."""
        self._by_key.clear()
        self._ring.clear()
        self.bytes = 0

    def _lacks_room(self, key: _Key, entry: _Entry) -> bool:
        former = self._by_key.get(key)
        growth = entry.size - (0 if former is None else former.size)
        return self.bytes + growth > self._limit_bytes

    def _pass_next(self, *, lacks_room: bool) -> bool:
        """Move the hand by one entry; whether that gives way."""
        if not self._ring:
            return False
        key = self._ring[0]
        entry = self._by_key[key]
        if entry.holds() and (entry.used or not lacks_room):
            entry.used = entry.used and not lacks_room
            self._ring.rotate(-1)
            return False
        self._ring.popleft()
        del self._by_key[key]
        self.bytes -= entry.size
        return True
