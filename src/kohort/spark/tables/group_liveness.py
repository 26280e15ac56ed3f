# SPDX-License-Identifier: Apache-2.0
"""Whether new rows can have changed what groups are. Most cannot: they are commits of groups that
are known to live. Needs no Spark.
"""

import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.format.arrow_reader import Place, Rows
from kohort.pipeline.schemas import DECODED, KINDS, MARKER, QUARANTINE
from kohort.pipeline.schemas.membership import GROUP_STATE
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import ROWS
from kohort.spark.gold.history import GROUP
from kohort.spark.tables.log_progress import new_increments
from kohort.spark.tables.progress_run import Run

_COMMITS = (KINDS[0], KINDS[1])
_TELL_NOTHING = {*_COMMITS, MARKER, QUARANTINE}
"""Kinds of rows that tell nothing about members, nor of the end of a group."""
_STATE = pc.field("state")


def has_only_commits(run: Run) -> bool:
    """Whether only new rows are looked at, and all that tell something are commits."""
    if run.log_progress.before is None or run.recompute():
        return False
    return all(
        kind in _TELL_NOTHING or not count
        for increment in new_increments(run.writer, run.manifest)
        for kind, count in increment.counts.items()
    )


def are_groups_alive(run: Run) -> bool:
    """Whether each group that has new commits was alive before. Then it still is, and is what it
    was. For few rows: both sides are read into memory.
    """
    committing = _groups(_fresh_commits(run))
    living = _groups(_known(run), pc.is_null(_STATE) | (_STATE != "Dead"))
    return not committing.join(living, [*GROUP], join_type="left anti").num_rows


def _groups(rows: Rows, which: pc.Expression | None = None) -> pa.Table:
    """The groups of some rows, each once."""
    return rows.to_table([*GROUP], which).group_by([*GROUP]).aggregate([])


def _fresh_commits(run: Run) -> Rows:
    folders = (
        run.directory / ROWS / increment.name / f"kind={kind}"
        for increment in new_increments(run.writer, run.manifest)
        for kind in _COMMITS
        if increment.counts.get(kind)
    )
    files = [str(file) for folder in folders for file in parquet.files_of(folder)]
    return Rows(DECODED.arrow, [Place(files)] if files else [])


def _known(run: Run) -> Rows:
    places = (
        Place([str(file) for file in parquet.files_of(run.directory / part.path)])
        for part in run.before(GROUP_STATE)
    )
    return Rows(GROUP_STATE.arrow, [place for place in places if place.files])
