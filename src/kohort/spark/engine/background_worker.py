# SPDX-License-Identifier: Apache-2.0
"""Work beside one's own, for few rows.

Spark plans a query on one core, and runs one over few rows on one. What does not need each other
then takes as long as the longer of the two.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from pyspark import InheritableThread
from pyspark.sql import SparkSession

Result = TypeVar("Result")


class Worker(Protocol):
    """Does what it is given, one after the other."""

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        """What will come of this work. It may need all that was given before."""


class InlineWorker:
    """Does it at once, while whoever gives it waits."""

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        """What came of this work. Raises what it raises."""
        result: Future[Result] = Future()
        result.set_result(work())
        return result


class BackgroundWorker:
    """Does it in a thread of its own. Behind what fails it begins nothing more: all that it was
    still to do has failed of the same.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """What has failed."""
        self._given: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._is_given_up = False

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        """See `Worker`."""
        result: Future[Result] = Future()
        self._given.put((work, result))
        return result

    def give_up(self) -> None:
        """Begin nothing more: nobody waits for it."""
        self._is_given_up = True

    def end(self) -> None:
        """Let the thread end behind what it was given."""
        self._given.put(None)

    def run(self) -> None:
        """What the thread does."""
        while (given := self._given.get()) is not None:
            work, result = given
            if self._is_given_up:
                result.cancel()
            elif self.error is not None:
                result.set_exception(self.error)
            else:
                self._do(work, result)

    def _do(self, work: Callable[[], Result], result: "Future[Result]") -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  (it is raised where it is waited for)
            self.error = error
            result.set_exception(error)


class _Thread(InheritableThread):
    """PySpark's asks the JVM before it begins. Where that is gone, all work has failed of it."""

    def __init__(self, spark: SparkSession, worker: BackgroundWorker) -> None:
        # If a second Ctrl-C leaves it alone, it does not keep the process.
        super().__init__(worker.run, session=spark, daemon=True)
        self._worker = worker

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:  # noqa: BLE001  (it is raised where work is waited for)
            self._worker.error = error
            self._worker.run()


@contextmanager
def background_worker(spark: SparkSession) -> Iterator[Worker]:
    """A worker in a thread of its own, whose jobs belong to the same stream or notebook cell as
    ours. It has ended when the block has.

    The block's error is raised, or else the worker's, even where nobody has asked for its result.
    """
    worker = BackgroundWorker()
    thread = _Thread(spark, worker)
    thread.start()
    try:
        yield worker
        worker.end()
        thread.join()
    except BaseException:
        worker.give_up()
        raise
    finally:
        worker.end()
        thread.join()  # after Ctrl-C: PySpark has ended the jobs that were running then
    if worker.error is not None:
        raise worker.error
