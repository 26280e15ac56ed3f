"""Batches that are right by themselves and whose offsets are out of order.

No checksum covers a base offset. A last offset may be wrong as well, under a checksum that was made
after it: then the batch overlaps those that follow.
"""

import numpy as np

from kohort.spark.columns.buffers import Bools, Ints
from kohort.spark.columns.located import Headers


def astray_among(headers: Headers, right: Bools) -> list[int]:
    """The batches without which the others are in order, of those that are right by themselves."""
    places = np.flatnonzero(right)
    base = headers["base_offset"].astype(np.int64)[places]
    after = base + headers["last_offset_delta"][places] + 1
    if (base[1:] >= after[:-1]).all():
        return []
    kept: list[int] = []
    found: list[int] = []
    for one in range(len(places)):
        if not kept or base[one] >= after[kept[-1]]:
            kept.append(one)
        elif _is_ahead(base, after, kept, one):
            found.append(kept.pop())
            kept.append(one)
        else:
            found.append(one)
    return sorted(places[found].tolist())


def _is_ahead(base: Ints, after: Ints, kept: list[int], one: int) -> bool:
    """Whether it is the batch before this one that is astray."""
    if len(kept) > 1:
        before = after[kept[-2]]
        return bool(base[one] >= before != base[kept[-1]])
    return one + 1 < len(base) and bool(after[one] <= base[one + 1] < after[kept[-1]])


def out_of_order(header: np.void) -> str:
    """What the row of such a batch says."""
    base = int(header["base_offset"])
    last = base + int(header["last_offset_delta"])
    return f"batch has offsets {base} to {last}, out of order with the batches around it"
