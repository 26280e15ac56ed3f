"""Running commands as a shell does, but in this process; and what those in others need."""

import json
import signal
import subprocess
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from kohort.cli.main import main


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The lines of its tables as words."""
        return [line.split() for line in self.out.splitlines()]

    @property
    def complaints(self) -> list[str]:
        return self.err.splitlines()


@pytest.fixture
def kohort(capsys):
    def run(*argv: str) -> Ran:
        try:
            code = main(argv)
        except SystemExit as leaving:
            code = leaving.code
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


def started(argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """A process that can be interrupted. A shell has its jobs in the background ignore SIGINT, and
    whatever such a job starts ignores it too: a test run, and what that starts.
    """
    return subprocess.Popen(argv, preexec_fn=_interruptible, **options)  # noqa: PLW1509  (one call)


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
