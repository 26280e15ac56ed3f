# SPDX-License-Identifier: Apache-2.0
"""Times as tables have them: microseconds, or null. Those of the log are milliseconds."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from kohort.pipeline.columns.buffers import Ints, column
from kohort.pipeline.schemas.table import TIME

NEWEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: no table can hold a later time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds_or_none(timestamp: int) -> int | None:
    """A time of the log as tables have it; None for what is no time."""
    return timestamp * 1000 if 0 <= timestamp <= NEWEST_MS else None


def timestamps(milliseconds: Ints) -> pa.Array:
    """The same for many."""
    is_time = (milliseconds >= 0) & (milliseconds <= NEWEST_MS)
    if is_time.all():
        return column(TIME, milliseconds * 1000)
    return column(TIME, np.where(is_time, milliseconds, 0) * 1000, is_time)


def micros(moment: datetime) -> int:
    """A time as tables count it. A time without a zone is in UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)
