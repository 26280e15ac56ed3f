# SPDX-License-Identifier: Apache-2.0
"""Where a broker under test lives: in a thread of the test's process, or in a process of its own.

Both take the same commands, those of a `BrokerHarness`.
"""

import _socket
import asyncio
import os
import signal
import sys
from contextlib import suppress
from io import FileIO
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, Literal, Protocol

import kohort
from kohort.errors import KohortError
from kohort.runtime.clocks import monotonic, sleep
from kohort.storage.files import system
from kohort.testing.broker_harness import BrokerHarness, BrokerSpec
from kohort.testing.disk import MemoryDisk, RealDisk
from kohort.testing.fork_safety import close_after_fork
from kohort.testing.log_lines import LogLines
from kohort.testing.loop import LoopThread
from kohort.testing.pipe import CommandPipe

__tracebackhide__ = True
START_SECONDS = 60.0
STOP_SECONDS = 10.0
ASK_SECONDS = 60.0  # a command that moves the clock by years takes seconds
STOPPED_SECONDS = 5.0  # a process may be stopped for a while: somebody may continue it
LOOK_SECONDS = 0.1
_STAT_BYTES = 4096
WAIT_SECONDS = 0.002  # for the end of a process, between two looks
IN_MEMORY = "/kohort"  # the data directory on the disk in memory of a thread

# A test may change all of these. The process finds the same Kohort as this one, and nothing of the
# folder that the test happens to be in.
_PYTHON = sys.executable
_ROOT = str(Path(kohort.__file__).parents[1].absolute())
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from kohort.testing.child import main; main()"
_ENVIRONMENT = dict(os.environ)
_UMASK = 0o022


class Host(Protocol):
    """A place for one broker, over its lives."""

    @property
    def is_running(self) -> bool: ...
    @property
    def pid(self) -> int: ...
    def start(self, plan: BrokerSpec) -> dict[str, str]:
        """Begin a life; the addresses, by listener. Raises KohortError when it does not come up."""

    def ask(self, command: str, *arguments: Any, **named: Any) -> Any:
        """Give a command and wait for its end. Raises what it raises."""

    def check(self) -> None:
        """Raises KohortError where it is known why nothing is answered."""

    def resume(self) -> None:
        """Let it go on where a test has stopped its process."""

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
    """In this process: any client may be in any thread but the broker's own.

    A start and an end are never left half done: where the test is interrupted, they go on in the
    loop, and what comes next waits for them.
    """

    def __init__(self, loop: LoopThread) -> None:
        self._loop = loop
        self._harness: BrokerHarness | None = None
        self._changing = asyncio.Lock()
        self._lines: list[str] = []
        self._memory = MemoryDisk()

    @property
    def is_running(self) -> bool:
        return self._harness is not None

    @property
    def pid(self) -> int:
        raise KohortError("the broker is a thread of this process, use Broker(process=True)")

    def start(self, plan: BrokerSpec) -> dict[str, str]:
        try:
            return self._loop.run(self._start(plan), cancel=False)
        except BaseException:
            self.stop()
            raise

    def ask(self, command: str, *arguments: Any, **named: Any) -> Any:
        if self._harness is None:
            raise KohortError("the broker does not run, start it first")
        return self._loop.run(getattr(self._harness, command)(*arguments, **named))

    def stop(self) -> None:
        self._loop.run(self._end("stop"), cancel=False)

    def abandon(self) -> None:
        self._loop.run(self._end("abandon"), cancel=False)

    async def _start(self, plan: BrokerSpec) -> dict[str, str]:
        async with self._changing:
            disk = self._memory if plan.data_dir == IN_MEMORY else RealDisk(synced=False)
            harness = BrokerHarness(plan, LogLines(self._lines), disk)
            addresses = await harness.start()
            self._harness = harness
            return addresses

    async def _end(self, how: Literal["stop", "abandon"]) -> None:
        async with self._changing:
            harness, self._harness = self._harness, None
            if harness is not None:
                await getattr(harness, how)()

    def check(self) -> None:
        """A thread that does not answer does not say why."""

    def resume(self) -> None:
        """A thread goes on with its process."""

    def kill(self) -> None:
        raise KohortError("a thread cannot be killed, use Broker(process=True)")

    def log(self) -> str:
        return "".join(line + "\n" for line in self._lines)

    def close(self) -> None:
        self._lines.clear()
        self._memory = MemoryDisk()


def _open_unnamed_file() -> FileIO:
    """A file without a name: no test can remove it."""
    if hasattr(system, "memfd_create"):
        return FileIO(system.memfd_create("kohort"), "r+")
    with TemporaryFile(prefix="kohort-") as file:
        return FileIO(system.dup(file.fileno()), "r+")


class _Process(Popen[bytes]):
    """A process whose end is asked for without a lock. That of `Popen` stays locked for ever where
    the handler of a signal raises in the middle of a `poll`.
    """

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                pid, status = system.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # a call that was interrupted, or the test, has waited for it
                pid, status = self.pid, 0
            if pid and self.returncode is None:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        del timeout  # nobody gives one
        while (code := self.poll()) is None:
            sleep(WAIT_SECONDS)
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                system.kill(self.pid, sig)


