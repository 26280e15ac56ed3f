# SPDX-License-Identifier: Apache-2.0
"""The process of a broker under test. It gets its plan and its commands by a pipe, and ends with
SIGTERM or with the process that holds the other end.

A command is its number, name, arguments and named arguments. An answer is the number, the value and
the error, one of the two None. The plan has number 0.
"""

import asyncio
import logging
import pickle
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from kohort.errors import KohortError
from kohort.server.log_lines import OneLineFormatter
from kohort.testing.broker_harness import BrokerHarness, BrokerSpec
from kohort.testing.disk import RealDisk


async def serve(pipe: "Connection[Any, Any]") -> None:
    """Serve until the end. The first answer is the addresses by listener, or why there are none."""
    plan: BrokerSpec = pipe.recv()
    harness = BrokerHarness(plan, logging.getLogger("kohort"), RealDisk(synced=True))
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_requested.set)
    try:
        pipe.send((0, await harness.start(), None))
    except KohortError as error:
        pipe.send((0, None, portable(error)))
        return
    loop.add_reader(pipe.fileno(), _take, pipe, harness, stop_requested)
    await stop_requested.wait()
    loop.remove_reader(pipe.fileno())
    await harness.stop()


def _take(
    pipe: "Connection[Any, Any]", harness: BrokerHarness, stop_requested: asyncio.Event
) -> None:
    """Begin a command that has arrived, or note that nobody gives any more."""
    try:
        number, command, arguments, named = pipe.recv()
    except (EOFError, OSError):
        stop_requested.set()
        return
    task = asyncio.get_running_loop().create_task(
        _answer(pipe, number, harness, command, arguments, named)
    )
    _running.add(task)
    task.add_done_callback(_running.discard)


_running: set["asyncio.Task[None]"] = set()  # the loop itself keeps no task alive


async def _answer(
    pipe: "Connection[Any, Any]",
    number: int,
    harness: BrokerHarness,
    command: str,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
) -> None:
    value: Any = None
    failure: Exception | None = None
    try:
        value = await getattr(harness, command)(*arguments, **named)
    except Exception as error:  # noqa: BLE001  (whatever it is, the test must know)
        failure = portable(error)
    pipe.send((number, value, failure))


def portable(error: Exception) -> Exception:
    """The error, or a KohortError with its text where it cannot go through a pipe."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  (our own)
    except Exception:  # noqa: BLE001  (each class fails in its own way)
        return KohortError(f"{type(error).__name__}: {error}")
    return error


def main() -> None:
    """The last argument is the number of the pipe's descriptor."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    with Connection(int(sys.argv[-1])) as pipe:
        asyncio.run(serve(pipe))


if __name__ == "__main__":
    main()
