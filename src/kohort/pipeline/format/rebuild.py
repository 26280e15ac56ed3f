# SPDX-License-Identifier: Apache-2.0
"""Recomputes gold from the rows that are kept, as after an upgrade: no earlier gold is used.

The rows have what the log has lost since it was read, so nothing is lost by it.
"""

from datetime import UTC, datetime
from typing import NamedTuple

from kohort.pipeline.format.code import code
from kohort.pipeline.format.integrity import damage_of_inputs
from kohort.pipeline.format.manifest import Manifest, TablesError
from kohort.pipeline.format.refresh_plan import next_offsets
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.stores.places import Folder


class RebuildResult(NamedTuple):
    """What was recomputed, and from what."""

    directory: Folder
    rows: int
    """How many rows gold was computed from."""
    partitions: int
    """The partitions of the log that these rows are of."""
    tables: dict[str, tuple[int, int]]
    """Table of gold -> its rows before and after."""
    upgraded: bool
    """Whether another Kohort had computed the tables before."""
    as_of: datetime
    seconds: float


def without_derived_state(manifest: Manifest) -> Manifest:
    """The manifest without what can be computed from its rows: the observed history stays."""
    return manifest.with_(gold={}, histories=None, progress=None, code=None)


def partitions_of(manifest: Manifest) -> list[int]:
    """Every partition of the log that has rows."""
    return sorted(next_offsets(manifest.increments))


def as_of_of(manifest: Manifest) -> datetime:
    """The moment that gold was computed for; now, where none has been computed yet."""
    if manifest.as_of_ms is None:
        return datetime.fromtimestamp(manifest.written_ms / 1000, UTC)
    return datetime.fromtimestamp(manifest.as_of_ms / 1000, UTC)


def check_rows(directory: Folder, manifest: Manifest) -> None:
    """Raises TablesError where rows are missing or damaged: tables of fewer rows would look as good
    as any.
    """
    for finding in damage_of_inputs(directory, manifest):
        raise TablesError(
            f"gold cannot be recomputed: {directory}/{finding}; `kohort pipeline verify "
            f"{directory}` says what is wrong; nothing was changed"
        )


def rebuild_result(before: Manifest, writer: Writer, seconds: float) -> RebuildResult:
    """Compares the tables before and after."""
    was, now = before.gold_rows(), writer.manifest.gold_rows()
    return RebuildResult(
        writer.directory,
        sum(increment.rows for increment in before.increments),
        len(partitions_of(before)),
        {name: (was.get(name, 0), rows) for name, rows in now.items()},
        before.code != code(),
        as_of_of(writer.manifest),
        seconds,
    )
