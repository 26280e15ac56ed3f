# SPDX-License-Identifier: Apache-2.0
"""Every table's columns, by name. The modules below describe them: `progress` has those of commits,
lag and status, `membership` those of members and rebalances.
"""

from kohort.pipeline.schemas import membership, progress
from kohort.pipeline.schemas.observed_history import LAG_HISTORY, STATUS_HISTORY
from kohort.pipeline.schemas.rows import (
    ALL_KINDS,
    DECODED,
    END_OFFSETS,
    KINDS,
    MARKER,
    OTHER,
    QUARANTINE,
    RAW,
    RECORDS_TABLE,
    SILVER,
    TOMBSTONE,
)
from kohort.pipeline.schemas.table import Column, Table

GOLD = (
    membership.GROUP_STATE,
    membership.MEMBERS,
    membership.ASSIGNMENTS,
    membership.REBALANCES,
    progress.COMMITS,
    progress.OFFSETS,
    progress.COMMIT_RATES,
    progress.LAG,
    progress.STATUS,
    progress.DELETABLE_GROUPS,
)
"""The tables that are computed, in the order in which they are (see `gold.MEASURES`)."""

OBSERVED_HISTORY = (LAG_HISTORY, STATUS_HISTORY)
"""The tables of what runs have seen, which nobody can compute again."""

__all__ = [
    "ALL_KINDS",
    "DECODED",
    "END_OFFSETS",
    "GOLD",
    "KINDS",
    "LAG_HISTORY",
    "MARKER",
    "OBSERVED_HISTORY",
    "OTHER",
    "QUARANTINE",
    "RAW",
    "RECORDS_TABLE",
    "SILVER",
    "STATUS_HISTORY",
    "TOMBSTONE",
    "Column",
    "Table",
]
