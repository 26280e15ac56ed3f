"""Several ways to one answer, a moment apart: a silent one holds up nobody (RFC 8305)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias, TypeVar

PATIENCE_S = 1.0  # how long one server may be silent before the next one is asked, too

Value = TypeVar("Value")
Attempt: TypeAlias = Callable[[], Awaitable[Value]]


async def first_of(
    attempts: Iterable[Attempt[Value]],
    patience_s: float,
    expected: tuple[type[Exception], ...],
    on_silence: Callable[[int], None] = lambda _index: None,
) -> Value:
    """The value of the first attempt that has one.

    The next attempt begins when one has failed with an `expected` error, or when the last one has
    said nothing for `patience_s`; those before it go on. `on_silence` hears the number of each
    attempt that has used up this patience. What is under way at the end is cancelled.

    Raises an ExceptionGroup of the expected errors in the order of attempts, where all fail; any
    other error at once.
    """
    errors: dict[int, Exception] = {}
    under_way: dict[asyncio.Future[Value], int] = {}
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
                    return task.result()
                if not isinstance(error, expected):
                    raise error
                errors[number] = error
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    raise ExceptionGroup("every attempt has failed", [errors[number] for number in sorted(errors)])
