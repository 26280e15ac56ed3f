# SPDX-License-Identifier: Apache-2.0
"""Decoded rows of a group as the events of its history."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kohort.history import RECORD_TYPES, Commits, Event, Record
from kohort.history.events import (
    CLASSIC,
    CURRENT,
    EPOCH,
    EXPRESSION,
    MEMBER,
    TARGET_EPOCH,
    Current,
    Epoch,
    Expression,
    Generation,
    Member,
    OtherRecord,
    TargetEpoch,
)
from kohort.pipeline.schemas import KINDS, TOMBSTONE
from kohort.records.causes import Because, causes_in

VALUES: dict[int, type[msgspec.Struct]] = {
    CLASSIC: Generation,
    EPOCH: Epoch,
    MEMBER: Member,
    TARGET_EPOCH: TargetEpoch,
    CURRENT: Current,
    EXPRESSION: Expression,
}
"""Record type -> what a history needs of its values. Of the other types it needs that there is one.
"""
COMMITS = (KINDS[0], KINDS[1])
FOLDED = ("count", "plain", "first_at", "first_committed", "rest_since", "rest_until")
"""Columns of commits that were folded: of each of several, the offset is the first, and
the other columns are of the last."""
_WHERE = ("offset", "timestamp", "kind", "type", "partition_leader_epoch")


def events(rows: pa.Table) -> list[Event]:
    """The rows of one group, in any order, as events in the order of the log. They have columns of
    `schemas.DECODED`, those of `FOLDED` if commits were folded.
    """
    found: list[Event] = [*_records(rows), *_commits(rows)]
    return sorted(found, key=lambda event: event.offset)


def _records(rows: pa.Table) -> Iterator[Record]:
    kinds = [TOMBSTONE, *(KINDS[number] for number in RECORD_TYPES)]
    rows = rows.filter(
        pc.and_(
            pc.is_in(rows["kind"], pa.array(kinds)),
            pc.is_in(pc.cast(rows["type"], pa.int32()), pa.array(RECORD_TYPES, pa.int32())),
        )
    )
    if not rows.num_rows:
        return
    values = {number: iter(_values(rows, number)) for number in VALUES}
    offsets, times, found, types, epochs = (_plain(rows, name) for name in _WHERE)
    members, expressions = _plain(rows, "member_id"), _plain(rows, "regular_expression")
    headers = _plain(rows, "headers")
    said = OtherRecord()
    for index, number in enumerate(types):
        value = (
            None
            if found[index] == TOMBSTONE
            else next(values[number])
            if number in values
            else said
        )
        yield Record(
            offsets[index],
            times[index],
            number,
            members[index] if members[index] is not None else expressions[index],
            value,
            epochs[index],
            _causes(headers[index]),
        )


def _causes(headers: list[dict[str, Any]] | None) -> list[Because]:
    return causes_in((header["key"], header["value"]) for header in headers) if headers else []


def _values(rows: pa.Table, number: int) -> list[Any]:
    kind = KINDS[number]
    column = rows.filter(pc.equal(rows["kind"], kind))[kind].combine_chunks()
    if not len(column):
        return []
    there = {field.name for field in column.type}
    fields = [name for name in VALUES[number].__struct_fields__ if name in there]
    values = pa.table([_micros(pc.struct_field(column, name)) for name in fields], names=fields)
    tagged = [{"type": number, **row} for row in values.to_pylist()]
    of_number: Any = VALUES[number]
    return msgspec.convert(tagged, list[of_number])


def _commits(rows: pa.Table) -> Iterator[Commits]:
    rows = rows.filter(pc.is_in(rows["kind"], pa.array(COMMITS)))
    if not rows.num_rows:
        return
    names = ("offset", "timestamp", "topic", "topic_partition", "committed_offset")
    offsets, times, topics, indexes, committed = (_plain(rows, name) for name in names)
    epochs = _plain(rows, "partition_leader_epoch")
    if "count" in rows.column_names:
        counts, plain, first_at, first_committed, rest_since, rest_until = (
            _plain(rows, name) for name in FOLDED
        )
    else:
        counts, first_at, first_committed = [1] * rows.num_rows, times, committed
        rest_since = rest_until = [None] * rows.num_rows
        plain = [producer == -1 for producer in _plain(rows, "producer_id")]
    for index, offset in enumerate(offsets):
        yield Commits(
            offset,
            first_at[index],
            times[index],
            topics[index],
            indexes[index],
            counts[index],
            plain[index],
            _offset(first_committed[index]),
            _offset(committed[index]),
            epochs[index],
            rest_since[index],
            rest_until[index],
        )


def _offset(committed: int | None) -> int | None:
    """A commit of -1 says that there is no offset, as OffsetFetch answers -1 for none."""
    return None if committed == -1 else committed


def _plain(rows: pa.Table, name: str) -> list[Any]:
    found: list[Any] = _micros(rows[name]).to_pylist()
    return found


def _micros(column: Any) -> Any:
    """Times as numbers."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
