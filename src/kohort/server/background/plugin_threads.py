# SPDX-License-Identifier: Apache-2.0
"""Plug-in code on a thread of its own, which is given up when it takes too long.

All threads share one lock with the loop. If there were one for each group that waits, none would
end in its time, and nobody would be served: a few run at once, and the others stand in a
`PluginQueue`.

Python cannot end a thread. An exception is thrown into it, which ends any loop of Python; one in C
goes on, without anybody waiting for it. So that such threads do not pile up, `AbandonedThreads`
says how many may do so.
"""

import asyncio
import ctypes
from collections import deque
from collections.abc import Callable
from threading import Thread

from kohort.errors import KohortError
from kohort.machines.effects import BackgroundTask
from kohort.runtime.observers import Observer
from kohort.server.background.background_tasks import TaskRun

LIMIT_SECONDS = 10.0
END_SECONDS = 1.0  # in which a thread that was given up ends, if it does
AT_ONCE = 2  # threads of one assignor that run at the same time: one may be stuck
ABANDONED_MAX = 4  # threads that one assignor may leave behind, one for each group at most


class _PluginTimeout(BaseException):
    """Thrown into a thread; nothing but its first frame is meant to catch it."""


class PluginThread:
    """One task on its thread. `done` is called there when it has ended by itself."""

    def __init__(self, task_run: TaskRun, done: Callable[["PluginThread"], None]) -> None:
        self.task_run = task_run
        self._done = done
        self._thread = Thread(target=self._run, name="kohort-plugin", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            while self.task_run.step():
                pass
            self._done(self)
        except _PluginTimeout:
            pass

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        """It has taken too long: nobody waits for it any more."""
        ident = self._thread.ident
        if ident is not None and self._thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(ident), ctypes.py_object(_PluginTimeout)
            )


class PluginQueue:
    """Task runs that wait for others of the same code to come back, the first of them in front."""

    def __init__(self) -> None:
        self._running: dict[str, int] = {}
        self._waiting: dict[str, deque[TaskRun]] = {}

    def enter(self, task_run: TaskRun) -> bool:
        """Whether a task run may begin. Else `leave` gives it back when it may."""
        code = task_run.task.plugin
        if self._running.get(code, 0) >= AT_ONCE:
            self._waiting.setdefault(code, deque()).append(task_run)
            return False
        self._running[code] = self._running.get(code, 0) + 1
        return True

    def leave(self, task_run: TaskRun) -> TaskRun | None:
        """A task run that had begun is over. The next one, which begins in its place."""
        code = task_run.task.plugin
        waiting = self._waiting.get(code)
        if waiting:
            return waiting.popleft()
        self._waiting.pop(code, None)
        self._running[code] -= 1
        return None


class AbandonedThreads:
    """Threads that were given up and have not ended."""

    def __init__(self) -> None:
        self._those: list[PluginThread] = []

    def add(self, plugin: PluginThread) -> None:
        self._those.append(plugin)

    def check(self, task: BackgroundTask) -> None:
        """Raises KohortError while a background task may not begin: it has a thread that has not
        ended, or other tasks have, with the same code of others.
        """
        self._those = [plugin for plugin in self._those if plugin.alive]
        others = [plugin.task_run.task for plugin in self._those]
        of_code = [other for other in others if other.plugin == task.plugin]
        if any(other.key == task.key for other in of_code) or len(of_code) >= ABANDONED_MAX:
            raise KohortError(
                f"threads of {task.plugin} that were given up and have not ended:"
                f" {len(of_code)}; it is not called again before they have"
            )


def call_from_thread(
    loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object
) -> None:
    """Have a function called in a loop, unless it has ended meanwhile."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)


class PluginTasks:
    """The tasks of plug-in code that are under way, each with its limit.

    `over` is told in the loop of each that has come back, or was given up. `abandoned_threads` are
    threads that may have begun before.
    """

    def __init__(
        self,
        abandoned_threads: AbandonedThreads,
        over: Callable[[TaskRun], None],
        observe: Observer,
    ) -> None:
        self._abandoned_threads = abandoned_threads
        self._over = over
        self._observe = observe
        self._loop = asyncio.get_running_loop()
        self._line = PluginQueue()
        self._running: dict[PluginThread, asyncio.TimerHandle] = {}
        self._ended = False

    def begin(self, task_run: TaskRun) -> None:
        """Start a thread for a background task, at once or when it is its turn."""
        if self._line.enter(task_run):
            self._start(task_run)

    def end(self) -> None:
        """Nobody waits for any of them any more."""
        for running, timer in self._running.items():
            timer.cancel()
            running.end()
        self._running.clear()
        self._ended = True

    def _start(self, task_run: TaskRun) -> None:
        try:
            self._abandoned_threads.check(task_run.task)
        except KohortError as error:
            task_run.outcome = error
            self._loop.call_soon(self._leave, task_run)
            return

        def done(running: PluginThread) -> None:
            call_from_thread(self._loop, self._after, running)

        running = PluginThread(task_run, done)
        self._running[running] = self._loop.call_later(
            LIMIT_SECONDS, self._is_late, running, LIMIT_SECONDS
        )
        running.start()

    def _is_late(self, running: PluginThread, limit_seconds: float) -> None:
        running.end()
        self._abandoned_threads.add(running)
        self._loop.call_later(END_SECONDS, self._report_abandoned, running)
        running.task_run.give_up(limit_seconds)
        self._after(running)

    def _report_abandoned(self, running: PluginThread) -> None:
        if running.alive:
            self._observe.warning(
                f"assignor {running.task_run.task.plugin} was given up and has not ended: its"
                " thread runs on, and may cost a core until the broker ends"
            )

    def _after(self, running: PluginThread) -> None:
        timer = self._running.pop(running, None)
        if timer is not None:
            timer.cancel()
            self._leave(running.task_run)

    def _leave(self, task_run: TaskRun) -> None:
        if self._ended:
            return
        following = self._line.leave(task_run)
        if following is not None:
            self._start(following)
        self._over(task_run)
