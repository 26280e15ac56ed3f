# SPDX-License-Identifier: Apache-2.0
"""Stores of clouds on loopback: Azurite for Azure, fake-gcs-server for Google's.

npm and Go bring them once, into the user's cache. A caller asks `unavailable()` first and skips
with its words where there is no Node.js, no Go or no registry.
"""

import fcntl
import functools
import os
import shutil
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path

from tests.peers.maven import PeerError, cache

AZURITE = "3.35.0"
FAKE_GCS = "v1.56.1"
BRING_SECONDS = 500.0
START_SECONDS = 60.0


@functools.cache
def azurite() -> list[str]:
    """How to start Azurite. Raises PeerError."""
    folder = cache(f"azurite-{AZURITE}")
    program = folder / "node_modules/azurite/dist/src/blob/main.js"
    install = ["npm", "install", "--no-audit", "--no-fund", "--silent", f"azurite@{AZURITE}"]
    _bring(program, "Azurite", [*install, "--prefix", str(folder)], {})
    options = ["--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent"]
    return ["node", str(program), *options, "--blobHost", "127.0.0.1", "--blobPort"]


@functools.cache
def fake_gcs() -> list[str]:
    """How to start fake-gcs-server. Raises PeerError."""
    folder = cache(f"fake-gcs-server-{FAKE_GCS}")
    program = folder / "fake-gcs-server"
    install = ["go", "install", f"github.com/fsouza/fake-gcs-server@{FAKE_GCS}"]
    _bring(program, "fake-gcs-server", install, {"GOBIN": str(folder)})
    options = ["-scheme", "http", "-backend", "memory", "-log-level", "error"]
    return [str(program), *options, "-host", "127.0.0.1", "-port"]


def _bring(program: Path, what: str, command: list[str], more: dict[str, str]) -> None:
    tool = command[0]
    if shutil.which(tool) is None:
        raise PeerError(f"{tool} is not installed, so {what} cannot be brought")
    folder = cache(".")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{tool}.lock").open("w") as lock:  # another process may be at it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _install(program, what, command, more)


def _install(program: Path, what: str, command: list[str], more: dict[str, str]) -> None:
    tool = command[0]
    program.parent.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BRING_SECONDS,
            check=False,
            env={**os.environ, **more},
        )
    except subprocess.TimeoutExpired:
        raise PeerError(f"{tool} did not bring {what} in {BRING_SECONDS:.0f} s") from None
    if done.returncode != 0 or not program.exists():
        last = (done.stderr.strip().splitlines() or ["no words"])[-1]
        raise PeerError(f"{tool} could not bring {what}: {last[:200]}")


def unavailable(command) -> str | None:
    """Why there is none here, in words fit for a skip; None when there is one."""
    try:
        command()
    except PeerError as error:
        return str(error)
    return None


class Emulator:
    """One that runs, at a free port."""

    def __init__(self, command: list[str]) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [*command, str(self.port)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        end = time.monotonic() + START_SECONDS
        while not self._listens():
            if not self.lives or time.monotonic() > end:
                raise PeerError(f"{command[0]} does not listen")
            time.sleep(0.05)

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def _listens(self) -> bool:
        with closing(socket.socket()) as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(START_SECONDS)
