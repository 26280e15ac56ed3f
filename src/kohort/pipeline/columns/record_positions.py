# SPDX-License-Identifier: Apache-2.0
"""Raw rows before they are columns: where each key and each value stands in the bytes of a log.

Most readers want few of the columns, and what is decoded from a key can be read where the key
stands. So nothing is copied before somebody asks for it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kohort.errors import WireError
from kohort.pipeline.columns.buffers import Bools, Bytes, Ints, column, slices
from kohort.pipeline.columns.times import timestamps
from kohort.pipeline.schemas import RAW
from kohort.wire import batch

Headers = npt.NDArray[np.void]


class Ranges(NamedTuple):
    """The bytes of many keys or values, and where each is in them; what is null is empty."""

    buffer: Bytes
    starts: Ints
    ends: Ints
    there: Bools

    def at(self, rows: Ints) -> "Ranges":
        return Ranges(self.buffer, self.starts[rows], self.ends[rows], self.there[rows])


class Rows(Protocol):
    """Raw rows, in whatever way they are kept. See RAW for what its columns mean."""

    def __len__(self) -> int: ...

    def column(self, name: str) -> pa.Array:
        """A column of RAW."""

    def key(self) -> Ranges: ...

    def value(self) -> Ranges: ...

    def control(self) -> Bools: ...

    def broken(self) -> Bools:
        """Rows that were a batch that cannot be read."""

    def where(self, wanted: Bools) -> "Rows":
        """Some of the rows, in the same order."""

    def between(self, first: int, stop: int) -> "Rows":
        """The rows from `first` to before `stop`."""


class BufferRows:
    """Records of batches that were found right, where they stand in the bytes of the log."""

    def __init__(
        self, partition: int, data: bytes, headers: Headers, places: "RecordPositions"
    ) -> None:
        self._partition = partition
        self._data = data
        self._headers = headers
        self._places = places

    def __len__(self) -> int:
        return len(self._places.of)

    def column(self, name: str) -> pa.Array:
        places = self._places
        match name:
            case "partition":
                return column(pa.int32(), np.full(len(self), self._partition, np.int32))
            case "offset":
                return column(pa.int64(), places.offset)
            case "timestamp":
                return timestamps(places.timestamp)
            case "key":
                return _binary(self._data, places.key, places.key_size)
            case "value":
                return _binary(self._data, places.value, places.value_size)
            case (
                "producer_id"
                | "producer_epoch"
                | "partition_leader_epoch"
                | "base_offset"
                | "attributes"
            ):
                kind = RAW.arrow.field(name).type
                of_batch = self._headers[name].astype(kind.to_pandas_dtype())
                return column(kind, of_batch[places.of])
            case "transactional":
                return pa.array(self._has(batch.TRANSACTIONAL))
            case "control":
                return pa.array(self.control())
            case "headers":
                return self._record_headers()
        return pa.nulls(len(self), RAW.arrow.field(name).type)

    def _record_headers(self) -> pa.Array:
        """Few records have any: those are read one by one."""
        kind = RAW.arrow.field("headers").type
        with_headers = np.flatnonzero(self._places.header_size > 1)
        if not len(with_headers):
            return pa.nulls(len(self), kind)
        found: list[list[dict[str, Any]] | None] = [None] * len(self)
        for row in with_headers.tolist():
            at = int(self._places.header[row])
            tail = bytes(self._data[at : at + int(self._places.header_size[row])])
            found[row] = headers_or_none(tail)
        return pa.array(found, kind)

    def key(self) -> Ranges:
        return self._ranges(self._places.key, self._places.key_size)

    def value(self) -> Ranges:
        return self._ranges(self._places.value, self._places.value_size)

    def control(self) -> Bools:
        return self._has(batch.CONTROL)

    def broken(self) -> Bools:
        return np.zeros(len(self), np.bool_)

    def where(self, wanted: Bools) -> "BufferRows":
        return self._with(RecordPositions(*(place[wanted] for place in self._places)))

    def between(self, first: int, stop: int) -> "BufferRows":
        return self._with(RecordPositions(*(place[first:stop] for place in self._places)))

    def _with(self, places: "RecordPositions") -> "BufferRows":
        return BufferRows(self._partition, self._data, self._headers, places)

    def _ranges(self, starts: Ints, sizes: Ints) -> Ranges:
        buffer = np.frombuffer(self._data, np.uint8)
        return Ranges(buffer, starts, starts + np.maximum(sizes, 0), sizes >= 0)

    def _has(self, attribute: int) -> Bools:
        of_batch = self._headers["attributes"].astype(np.int64) & attribute != 0
        if not of_batch.any():
            return np.zeros(len(self), np.bool_)
        found: Bools = of_batch[self._places.of]
        return found


class RecordPositions(NamedTuple):
    """An item for each record, in the order of the log."""

    of: Ints
    """Which of the headers is that of its batch."""
    offset: Ints
    timestamp: Ints
    """Milliseconds."""
    key: Ints
    key_size: Ints
    """-1 for null."""
    value: Ints
    value_size: Ints
    header: Ints
    """Its headers: how many there are, and they themselves."""
    header_size: Ints


class ArrowRows:
    """Rows that are columns by now."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def column(self, name: str) -> pa.Array:
        return self._rows.column(name)

    def key(self) -> Ranges:
        return _ranges(self.column("key"))

    def value(self) -> Ranges:
        return _ranges(self.column("value"))

    def control(self) -> Bools:
        control: Bools = self.column("control").to_numpy(zero_copy_only=False)
        return control

    def broken(self) -> Bools:
        errors = self.column("error")
        if errors.null_count == len(errors):
            return np.zeros(len(errors), np.bool_)
        broken: Bools = errors.is_valid().to_numpy(zero_copy_only=False)
        return broken

    def where(self, wanted: Bools) -> "ArrowRows":
        return ArrowRows(self._rows.filter(pa.array(wanted)))

    def between(self, first: int, stop: int) -> "ArrowRows":
        return ArrowRows(self._rows.slice(first, stop - first))


