# SPDX-License-Identifier: Apache-2.0
"""Partitions as transcripts write them: `a:0-3,7+b:1`, and a dash for nothing."""

from collections.abc import Iterable, Mapping


def parsed(text: str) -> dict[str, list[int]]:
    """The partitions that a text names, by topic."""
    if text == "-":
        return {}
    found: dict[str, list[int]] = {}
    for part in text.split("+"):
        name, _, runs = part.partition(":")
        for run in runs.split(","):
            first, _, last = run.partition("-")
            found.setdefault(name, []).extend(range(int(first), int(last or first) + 1))
    return found


def shown(partitions: Mapping[str, Iterable[int]]) -> str:
    """Partitions by topic as text."""
    named = ((name, sorted(ones)) for name, ones in sorted(partitions.items()))
    return "+".join(f"{name}:{_runs(ones)}" for name, ones in named if ones) or "-"


def _runs(indices: list[int]) -> str:
    """Numbers as runs: 0-3,7."""
    runs: list[list[int]] = []
    for one in indices:
        if runs and runs[-1][-1] == one - 1:
            runs[-1] = [runs[-1][0], one]
        else:
            runs.append([one, one])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
