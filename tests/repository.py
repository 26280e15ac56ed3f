# SPDX-License-Identifier: Apache-2.0
"""The files of the repository, as git knows them."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def committed() -> list[Path]:
    """The files that git has or would take, by their paths in the repository; none where there is
    no git, as in an unpacked archive.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    found = [Path(name) for name in listing.stdout.split("\0") if name]
    return [path for path in found if (ROOT / path).is_file()]
