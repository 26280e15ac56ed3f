# SPDX-License-Identifier: Apache-2.0
"""A package that is installed as far as Python can tell: a module, and entry points of its own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def installed(
    directory: Path, monkeypatch: pytest.MonkeyPatch, module: str, source: str, **assignors: str
) -> Iterator[None]:
    """`assignors` are names of functions of the module, by the assignors' names."""
    info = directory / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    lines = [f"{name} = {module}:{function}" for name, function in assignors.items()]
    (info / "entry_points.txt").write_text("\n".join(["[kohort.assignors]", *lines, ""]))
    (directory / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(directory)
    try:
        yield
    finally:
        sys.modules.pop(module, None)
