# SPDX-License-Identifier: Apache-2.0
"""What a producer waits for: said once when it lasts, and once when it is over.

A producer that sends again says nothing to its application for minutes. What passes within a moment
is not worth a line.
"""

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

LASTS_S = 1.0


class StallWarnings:
    """`now` is the time in seconds. Whatever fails has a name, such as a node or a partition."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._since: dict[str, float] = {}  # what fails at the moment, and since when
        self._logged: set[str] = set()

    def failed(self, name: str, why: object) -> None:
        """Records wait for this; `why` is what the last attempt has met with."""
        since = self._since.setdefault(name, self._now())
        if name not in self._logged and self._now() - since >= LASTS_S:
            self._logged.add(name)
            logger.warning("records wait for %s: %s", name, why)

    def passed(self, name: str) -> None:
        """It works."""
        if not self._since:  # as nearly always
            return
        since = self._since.pop(name, None)
        if since is not None and name in self._logged:
            self._logged.discard(name)
            logger.warning("records have waited %.1f s for %s", self._now() - since, name)
