# SPDX-License-Identifier: Apache-2.0
"""What a broker does for its logs when nobody asks: retention, and cleaning of compacted topics.

`look` says what is due, and the rest waits in the scheduler's line like all other work: a step is
one log, one file or a slice of a cleaning, and requests are answered in between. Nothing here knows
a clock. Before files are removed, it is noted beside the loop where the log begins then.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from weakref import WeakSet

from kohort.config import BrokerConfig
from kohort.errors import Broken, KohortError, StorageError
from kohort.runtime.observers import Observer
from kohort.server.partitions.log_starts import LogStarts, StartMove
from kohort.server.partitions.logs import Cleaning, Logs
from kohort.server.partitions.partition import Partition
from kohort.server.scheduler import BACKGROUND, NEW, Over, Scheduler
from kohort.storage.compaction import CleaningRules
from kohort.storage.log import StoredLog
from kohort.storage.open_files import TOO_MANY_FILES
from kohort.terms import Millis, Offset

STEP_BATCHES = 500


class Housekeeping:
    """Does what is due. It cleans one log at a time, and looks at the logs in turn.

    Args:
        config: the settings of the broker.
        logs: cleans them.
        observe: hears of what cannot be done.
        scheduler: gives the slices.
        starts: notes on the disk where logs begin.
        may_touch: whether a log is neither being loaded nor lost. It is asked at each step.
    """

    line = BACKGROUND

    def __init__(
        self,
        config: BrokerConfig,
        logs: Logs,
        observe: Observer,
        scheduler: Scheduler,
        starts: LogStarts,
        may_touch: Callable[[Partition], bool],
    ) -> None:
        self.had_ns = NEW
        self.config = config
        self._logs = logs
        self._observe = observe
        self._scheduler = scheduler
        self._starts = starts
        self._may_touch = may_touch
        self._retain_at: Millis | None = None  # nothing has been done yet
        self._clean_at = Millis(0)
        self._now = Millis(0)  # of the last look
        self._to_shorten: dict[Partition, None] = {}  # files before their start may go
        self._to_retain: dict[Partition, None] = {}
        self._to_clean: dict[Partition, None] = {}
        self._cleaning: tuple[Partition, Cleaning] | None = None
        # These are not touched again until they are opened anew.
        self._damaged: WeakSet[StoredLog] = WeakSet()

    def look(self, partitions: Iterable[Partition], now: Millis) -> None:
        """Enter the line if something is due."""
        self._now = now
        if self._retain_at is None:
            self._retain_at = Millis(now + self.config.log_initial_task_delay_ms)
        if now >= self._retain_at:
            self._retain_at = Millis(now + self.config.log_retention_check_interval_ms)
            self._to_retain |= dict.fromkeys(one for one in partitions if one.config.deleted)
        if self._cleaning is None and not self._to_clean and now >= self._clean_at:
            self._clean_at = Millis(now + self.config.log_cleaner_backoff_ms)
            if self.config.log_cleaner_enable:
                self._to_clean = dict.fromkeys(one for one in partitions if one.config.compacted)
        self._enter()

    def shorten(self, partition: Partition) -> None:
        """A log begins later: remove its files before that, once its folder says so."""
        if partition.log.has_old_files:
            self._starts.move(
                StartMove(partition, partition.log.start, self._start_noted, removes=True)
            )

    def run(self, over: Over) -> bool:
        """Go on. What gives room comes first, and retention before cleaning: what is dropped need
        not be cleaned.
        """
        while self.busy:
            if self._to_shorten:
                self._shorten_next()
            elif self._to_retain:
                self._retain_next()
            else:
                self._clean_some()
            if over():
                break
        return self.busy

    def clock_jumped(self, by_ms: int) -> None:
        if self._retain_at is not None:
            self._retain_at = Millis(self._retain_at + by_ms)
        self._clean_at = Millis(self._clean_at + by_ms)

    def forget(self, partition: Partition) -> None:
        """Let go of a log that is about to be closed for good."""
        for waiting in (self._to_shorten, self._to_retain, self._to_clean):
            waiting.pop(partition, None)
        if self._cleaning is not None and self._cleaning[0] is partition:
            _, steps = self._cleaning
            self._cleaning = None
            with suppress(KohortError):
                steps.close()

    @property
    def busy(self) -> bool:
        """Whether there is something to do at once."""
        return bool(
            self._to_shorten or self._to_retain or self._to_clean or self._cleaning is not None
        )

    def _enter(self) -> None:
        if self.busy:
            self._scheduler.enter(self)

    def _retain_next(self) -> None:
        """Find out which files of the next log are too old or too many; it may take some steps."""
        partition = next(iter(self._to_retain))
        log, config = partition.log, partition.config
        start: Offset | None = log.start
        if self._may_touch(partition):
            try:
                start = log.retention_start(
                    self._now, config.retention_ms, config.retention_bytes, STEP_BATCHES
                )
            except KohortError as error:
                self._not_retained(partition, error)
            if start is None:
                return
            if start > log.start or log.has_old_files:  # some may have been refused before
                self._starts.move(StartMove(partition, start, self._start_noted, removes=True))
        del self._to_retain[partition]

    def _start_noted(self, move: StartMove) -> None:
        if move.error is None:
            self._to_shorten[move.partition] = None
            self._enter()
        elif isinstance(move.error, Broken | StorageError):  # it is not gone
            self._not_retained(move.partition, move.error)

    def _shorten_next(self) -> None:
        """Remove a file of the next log."""
        partition = next(iter(self._to_shorten))
        try:
            more = self._may_touch(partition) and partition.log.remove_oldest()
        except StorageError as error:
            more = False
            self._not_retained(partition, error)
        if not more:
            del self._to_shorten[partition]

    def _not_retained(self, partition: Partition, error: KohortError) -> None:
        self._observe.warning(f"retention of {partition}: {error}")

    def _clean_some(self) -> None:
        """Go on with the log that is being cleaned, or begin with the next if it needs it."""
        if self._cleaning is None:
            partition = next(iter(self._to_clean))
            del self._to_clean[partition]
            if self._may_touch(partition) and partition.log not in self._damaged:
                self._begin_cleaning(partition)
            return
        partition, steps = self._cleaning
        if not self._may_touch(partition):
            self.forget(partition)
            return
        try:
            if next(steps, None) is None:
                self._cleaning = None
        except KohortError as error:
            self._cleaning = None
            self._tell(partition, error)

    def _begin_cleaning(self, partition: Partition) -> None:
        rules = CleaningRules(
            self._now, partition.config.delete_retention_ms, self.config.producer_id_expiration_ms
        )
        try:
            begun = self._logs.clean(partition.log, partition.config, rules)
        except KohortError as error:
            self._tell(partition, error)
        else:
            self._cleaning = None if begun is None else (partition, begun)

    def _tell(self, partition: Partition, error: KohortError) -> None:
        cause = error.__cause__
        closed = isinstance(cause, OSError) and cause.errno in TOO_MANY_FILES
        if isinstance(error, Broken) and not closed:
            self._damaged.add(partition.log)
            text = f"{partition} is damaged and not cleaned any more: {error}"
        else:
            text = f"cleaning of {partition}: {error}"
        self._observe.warning(text)
