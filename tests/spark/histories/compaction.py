# SPDX-License-Identifier: Apache-2.0
"""Legally compacted variants of a log, row by row, as cleaners leave them at any moment.

Below a point, which no open transaction lies before, each key keeps its newest record; what was
aborted goes; below an earlier point tombstones are gone too, and markers whose transactions are.
"""

import random
from collections import defaultdict

import pyarrow as pa


def compacted(rows: pa.Table, seed: str) -> pa.Table:
    """Another history of the same log; the same for the same seed."""
    chance = random.Random(seed)
    kept: list[int] = []
    numbered = rows.select(
        ["partition", "offset", "key", "kind", "producer_id", "transactional", "control", "commits"]
    ).to_pylist()
    of_partition: dict[int, list[tuple[int, dict]]] = defaultdict(list)
    for number, row in enumerate(numbered):
        of_partition[row["partition"]].append((number, row))
    for entries in of_partition.values():
        kept += _cleaned(entries, chance)
    return rows.take(sorted(kept))


def _cleaned(entries: list[tuple[int, dict]], chance: random.Random) -> list[int]:
    aborted, first_open = _transactions([row for _, row in entries])
    most = min([entries[-1][1]["offset"], *first_open])
    point = chance.randint(entries[0][1]["offset"], max(most, entries[0][1]["offset"]))
    horizon = chance.choice([0, chance.randint(0, point), point])
    newest = {
        row["key"]: row["offset"]
        for _, row in entries
        if row["offset"] < point and not row["control"] and row["offset"] not in aborted
    }
    stays = [
        (number, row)
        for number, row in entries
        if row["offset"] >= point
        or row["control"]
        or (
            newest.get(row["key"]) == row["offset"]
            and not (row["kind"] == "tombstone" and row["offset"] < horizon)
        )
    ]
    return [
        number
        for at, (number, row) in enumerate(stays)
        if not (row["control"] and row["offset"] < horizon and _is_alone(stays[:at], row))
    ]


def _transactions(rows: list[dict]) -> tuple[set[int], list[int]]:
    """The offsets of what was aborted, and the first offsets of what is still open."""
    aborted: set[int] = set()
    running: dict[int, list[int]] = {}
    for row in rows:
        if row["control"]:
            ended = running.pop(row["producer_id"], [])
            aborted |= set() if row["commits"] else set(ended)
        elif row["transactional"]:
            running.setdefault(row["producer_id"], []).append(row["offset"])
    return aborted, [offsets[0] for offsets in running.values()]


def _is_alone(before: list[tuple[int, dict]], marker: dict) -> bool:
    """Whether nothing is left of the transaction that the marker ends."""
    for _, row in reversed(before):
        if row["producer_id"] == marker["producer_id"]:
            return row["control"]
    return True
