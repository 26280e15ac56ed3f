# SPDX-License-Identifier: Apache-2.0
"""Who finds a producer full waits for its turn, and no longer than it wants to."""

import asyncio

import pytest
from tests.client.scripted import asynchronous

from kohort.client.producer.buffer_memory import BufferMemory


class Held:
    def __init__(self, size: int) -> None:
        self.size = size
        self.memory = BufferMemory(10, lambda: self.size)
        self.order: list[str] = []

    async def take(self, name: str, size: int, timeout_s: float = 5) -> None:
        await self.memory.wait(size, asyncio.get_running_loop().time() + timeout_s)
        self.size += size
        self.order.append(name)


@asynchronous
async def test_whoever_comes_first_is_first_also_where_another_would_fit() -> None:
    held = Held(9)
    tasks = [asyncio.create_task(held.take(name, size)) for name, size in (("a", 5), ("b", 1))]
    await asyncio.sleep(0)
    assert not held.memory.has(1), "somebody waits who came before"
    held.size = 6
    held.memory.look()
    await asyncio.sleep(0)
    assert held.order == []
    held.size = 2
    held.memory.look()
    await asyncio.gather(*tasks)
    assert held.order == ["a", "b"]
    assert held.memory.has(2)


@asynchronous
async def test_nobody_waits_longer_than_it_wants_to() -> None:
    held = Held(9)
    behind = asyncio.create_task(held.take("behind", 1))
    with pytest.raises(TimeoutError):
        await held.take("first", 5, timeout_s=0.01)
    await behind
    assert held.order == ["behind"]


@asynchronous
async def test_whoever_gives_up_makes_way() -> None:
    held = Held(9)
    first = asyncio.create_task(held.take("first", 5))
    await asyncio.sleep(0)
    behind = asyncio.create_task(held.take("behind", 1))
    await asyncio.sleep(0)
    first.cancel()
    await behind
    assert held.order == ["behind"]
