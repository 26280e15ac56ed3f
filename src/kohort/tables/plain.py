# SPDX-License-Identifier: Apache-2.0
"""Values and rows of tables as text: what JSON has, a document in each line, and CSV.

Times are in ISO 8601, in UTC, and bytes in hex. NaN and the infinities are text, as `"NaN"`. In CSV
a null is nothing, and what is made of several values is JSON.
"""

import io
import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from math import isfinite, isnan
from typing import Any

import pyarrow as pa

from kohort.csv_writer import CsvWriter


def plain(value: Any) -> Any:
    """A value as JSON shows it."""
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case bytes():
            return value.hex()
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case float() if not isfinite(value):  # JSON has no such number
            return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case date():
            return value.isoformat()
    return str(value)


def rows(batch: pa.RecordBatch) -> Iterator[list[Any]]:
    """The rows of a batch; two columns may have the same name."""
    columns = [column.to_pylist() for column in batch.columns]
    return map(list, zip(*columns, strict=True))


def jsonl(batch: pa.RecordBatch) -> str:
    """A line for each row, an object with the columns."""
    names = batch.schema.names
    return "".join(
        json.dumps(dict(zip(names, map(plain, row), strict=True)), ensure_ascii=False) + "\n"
        for row in rows(batch)
    )


def csv_header(schema: pa.Schema) -> str:
    """The first line of CSV."""
    return _csv([schema.names])


def csv_lines(batch: pa.RecordBatch) -> str:
    """A line for each row, as RFC 4180 has them but for the line end, which is a single LF."""
    return _csv([[_cell(value) for value in row] for row in rows(batch)])


def _cell(value: Any) -> Any:
    shown = plain(value)
    match shown:
        case bool():
            return "true" if shown else "false"
        case list() | dict():
            return json.dumps(shown, ensure_ascii=False)
    return shown


def _csv(lines: list[list[Any]]) -> str:
    text = io.StringIO()
    CsvWriter(text).writerows(lines)
    return text.getvalue()
