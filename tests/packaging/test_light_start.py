"""`kohort --help` loads nothing heavy: its time is a figure in benchmarks/startup.py."""

import subprocess
import sys

import pytest

HEAVY = ["asyncio", "uvloop", "msgspec", "rich", "cramjam", "xxhash", "logging", "kohort.wire"]
HEAVY += ["kohort.server", "kohort.client", "kohort.coordinator", "kohort.config"]


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["serve", "--help"]])
def test_help_loads_nothing_heavy(argv):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "kohort", *argv],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "kohort" in loaded
    allowed = {"--version": {"logging"}}.get(argv[0], set())
    heavy = [
        name
        for name in loaded
        for one in HEAVY
        if one not in allowed and (name == one or name.startswith(f"{one}."))
    ]
    assert heavy == []