class ProcessHost:
    """In a process of its own, as `kohort serve` is, so that it can be killed."""

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._pipe: CommandPipe | None = None
        self._said: FileIO | None = None
        self._asking = Lock()
        self._numbers = count(1)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        if self._process is None or not self.is_running:
            raise KohortError("the broker does not run, start it first")
        return self._process.pid

    def start(self, plan: BrokerSpec) -> dict[str, str]:
        if not hasattr(os, "fork"):
            raise KohortError("process=True needs a POSIX system, leave it out here")
        self._end()  # reap a process that died by itself
        if self._said is None:
            self._said = close_after_fork(_open_unnamed_file())
        mine, theirs = _pipe()
        self._pipe = CommandPipe(mine)
        self._pipe.start()
        with theirs:
            number = theirs.fileno()
            self._process = _Process(
                [_PYTHON, "-P", "-c", _PROGRAM, _ROOT, str(number)],
                stdin=DEVNULL,
                stdout=self._said,
                stderr=self._said,
                env=_ENVIRONMENT,
                umask=_UMASK,
                pass_fds=(number,),
            )
            close_after_fork(self._process, _forget_process)
        try:
            self._pipe.send(plan)
            addresses: dict[str, str] = self._answer(0, START_SECONDS)
        except BaseException:
            self.kill()
            raise
        return addresses

    def ask(self, command: str, *arguments: Any, **named: Any) -> Any:
        with self._asking:
            if self._pipe is None or not self.is_running:
                raise KohortError("the broker does not run, start it first")
            number = next(self._numbers)
            self._pipe.send((number, command, arguments, named))
            return self._answer(number, ASK_SECONDS)

    def _answer(self, number: int, seconds: float) -> Any:
        """The answer of the process to a command. Raises what the command has raised, and
        KohortError when the process ends or is silent for so long.
        """
        deadline = monotonic() + seconds
        answered = None
        while answered != number:  # one before it may have been given up, as by Ctrl-C
            answered, value, error = self._next_answer(deadline, seconds)
        if error is not None:
            raise error
        return value

    def _next_answer(self, deadline: float, seconds: float) -> tuple[int, Any, Exception | None]:
        assert self._pipe is not None
        stopped = 0
        while True:
            try:
                answer: tuple[int, Any, Exception | None] | None = self._pipe.receive(LOOK_SECONDS)
            except EOFError:
                raise self._ended() from None
            if answer is not None:
                return answer
            stopped = stopped + 1 if self.is_stopped else 0
            if stopped * LOOK_SECONDS > STOPPED_SECONDS:
                self.check()
            if monotonic() > deadline:
                raise KohortError(
                    f"the broker has not answered: its process {self.pid} is silent for"
                    f" {seconds:g} s:\n{self.log()}"
                )

    @property
    def is_stopped(self) -> bool:
        """Whether its process stands still, as after SIGSTOP; False where nobody can tell."""
        if not self.is_running:
            return False
        try:
            with FileIO(f"/proc/{self.pid}/stat") as file:
                status = file.read(_STAT_BYTES)
        except OSError:
            return False
        return status.rpartition(b")")[2].split()[:1] in ([b"T"], [b"t"])

    def check(self) -> None:
        if self.is_stopped:
            raise KohortError(
                f"the broker has not answered: its process {self.pid} is stopped (SIGSTOP),"
                " continue it with SIGCONT"
            )

    def resume(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._end()

    def abandon(self) -> None:
        self.stop()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._end()

    def log(self) -> str:
        if self._said is None:
            return ""
        size = system.fstat(self._said.fileno()).st_size
        said: bytes = system.pread(self._said.fileno(), size, 0)
        return said.decode(errors="replace")

    def close(self) -> None:
        if self._said is not None:
            self._said.close()
            self._said = None

    def _ended(self) -> KohortError:
        """Its end of the pipe is closed; on return it is known that it does not run."""
        deadline = monotonic() + STOP_SECONDS
        while self.is_running and monotonic() < deadline:
            sleep(WAIT_SECONDS)
        return KohortError(f"the broker has ended:\n{self.log()}")

    def _end(self) -> None:
        """Let the process end in order, also one that is stopped. It is forgotten last: who
        interrupts this can call it again.
        """
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)
            deadline = monotonic() + STOP_SECONDS
            while self._process.poll() is None and monotonic() < deadline:
                sleep(WAIT_SECONDS)
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


def _forget_process(process: _Process) -> None:
    process.returncode = 0  # who is not its parent cannot ask, and needs no warning that it runs


def _pipe() -> tuple["Connection[Any, Any]", "Connection[Any, Any]"]:
    """As `multiprocessing.Pipe` makes them, which asks `socket.socketpair`."""
    mine, theirs = (close_after_fork(Connection(end.detach())) for end in _socket.socketpair())
    return mine, theirs
