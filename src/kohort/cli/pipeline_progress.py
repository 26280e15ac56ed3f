# SPDX-License-Identifier: Apache-2.0
"""What a run of the pipeline is doing, as a line on stderr."""

import sys
import time
from typing import TYPE_CHECKING

from kohort.cli.render import ERASE, printable

if TYPE_CHECKING:
    from kohort.spark.engine.job_progress import ProgressEvent

PATIENCE_S = 2.0
LINE_EVERY_S = 10.0


class ProgressPrinter:
    """Shows progress on stderr: in one line of a terminal, otherwise a line every ten seconds."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._said = self._began + PATIENCE_S - LINE_EVERY_S

    def __call__(self, doing: "ProgressEvent") -> None:
        now = time.monotonic()
        if sys.stderr.isatty():
            if now - self._began >= PATIENCE_S:
                sys.stderr.write(ERASE + printable(str(doing)))
                sys.stderr.flush()
        elif now - self._said >= LINE_EVERY_S:
            self._said = now
            sys.stderr.write(f"{printable(str(doing))}\n")
            sys.stderr.flush()
