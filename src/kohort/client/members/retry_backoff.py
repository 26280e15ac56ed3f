# SPDX-License-Identifier: Apache-2.0
"""How long a member waits before it asks again: doubled with each failure in a row, up to a bound.

Chance is the caller's. It draws a number once for each member, so that the members of a group do
not come back all at the same moment.
"""

from typing import NamedTuple

MOST_DOUBLINGS = 16


class RetryBackoff(NamedTuple):
    """Upstream's retry.backoff.ms and retry.backoff.max.ms, with a jitter in thousandths (KIP-580).
    They are constants here: no setting of a Consumer changes them. What else a Consumer asks for
    has the pauses of `Backoff` in `client/network/cluster.py`, and fetching has a constant one,
    RETRY_BACKOFF_S in `client/fetcher/partition_lookup.py`.

    A jitter of -200 to 200 makes pauses shorter or longer by up to a fifth.
    """

    first_ms: int = 100
    most_ms: int = 1000
    jitter_permille: int = 0

    def after(self, failures: int) -> int:
        """The pause in milliseconds after failure 1, 2, 3 … in a row."""
        doubled = self.first_ms << min(failures - 1, MOST_DOUBLINGS)
        return min(self.most_ms, doubled) * (1000 + self.jitter_permille) // 1000
