# SPDX-License-Identifier: Apache-2.0
"""Files that a user names: read as far as a bound, whatever the path leads to."""

import os
import subprocess
import threading

import pytest

from kohort import user_files
from kohort.user_files import file_bytes, settings_text


def test_a_pipe_is_read_to_its_end_and_no_further_than_the_bound():
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stream:
        stream.write(b"a\r\nb")
    assert settings_text(f"/dev/fd/{reading}") == "a\nb"
    os.close(reading)
    with subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE) as endless:
        with pytest.raises(OSError, match="it has more than 1,000 bytes, expected 1,000 at most"):
            file_bytes(f"/dev/fd/{endless.stdout.fileno()}", 1000)
        endless.kill()


def test_a_pipe_into_which_nobody_writes_is_told_of(tmp_path, monkeypatch, capfd):
    """It looked as if the command hung."""
    monkeypatch.setattr(user_files, "_PATIENCE_S", 0.1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reading = threading.Thread(target=lambda: found.append(file_bytes(str(pipe), 10)), daemon=True)
    reading.start()
    err = ""
    for _ in range(600):
        err += capfd.readouterr().err
        if err:
            break
        reading.join(0.1)
    pipe.write_bytes(b"late")
    reading.join(60)
    assert found == [b"late"]
    assert err == (
        f"kohort: {pipe} is a pipe: waiting for what somebody writes into it, to its end\n"
    )


def test_the_empty_device_is_an_empty_file():
    assert file_bytes(os.devnull, 10) == b""
