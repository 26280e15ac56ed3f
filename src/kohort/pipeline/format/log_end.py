# SPDX-License-Identifier: Apache-2.0
"""Where a log ends that may be a copy: what came after its end is unknown."""

from datetime import UTC, datetime, timedelta

import pyarrow.dataset as ds

from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.manifest import Manifest

NEAR = timedelta(minutes=1)
"""A log that ends this shortly before the moment of its tables may as well be live."""
SKEW = timedelta(seconds=1)
"""How much two clocks differ without anybody's having chosen an earlier moment."""
_COPIES = ("log:", "parquet:")


def read_until(manifest: Manifest) -> datetime | None:
    """The latest time of a record that was read; None for none."""
    times = [increment.newest_ms for increment in manifest.increments]
    newest = max((time for time in times if time is not None), default=None)
    return None if newest is None else datetime.fromtimestamp(newest / 1000, UTC)


def later_end(manifest: Manifest) -> datetime | None:
    """The end of what was read, where the moment of the tables is before it. Then lag and status
    tell of that moment, and the state of groups, their members and offsets of the end.
    """
    end = read_until(manifest)
    if end is None or manifest.as_of_ms is None:
        return None
    moment = datetime.fromtimestamp(manifest.as_of_ms / 1000, UTC)
    return end if end - moment > SKEW else None


def log_end(tables: Tables) -> datetime | None:
    """The last time in the log, where it may be a copy and that time is long before the moment for
    which its tables were computed. None for a live log, and for one without times.
    """
    manifest = tables.manifest
    if not manifest.source.startswith(_COPIES) or manifest.as_of_ms is None:
        return None
    moment = datetime.fromtimestamp(manifest.as_of_ms / 1000, UTC)
    end = read_until(manifest)
    ends = [] if end is None else [end]
    until = ds.field("sampled_at") <= moment
    for batch in tables("end_offsets").to_batches(["sampled_at"], until):
        times = batch.column(0).to_pylist()
        ends += [max(times)] if times else []
    newest = max(ends, default=None)
    return newest if newest is not None and moment - newest > NEAR else None
