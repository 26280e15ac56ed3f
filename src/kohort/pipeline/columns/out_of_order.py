# SPDX-License-Identifier: Apache-2.0
"""Batches that are right by themselves and whose offsets are out of order.

No checksum covers a base offset. A last offset may be wrong as well, under a checksum that was made
after it: then the batch overlaps those that follow.
"""

import numpy as np

from kohort.pipeline.columns.buffers import Bools, Ints
from kohort.pipeline.columns.record_positions import Headers


def out_of_order_batches(headers: Headers, right: Bools) -> list[int]:
    """The batches without which the others are in order, of those that are right by themselves."""
    places = np.flatnonzero(right)
    base = headers["base_offset"].astype(np.int64)[places]
    after = base + headers["last_offset_delta"][places] + 1
    if (base[1:] >= after[:-1]).all():
        return []
    kept: list[int] = []
    found: list[int] = []
    for index in range(len(places)):
        if not kept or base[index] >= after[kept[-1]]:
            kept.append(index)
        elif _is_ahead(base, after, kept, index):
            found.append(kept.pop())
            kept.append(index)
        else:
            found.append(index)
    return sorted(places[found].tolist())


def _is_ahead(base: Ints, after: Ints, kept: list[int], index: int) -> bool:
    """Whether it is the batch before this one that is astray."""
    if len(kept) > 1:
        before = after[kept[-2]]
        return bool(base[index] >= before != base[kept[-1]])
    return index + 1 < len(base) and bool(after[index] <= base[index + 1] < after[kept[-1]])


def out_of_order(header: np.void) -> str:
    """What the row of such a batch says."""
    base = int(header["base_offset"])
    last = base + int(header["last_offset_delta"])
    return f"batch has offsets {base} to {last}, out of order with the batches around it"
