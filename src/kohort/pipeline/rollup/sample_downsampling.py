# SPDX-License-Identifier: Apache-2.0
"""How samples of ends are downsampled with age: of each step the last stays, for all of them.

A sample is as true alone as among others, so what is left out makes a time lag less exact, and
never wrong: the samples beside it bound it still. What an offset is judged by stays: the first
sample of a file's time, which has no other below it, and both samples where an end goes back, as
only a topic that was recreated does. Rows become the same in whatever order and pieces they are
downsampled, unless some come late into a step at which an end went back (see `downsample`).
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.rollup_tiers import RollupTier

KEY = ["topic", "topic_partition", "topic_id", "origin"]
_BY_TIME = ("sampled_at", "end_offset", "log_start_offset", "samples")
ORDER = [(name, "ascending") for name in (*KEY, *_BY_TIME)]


def downsample(rows: pa.Table, tier: RollupTier) -> pa.Table:
    """Rows of `end_offsets`, of each key those that a tier keeps. All rows that lie in the time of
    one of its files have to come together. Where samples come late that lie within a step at which
    an end went back, an earlier call may have left out one of the two that show it.
    """
    ordered = rows.sort_by(ORDER)
    if not ordered.num_rows:
        return ordered
    at = ordered["sampled_at"].cast(pa.int64()).to_numpy()
    ends = ordered["end_offset"].to_numpy()
    begins = _changes(at // tier.file_us) | (np.diff(ends, prepend=ends[0]) < 0)
    for name in KEY:
        begins |= _changes(_codes(ordered[name]))
    behind_first = np.roll(begins, 1)  # what begins is alone: the row behind it begins a step
    starts = np.flatnonzero(begins | behind_first | _changes(at // tier.step_us))
    lasts = np.append(starts[1:], len(at)) - 1
    counts = pc.fill_null(ordered["samples"], 1).to_numpy()
    kept = ordered.take(pa.array(lasts))
    stands_for = pa.array(np.add.reduceat(counts, starts), END_OFFSETS.arrow.field("samples").type)
    return kept.set_column(kept.schema.get_field_index("samples"), "samples", stands_for)


def without_downsampled(
    fresh: pa.RecordBatch, coarse: pa.Table, tier: RollupTier
) -> pa.RecordBatch:
    """The fresh samples that none of these rows stands for, which stand for several of a tier."""
    place = pc.index_in(_steps(fresh, tier), _steps(coarse, tier))
    until = coarse["sampled_at"].combine_chunks().take(place)
    is_new = pc.fill_null(pc.greater(fresh["sampled_at"], until), True)
    return fresh.filter(is_new)


def _steps(rows: pa.Table | pa.RecordBatch, tier: RollupTier) -> pa.Array | pa.ChunkedArray:
    """The key and the step of each row, as a text."""
    steps = pa.array(rows["sampled_at"].cast(pa.int64()).to_numpy() // tier.step_us)
    texts = [*(rows[name].cast(pa.string()) for name in KEY), steps.cast(pa.string())]
    return pc.binary_join_element_wise(*texts, "\0", null_handling="replace")


def _changes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Where a value differs from the one before it; the first one does."""
    return np.append(True, values[1:] != values[:-1])


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A number for each value, null included."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    codes: npt.NDArray[np.int64] = encoded.indices.to_numpy()
    return codes
