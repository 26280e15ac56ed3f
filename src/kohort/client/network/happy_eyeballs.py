# SPDX-License-Identifier: Apache-2.0
"""Several ways to one answer, a moment apart: a silent one holds up nobody (RFC 8305)."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TypeAlias, TypeVar

PATIENCE_S = 1.0  # how long one server may be silent before the next one is asked, too

Value = TypeVar("Value")
Attempt: TypeAlias = Callable[[], Awaitable[Value]]


async def first_of(
    attempts: Iterable[Attempt[Value]],
    patience_s: float,
    expected: tuple[type[Exception], ...],
    on_silence: Callable[[int], None] = lambda _index: None,
    discard: Callable[[Value], object] = lambda _value: None,
) -> Value:
    """The value of the first attempt that has one.

    The next attempt begins when one has failed with an `expected` error, or when the last one has
    said nothing for `patience_s`; those before it go on. `on_silence` hears the number of each
    attempt that has used up this patience. What is under way at the end is cancelled.

    `discard` gets each value that the caller does not get: several attempts may have one in the
    same turn of the loop, one that is cancelled may have one, and the caller may be cancelled.

    Raises an ExceptionGroup of the expected errors in the order of attempts, where all fail; any
    other error at once.
    """
    errors: dict[int, Exception] = {}
    under_way: dict[asyncio.Future[Value], int] = {}
    first: asyncio.Future[Value] | None = None
    left = iter(enumerate(attempts))
    following = next(left, None)
    try:
        while following is not None or under_way:
            if following is not None:
                begun, attempt = following
                under_way[asyncio.ensure_future(attempt())] = begun
                following = next(left, None)
            done, _ = await asyncio.wait(
                under_way,
                timeout=None if following is None else patience_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                on_silence(begun)
            for task in sorted(done, key=under_way.__getitem__):
                number = under_way.pop(task)
                error = task.exception()
                if error is None:
                    first = task
                    return task.result()
                if not isinstance(error, expected):
                    raise error
                errors[number] = error
    finally:
        try:
            await _end(under_way, discard)
        except BaseException:  # cancelled meanwhile
            if first is not None:
                discard(first.result())
            raise
    raise ExceptionGroup("every attempt has failed", [errors[number] for number in sorted(errors)])


async def _end(
    attempts: Collection[asyncio.Future[Value]], discard: Callable[[Value], object]
) -> None:
    """Cancel what is under way, wait for its end, and discard the values that have come of it."""
    for task in attempts:
        task.cancel()
    try:
        await asyncio.gather(*attempts, return_exceptions=True)
    finally:
        for task in attempts:
            if task.done() and not task.cancelled() and task.exception() is None:
                discard(task.result())
