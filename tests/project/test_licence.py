# SPDX-License-Identifier: Apache-2.0
"""Every source file says under which licence it is, for those who take a file alone."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINE = "SPDX-License-Identifier: Apache-2.0"
WRITTEN = {
    **dict.fromkeys(("py", "pyi"), f"# {LINE}"),
    **dict.fromkeys(("c", "h"), f"/* {LINE} */"),
    "java": f"// {LINE}",
}


def sources():
    """The files that git has or would take."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("git, which says what belongs to the project, is not here")
    names = [name for name in listing.stdout.split("\0") if (ROOT / name).is_file()]
    return [name for name in names if name.rpartition(".")[2] in WRITTEN]


def test_every_source_file_names_the_licence():
    found = sources()
    assert len(found) > 1900
    missing = []
    for name in found:
        expected = WRITTEN[name.rpartition(".")[2]]
        if expected not in (ROOT / name).read_text(encoding="utf-8").split("\n")[:2]:
            missing.append(name)
    assert missing == []
