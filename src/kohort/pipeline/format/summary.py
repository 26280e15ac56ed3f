# SPDX-License-Identifier: Apache-2.0
"""What a run reports when it has ended."""

from datetime import datetime
from typing import NamedTuple

from kohort.pipeline.format.server_logs import ServerLog
from kohort.pipeline.sources.log_position import Note
from kohort.pipeline.stores.places import Folder


class Summary(NamedTuple):
    """What a run did."""

    directory: Folder
    rows: dict[str, int]
    """Table of silver -> rows that were added."""
    gold: dict[str, int]
    """Table of gold -> rows that it has now."""
    notes: tuple[Note, ...]
    """What happened to the log: gaps, cut tails."""
    as_of: datetime
    seconds: float
    log_end: datetime | None = None
    """Where the log ends, if that is long before `as_of` and it may be a copy."""
    server_logs: tuple[ServerLog, ...] = ()
    """The log files of brokers that were read."""
    unchanged: bool = False
    """Nothing was new, so the tables are those of an earlier run, and Spark was not needed."""
