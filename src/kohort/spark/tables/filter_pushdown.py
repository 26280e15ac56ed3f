# SPDX-License-Identifier: Apache-2.0
"""Filters of Spark as conditions of Arrow, where both mean the same for every row.

Both leave out a row where a condition is null, and compare text by its bytes. They differ in NaN,
which is larger than any number for Spark and like none for Arrow.
"""

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as sources

_COMPARED: dict[type[sources.Filter], Callable[[Any, Any], pc.Expression]] = {
    sources.EqualTo: lambda column, other: column == other,
    sources.GreaterThan: lambda column, other: column > other,
    sources.GreaterThanOrEqual: lambda column, other: column >= other,
    sources.LessThan: lambda column, other: column < other,
    sources.LessThanOrEqual: lambda column, other: column <= other,
}
_TEXT: dict[type[sources.Filter], Callable[..., pc.Expression]] = {
    sources.StringStartsWith: pc.starts_with,
    sources.StringEndsWith: pc.ends_with,
    sources.StringContains: pc.match_substring,
}
_ABOVE = (sources.GreaterThan, sources.GreaterThanOrEqual)


def condition_or_none(asked: Any, schema: pa.Schema) -> pc.Expression | None:
    """A `Filter` of Spark as a condition of Arrow on columns of this schema; None where there is
    none.
    """
    if isinstance(asked, sources.Not):
        inner = condition_or_none(asked.child, schema)
        return None if inner is None else ~inner
    path: tuple[str, ...] = getattr(asked, "attribute", ())
    if len(path) != 1 or path[0] not in schema.names:
        return None
    field = schema.field(path[0])
    column = pc.field(field.name)
    if isinstance(asked, sources.IsNull | sources.IsNotNull):
        return column.is_null() if isinstance(asked, sources.IsNull) else column.is_valid()
    if isinstance(asked, sources.In):
        known = [_scalar_or_none(item, field.type) for item in asked.value]
        values = [scalar.as_py() for scalar in known if scalar is not None]
        if not values or len(values) != len(known) or pa.types.is_floating(field.type):
            return None
        # `isin` is false for a null, and under a `Not` true: a comparison keeps it null.
        return column.isin(pa.array(values, field.type)) | (column == values[0])
    if type(asked) in _TEXT and pa.types.is_string(field.type) and isinstance(asked.value, str):
        return _TEXT[type(asked)](column, pattern=asked.value)
    if type(asked) not in _COMPARED:
        return None
    value = _scalar_or_none(asked.value, field.type)
    if value is None:
        return None
    compared = _COMPARED[type(asked)](column, value)
    if pa.types.is_floating(field.type) and isinstance(asked, _ABOVE):
        return compared | pc.is_nan(column)
    return compared


def _scalar_or_none(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """A value as a column of this type has it; None where it is not one of these."""
    if value is None or pa.types.is_nested(kind):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, datetime) and value.tzinfo is None:
        return None
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, OverflowError):
        return None
