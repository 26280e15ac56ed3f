# SPDX-License-Identifier: Apache-2.0
"""The tables about the present: lag, status, and which groups may be deleted."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.columns.times import micros
from kohort.pipeline.format.log_end import read_until
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.membership import GROUP_STATE
from kohort.pipeline.schemas.progress import COMMITS, DELETABLE_GROUPS, LAG, OFFSETS, STATUS
from kohort.pipeline.stores import parquet
from kohort.spark.gold.commits import EFFECTIVE
from kohort.spark.gold.deletable_groups import deletable_groups
from kohort.spark.gold.lag import Times, lag_of, moments_of
from kohort.spark.gold.newest import NEWEST, RECORDS, as_effective, said_of_offsets
from kohort.spark.gold.status import MEMBERS, WINDOWS, status, windows_of
from kohort.spark.tables.log_progress import new_increments
from kohort.spark.tables.progress_run import NewCommits, Parts, Run
from kohort.spark.tables.sample_delta import SampleDelta


def moments_or_none(run: Run, fresh: NewCommits, times: Times) -> list[int] | None:
    """The moments that `lag` has, where that does not depend on how many partitions of groups have
    become new; `times` are those of samples.
    """
    before = run.log_progress.before
    if before is None or run.recompute():
        return None
    least = sum(part.rows for part in before.newest)
    most = least + sum(part.rows for part in fresh.over)
    found = moments_of(times, least, micros(run.context.as_of))
    return found if found == moments_of(times, most, micros(run.context.as_of)) else None


def moments_at(run: Run, last: Parts, times: Times) -> list[int]:
    """The moments that `lag` has; `last` are the NEWEST rows of this run."""
    return moments_of(times, sum(part.rows for part in last), micros(run.context.as_of))


def lag(
    run: Run, fresh: NewCommits, gold: dict[str, Parts], samples: SampleDelta, moments: list[int]
) -> Parts:
    """Rows of moments that nothing new is about stay. Those of other moments are computed."""
    before = run.log_progress.before
    unchanged: set[int] = set()
    if before is not None and not run.log_progress.truncated:
        since = min(samples.since_us, _since(run, fresh))
        unchanged = {moment for moment in moments if moment in before.moments and moment < since}
    computed = [moment for moment in moments if moment not in unchanged]
    if before is not None and not computed:
        if moments == [*before.moments]:
            return run.before(LAG)
        return run.write(_unchanged_rows(run, unchanged), LAG)
    rows = lag_at(run, fresh, gold, computed)
    both = rows.unionByName(_unchanged_rows(run, unchanged)) if unchanged else rows
    return run.write(both, LAG)


def lag_at(
    run: Run, fresh: NewCommits, gold: Mapping[str, Parts], moments: Sequence[int]
) -> DataFrame:
    """The rows of `lag` at these ascending moments, from the kept commits where these suffice."""
    before = run.log_progress.before
    if _suffices(run, moments):
        assert before is not None
        last_only = before.newest_us is None or moments[0] >= before.newest_us
        then = run.parts(NEWEST, before.newest)
        if run.recompute():
            then = then.where(~F.col("partition").isin(sorted(run.recompute())))
        known = as_effective(then, last_only=last_only)
        taken = known.unionByName(run.effective(fresh.over))
    else:
        taken = run.effective([part for part in gold[COMMITS.name] if not part.is_open])
    return lag_of(run.frames | {EFFECTIVE: taken}, moments)


def _unchanged_rows(run: Run, moments: set[int]) -> DataFrame:
    """The rows of these moments as they were."""
    return run.parts(LAG, run.before(LAG)).where(F.unix_micros("at").isin(sorted(moments)))


def _suffices(run: Run, moments: Sequence[int]) -> bool:
    """Whether what is kept of the commits before tells what held at these moments."""
    before = run.log_progress.before
    return (
        before is not None
        and not run.log_progress.truncated
        and (before.exact_us is None or moments[0] >= before.exact_us)
    )


def _since(run: Run, fresh: NewCommits) -> int:
    """The earliest time among the new commits and records, in microseconds."""
    times = [
        increment.oldest_ms * 1000
        for increment in new_increments(run.writer, run.manifest)
        if increment.oldest_ms is not None
    ]
    assert run.log_progress.before is not None
    fed = run.log_progress.before.fed
    offsets = pa.array([*fed.values()], pa.int64())
    known = pa.table({"partition": pa.array([*fed], pa.int32()), "fed": offsets})
    for part in fresh.over:  # some commits have a time of their own
        rows = parquet.folder_dataset(run.directory / part.path, COMMITS.arrow)
        for batch in rows.to_batches(columns=["partition", "effective_offset", "effective_at"]):
            both = pa.Table.from_batches([batch]).join(known, "partition", join_type="left outer")
            is_new = pc.greater_equal(both["effective_offset"], pc.coalesce(both["fed"], 0))
            first = pc.min(both.filter(is_new)["effective_at"].cast(pa.int64())).as_py()
            times += [] if first is None else [first]
    return min(times, default=np.iinfo(np.int64).max)


def status_now(run: Run, last: Parts, gold: dict[str, Parts], exact_us: int | None) -> Parts:
    now = micros(run.context.as_of)
    if exact_us is None or now >= exact_us:
        known = {WINDOWS: windows_of(run.parts(NEWEST, last), now)}
    else:
        over = [part for part in gold[COMMITS.name] if not part.is_open]
        known = {EFFECTIVE: run.effective(over)}
    frames = {
        **known,
        LAG.name: run.parts(LAG, gold[LAG.name]),
        END_OFFSETS.name: run.frames[END_OFFSETS.name],
        GROUP_STATE.name: run.parts(GROUP_STATE, gold[GROUP_STATE.name]),
    }
    if (end := read_until(run.manifest)) is not None and micros(end) > now:
        frames[MEMBERS] = run.frames[MEMBERS]
    return run.write(status(frames, run.context), STATUS)


def deletable(run: Run, newest_records: Parts, gold: dict[str, Parts]) -> Parts:
    frames = {
        GROUP_STATE.name: run.parts(GROUP_STATE, gold[GROUP_STATE.name]),
        OFFSETS.name: run.parts(OFFSETS, gold[OFFSETS.name]),
        COMMITS.name: run.parts(RECORDS, newest_records).where(said_of_offsets()),
    }
    return run.write(deletable_groups(frames, run.context), DELETABLE_GROUPS)
