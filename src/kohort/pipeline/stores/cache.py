# SPDX-License-Identifier: Apache-2.0
"""Where Kohort keeps what can be made again."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """The directory, which may not be there yet."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kohort"
