# SPDX-License-Identifier: Apache-2.0
"""How long a test waits for what should be there at once: long, since it goes on as soon as it is.

A machine on which others work as well is ten times slower. A bound says only that something will
never come; no test asserts how long anything took.
"""

import time
from collections.abc import Callable
from typing import Any

SOON_S = 120.0


def eventually(holds: Callable[[], Any], what: str, seconds: float = SOON_S) -> Any:
    """Wait until something holds; say what did not when the time is over."""
    deadline = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)
    return value
