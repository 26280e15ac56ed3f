# SPDX-License-Identifier: Apache-2.0
"""Python values as a batch of a table's columns: types come from the table, never from the values,
so that a column without any value has its type all the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from kohort.pipeline.schemas import Table


def of_columns(table: Table, columns: Mapping[str, Sequence[Any]]) -> pa.RecordBatch:
    """A batch out of all columns of the table by name; times are microseconds since 1970."""
    arrays = [
        pa.array(columns[field.name], pa.int64()).cast(field.type)
        if pa.types.is_timestamp(field.type)
        else pa.array(columns[field.name], field.type)
        for field in table.arrow
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.arrow)


def of_rows(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """A batch out of rows; what a row does not name is null."""
    return of_columns(table, {name: [row.get(name) for row in rows] for name in table.names})
