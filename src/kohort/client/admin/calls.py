# SPDX-License-Identifier: Apache-2.0
"""What every call of the admin client needs: the cluster, and the time that it may take."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kohort.client.admin.answers import Answers, Arrived
from kohort.client.lifetime import Client
from kohort.client.network.cluster import Cluster
from kohort.client.settings import check_time

Key = TypeVar("Key")
Value = TypeVar("Value")
Result = TypeVar("Result")


class AdminCalls(Client):
    """The base of each part of `AdminClient`: its constructor sets what these need."""

    _cluster: Cluster
    _timeout_s: float

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the admin client is closed: make another one")

    def _answers(
        self,
        timeout: float | None,
        ask: Callable[[float, Arrived[Key, Value]], Coroutine[Any, Any, Result]],
    ) -> Answers[Key, Value, Result]:
        """The answers of a call. Once somebody waits for them, `ask` gets the deadline and the
        function that takes outcomes.
        """
        _check_timeout(timeout)

        async def work(arrived: Arrived[Key, Value]) -> Result:
            return await ask(self._deadline(timeout), arrived)

        # Python names it where it was never awaited.
        work.__qualname__ = ask.__qualname__.partition(".<locals>")[0]
        return Answers(work)

    def _deadline(self, timeout: float | None = None) -> float:
        """When a call that begins now ends; `timeout` is that of this call alone, in seconds."""
        self._check_open()
        timeout_s = _check_timeout(timeout)
        self._loop = asyncio.get_running_loop()
        return self._loop.time() + (self._timeout_s if timeout_s is None else timeout_s)


def _check_timeout(timeout: float | None) -> float | None:
    return None if timeout is None else check_time("timeout", timeout, "seconds", least=1)
