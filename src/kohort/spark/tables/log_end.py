"""Where a log ends that may be a copy: what came after its end is unknown."""

from datetime import UTC, datetime, timedelta

import pyarrow.dataset as ds

from kohort.spark.tables.arrow_reader import Tables

NEAR = timedelta(minutes=1)
"""A log that ends this shortly before the moment of its tables may as well be live."""
_COPIES = ("log:", "parquet:")


def log_end(tables: Tables) -> datetime | None:
    """The last time in the log, where it may be a copy and that time is long before the moment for
    which its tables were computed. None for a live log, and for one without times.
    """
    manifest = tables.manifest
    if not manifest.source.startswith(_COPIES) or manifest.as_of_ms is None:
        return None
    moment = datetime.fromtimestamp(manifest.as_of_ms / 1000, UTC)
    told = [
        datetime.fromtimestamp(increment.newest_ms / 1000, UTC)
        for increment in manifest.increments
        if increment.newest_ms is not None
    ]
    until = ds.field("sampled_at") <= moment
    for batch in tables("end_offsets").to_batches(["sampled_at"], until):
        times = batch.column(0).to_pylist()
        told += [max(times)] if times else []
    newest = max(told, default=None)
    return newest if newest is not None and moment - newest > NEAR else None
