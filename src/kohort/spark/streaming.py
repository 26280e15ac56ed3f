# SPDX-License-Identifier: Apache-2.0
"""A stream: Spark's micro-batches, each added as a run adds its rows."""

import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from kohort.errors import KohortError
from kohort.pipeline.format.summary import Summary
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.sources.log_position import Plan
from kohort.pipeline.stores.layout import CHECKPOINTS
from kohort.spark.engine.interrupts import asked_to_end
from kohort.spark.engine.job_progress import ProgressCallback
from kohort.spark.gold import Context
from kohort.spark.sources.source import Source
from kohort.spark.tables.ingest import Batch, Options, add, beyond, merge_and_expire

_LOOKS_S = 1
_NO_PLAN = Plan({}, {}, (), {})


class MicroBatch:
    """What becomes of the rows of a micro-batch.

    On Spark Connect it is called in a process of the server, where it acts for the holder of the
    lock, and only while nobody has taken that over: all else that it needs is in the manifest.
    """

    def __init__(
        self,
        writer: Writer,
        log: Source,
        options: Options,
        progress: ProgressCallback | None,
        after_each: Callable[[Summary], None] | None = None,
    ) -> None:
        """`after_each` hears what a micro-batch has added when its rows count, where this process
        adds them.
        """
        self._writer: Writer | None = writer
        self._directory = writer.directory
        self._holder = writer.holder
        self._log = log
        self._options = options
        self._progress = progress
        self._after_each = after_each
        self._turn: threading.Lock | None = threading.Lock()
        self._ended = False
        self.failure: KohortError | None = None
        self.is_ending = False
        """Whatever fails from now on fails because its query is being stopped."""

    def __getstate__(self) -> dict[str, Any]:
        here = {"_writer": None, "_progress": None, "_turn": None, "_after_each": None}
        return {**self.__dict__, **here}

    def __call__(self, frame: DataFrame, _: int) -> None:
        if self._turn is None:
            with Writer(self._directory, locked=False, acts_for=self._holder) as writer:
                self._add(frame, writer)
            return
        with self._turn:
            if self._ended or self._writer is None:
                return
            try:
                self._add(frame, self._writer)
            except Exception as error:
                # Of a stream that ends Spark looks through the whole text of an error, with a
                # regular expression for which its stack is too small.
                if self.is_ending:
                    return
                if isinstance(error, KohortError):
                    self.failure = error
                raise

    def end(self) -> None:
        """Wait for the micro-batch that is being added, and let no further one begin: after this
        nothing is written.
        """
        if self._turn is not None:
            with self._turn:
                self._ended = True

    def _add(self, frame: DataFrame, writer: Writer) -> None:
        spark = frame.sparkSession
        fresh = beyond(frame, writer.manifest)
        batch = Batch(fresh, _NO_PLAN, whole=False)
        added = add(spark, writer, self._log, batch, self._options, self._progress)
        context = Context(added.as_of, *writer.manifest.settings)
        merge_and_expire(spark, writer, context, self._options.keep_days, self._progress)
        if self._after_each is not None:
            self._after_each(added)


def _checkpoint(writer: Writer) -> Path:
    """A folder for what Spark notes of one stream. Where to go on the manifest says, so it need not
    outlive this process: beside tables on an object store it is on the disk of the driver.
    """
    if isinstance(writer.directory, Path):
        return writer.directory / CHECKPOINTS / writer.new_name("")
    return Path(tempfile.mkdtemp(prefix="kohort-stream-"))


def follow(rows: DataFrame, batch: MicroBatch, writer: Writer, every_s: float | None) -> None:
    """Add micro-batch after micro-batch; returns when all is read, or never, with `every_s`.

    Ctrl-C ends it with KeyboardInterrupt: no further micro-batch begins, and the one that is under
    way counts as a whole or not at all.
    """
    checkpoint = _checkpoint(writer)
    output = rows.writeStream.foreachBatch(batch).option("checkpointLocation", str(checkpoint))
    with asked_to_end() as asked:
        if every_s is None:
            query = output.trigger(availableNow=True).start()
        else:
            query = output.trigger(processingTime=f"{int(every_s * 1000)} milliseconds").start()
        try:
            while not query.awaitTermination(_LOOKS_S):
                if asked.is_set():
                    batch.is_ending = True
                    raise KeyboardInterrupt
        except StreamingQueryException as error:
            if batch.failure is not None:
                raise batch.failure from error
            raise  # as in a run, it is said of the session
        finally:
            with suppress(Exception):  # it may have ended by itself, or the JVM may be gone
                query.stop()
            batch.end()
            shutil.rmtree(checkpoint, ignore_errors=True)
