# SPDX-License-Identifier: Apache-2.0
"""Where to begin and to end in a partition: `--from` and `--until` of `kohort consume`."""

from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from kohort.cli.arguments import moment
from kohort.terms import millis_of

if TYPE_CHECKING:
    from kohort.client.network.cluster import Cluster
    from kohort.terms import TopicPartition

_OFFSET_MAX = (1 << 63) - 1


class Position(NamedTuple):
    """A place in every partition: `number` is an offset, how many records before the end, or
    milliseconds since 1970.
    """

    kind: Literal["beginning", "end", "offset", "last", "time"]
    number: int = 0


BEGINNING, END = Position("beginning"), Position("end")


def begin(text: str) -> Position:
    """An argument type: beginning, end, an offset, -N, or a time."""
    if text == "beginning":
        return BEGINNING
    if text.startswith("-"):
        return Position("last", _offset(text[1:], text))
    return until(text)


def until(text: str) -> Position:
    """An argument type: end, an offset, or a time."""
    if text == "end":
        return END
    if text.isascii() and text.isdigit():
        return Position("offset", _offset(text, text))
    return Position("time", time_ms(text))


def time_ms(text: str) -> int:
    """An argument type: a time in ISO 8601, or `@` and milliseconds since 1970."""
    if text.startswith("@"):
        return _offset(text[1:], text)
    try:
        return millis_of(moment(text))
    except (ArgumentTypeError, OverflowError):
        raise _no_position(text) from None


def _offset(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise _no_position(text)
    number = int(digits)
    if number > _OFFSET_MAX:
        raise ArgumentTypeError(f"{text} is too large, expected at most {_OFFSET_MAX}")
    return number


def _no_position(text: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"{text!r} is no position, expected beginning, end, an offset as 42, -N for the last N "
        "records, a time as 2026-11-21T07:00Z, or @ and milliseconds since 1970"
    )


async def offsets_at(
    cluster: "Cluster",
    places: "Sequence[TopicPartition]",
    position: Position,
    *,
    read_committed: bool,
    deadline: float,
) -> "dict[TopicPartition, int]":
    """The offset of a position in each partition. At a time it is that of the first record which is
    not older, and the end where there is none. Raises ApiError.
    """
    from kohort.client.admin.topics import list_offsets
    from kohort.client.topic_reader import offsets_of

    async def ends() -> "dict[TopicPartition, int]":
        return await offsets_of(cluster, places, "latest", deadline, read_committed=read_committed)

    if position.kind == "offset":
        return dict.fromkeys(places, position.number)
    if position.kind == "end":
        return await ends()
    if position.kind == "time":
        times = dict.fromkeys(places, position.number)
        found = await list_offsets(cluster, times, read_committed=read_committed, deadline=deadline)
        offsets = {place: one.offset for place, one in found.all().items()}
        last = await ends() if None in offsets.values() else {}
        return {place: last[place] if at is None else at for place, at in offsets.items()}
    first = await offsets_of(cluster, places, "earliest", deadline)
    if position.kind == "beginning":
        return first
    last = await ends()
    return {place: max(first[place], last[place] - position.number) for place in places}
