# SPDX-License-Identifier: Apache-2.0
"""Ages, and the time that a row comes to stand for at each: a moment, then five minutes, then an
hour. `commit_rates`, `lag_history` and `end_offsets` share them, and the texts of their schemas say
them in words.
"""

from typing import NamedTuple

MINUTE_US = 60_000_000
DAY_US = 24 * 60 * MINUTE_US


class RollupTier(NamedTuple):
    """An age, in microseconds: the time that a row stands for, and the time that a file covers."""

    step_us: int
    after_us: int
    file_us: int
    """A whole number of days and of steps, so no step and no file of a finer tier is cut."""

    def due_before(self, now_us: int) -> int:
        """The moment before which rows belong here, or into a coarser tier: files fill at once."""
        return (now_us - self.after_us) // self.file_us * self.file_us


ONE_MOMENT = 0
"""The step of rows that are not downsampled yet."""
ROLLUP_TIERS = (
    RollupTier(5 * MINUTE_US, DAY_US, DAY_US),
    RollupTier(60 * MINUTE_US, 7 * DAY_US, 7 * DAY_US),
)
"""From finer to coarser."""
