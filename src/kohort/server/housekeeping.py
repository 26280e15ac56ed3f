"""What a broker does for its logs when nobody asks: retention, and cleaning of compacted topics.

Cleaning runs in slices, and requests are answered between two of them. Nothing here knows a clock:
`step` is told the time, and says whether it wants to be called again soon.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakSet

from kohort.config import BrokerConfig, TopicConfig
from kohort.errors import Broken, KohortError
from kohort.runtime.observers import Observer
from kohort.server.logs import Cleaning, Logs
from kohort.storage.compaction import CleaningRules
from kohort.storage.log import Log
from kohort.terms import Millis


class KeptLog(NamedTuple):
    """A log, the settings of its topic, and what to call it in a message."""

    name: str
    log: Log
    config: TopicConfig


class Housekeeping:
    """Does what is due. It cleans one log at a time, and looks at the logs in turn."""

    def __init__(self, config: BrokerConfig, logs: Logs, observe: Observer) -> None:
        self.config = config
        self._logs = logs
        self._observe = observe
        self._retain_at: Millis | None = None  # nothing has been done yet
        self._clean_at = Millis(0)
        self._to_clean: list[KeptLog] = []
        self._cleaning: tuple[KeptLog, Cleaning] | None = None
        self._damaged: WeakSet[Log] = WeakSet()  # not touched again until they are opened anew

    def step(self, kept: Callable[[], Iterable[KeptLog]], now: Millis) -> bool:
        """Do a slice of what is due; true while there is more to do at once."""
        if self._retain_at is None:
            self._retain_at = Millis(now + self.config.log_initial_task_delay_ms)
        if now >= self._retain_at:
            self._retain_at = Millis(now + self.config.log_retention_check_interval_ms)
            for log in kept():
                self._retain(log, now)
        if self._cleaning is None and not self._to_clean and now >= self._clean_at:
            self._clean_at = Millis(now + self.config.log_cleaner_backoff_ms)
            if self.config.log_cleaner_enable:
                self._to_clean = [
                    log for log in kept() if log.config.compacted and log.log not in self._damaged
                ]
        self._clean_some(now)
        return self.busy

    def clock_jumped(self, by_ms: int) -> None:
        if self._retain_at is not None:
            self._retain_at = Millis(self._retain_at + by_ms)
        self._clean_at = Millis(self._clean_at + by_ms)

    def forget(self, log: Log) -> None:
        """Let go of a log that is about to be closed for good."""
        self._to_clean = [waiting for waiting in self._to_clean if waiting.log is not log]
        if self._cleaning is not None and self._cleaning[0].log is log:
            _, steps = self._cleaning
            self._cleaning = None
            with suppress(KohortError):
                steps.close()

    @property
    def busy(self) -> bool:
        """Whether a log is being cleaned, or is about to be looked at."""
        return self._cleaning is not None or bool(self._to_clean)

    def _retain(self, kept: KeptLog, now: Millis) -> None:
        if not kept.config.deleted:
            return
        try:
            kept.log.apply_retention(now, kept.config.retention_ms, kept.config.retention_bytes)
        except KohortError as error:
            self._observe.warning(f"retention of {kept.name}: {error}")

    def _clean_some(self, now: Millis) -> None:
        """Go on with the log that is being cleaned, or begin with the next that needs it."""
        while self._cleaning is None:
            if not self._to_clean:
                return
            kept = self._to_clean.pop(0)
            rules = CleaningRules(
                now, kept.config.delete_retention_ms, self.config.producer_id_expiration_ms
            )
            try:
                begun = self._logs.clean(kept.log, kept.config, rules)
            except KohortError as error:
                self._tell(kept, error)
            else:
                self._cleaning = None if begun is None else (kept, begun)
        kept, steps = self._cleaning
        try:
            if next(steps, None) is None:
                self._cleaning = None
        except KohortError as error:
            self._cleaning = None
            self._tell(kept, error)

    def _tell(self, kept: KeptLog, error: KohortError) -> None:
        if isinstance(error, Broken):
            self._damaged.add(kept.log)
            text = f"{kept.name} is damaged and not cleaned any more: {error}"
        else:
            text = f"cleaning of {kept.name}: {error}"
        self._observe.warning(text)
