# SPDX-License-Identifier: Apache-2.0
"""Offsets in a file, in both forms of kafka-consumer-groups (KIP-122): `topic,partition,offset` for
one group, and `group,topic,partition,offset` for several.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO

from kohort.client.admin import arguments
from kohort.client.admin.group_views import CommittedOffset
from kohort.csv_writer import CsvWriter
from kohort.terms import TopicPartition

MARK = "\ufeff"  # of the byte order
ONE_GROUP, SEVERAL_GROUPS = 3, 4  # fields of a line

_NEGATIVE = re.compile(r"-[0-9]+")

OffsetsByGroup = dict[str | None, dict[TopicPartition, CommittedOffset]]
"""None stands for the group that lines without a group are for."""


class NegativeOffsetError(ValueError):
    """An offset below 0, where all else of its line makes sense."""


def read_offsets(text: str) -> OffsetsByGroup:
    """The offsets in a file. Raises ValueError, which names the line;
    NegativeOffsetError is one.
    """
    found: OffsetsByGroup = {}
    width = 0
    for number, fields in _lines(text):
        if not width:
            width = len(fields)
        if len(fields) not in (ONE_GROUP, SEVERAL_GROUPS) or len(fields) != width:
            expected = (
                "topic,partition,offset or group,topic,partition,offset"
                if width not in (ONE_GROUP, SEVERAL_GROUPS)
                else f"{width} as in the first line"
            )
            raise ValueError(f"line {number} has {len(fields)} fields, expected {expected}")
        group_id = fields[0] if width == SEVERAL_GROUPS else None
        partition, offset = _offset(number, fields[-ONE_GROUP:])
        offsets = found.setdefault(group_id, {})
        if partition in offsets:
            raise ValueError(f"line {number} has partition {partition} again, expected it once")
        offsets[partition] = offset
    if not found:
        raise ValueError("the file has no line, expected topic,partition,offset")
    return found


def offsets_csv(offsets: Mapping[str | None, Mapping[TopicPartition, CommittedOffset]]) -> str:
    """The lines of a file that `read_offsets` reads."""
    written = StringIO()
    writer = CsvWriter(written)
    for group_id, of_group in offsets.items():
        for (topic, index), offset in of_group.items():
            group = () if group_id is None else (group_id,)
            writer.writerow((*group, topic, index, offset.offset))
    text = written.getvalue()
    return MARK + text if text.startswith(MARK) else text  # a reader takes the first one away


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The lines with anything in them, and their numbers."""
    reader = csv.reader(StringIO(text.removeprefix(MARK), newline=""), strict=True)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} is no CSV: {error}") from None


def _offset(number: int, fields: Sequence[str]) -> tuple[TopicPartition, CommittedOffset]:
    topic, index, offset = fields
    partition = _number(f"the partition in line {number}", index, arguments.INT32_MAX)
    topic = arguments.name(f"the topic in line {number}", topic)
    try:
        value = _number(f"the offset in line {number}", offset, arguments.INT64_MAX)
    except ValueError as error:
        if _NEGATIVE.fullmatch(offset.strip()):
            raise NegativeOffsetError(str(error)) from None
        raise
    return TopicPartition(topic, partition), CommittedOffset(value)


def _number(what: str, text: str, most: int) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))):
        raise ValueError(f"{what} is {text!r}, expected a number from 0 to {most}")
    return arguments.natural(what, int(digits), most)
