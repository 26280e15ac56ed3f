# SPDX-License-Identifier: Apache-2.0
"""What a run is busy with, told to whoever wants to know, while Spark works.

How many records were read is known by the tasks that are done: each is about as long as another.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from pyspark.sql import SparkSession

EVERY_S = 0.5


class ProgressEvent(NamedTuple):
    """What is going on."""

    what: str
    total: int | None = None
    """How many records there are to do; None where that says nothing."""
    done: int = 0
    seconds: float = 0.0
    """How long it has been going on."""

    def __str__(self) -> str:
        if not self.total:
            return f"{self.what} … {self.seconds:.0f} s"
        if not self.done:
            return f"{self.what}: {self.total:,} records … {self.seconds:.0f} s"
        rate = self.done / max(self.seconds, 0.001)
        left = (self.total - self.done) / rate
        return (
            f"{self.what}: about {self.done:,} of {self.total:,} records, {rate:,.0f} per second, "
            f"{left:.0f} s left"
        )


ProgressCallback = Callable[[ProgressEvent], None]


@contextmanager
def report_progress(
    spark: SparkSession, progress: ProgressCallback | None, what: str, total: int | None = None
) -> Iterator[Callable[[str], None]]:
    """Tell now, and twice a second while the block lasts; it may say what it does in particular."""
    if progress is None:
        yield lambda _: None
        return
    began = time.monotonic()
    progress(ProgressEvent(what, total))
    ended = threading.Event()
    part = [what]

    def tell() -> None:
        while not ended.wait(EVERY_S):
            done = int((total or 0) * _share_done(spark)) if total else 0
            progress(ProgressEvent(part[-1], total, done, time.monotonic() - began))

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield lambda name: part.append(f"{what} {name}")
    finally:
        ended.set()
        thread.join()


def _share_done(spark: SparkSession) -> float:
    """The share of the tasks of the running stages that are done; 0 where nobody can tell."""
    with suppress(Exception):  # Spark Connect has no tracker, and a stage may end meanwhile
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
        tasks = sum(stage.numTasks for stage in stages if stage is not None)
        return done / tasks if tasks else 0.0
    return 0.0
