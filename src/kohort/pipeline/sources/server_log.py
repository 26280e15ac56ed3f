# SPDX-License-Identifier: Apache-2.0
"""A Kafka broker's log files: read as streams, compressed or not, for the few lines that matter."""

import glob
import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from kohort.errors import KohortError
from kohort.pipeline.sources.server_lines import LONGEST_LINE, MemberRemoval, parse_removals

_GZIP = b"\x1f\x8b"


class ServerLogError(KohortError):
    """A log file that is not there or cannot be read."""


class LogFile(NamedTuple):
    """The lines of a file that matter."""

    path: Path
    lines: list[MemberRemoval]


def files_of(given: Iterable[str | Path]) -> list[Path]:
    """The files of paths and patterns, each once. Raises ServerLogError: there is none."""
    found: dict[Path, None] = {}
    for name in given:
        path = Path(name)
        try:
            paths = [path] if path.exists() else _matching(str(name))
        except OSError as error:
            raise _unread(path, error.strerror or str(error)) from error
        if not paths:
            raise ServerLogError(f"server log {name} does not exist: expected a file or a pattern")
        for path in paths:
            if path.is_dir():
                raise ServerLogError(f"server log {path} is a directory: expected a file")
            found[path] = None
    return list(found)


def _matching(pattern: str) -> list[Path]:
    return [Path(name) for name in sorted(glob.glob(pattern))]  # noqa: PTH207  (of any root)


def read(path: Path) -> LogFile:
    """Read a file. Memory holds only the lines that matter. Raises ServerLogError."""
    try:
        with path.open("rb") as file:
            is_gzip = file.read(2) == _GZIP
            file.seek(0)
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if is_gzip else file
            return LogFile(path, list(parse_removals(_lines(stream))))
    except (OSError, EOFError, zlib.error) as error:
        raise _unread(path, getattr(error, "strerror", None) or str(error)) from error


def _unread(path: Path, why: str) -> ServerLogError:
    return ServerLogError(f"server log {path} cannot be read: {why}")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.readline(LONGEST_LINE), b"")
