# SPDX-License-Identifier: Apache-2.0
"""What a call about many things returns: everything once it is there, or each thing as it comes.

It is a coroutine, so `await`, `gather` and `create_task` take it, and Python says it of one that
was forgotten. Nothing is asked before somebody waits.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any, Generic, TypeAlias, TypeVar

from kohort.client.admin.views import Outcomes
from kohort.errors import ApiError

Key = TypeVar("Key")
Value = TypeVar("Value")
Result = TypeVar("Result")

Arrived: TypeAlias = Callable[[Key, Value | ApiError], None]
"""Hears of each outcome once it is certain."""


class Answers(Coroutine[Any, Any, Result], Generic[Key, Value, Result]):
    """The answers to one call, to be waited for once: all together, or one by one.

        described = await admin.describe_groups(ids)

        async for group_id, outcome in admin.describe_groups(ids):
            ...  # a GroupDescription or an ApiError, as soon as its coordinator has answered

    Both ways ask the same requests and raise the same errors, the second one at its end. A
    caller that leaves the loop early cancels what is not answered yet.
    """

    __slots__ = ("_listener", "_work")

    def __init__(self, work: Callable[[Arrived[Key, Value]], Coroutine[Any, Any, Result]]) -> None:
        self._listener: Arrived[Key, Value] | None = None
        self._work = work(self._arrived)

    def __await__(self) -> Generator[Any, Any, Result]:
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        """As of any coroutine."""
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """As of any coroutine."""
        return self._work.throw(*error)

    def close(self) -> None:
        """As of any coroutine: nothing is asked any more."""
        self._work.close()

    async def __aiter__(self) -> AsyncIterator[tuple[Key, Value | ApiError]]:
        """Each key with its outcome, in the order in which they come."""
        entries: asyncio.Queue[tuple[Key, Value | ApiError] | None] = asyncio.Queue()
        self._listener = lambda key, outcome: entries.put_nowait((key, outcome))
        asking = asyncio.ensure_future(self._work)
        asking.add_done_callback(lambda _: entries.put_nowait(None))
        try:
            while (entry := await entries.get()) is not None:
                yield entry
            asking.result()  # raises what an await raises
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    def _arrived(self, key: Key, outcome: Value | ApiError) -> None:
        if self._listener is not None:
            self._listener(key, outcome)


OutcomeAnswers: TypeAlias = Answers[Key, Value, Outcomes[Key, Value]]
"""The answers of a call that has an outcome for each thing asked."""
