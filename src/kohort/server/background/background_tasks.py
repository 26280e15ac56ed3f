# SPDX-License-Identifier: Apache-2.0
"""Work that machines ask for and that would hold up others: done on a thread, a part at a time.

A part is short, and behind it the task stands at the end of the queue again. So a long one does
not keep short ones waiting, and the loop gets its turn between two parts.
"""

from collections.abc import Generator
from traceback import format_exception
from typing import Any

from kohort.errors import KohortError
from kohort.machines.effects import BackgroundTask
from kohort.runtime.driver import PartitionDriver

LIMIT_SECONDS = 5.0  # of work, without the waiting in between


class TaskRun:
    """A background task on its way. `step` may be called on any thread, by one at a time."""

    def __init__(self, driver: PartitionDriver[Any], task: BackgroundTask) -> None:
        self.driver = driver
        self.task = task
        self.outcome: Any = None
        self._work: Generator[None, None, Any] | None = None

    def step(self) -> bool:
        """Do a part; true while there is more. Raises nothing: what goes wrong is the outcome."""
        try:
            if self._work is None:
                self._work = self.task.work()
            next(self._work)
        except StopIteration as end:
            self.outcome = end.value
        except Exception as error:  # noqa: BLE001  (whatever it is, somebody waits for the outcome)
            self.outcome = error
        else:
            return True
        return False

    def give_up(self, limit_seconds: float) -> None:
        """It has taken too long."""
        self.outcome = KohortError(f"it has taken longer than {limit_seconds:g} s")

    @property
    def failure(self) -> str | None:
        """What to tell of a failure that nobody has expected, with the traceback."""
        error = self.outcome
        if not isinstance(error, Exception) or isinstance(error, KohortError):
            return None
        kind_and_name = self.task.key[:2]
        return (
            f"{' '.join(map(str, kind_and_name))} has failed:\n{''.join(format_exception(error))}"
        )
