# SPDX-License-Identifier: Apache-2.0
"""Who writes tables that are objects: an object that says so, for as long as it is renewed.

Nothing that counts rests on it: a manifest is swapped by comparing, and who takes over from a
writer that is silent changes the manifest first, so that the silent one's next flip is refused. The
lease tells a second writer whom to wait for, and lets leftovers be removed. How long a writer has
been silent the clock of the store says alone.
"""

import os
import secrets
import socket
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kohort.pipeline.stores.failures import ConflictError, HeldError, MissingError, StoreError
from kohort.pipeline.stores.object_path import ObjectPath

LEASE_S = 60.0
BEAT_S = 10.0


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """What the object says."""

    token: str
    host: str
    machine: str
    """Tells this system from others of the same name; empty where nothing does."""
    pid: int
    since: str
    beats: int = 0
    held: bool = True
    """False once its holder has ended as he should."""

    @property
    def describe(self) -> str:
        """Who it is, for people."""
        return f"pid {self.pid} on {self.host} since {self.since}"


def there(path: ObjectPath) -> Holder | None:
    """What the object says; None where there is none, or nothing that a writer has written."""
    try:
        return _decoded_or_none(path.root.objects.current(path.key).data)
    except MissingError:
        return None


class Lease:
    """The right to write, renewed by a thread until it is given back."""

    def __init__(self, path: ObjectPath) -> None:
        """Raises HeldError: somebody else writes; StoreError."""
        self._path = path
        self._objects = path.root.objects
        self._lost = False
        self._ended = threading.Event()
        self._holder = _this_process()
        self.was_left = self._take()
        """Whoever held it before has not given it back."""
        self._thread = threading.Thread(target=self._renew, name="kohort-lease", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let others write. A lease that cannot be given back runs out."""
        self._ended.set()
        self._thread.join()
        if not self._lost:
            with suppress(StoreError):
                self._write(msgspec.structs.replace(self._holder, held=False))

    def _take(self) -> bool:
        try:
            there = self._objects.current(self._path.key)
        except MissingError:
            self._tag: str | None = None
            self._claim()
            self._check_store()
            return False
        before = _decoded_or_none(there.data)
        if before is not None and before.held and not _has_died(before):
            silent_s = (there.now() - there.written_at).total_seconds()
            if silent_s < LEASE_S:
                raise HeldError(_describe(before, silent_s))
        self._tag = there.tag
        self._claim()
        return before is None or before.held

    def _claim(self) -> None:
        try:
            self._write(self._holder)
        except ConflictError as error:  # another has claimed it in this very moment
            there = self._objects.current(self._path.key)
            other = _decoded_or_none(there.data)
            describe = "another process" if other is None else _describe(other, 0)
            raise HeldError(describe) from error

    def _check_store(self) -> None:
        """Raises StoreError for a store that writes whatever the condition, and would lose data."""
        key, data = self._path.key, _encoded(self._holder) + b"\n"
        for tag in (None, self._objects.no_such_tag):
            with suppress(ConflictError):
                self._tag = self._objects.swap(key, data, tag)
                text = f"the store does not keep to {self._objects.conditions}"
                raise StoreError(
                    f"{text}, without which two writers destroy tables", str(self._path)
                )

    def _renew(self) -> None:
        while not self._ended.wait(BEAT_S):
            holder = self._holder
            try:
                self._write(msgspec.structs.replace(holder, beats=holder.beats + 1))
            except ConflictError:  # somebody has taken over; the next flip is refused
                self._lost = True
                return
            except StoreError:
                continue  # it may answer the next time

    def _write(self, holder: Holder) -> None:
        self._tag = self._objects.swap(self._path.key, _encoded(holder), self._tag)
        self._holder = holder


def _this_process() -> Holder:
    return Holder(
        token=secrets.token_hex(8),
        host=socket.gethostname(),
        machine=_machine(),
        pid=os.getpid(),
        since=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _machine() -> str:
    """This boot of this system, and the space in which its process ids are."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _has_died(holder: Holder) -> bool:
    """Whether it was a process of this very machine that is gone."""
    if not holder.machine or holder.machine != _machine():
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _describe(holder: Holder, silent_s: float) -> str:
    heard = f", last heard of {silent_s:.0f} s ago" if silent_s >= 2 * BEAT_S else ""
    return f"{holder.describe}{heard}"


def _encoded(holder: Holder) -> bytes:
    return msgspec.json.encode(holder)


def _decoded_or_none(data: bytes) -> Holder | None:
    try:
        return msgspec.json.decode(data, type=Holder)
    except ValueError:  # of msgspec, or of text that is no UTF-8
        return None
