# SPDX-License-Identifier: Apache-2.0
"""Commands read the files that a user names as far as a bound, whatever the path leads to."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.drop_in.recorded_runs import run

from kohort.drop_in import consumer_groups
from kohort.testing.broker import Broker
from kohort.user_files import DATA_BYTES_MAX, SETTINGS_BYTES_MAX

NOWHERE = ("--bootstrap-server", "127.0.0.1:1", "--timeout", "1")
DEVICE = "it is a device, expected a file or a pipe"
CALLS = {  # by the option that names the file; each with the most bytes of such a file
    ("offsets", "import", "{file}", "--dry-run"): DATA_BYTES_MAX,
    ("groups", "delete", "--yes", "--from", "{file}"): DATA_BYTES_MAX,
    ("groups", "list", "--command-config", "{file}"): SETTINGS_BYTES_MAX,
    ("users", "create", "ann", "--password-file", "{file}"): SETTINGS_BYTES_MAX,
    ("serve", "--in-memory", "--config", "{file}"): SETTINGS_BYTES_MAX,
}


def call(kohort, argv, file):
    words = [word.replace("{file}", str(file)) for word in argv]
    return kohort(*words, *(() if argv[0] == "serve" else NOWHERE))


@pytest.mark.parametrize("argv", CALLS, ids=" ".join)
def test_a_device_without_an_end_is_refused(kohort, argv):
    """/dev/zero filled the memory of the machine."""
    ran = call(kohort, argv, "/dev/zero")
    assert (ran.code, len(ran.complaints)) == (2, 1)
    assert "/dev/zero" in ran.err
    assert DEVICE in ran.err


@pytest.mark.parametrize("argv", CALLS, ids=" ".join)
def test_a_file_that_is_too_long_is_named_with_its_size(kohort, tmp_path, argv):
    most, file = CALLS[argv], tmp_path / "long"
    with file.open("wb") as writing:
        writing.truncate(most + 1)
    ran = call(kohort, argv, file)
    assert (ran.code, len(ran.complaints)) == (2, 1)
    assert f"{file}: it has {most + 1:,} bytes, expected {most:,} at most" in ran.err


def test_profiles_in_a_device_are_refused(kohort, monkeypatch):
    monkeypatch.setenv("KOHORT_CONFIG", "/dev/zero")
    ran = kohort("groups", "list", "--profile", "p")
    assert (ran.code, ran.complaints) == (
        2,
        [f"kohort: --profile p: cannot read /dev/zero: {DEVICE}"],
    )


def test_the_drop_in_tool_refuses_it_as_well():
    with Broker(in_memory=True) as broker:
        for argv in (
            ["--reset-offsets", "--group", "g", "--from-file", "/dev/zero", "--execute"],
            ["--list", "--command-config", "/dev/zero"],
        ):
            ran = run(consumer_groups.main, ["--bootstrap-server", broker.bootstrap, *argv])
            assert ran.exit == 1
            assert DEVICE in ran.stdout + ran.stderr


def test_stdin_is_read_no_further_than_the_bound():
    with Path("/dev/zero").open("rb") as endless:
        ran = subprocess.run(
            [sys.executable, "-m", "kohort", "offsets", "import", "-", *NOWHERE],
            stdin=endless,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    most = f"{DATA_BYTES_MAX:,}"
    why = f"offsets import: cannot read -: it has more than {most} bytes, expected {most} at most"
    assert (ran.returncode, ran.stderr) == (2, f"kohort: {why}\n")
