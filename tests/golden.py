# SPDX-License-Identifier: Apache-2.0
"""The golden corpus: what Apache Kafka 4.3.1 really said, frame by frame (tests/data/README.md)."""

import gzip
import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


@cache
def frames(name: str) -> list[dict[str, Any]]:
    """The frames of one file of tests/data/frames, in file order."""
    with gzip.open(DATA / "frames" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def all_frames() -> list[dict[str, Any]]:
    """Every request and answer of the corpus, malformed streams and
    the switched-off protocol excepted.
    """
    names = sorted(path.name.removesuffix(".jsonl.gz") for path in (DATA / "frames").iterdir())
    return [
        frame
        for name in names
        if name not in ("malformed", "protocol-off")
        for frame in frames(name)
    ]


def scenarios() -> dict[str, list[dict[str, Any]]]:
    """The frames by scenario, in the order in which they were sent."""
    stories: dict[str, list[dict[str, Any]]] = {}
    for frame in all_frames():
        stories.setdefault(frame["scenario"], []).append(frame)
    return {
        name: sorted(story, key=lambda one: one["seq"]) for name, story in sorted(stories.items())
    }


@cache
def versions() -> dict[str, Any]:
    """What the captured broker offers."""
    with gzip.open(DATA / "versions.json.gz", "rt", encoding="utf-8") as text:
        found: dict[str, Any] = json.load(text)
    return found


@cache
def access(name: str) -> list[dict[str, Any]]:
    """The lines of one file of tests/data/access: what Apache Kafka 4.3.1 lets whom do under which
    rules.
    """
    with lzma.open(DATA / "access" / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
