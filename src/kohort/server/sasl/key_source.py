# SPDX-License-Identifier: Apache-2.0
"""The keys of the authority that signs tokens, from a file or from a server, read again and again.

Reading is beside the loop, on a thread that nobody has to wait for: a server may never end. Keys
that are there stay until newer ones have come.
"""

import asyncio
import ipaddress
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from threading import Thread
from urllib.parse import SplitResult, unquote, urlsplit

from kohort.config.settings import ConfigError
from kohort.runtime.observers import Observer
from kohort.security.sasl import SaslError
from kohort.security.signed_tokens import VerifyingKey, read_key_set
from kohort.server.background.plugin_threads import call_from_thread

LONGEST_BYTES = 1 << 20
LONGEST_SECONDS = 30.0
"""That a reading may take as a whole, however slowly a server sends."""

LEAST_WANTED_SECONDS = 10.0
"""Between two readings for a key that is not known: clients choose what keys their tokens name."""


class KeySource:
    """`keys` are those of the moment: none before `start`."""

    def __init__(self, url: str, *, refresh_ms: int, backoff_ms: int, backoff_max_ms: int) -> None:
        """Raises ConfigError for a URL that is none of a file or of HTTP. `warnings` has what is to
        be said of one that is.
        """
        parts, self._shown = _parsed(url)
        self.keys: Sequence[VerifyingKey] = ()
        self.warnings: list[str] = []
        if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
            self.warnings.append(
                f"the keys of OAUTHBEARER come from {self._shown}, without TLS: whoever is on the"
                " way can give out others, and be anybody. Expected https:"
            )
        self._url = url
        self._file = Path(unquote(parts.path)) if parts.scheme == "file" else None
        self._read_url: Callable[[str, int], bytes] | None = None
        if self._file is None:  # it imports two dozen modules, which nobody else needs
            self._read_url = import_module("kohort.server.sasl.key_server").read_url
        self._refresh_seconds = refresh_ms / 1000
        self._backoff_seconds = (backoff_ms / 1000, backoff_max_ms / 1000)
        self._failures = 0
        self._read_at = 0.0  # when the last reading ended
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._observe: Observer | None = None

    async def start(self, observe: Observer) -> None:
        """Read the keys, now and again and again. Raises ConfigError where there are none."""
        self._loop = asyncio.get_running_loop()
        self._observe = observe
        try:
            self.keys = await self._read_beside()
        except SaslError as error:
            raise ConfigError(str(error)) from None
        self._arm(self._refresh_seconds)

    def stop(self) -> None:
        """Read no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._timer = self._task = self._loop = None

    def want(self) -> None:
        """A token names a key that is not there: it may be a new one."""
        if self._loop is not None and self._timer is not None:
            at = max(self._read_at + LEAST_WANTED_SECONDS, self._loop.time())
            if at < self._timer.when():
                self._timer.cancel()
                self._timer = self._loop.call_at(at, self._begin)

    def _arm(self, seconds: float) -> None:
        """A reading has ended: the next one comes after so many seconds."""
        if self._loop is not None:  # else it was stopped meanwhile
            self._read_at = self._loop.time()
            self._timer = self._loop.call_later(seconds, self._begin)

    def _begin(self) -> None:
        assert self._loop is not None
        self._timer = None
        self._task = self._loop.create_task(self._refresh())

    async def _refresh(self) -> None:
        observe, pause = self._observe, self._refresh_seconds
        assert observe is not None
        try:
            self.keys = await self._read_beside()
            self._failures = 0
        except SaslError as error:
            first, most = self._backoff_seconds
            pause = min(first * 2**self._failures, most)
            self._failures = min(self._failures + 1, 30)
            observe.warning(f"{error}; the keys that were read before stay in use")
        finally:
            self._task = None
            self._arm(pause)

    async def _read_beside(self) -> Sequence[VerifyingKey]:
        """Read on a thread. Raises SaslError, also where that takes too long."""
        if self._thread is not None and self._thread.is_alive():
            raise self._error("an earlier reading has not ended")
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Sequence[VerifyingKey]] = loop.create_future()

        def settle(keys: Sequence[VerifyingKey], error: SaslError | None) -> None:
            if outcome.done():
                return  # nobody waits any more
            if error is None:
                outcome.set_result(keys)
            else:
                outcome.set_exception(error)

        def run() -> None:
            keys: Sequence[VerifyingKey] = ()
            failure = None
            try:
                keys = self._read()
            except SaslError as error:
                failure = error
            except Exception as error:  # noqa: BLE001  (whatever a server makes a library do)
                failure = self._error(type(error).__name__)
            call_from_thread(loop, settle, keys, failure)

        self._thread = Thread(target=run, name="kohort-keys", daemon=True)
        self._thread.start()
        try:
            return await asyncio.wait_for(outcome, LONGEST_SECONDS)
        except TimeoutError:
            raise self._error(f"not within {LONGEST_SECONDS:g} s") from None

    def _error(self, reason: str) -> SaslError:
        return SaslError(f"the keys at {self._shown} cannot be read: {reason}")

    def _read(self) -> Sequence[VerifyingKey]:
        """On a thread. Raises SaslError."""
        if self._read_url is not None:
            try:
                text = self._read_url(self._url, LONGEST_BYTES)
            except SaslError as error:
                raise self._error(str(error)) from None
        else:
            text = self._read_file()
        if len(text) > LONGEST_BYTES:
            raise SaslError(f"the keys at {self._shown} have more than {LONGEST_BYTES} bytes")
        try:
            return read_key_set(text)
        except SaslError as error:
            raise SaslError(f"the keys at {self._shown}: {error}") from None

    def _read_file(self) -> bytes:
        assert self._file is not None
        try:
            with self._file.open("rb") as file:
                return file.read(LONGEST_BYTES + 1)
        except (OSError, ValueError) as error:
            raise self._error(str(error)) from None


def _parsed(url: str) -> tuple[SplitResult, str]:
    """The parts of a URL, and those that may be shown: there may be secrets in its path or behind
    it. Raises ConfigError.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ConfigError("the URL of the keys is no URL, expected https://host/path") from None
    if ":" in host:
        host = f"[{host}]"
    shown = f"{parts.scheme}://{host}" + ("" if port is None else f":{port}")
    if parts.scheme == "file":
        return parts, f"{shown}{parts.path}"
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"the URL of the keys is {shown!r}, expected file:, https: or http:")
    if not host:
        raise ConfigError("the URL of the keys has no host, expected https://host/path")
    if "@" in parts.netloc:
        raise ConfigError(f"the URL of the keys ({shown}) has a user, expected none")
    return parts, shown


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
