"""A broker in a `with` block. It is another process, so that a test can kill it."""

import atexit
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from kohort.config.broker import BrokerConfig
from kohort.config.settings import plain
from kohort.errors import KohortError
from kohort.wire.offered import offered_versions

START_SECONDS = 60.0
STOP_SECONDS = 10.0

_SETTINGS = {
    # Tests need not wait for more members to join.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
}


class Broker:
    """A Kohort broker on a free port of the loopback interface.

        with Broker() as broker:
            ...  # a client on broker.bootstrap
            broker.kill()
            broker.restart()

    The address and the log live from `start` to `close`. `stop` and `kill` only end the process, so
    `start` and `restart` go on with the same log at the same address. The end of the `with` block,
    or of the interpreter, closes the broker.

    Args:
        settings: Kafka's configuration names to values, on top of some that suit tests (sessions
            may be short, the first rebalance does not wait).
        data_dir: the directory of the log, which is kept; None makes one that `close` removes.
        in_memory: keep nothing on the disk. A restart then starts empty.
        nodes: how many nodes of one cluster, each on a port of its own.
        versions: the highest version to offer of an API, by name: `{"OffsetFetch": 7}`.

    Raises ConfigError for settings and versions that do not exist, KohortError for a data_dir in
    memory. After `start`, `bootstrap` is what clients connect to. `start` raises KohortError, with
    what the process wrote, when it does not come up.
    """

    def __init__(
        self,
        settings: Mapping[str, str | float] | None = None,
        *,
        data_dir: Path | None = None,
        in_memory: bool = False,
        nodes: int = 1,
        versions: Mapping[str, int] | None = None,
    ) -> None:
        if data_dir is not None and in_memory:
            raise KohortError(f"data_dir is {data_dir}, not allowed with in_memory")
        self.settings = {**_SETTINGS, **plain(settings or {})}
        if versions:
            text = ",".join(f"{name}:{version}" for name, version in versions.items())
            self.settings["api.versions.max"] = text
        offered_versions(BrokerConfig.of(self.settings).api_versions_max)
        self.nodes = nodes
        self.in_memory = in_memory
        self.bootstrap = ""
        self._own_dir = data_dir is None and not in_memory
        self.data_dir = data_dir
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self._errors: Path | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process lives. If it died by itself, `log` has the reason."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the broker's process. Raises KohortError when it does not run."""
        if self._process is None or not self.is_running:
            raise KohortError("the broker does not run, start it first")
        return self._process.pid

    def start(self) -> Self:
        """Start the process on the log that an earlier one has left, and wait for its ready line.

        Raises KohortError when it already runs.
        """
        if self.is_running:
            raise KohortError(f"the broker already runs as process {self.pid}, stop it first")
        self._end(signal.SIGTERM)  # reap a process that died by itself
        atexit.register(self.close)
        if self._own_dir and self.data_dir is None:
            self.data_dir = Path(tempfile.mkdtemp(prefix="kohort-"))
        if self._errors is None:
            with tempfile.NamedTemporaryFile(prefix="kohort-", suffix=".log", delete=False) as file:
                self._errors = Path(file.name)
        with self._errors.open("a", encoding="utf-8") as errors:
            self._process = subprocess.Popen(  # noqa: S603  (our own command)
                self._command(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        line = self._ready_line()
        self.bootstrap = line.split(" on ", 1)[1].split()[0]
        self._port = int(self.bootstrap.split(",")[0].rpartition(":")[2])
        return self

    def stop(self) -> None:
        """End the process as SIGTERM does. Its log is kept; nothing happens when none runs."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process as `kill -9` does: it writes nothing more, and clients are not told."""
        self._end(signal.SIGKILL)

    def restart(self) -> Self:
        """Stop it if it runs, and start it again on the same log and the same address."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop it, and remove its own directory, its log of lines and its address.

        `close` may be called at any time, and more than once. A `start` after it begins anew.
        """
        self.stop()
        if self._own_dir and self.data_dir is not None:
            shutil.rmtree(self.data_dir, ignore_errors=True)
            self.data_dir = None
        if self._errors is not None:
            self._errors.unlink(missing_ok=True)
            self._errors = None
        self.bootstrap, self._port = "", 0
        atexit.unregister(self.close)

    def log(self) -> str:
        """What the broker has written to its standard error since the first start."""
        return self._errors.read_text(encoding="utf-8") if self._errors is not None else ""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _command(self) -> list[str]:
        where = ["--in-memory"] if self.in_memory else ["--data-dir", str(self.data_dir)]
        settings = [part for item in self.settings.items() for part in ("-X", "=".join(item))]
        return [
            *(sys.executable, "-m", "kohort", "serve", "--listen", f"127.0.0.1:{self._port}"),
            *where,
            *("--nodes", str(self.nodes)),
            *settings,
        ]

    def _ready_line(self) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            ready, _, _ = select.select([process.stdout], [], [], 0.1)
            if ready:
                line = process.stdout.readline()
                if " on " in line:
                    return line
            if process.poll() is not None:
                break
        self._end(signal.SIGKILL)
        raise KohortError(
            f"the broker ended, or was not ready within {START_SECONDS:.0f} s:\n{self.log()}"
        )

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout is not None:
            process.stdout.close()
