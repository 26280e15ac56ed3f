# SPDX-License-Identifier: Apache-2.0
"""Says where a disk is full. Spark tells only that one is, and it writes in two places: what it
sorts goes to its local directories, the tables to theirs.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WORDS = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT))
"""As Java has them too, which takes them from the system."""


def disk_full_or_none(
    error: BaseException, spark: SparkSession | None, out: object, *, is_changed: bool = False
) -> str | None:
    """One sentence, where a full disk is the cause of an error; None otherwise. What was published
    before is whole: a run changes no file that counts. `is_changed` says that the run has published
    something itself.
    """
    reason = next((reason for cause in _causes(error) if (reason := _reason(cause))), None)
    if reason is None:
        return None
    places = {str(out): "for the tables"} | dict.fromkeys(_local(spark), "for what Spark sorts")
    free = ", ".join(f"{_free(place)} in {place} {use}" for place, use in places.items())
    state = "have all that was published until then" if is_changed else "as they were before"
    return f"{reason} (free: {free}). The tables in {out} are whole, and {state}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _reason(error: BaseException) -> str | None:
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        assert error.errno is not None
        place = f": {error.filename}" if error.filename else ""
        return f"{os.strerror(error.errno)}{place}"
    text = str(error)
    return next((words for words in _WORDS if words in text), None)


def _local(spark: SparkSession | None) -> list[str]:
    """The directories in which Spark keeps what does not fit into memory."""
    directories = os.environ.get("SPARK_LOCAL_DIRS")
    if directories is None and spark is not None:
        directories = spark.conf.get("spark.local.dir", None)
    return (directories or tempfile.gettempdir()).split(",")


def _free(place: str) -> str:
    """How much room there is, in the unit that reads best; "unknown" for what is no disk."""
    there = Path(place)
    try:
        while not there.exists():
            there = there.parent
        free = shutil.disk_usage(there).free
    except OSError:
        return "unknown"
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if free >= size:
            return f"{free / size:.3g} {unit}"
    return f"{free} bytes"
