# SPDX-License-Identifier: Apache-2.0
"""What a log may lose when it is opened, and what it may not.

What lies before the recovery point was synced: it must be whole, and damage there is told and never
cut. What stands behind it may be torn, in any of its pages, since they reach a disk in any order.
It is cut from the first bad byte on, also where something that looks like a batch follows: that may
be a page that came before its neighbour, or a batch in the value of a record.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kohort.errors import Broken, WireError
from kohort.storage.segment import Holes, Segment
from kohort.terms import Offset
from kohort.wire import batch as batches
from kohort.wire.batch import BatchHeader

_LOOKED_AT = 64 * 1024 * 1024  # bytes of a torn tail: enough to say what was in it


@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """What is known of a log before it is opened.

    Everything before `synced` is on the disk. It is None where no checkpoint has a line for the
    log. `clean` says that the log was closed in order, so that nothing of it may be torn.
    `unread` is why nobody knows what has been synced: then all of it may have been.
    """

    synced: Offset | None = None
    clean: bool = False
    unread: str = ""

    def covers(self, end: Offset) -> str:
        """Why a log that is whole up to `end` must be whole beyond it; "" where it need not be."""
        if self.synced is not None and end < self.synced:
            return f"offsets before {self.synced} have been synced"
        if self.synced is None and self.unread:
            return f"what has been synced is not known: {self.unread}"
        return "the log was closed in order" if self.clean else ""

    def forbids_start(self, start: Offset, end: Offset) -> str:
        """Why a log that ends at `end` cannot begin at `start`, or "". A start is noted only when
        everything before it is synced.
        """
        if start <= end:
            return ""
        if self.synced:
            return f"offsets before {self.synced} have been synced"
        return "the log was closed in order" if self.clean and end else ""


NOTHING = RecoveryPoint()


def recover(last: Segment, recovery_point: RecoveryPoint, holes: Holes) -> str:
    """Let the last segment of a log end with a whole batch: what was cut for that, or "".

    Raises Broken for damage to what was promised: then nothing is cut. May raise OSError.
    """
    # Without a recovery point nobody has noted either which holes there are.
    bad = last.scan(check=True, holes=None if recovery_point == NOTHING else holes)
    if bad is None:
        if recovery_point.clean and recovery_point.synced not in (None, last.end):
            raise Broken(
                f"{last.path} ends at offset {last.end}, expected {recovery_point.synced}: "
                "the log was closed in order"
            )
        return ""
    position, reason = bad
    why = recovery_point.covers(last.end)
    if why:
        raise Broken(
            f"{last.path} is damaged at byte {position}, offset {last.end}: {reason}; "
            f"expected whole batches, because {why}"
        )
    told = torn_tail_text(last, position, reason)
    last.cut(position)
    last.file.sync()
    return told


class Bounds(NamedTuple):
    """Where a log should begin, where its files end, and where the first of them begins."""

    start: Offset
    end: Offset
    first: Offset


def check_ends(
    directory: str, bounds: Bounds, noted: str, recovery_point: RecoveryPoint, holes: Holes
) -> None:
    """Raises Broken when the first segments are missing, or the last, or when the file `noted` lets
    the log begin where it cannot: a start is noted only when all before it is synced.
    """
    start, end, first = bounds
    why = recovery_point.forbids_start(start, end)
    if why:
        raise Broken(f"{noted}: {directory} begins at offset {start}, it ends at {end}: {why}")
    if recovery_point.synced is None or recovery_point.synced <= start:
        return
    if end < recovery_point.synced:
        raise Broken(
            f"{directory} ends at offset {end}, "
            f"expected {recovery_point.synced} at least: offsets before it have been synced"
        )
    if first > start and (start, first) not in holes:
        raise Broken(f"{directory} begins at offset {first}, expected {start}")


def never_begun(before: Segment, last: Segment) -> bool:
    """Whether an empty last segment was made and then not used: its log went on in the one before,
    because the disk had refused the rest of the change. May raise OSError.
    """
    if last.size:
        return False
    before.behind = None
    bad = before.scan(check=False)
    before.behind = last.base_offset
    return before.end > last.base_offset or (bad is not None and before.end == last.base_offset)


def torn_tail_text(last: Segment, position: int, reason: str) -> str:
    """What is lost with the tail of a segment, in a line."""
    text = (
        f"{last.path} is torn at byte {position} and cut there: {reason}; "
        f"{last.size - position} bytes from offset {last.end} on are given up"
    )
    tail = last.file.read(position, min(last.size - position, _LOOKED_AT))
    whole = [header for _, header in whole_batches(tail, 1, last.end)]
    if whole:
        text += (
            f", among them {len(whole)} that look like batches, "
            f"with offsets {whole[0].base_offset} to {whole[-1].last_offset}"
        )
    return text


def whole_batches(data: bytes, start: int, least: Offset) -> Iterator[tuple[int, BatchHeader]]:
    """Whole, right batches anywhere in `data` from `start` on, in order of their offsets, none of
    them before `least`.

    A batch begins with an offset and has the magic 2 at its 17th byte; its crc must be right.
    """
    if not data.strip(b"\x00"):
        return
    at = start
    while at < len(data):
        try:
            header = _right_batch(data, at, least)
        except WireError:
            found = _candidate(data, at + 1, least)
            if found is None:
                return
            at = found
        else:
            yield at, header
            least = Offset(header.last_offset + 1)
            at += header.length


def _right_batch(data: bytes, at: int, least: Offset) -> BatchHeader:
    header = batches.header_at(data, at)
    if header.base_offset < least:
        raise WireError(f"base offset {header.base_offset} comes before {least}")
    batches.check(data, at, header)
    return header


def _candidate(data: bytes, start: int, least: Offset) -> int | None:
    """Where a batch might begin, from `start` on."""
    high = (least >> 32).to_bytes(4, "big")
    pattern = re.compile(b"(?=" + re.escape(high) + rb"[\s\S]{12}\x02)")
    match = pattern.search(data, start)
    return None if match is None else match.start()
