# SPDX-License-Identifier: Apache-2.0
"""Topics that clients have asked for and that were not made: told now and then, all in one line.

Consumers ask again every second or so, and one request may name thousands.
"""

from kohort.runtime.observers import Observer


class TopicCreationFailures:
    """What is to be told. A disk that does not take them is a warning."""

    def __init__(self) -> None:
        self._times = 0
        self._last = ""
        self._failed = False

    def note(self, name: str, why: object, *, failed: bool = False) -> None:
        """A topic was asked for and not made."""
        self._times += 1
        if failed or not self._failed:
            self._last = f"{name!r}: {why}"
        self._failed = self._failed or failed

    def tell(self, observe: Observer) -> None:
        """Tell of those since the last time, if there are any."""
        if self._times:
            say = observe.warning if self._failed else observe.info
            say(f"topics that were asked for and not made: {self._times}, the last {self._last}")
            self._times = 0
            self._failed = False
