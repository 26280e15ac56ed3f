"""Where a broker under test lives: in a thread of the test's process, or in a process of its own.

Both take the same commands, those of a `Stage`.
"""

import signal
import subprocess
import sys
import tempfile
import threading
import time
from itertools import count
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Protocol

from kohort.errors import KohortError
from kohort.testing.disk import MemoryDisk, RealDisk
from kohort.testing.loop import LoopThread
from kohort.testing.stage import Plan, Stage, observer

START_SECONDS = 60.0
STOP_SECONDS = 10.0
IN_MEMORY = "/kohort"  # the data directory on the disk in memory of a thread


class Host(Protocol):
    """A place for one broker, over its lives."""

    @property
    def is_running(self) -> bool: ...
    @property
    def pid(self) -> int: ...
    def start(self, plan: Plan) -> str:
        """Begin a life; the addresses. Raises KohortError when it does not come up."""

    def ask(self, command: str, *arguments: Any, **named: Any) -> Any:
        """Give a command and wait for its end. Raises what it raises."""

    def stop(self) -> None:
        """End it in order; nothing happens when it does not run."""

    def kill(self) -> None:
        """End it at once, with nothing more written."""

    def abandon(self) -> None:
        """End it with the interpreter."""

    def log(self) -> str:
        """What it has said in all its lives."""

    def close(self) -> None:
        """Remove what it has left."""


class ThreadHost:
    """In this process: any client may be in any thread but the broker's own."""

    def __init__(self, loop: LoopThread) -> None:
        self._loop = loop
        self._stage: Stage | None = None
        self._lines: list[str] = []
        self._memory = MemoryDisk()

    @property
    def is_running(self) -> bool:
        return self._stage is not None

    @property
    def pid(self) -> int:
        raise KohortError("the broker is a thread of this process, use Broker(process=True)")

    def start(self, plan: Plan) -> str:
        disk = self._memory if plan.data_dir == IN_MEMORY else RealDisk(synced=False)
        stage = Stage(plan, observer(self._lines), disk)
        bootstrap = self._loop.run(stage.start())
        self._stage = stage
        return bootstrap

    def ask(self, command: str, *arguments: Any, **named: Any) -> Any:
        if self._stage is None:
            raise KohortError("the broker does not run, start it first")
        return self._loop.run(getattr(self._stage, command)(*arguments, **named))

    def stop(self) -> None:
        stage, self._stage = self._stage, None
        if stage is not None:
            self._loop.run(stage.stop())

    def abandon(self) -> None:
        stage, self._stage = self._stage, None
        if stage is not None:
            self._loop.run(stage.abandon())

    def kill(self) -> None:
        raise KohortError("a thread cannot be killed, use Broker(process=True)")

    def log(self) -> str:
        return "".join(line + "\n" for line in self._lines)

    def close(self) -> None:
        self._lines.clear()
        self._memory = MemoryDisk()


class ProcessHost:
    """In a process of its own, as `kohort serve` is, so that it can be killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection[Any, Any] | None = None
        self._errors: Path | None = None
        self._asking = threading.Lock()
        self._numbers = count(1)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        if self._process is None or not self.is_running:
            raise KohortError("the broker does not run, start it first")
        return self._process.pid

    def start(self, plan: Plan) -> str:
        self._end(signal.SIGTERM)  # reap a process that died by itself
        if self._errors is None:
            with tempfile.NamedTemporaryFile(prefix="kohort-", suffix=".log", delete=False) as file:
                self._errors = Path(file.name)
        self._pipe, theirs = Pipe()
        with theirs, self._errors.open("a", encoding="utf-8") as errors:
            number = theirs.fileno()
            self._process = subprocess.Popen(  # noqa: S603  (our own command)
                [sys.executable, "-m", "kohort.testing.child", str(number)],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=(number,),
            )
        try:
            self._pipe.send(plan)
            bootstrap: str = self._answer(0, START_SECONDS)
        except BaseException:
            self._end(signal.SIGKILL)
            raise
        return bootstrap

    def ask(self, command: str, *arguments: Any, **named: Any) -> Any:
        with self._asking:
            if self._pipe is None or not self.is_running:
                raise KohortError("the broker does not run, start it first")
            number = next(self._numbers)
            try:
                self._pipe.send((number, command, arguments, named))
            except OSError:
                raise KohortError(f"the broker has ended:\n{self.log()}") from None
            except BaseException:
                self._end(signal.SIGKILL)  # it may have got half a message
                raise
            return self._answer(number, None)

    def _answer(self, number: int, seconds: float | None) -> Any:
        """The answer of the process to a command. Raises what the command has raised, and
        KohortError when the process ends or is silent.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        answered = None
        while answered != number:  # one before it may have been given up, as by Ctrl-C
            answered, value, error = self._next_answer(deadline)
        if error is not None:
            raise error
        return value

    def _next_answer(self, deadline: float | None) -> tuple[int, Any, Exception | None]:
        assert self._pipe is not None
        while not self._pipe.poll(0.1):
            late = deadline is not None and time.monotonic() > deadline
            if late or not self.is_running:
                raise KohortError(
                    f"the broker has {'not answered' if late else 'ended'}:\n{self.log()}"
                )
        try:
            answer: tuple[int, Any, Exception | None] = self._pipe.recv()
        except (EOFError, OSError):
            raise KohortError(f"the broker has ended:\n{self.log()}") from None
        except BaseException:
            self._end(signal.SIGKILL)  # the rest of the message would be taken for the next one
            raise
        return answer

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def abandon(self) -> None:
        self.stop()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def log(self) -> str:
        return self._errors.read_text(encoding="utf-8") if self._errors is not None else ""

    def close(self) -> None:
        if self._errors is not None:
            self._errors.unlink(missing_ok=True)
            self._errors = None

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        pipe, self._pipe = self._pipe, None
        if process is not None and process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if pipe is not None:
            pipe.close()
