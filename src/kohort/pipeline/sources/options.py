# SPDX-License-Identifier: Apache-2.0
"""The options of `kohort.log` and `kohort.topic`, checked before anything is read."""

import json
from collections.abc import Collection, Mapping
from typing import NamedTuple

from kohort.pipeline.sources.log_position import Plan, SourceError

GROUP_LOG = "__consumer_offsets"
ROWS = ("raw", "decoded", "offset_commits")
EARLIEST, LATEST = "earliest", "latest"

COMMON = (
    "rows",
    "topic",
    "partitions",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxRecordsPerTrigger",
    "minPartitions",
)

Offsets = Mapping[int, int] | str
"""Partition -> offset, or one of the words EARLIEST and LATEST."""


class Options(NamedTuple):
    """What a user asked for."""

    rows: str = "raw"
    topic: str = GROUP_LOG
    partitions: frozenset[int] | None = None
    """Only these; None for all."""
    starting: Offsets = EARLIEST
    """Where a partition that is not named begins at its start."""
    ending: Offsets = LATEST
    """Where a partition that is not named is read to its end."""
    starting_ms: int | None = None
    ending_ms: int | None = None
    max_records: int | None = None
    tasks: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, str], own: Collection[str]) -> "Options":
        """The options given to a format, which has some of its `own`. Raises SourceError."""
        values = {name.lower(): value for name, value in given.items()}
        known = {name.lower(): name for name in (*own, *COMMON)}
        for name in values:
            if name not in known:
                names = ", ".join(known.values())
                raise SourceError(f"option {name!r} is not known, expected one of {names}")
        starting = _offsets("startingOffsets", values, EARLIEST)
        ending = _offsets("endingOffsets", values, LATEST)
        return cls(
            rows=_choice("rows", values, ROWS),
            topic=values.get("topic", GROUP_LOG),
            partitions=_partitions(values.get("partitions")),
            starting=starting,
            ending=ending,
            starting_ms=_number("startingTimestamp", values, least=0),
            ending_ms=_number("endingTimestamp", values, least=0),
            max_records=_number("maxRecordsPerTrigger", values, least=1),
            tasks=_number("minPartitions", values, least=1),
        )

    @property
    def ranges(self) -> dict[int, tuple[int, int]] | None:
        """What to read, when that is said in full; None when the log has to be asked."""
        starting, ending = self.starting, self.ending
        if self.partitions is None or isinstance(starting, str) or isinstance(ending, str):
            return {} if self.partitions == frozenset() else None
        if not self.partitions <= starting.keys() & ending.keys():
            return None
        return {
            partition: (starting[partition], ending[partition])
            for partition in sorted(self.partitions)
        }


def range_options(ranges: Mapping[int, tuple[int, int]]) -> dict[str, str]:
    """The options that name exactly these ranges: `Options.ranges` reads them."""
    return {
        "partitions": ",".join(map(str, ranges)),
        "startingOffsets": json.dumps({index: start for index, (start, _) in ranges.items()}),
        "endingOffsets": json.dumps({index: end for index, (_, end) in ranges.items()}),
    }


def stream_options(plan: Plan, max_records: int | None) -> dict[str, str]:
    """The options of a stream that begins where a plan does."""
    starts = {index: position.next for index, position in plan.positions.items()}
    starts |= {index: start for index, (start, _) in plan.ranges.items()}
    limit = {} if max_records is None else {"maxRecordsPerTrigger": str(max_records)}
    return {"startingOffsets": json.dumps(starts), **limit}


def required(given: Mapping[str, str], name: str, example: str) -> str:
    """An option that has to be there. Raises SourceError."""
    value = next((value for key, value in given.items() if key.lower() == name.lower()), "")
    if not value.strip():
        raise SourceError(f'option {name!r} is missing, expected .option("{name}", "{example}")')
    return value.strip()


def _choice(name: str, values: Mapping[str, str], choices: tuple[str, ...]) -> str:
    value = values.get(name.lower(), choices[0])
    if value not in choices:
        raise SourceError(f"option {name} is {value!r}, expected one of {', '.join(choices)}")
    return value


def _number(name: str, values: Mapping[str, str], *, least: int) -> int | None:
    text = values.get(name.lower())
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise SourceError(f"option {name} is {text!r}, expected a whole number from {least} on")
    return int(text)


def _partitions(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise SourceError(f"option partitions is {text!r}, expected numbers as in 0,3,7")
    return frozenset(map(int, parts))


def _offsets(name: str, values: Mapping[str, str], default: str) -> Offsets:
    text = values.get(name.lower(), default).strip()
    if text in {EARLIEST, LATEST}:
        return text
    try:
        found = json.loads(text)
        offsets = {int(partition): int(offset) for partition, offset in found.items()}
    except (ValueError, AttributeError, TypeError):
        offsets = {-1: -1}
    if any(partition < 0 or offset < 0 for partition, offset in offsets.items()):
        raise SourceError(
            f"option {name} is {text!r}, expected {EARLIEST}, {LATEST} or offsets by partition as "
            'in {"0": 17}'
        )
    return offsets
