# SPDX-License-Identifier: Apache-2.0
"""Where the broker reports what happens. The core itself reports nothing."""

from typing import Protocol


class Observer(Protocol):
    """Takes lines for the log of the broker; a `logging.Logger` is one.

    `info` is for what happens to groups; `warning` for what was cut, skipped or refused, with
    numbers; `error` for what should not have happened.
    """

    def info(self, text: str, /) -> None: ...
    def warning(self, text: str, /) -> None: ...
    def error(self, text: str, /) -> None: ...
