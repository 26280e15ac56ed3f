# SPDX-License-Identifier: Apache-2.0
"""Running commands as a shell does, but in this process; and what those in others need."""

import json
from typing import Any, NamedTuple

import pytest

from kohort.cli.documents import SCHEMA_VERSION
from kohort.cli.main import main


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its document without the version that it must have; only the rows of one of rows."""
        found = json.loads(self.out)
        assert found.pop("schema_version") == SCHEMA_VERSION
        return found["rows"] if list(found) == ["rows"] else found

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
