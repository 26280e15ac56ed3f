"""Gold anew from the rows that are kept: nothing of it is gone on with, as after an upgrade.

What the log has lost since it was read is in the rows, so nothing is lost by it.
"""

from datetime import UTC, datetime
from typing import NamedTuple

from kohort.spark.stores.places import Folder
from kohort.spark.tables.code import code
from kohort.spark.tables.manifest import Manifest, TablesError, Writer
from kohort.spark.tables.news import reached_by
from kohort.spark.tables.whole import damage_of_inputs


class Rebuilt(NamedTuple):
    """What was computed anew."""

    directory: Folder
    rows: int
    """Rows that it was computed from."""
    partitions: int
    """Partitions of the log that they are of."""
    tables: dict[str, tuple[int, int]]
    """Table of gold -> its rows before and after."""
    upgraded: bool
    """Another Kohort had computed the tables before."""
    as_of: datetime
    seconds: float


def forgotten(manifest: Manifest) -> Manifest:
    """The manifest without anything that can be computed from its rows: the past stays."""
    return manifest.with_(gold={}, histories=None, progress=None, code=None)


def partitions_of(manifest: Manifest) -> list[int]:
    """Every partition of the log that there are rows of."""
    return sorted(reached_by(manifest.increments))


def as_of_of(manifest: Manifest) -> datetime:
    """The moment that gold was computed for; now, where none has been computed yet."""
    if manifest.as_of_ms is None:
        return datetime.fromtimestamp(manifest.written_ms / 1000, UTC)
    return datetime.fromtimestamp(manifest.as_of_ms / 1000, UTC)


def check_rows(directory: Folder, manifest: Manifest) -> None:
    """Raises TablesError where rows are not there as they should be: tables of fewer rows would
    look as good as any.
    """
    for finding in damage_of_inputs(directory, manifest):
        raise TablesError(
            f"gold cannot be computed anew: {directory}/{finding}; `kohort pipeline verify "
            f"{directory}` says what is wrong; nothing was changed"
        )


def rebuilt(before: Manifest, writer: Writer, seconds: float) -> Rebuilt:
    """What has become of the tables."""
    was, now = before.gold_rows(), writer.manifest.gold_rows()
    return Rebuilt(
        writer.directory,
        sum(increment.rows for increment in before.increments),
        len(partitions_of(before)),
        {name: (was.get(name, 0), rows) for name, rows in now.items()},
        before.code != code(),
        as_of_of(writer.manifest),
        seconds,
    )
