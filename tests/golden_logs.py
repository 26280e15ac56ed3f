# SPDX-License-Identifier: Apache-2.0
"""Log folders of a real Kafka broker, what its own tool reads in them, and what it answered.

What is in which: `tests/data/logs/README.md`.
"""

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.archives import unpack_into

DATA = Path(__file__).parent / "data" / "logs"
NAMES = tuple(sorted(path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz")))


def unpack(name: str, directory: Path) -> Path:
    """A writable copy of a broker's directory of logs: `<directory>/<name>`."""
    unpack_into(directory, DATA / f"{name}.tar.xz")
    return directory / name


def partitions(folder: Path) -> list[Path]:
    """The folders of partitions in an unpacked copy."""
    return sorted(path.parent for path in folder.glob("*/partition.metadata"))


@lru_cache(maxsize=4)
def dump(name: str) -> list[dict[str, Any]]:
    """The lines of the dump tool, in order. Do not change them: they are shared."""
    return _lines(f"{name}.dump.jsonl.gz")


def fetches(name: str = "user") -> list[dict[str, Any]]:
    """Fetch requests and answers captured on these logs."""
    return _lines(f"{name}.fetch.jsonl.gz")


def state(name: str) -> Any:
    """What ListGroups, OffsetFetch and the describe calls answered at that moment."""
    return json.loads(gzip.decompress((DATA / f"{name}.state.json.gz").read_bytes()))


def _lines(file: str) -> list[dict[str, Any]]:
    text = gzip.decompress((DATA / file).read_bytes()).decode()
    return [json.loads(line) for line in text.split("\n") if line]
