# SPDX-License-Identifier: Apache-2.0
"""About how many records there are in a range of offsets: compaction may have left few of millions.

A leader tells where its log begins and ends, and not what is left between. So it is asked for a few
batches here and there, at twice the distance from the end each time, since what is near the end was
cleaned least; each place stands for the offsets up to the next. A wrong estimate makes tasks that
are not alike, and loses nothing.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kohort.pipeline.sources.files import heads_in
from kohort.spark.sources.feed import Span, WeightedSpan

SPAN_RECORDS = 100_000
"""What one span has about; a range that is not much longer is not looked into."""


def places(start: int, end: int) -> list[int]:
    """Where to look into a range, in order; nowhere in a short one."""
    back = SPAN_RECORDS
    found: list[int] = []
    while end - 2 * back > start:
        found.append(end - back)
        back *= 2
    return [start, *reversed(found)] if found else []


def estimate(data: bytes, start: int, end: int) -> int:
    """How many records there are from `start` to `end`, by the first batches from there on. What
    cannot be seen counts as full.
    """
    heads = list(heads_in(data))
    if not heads:
        return end - start
    # A hole before several batches is one, before a single one it is all that tells of holes.
    since = heads[0].base if len(heads) > 1 else min(start, heads[0].base)
    width = heads[-1].following - since
    if width <= 0:  # base offsets have no checksum
        return end - start
    density = sum(max(0, head.records) for head in heads) / width
    return int(max(0, end - max(start, since)) * min(1.0, density))


def weighted_spans(
    partition: int, start: int, end: int, looks: Sequence[tuple[int, bytes]] = ()
) -> Iterator[WeightedSpan]:
    """A range as spans of about as many records, weighed in records; `looks` are what was found at
    its `places`.
    """
    begins = [begin for begin, _ in looks] or [start]
    pieces = [data for _, data in looks] or [b""]
    for (begin, stop), data in zip(pairwise([*begins, end]), pieces, strict=True):
        records = estimate(data, begin, stop)
        count = max(1, -(-records // SPAN_RECORDS))
        cuts = [begin + (stop - begin) * step // count for step in range(count + 1)]
        for first, last in pairwise(cuts):
            yield WeightedSpan(Span(partition, first, last), records // count)
