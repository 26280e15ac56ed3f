# SPDX-License-Identifier: Apache-2.0
"""What a broker does beside its loop, on threads: it syncs logs, works for the disk, runs tasks.

The loop hands over after each turn. What comes back is told to the cluster in the loop again, and a
turn follows.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from kohort.errors import Broken
from kohort.runtime.clocks import perf_counter, perf_counter_ns
from kohort.server.background.background_tasks import LIMIT_SECONDS, TaskRun
from kohort.server.background.plugin_threads import AbandonedThreads, PluginTasks, call_from_thread
from kohort.server.clock import Clock
from kohort.server.cluster import Cluster
from kohort.server.environment import BrokerEnvironment
from kohort.server.partitions.disk_work import DiskWork, describe_error
from kohort.server.partitions.durability import SyncListener
from kohort.terms import Offset

SYNC_THREADS = 8  # a file system writes its journal once for all syncs that wait at the same time


class Background:
    """The threads of one life of a broker.

    Args:
        cluster: has the work, and is told what came of it.
        environment: where the threads come from.
        clock: the time that the cluster is told.
        abandoned_threads: threads of plug-in code that have outlived a life.
        turn: takes a turn now, because something has come back.
        on_disk: whether logs are files. Without files long work is short, and is done at once.
    """

    def __init__(
        self,
        cluster: Cluster,
        environment: BrokerEnvironment,
        clock: Clock,
        abandoned_threads: AbandonedThreads,
        turn: Callable[[], None],
        *,
        on_disk: bool,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._turn = turn
        self._on_disk = on_disk
        self._loop = asyncio.get_running_loop()
        self._over = False
        self._sync_threads = environment.threads(SYNC_THREADS, "kohort-sync")
        self._work_thread = environment.threads(1, "kohort-disk")
        self._task_thread = environment.threads(1, "kohort-tasks")
        self._plugin_tasks = PluginTasks(abandoned_threads, self._after_task, environment.observe)
        self._synced: deque[tuple[SyncListener, Offset | Broken, int]] = deque()

    def begin(self) -> bool:
        """Hand over what waits for a thread. True if work is done already: the cluster wants a turn
        for it.
        """
        cluster = self._cluster
        if cluster.durability.dirty:
            for listener in cluster.begin_sync():
                self._sync_threads.submit(self._sync, listener)
        done = cluster.table.has_work and self._begin_work()
        if cluster.tasks:
            self._begin_tasks()
        return done

    def give_up(self) -> None:
        """Nobody is told any more what comes back, and plug-in code is ended."""
        self._over = True
        self._plugin_tasks.end()

    async def end(self) -> None:
        """Wait until the threads have done what they were given, before a log is closed."""
        for pool in (self._sync_threads, self._work_thread, self._task_thread):
            await self._loop.run_in_executor(None, pool.shutdown)

    def _sync(self, listener: SyncListener) -> None:
        """Sync one log, on one of the threads that only wait for the disk."""
        begun = perf_counter_ns()
        try:
            outcome: Offset | Broken = listener.log.sync()
        except Broken as error:
            outcome = error
        except Exception as error:  # noqa: BLE001  (whatever it is, answers wait for the end)
            outcome = Broken(describe_error(error))
        self._synced.append((listener, outcome, perf_counter_ns() - begun))
        call_from_thread(self._loop, self._after_sync)

    def _after_sync(self) -> None:
        """Whatever has come back until now, in one turn."""
        if self._over or not self._synced:
            return
        while self._synced:
            listener, outcome, taken_ns = self._synced.popleft()
            self._cluster.meters.syncs.add(taken_ns)
            self._cluster.end_sync(listener, outcome)
        self._turn()

    def _begin_work(self) -> bool:
        done = False
        work = self._cluster.begin_work()
        while work is not None and not self._on_disk:
            work.run()
            self._cluster.end_work(work, self._clock())
            done = True
            work = self._cluster.begin_work()
        if work is not None:
            self._work_thread.submit(self._run_work, work)
        return done

    def _run_work(self, work: DiskWork) -> None:
        try:
            work.run()
        finally:
            call_from_thread(self._loop, self._after_work, work)

    def _after_work(self, work: DiskWork) -> None:
        if not self._over:
            self._cluster.end_work(work, self._clock())
            self._turn()

    def _begin_tasks(self) -> None:
        while (task_run := self._cluster.begin_task()) is not None:
            if task_run.task.plugin:
                self._plugin_tasks.begin(task_run)
            else:
                self._task_thread.submit(self._run_task, task_run, 0.0)

    def _run_task(self, task_run: TaskRun, spent_seconds: float) -> None:
        """Do a part of a background task; the rest waits behind the others."""
        began = perf_counter()
        more = task_run.step()
        spent_seconds += perf_counter() - began
        if more and spent_seconds <= LIMIT_SECONDS:
            with suppress(RuntimeError):  # the broker stops, and nobody waits any more
                self._task_thread.submit(self._run_task, task_run, spent_seconds)
            return
        if more:
            task_run.give_up(LIMIT_SECONDS)
        call_from_thread(self._loop, self._after_task, task_run)

    def _after_task(self, task_run: TaskRun) -> None:
        if not self._over:
            self._cluster.end_task(task_run)
            self._turn()
