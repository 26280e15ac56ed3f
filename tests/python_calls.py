# SPDX-License-Identifier: Apache-2.0
"""How many functions of Python something calls: what grows with that holds the loop."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def python_calls(action: Callable[[], Any]) -> int:
    """The number of calls, without those of what others have left to the garbage collector."""
    seen = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal seen
        seen += event == "call"

    gc.disable()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return seen
