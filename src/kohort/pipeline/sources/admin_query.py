# SPDX-License-Identifier: Apache-2.0
"""A question to a live cluster from code that is not asyncio: tasks, notebooks, commands."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from kohort.client.admin import AdminClient
from kohort.errors import ApiError, UnsupportedVersionError, WireError
from kohort.pipeline.sources.cluster_place import cluster_place
from kohort.pipeline.sources.log_position import SourceError
from kohort.security.settings import NO_SECURITY, Security

Answer = TypeVar("Answer")

CLIENT_ID = "kohort-spark"
TIMEOUT_S = 60.0


def ask(
    bootstrap: str,
    question: Callable[[AdminClient], Awaitable[Answer]],
    security: Security = NO_SECURITY,
) -> Answer:
    """What the cluster answers to a question that an admin client can ask. Raises SourceError."""
    place = cluster_place(bootstrap, security)

    async def asked() -> Answer:
        async with AdminClient(
            place.servers, client_id=CLIENT_ID, timeout=TIMEOUT_S, security=place.security
        ) as admin:
            return await question(admin)

    return run_query(bootstrap, asked)


def run_query(bootstrap: str, question: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
    """The answer, also where a loop is already running, as in a notebook.

    Raises SourceError in one sentence when the cluster cannot be asked.
    """
    try:
        return run_blocking(lambda: asyncio.run(question()))
    except (ApiError, UnsupportedVersionError, WireError, ValueError) as error:
        reason = error.message if isinstance(error, ApiError) else error
        raise SourceError(f"the cluster at {bootstrap} cannot be asked: {reason}") from error


def run_blocking(work: Callable[[], Answer]) -> Answer:
    """What comes of work that runs a loop of its own: in this thread, where Ctrl-C ends it, or in
    another where a loop is running here.
    """
    if not _is_in_loop():
        return work()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


class PausingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands still while nobody runs it: what a reader needs between two pieces
    is no delay of the brokers.
    """

    _paused_s = 0.0
    _since: float | None = None

    def time(self) -> float:
        now = time.monotonic() if self._since is None else self._since
        return now - self._paused_s

    def run_forever(self) -> None:
        if self._since is not None:
            self._paused_s += time.monotonic() - self._since
            self._since = None
        try:
            super().run_forever()
        finally:
            self._since = time.monotonic()


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
