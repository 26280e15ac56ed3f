"""A question to a live cluster from code that is not asyncio: tasks, notebooks, commands."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kohort.client.admin import AdminClient
from kohort.errors import ApiError, UnsupportedVersionError, WireError
from kohort.spark.sources.source import SourceError

Answer = TypeVar("Answer")

TIMEOUT_S = 60.0


def ask(
    bootstrap: str,
    question: Callable[[AdminClient], Awaitable[Answer]],
    *,
    timeout_s: float = TIMEOUT_S,
) -> Answer:
    """What the cluster answers. Works where a loop is already running, as in a notebook.

    Raises SourceError in one sentence when it cannot be asked.
    """

    async def asked() -> Answer:
        async with AdminClient(bootstrap, client_id="kohort-spark", timeout=timeout_s) as admin:
            return await question(admin)

    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(lambda: asyncio.run(asked())).result()
        except (ApiError, UnsupportedVersionError, WireError, ValueError) as error:
            reason = error.message if isinstance(error, ApiError) else error
            raise SourceError(f"the cluster at {bootstrap} cannot be asked: {reason}") from error
