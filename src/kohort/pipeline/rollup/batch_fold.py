# SPDX-License-Identifier: Apache-2.0
"""Tables larger than memory, made smaller piece by piece where that makes no difference."""

from collections.abc import Callable, Iterable

import pyarrow as pa

ROWS_AT_ONCE = 100_000


def folded(
    pieces: Iterable[pa.RecordBatch], schema: pa.Schema, fold: Callable[[pa.Table], pa.Table]
) -> pa.Table:
    """All rows after `fold`. It takes its own result with more rows behind it, and gives rows of
    the same schema. Memory holds at most a little more than twice the rows that remain.
    """
    kept, most = schema.empty_table(), ROWS_AT_ONCE
    for piece in pieces:
        kept = pa.concat_tables([kept, pa.Table.from_batches([piece]).cast(schema)])
        if kept.num_rows > most:
            kept = fold(kept)
            most = max(ROWS_AT_ONCE, 2 * kept.num_rows)
    return fold(kept)
