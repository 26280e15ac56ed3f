# SPDX-License-Identifier: Apache-2.0
"""What clients take from the machine under them beside their event loop: the time, chance, threads.

The loop gives the rest, sockets and timers. The defaults are the real ones. A simulator sets
`ENVIRONMENT` in the context in which its programs run. No call of a client takes it: some of it is
looked up when a client is made, and the rest when it is needed, in the task of the caller or in one
of the client. So a client is made and used in one such context.
"""

import asyncio
import random
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import NamedTuple, Protocol, TypeVar

Value = TypeVar("Value")


class Clock(Protocol):
    """As the module `time`: seconds since 1970 and since some instant that never goes back."""

    def time(self) -> float: ...
    def time_ns(self) -> int: ...
    def monotonic(self) -> float: ...


class Chance(Protocol):
    """As the module `random`. Nothing secret comes of it."""

    def random(self) -> float: ...
    def randrange(self, start: int, stop: int, /) -> int: ...


def _start_thread(work: Callable[[], None], name: str) -> None:
    threading.Thread(target=work, name=name, daemon=True).start()


def _new_nonce() -> str:
    from secrets import token_hex  # noqa: PLC0415  (a login needs it, and brings OpenSSL's hashes)

    return token_hex()


class Environment(NamedTuple):
    """Modules stand for themselves, so whoever patches one reaches the clients, too.

    `start_thread` runs work that may never end, and that nobody waits for. `new_nonce` is text that
    nobody can guess, for a login by SCRAM.
    """

    clock: Clock = time
    chance: Chance = random
    new_uuid: Callable[[], uuid.UUID] = uuid.uuid4
    start_thread: Callable[[Callable[[], None], str], None] = _start_thread
    new_nonce: Callable[[], str] = _new_nonce


ENVIRONMENT: ContextVar[Environment] = ContextVar("ENVIRONMENT", default=Environment())  # noqa: B039  (it cannot be changed)


def environment() -> Environment:
    """The environment of whoever calls."""
    return ENVIRONMENT.get()


async def in_thread(work: Callable[[], Value], name: str) -> Value:
    """Run it in a thread that nobody has to wait for: it may never end."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Value] = loop.create_future()

    def settle(done: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if outcome.done() else done())

    def run() -> None:
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001  (code of others, on its own thread)
            plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
            failure = error if plain else RuntimeError(repr(error))  # a future takes no other
            settle(lambda: outcome.set_exception(failure))
        else:
            settle(lambda: outcome.set_result(value))

    environment().start_thread(run, name)
    return await outcome