def headers_or_none(tail: bytes) -> list[dict[str, Any]] | None:
    """The headers behind the value of a record; None where they cannot be read: the record can."""
    try:
        return as_headers(batch.headers_of_record(tail))
    except WireError:
        return None


def as_headers(headers: batch.Headers) -> list[dict[str, Any]] | None:
    """Headers as RAW has them."""
    found = [
        {"key": name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), "value": value}
        for name, value in headers
    ]
    return found or None


def raw(rows: Rows, names: Sequence[str] = RAW.names) -> pa.RecordBatch:
    """The rows in these columns of RAW."""
    schema = pa.schema([RAW.arrow.field(name) for name in names])
    return pa.RecordBatch.from_arrays([rows.column(name) for name in names], schema=schema)


def sliced(rows: Rows, size: int) -> Iterator[Rows]:
    """The rows some at a time."""
    for first in range(0, len(rows), size):
        yield rows.between(first, min(first + size, len(rows)))


def with_offsets(rows: Rows, start: int, end: int | None) -> Rows:
    """Rows whose offset is in a range; nearly always all of them."""
    offsets = rows.column("offset").to_numpy()
    kept = offsets >= start
    if end is not None:
        kept &= offsets < end
    return rows if kept.all() else rows.where(kept)


def _binary(data: bytes, starts: Ints, sizes: Ints) -> pa.Array:
    there = sizes >= 0
    if there.all():
        return slices(pa.binary(), data, starts, sizes)
    return slices(pa.binary(), data, starts, np.maximum(sizes, 0), there)


def _ranges(binary: pa.Array) -> Ranges:
    _, offsets, data = binary.buffers()
    edges = np.frombuffer(offsets, np.int32)[binary.offset : binary.offset + len(binary) + 1]
    places: Any = edges.astype(np.int64)
    buffer = np.frombuffer(data if data is not None else b"", np.uint8)
    if binary.null_count:
        there = binary.is_valid().to_numpy(zero_copy_only=False)
    else:
        there = np.ones(len(binary), np.bool_)
    return Ranges(buffer, places[:-1], places[1:], there)
