# SPDX-License-Identifier: Apache-2.0
"""Processes that a test can interrupt with Ctrl-C, however the test itself was started."""

import signal
import subprocess
from collections.abc import Sequence
from typing import Any


def started(argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """A process that can be interrupted. A shell has its jobs in the background ignore SIGINT, and
    whatever such a job starts ignores it too: a test run, and what that starts.
    """
    return subprocess.Popen(argv, preexec_fn=interruptible, **options)  # noqa: PLW1509  (one call)


def interruptible() -> None:
    """For a `preexec_fn`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
