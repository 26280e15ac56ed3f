# SPDX-License-Identifier: Apache-2.0
"""A broker's process that is killed at instants that nobody chose, and started again."""

import os
import re
import select
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

from tests.ports import free_port
from tests.serve.talk import command
from tests.waiting import SOON_S

AT_WORK = {
    "cleaning": ".cleaned",
    "swap": ".swap",
    "roll": ".log",
    "catalog": ".tmp",
    "deletion": "-delete",
}
"""What a broker does, and the end of a name that comes to be meanwhile."""


class Victim:
    """One directory and one address. `start` needs no hand, or it fails with what was written."""

    def __init__(
        self, directory: Path, settings: Mapping[str, str], data: Path | None = None
    ) -> None:
        self.data = data or directory / "data"
        self.log = directory / "broker.log"
        self.prepare: Callable[[], None] | None = None  # called in the process before it begins
        self.starts = 0
        self.start_seconds = 0.5  # of the last start that was waited for
        self.process: subprocess.Popen[str] | None = None
        self._begun = 0.0
        self._port = free_port()
        self._settings = [part for pair in settings.items() for part in ("-X", "=".join(pair))]
        self._checked_bytes = 0

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def spawn(self) -> None:
        """Start the process and wait for nothing."""
        assert self.process is None, "the broker is running already"
        where = ["--listen", self.bootstrap, "--data-dir", str(self.data)]
        self.starts += 1
        self._begun = time.monotonic()
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command(*where, *self._settings),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=self.prepare,  # noqa: PLW1509
            )

    def is_ready(self) -> bool:
        """Wait for the line that says so, or for the end of the process."""
        process = self.process
        assert process is not None
        assert process.stdout is not None
        written = select.poll()  # select() cannot look at more than a thousand files
        written.register(process.stdout, select.POLLIN)
        line = process.stdout.readline() if written.poll(SOON_S * 1000) else ""
        if not line.startswith("kohort ready on"):
            return False
        self.start_seconds = time.monotonic() - self._begun
        return True

    def start(self) -> None:
        self.spawn()
        assert self.is_ready(), f"start {self.starts}\n{self.lines()}"

    def stop(self) -> None:
        """As an operator ends it."""
        process, self.process = self.process, None
        assert process is not None
        assert process.stdout is not None
        process.terminate()
        assert process.wait(SOON_S) == 0, self.lines()
        process.stdout.close()

    def kill(self) -> None:
        """`kill -9`; fails when the process has ended by itself before."""
        process, self.process = self.process, None
        assert process is not None
        assert process.stdout is not None
        ended = process.poll()
        process.kill()
        process.wait(SOON_S)
        process.stdout.close()
        assert ended is None, f"the broker has ended with {ended} by itself\n{self.lines()}"

    def end(self) -> None:
        """Reap the process, whether it runs or has ended by itself."""
        process, self.process = self.process, None
        if process is not None:
            assert process.stdout is not None
            process.kill()
            process.wait(SOON_S)
            process.stdout.close()

    def lines(self, count: int = 40) -> str:
        """The last lines that it has written, and with what it has ended if it has."""
        lines = self.log.read_text(encoding="utf-8").splitlines()[-count:]
        ended = None if self.process is None else self.process.poll()
        return "\n".join([*lines, *([] if ended is None else [f"it has ended with {ended}"])])

    def check_log(self, *forbidden: str) -> None:
        """Look at what the broker has written since the last look."""
        with self.log.open("rb") as log:
            log.seek(self._checked_bytes)
            text = log.read()
        self._checked_bytes += len(text)
        for bad in forbidden:
            assert bad.encode() not in text, text.decode("utf-8", "replace")[-4000:]

    def warnings(self) -> dict[str, int]:
        """What it has warned of, without the numbers, and how often."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        texts = (line.partition(" WARNING ")[2] for line in lines)
        return dict(
            Counter(re.sub(r"[0-9a-f]*[0-9][0-9a-f]*", "N", text) for text in texts if text)
        )

    def wait_for(self, end: str, seconds: float) -> bool:
        """Wait until there is a new name with this end among the files of the groups' logs, or in
        the data directory itself.
        """
        known = set(self._names(end))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not known.issuperset(self._names(end)):
                return True
            time.sleep(0.0005)
        return False

    def _names(self, end: str) -> Iterator[str]:
        folders = [self.data]
        if end not in (".tmp", "-delete"):
            folders = [self.data / f"__consumer_offsets-{index}" for index in range(2)]
        for folder in folders:
            yield from (
                name
                for name in os.listdir(folder)  # noqa: PTH208  (names, quickly)
                if name.endswith(end)
            )


def strike(random: Random, victim: Victim) -> str:
    """Wait for an instant, kill; what kind of instant it was. The broker is ready at first."""
    kind = random.choices(["any", "work", "ready", "long"], [45, 35, 10, 10])[0]
    match kind:
        case "any":
            time.sleep(random.uniform(0.0, 1.2))
        case "work":
            kind = random.choice(list(AT_WORK))
            if not victim.wait_for(AT_WORK[kind], 2):
                kind = "any"
            time.sleep(random.choice([0, 0, random.uniform(0, 0.02)]))
        case "ready":
            time.sleep(random.uniform(0.0, 0.03))
        case "long":
            time.sleep(random.uniform(1.5, 4))
    victim.kill()
    return kind


def strike_start(random: Random, victim: Victim) -> None:
    """Kill a broker that is starting, somewhere between its first instruction and its first turn.

    The last part, in which the directory is read, is as likely as all before it.
    """
    victim.spawn()
    whole = victim.start_seconds
    time.sleep(random.choice([random.uniform(0, whole), random.uniform(whole * 0.7, whole * 1.2)]))
    victim.kill()
