"""The process of a broker under test. It gets its plan and its commands by a pipe, and ends with
SIGTERM or with the process that holds the other end.
"""

import asyncio
import logging
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from kohort.errors import KohortError
from kohort.server.lines import OneLine
from kohort.testing.disk import RealDisk
from kohort.testing.stage import Plan, Stage


async def serve(pipe: "Connection[Any, Any]") -> None:
    """Serve until the end. The first answer is the addresses, or why there are none."""
    plan: Plan = pipe.recv()
    stage = Stage(plan, logging.getLogger("kohort"), RealDisk(synced=True))
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    try:
        pipe.send(await stage.start())
    except KohortError as error:
        pipe.send(KohortError(str(error)))
        return
    loop.add_reader(pipe.fileno(), _take, pipe, stage, told)
    await told.wait()
    loop.remove_reader(pipe.fileno())
    await stage.stop()


def _take(pipe: "Connection[Any, Any]", stage: Stage, told: asyncio.Event) -> None:
    """Begin a command that has arrived, or note that nobody gives any more."""
    try:
        command, arguments, named = pipe.recv()
    except (EOFError, OSError):
        told.set()
        return
    task = asyncio.get_running_loop().create_task(
        _answered(pipe, getattr(stage, command)(*arguments, **named))
    )
    _running.add(task)
    task.add_done_callback(_running.discard)


_running: set["asyncio.Task[None]"] = set()  # the loop itself keeps no task alive


async def _answered(pipe: "Connection[Any, Any]", work: Any) -> None:
    try:
        outcome = await work
    except Exception as error:  # noqa: BLE001  (whatever it is, the test must know)
        outcome = KohortError(str(error) or type(error).__name__)
    pipe.send(outcome)


def main() -> None:
    """The arguments are the number of the pipe's descriptor."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    with Connection(int(sys.argv[1])) as pipe:
        asyncio.run(serve(pipe))


if __name__ == "__main__":
    main()
