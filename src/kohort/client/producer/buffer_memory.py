# SPDX-License-Identifier: Apache-2.0
"""The bound on what a producer holds: who finds it full waits for its turn."""

import asyncio
from collections import deque
from collections.abc import Callable


class BufferMemory:
    """`used` says how many bytes are held at the moment, `limit` how many may be. Those who found
    no room are in `waiting`, the first one first.
    """

    def __init__(self, limit: int, used: Callable[[], int]) -> None:
        self.limit = limit
        self._used = used
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def has(self, size: int) -> bool:
        """Whether so many bytes more may be held, and nobody waits who came before."""
        return not self.waiting and self._used() + size <= self.limit

    async def wait(self, size: int, deadline: float) -> None:
        """Until there is room. Raises TimeoutError at the deadline of the loop's clock.

        Whoever returns takes the room at once, before it waits for anything else.
        """
        while not self.has(size):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            entry = (size, turn)
            self.waiting.append(entry)
            try:
                async with asyncio.timeout_at(deadline):
                    await turn
            except BaseException:
                if entry in self.waiting:
                    self.waiting.remove(entry)
                self.look()
                raise
            if self._used() + size <= self.limit:
                return

    def look(self) -> None:
        """Something was let go: whoever fits has a turn, in the order of coming."""
        free = self.limit - self._used()
        while self.waiting and self.waiting[0][0] <= free:
            size, turn = self.waiting.popleft()
            free -= size
            if not turn.done():
                turn.set_result(None)
