# SPDX-License-Identifier: Apache-2.0
"""Where each record of each batch begins: the only thing in a log that has to be walked.

A record begins where the one before it ends, but batches do not wait for each other. So one step
goes to the next record of all batches at once, as long as there are many; the few that are longer
than the rest are walked alone.
"""

import numpy as np

from kohort.pipeline.columns.buffers import Bytes, Ints, two_bytes, varints

SMALLEST = 7  # bytes of a record: six varints of a byte, and its attributes
_FEW = 24  # batches for which a step of numpy costs more than as many steps of Python
_FAR = 1 << 30  # behind every end


def _steps() -> Ints:
    """For the first two bytes of a record, how far it is to the next: 0 for "look at more"."""
    words = np.arange(1 << 16)
    first, second = words & 0xFF, words >> 8
    size = np.where(first < 128, first, (first & 127) | (second & 127) << 7)
    step: Ints = np.where(first < 128, 1, 2) + (size >> 1)
    step[size & 1 == 1] = _FAR  # a length below 0
    step[(first > 127) & (second > 127)] = 0
    return step


_STEPS = _steps()


def starts_of(body: bytes, starts: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Where records begin, batch after batch, and where the last record of each batch ends.

    No count may be larger than a batch has room for (see SMALLEST). A length that lies takes the
    walk elsewhere, and its batch to another end: the caller compares ends.
    """
    buffer: Bytes = np.frombuffer(body, np.uint8)
    order = np.argsort(-counts, kind="stable")
    falling = counts[order]
    firsts = np.cumsum(counts) - counts  # row of the first record of each batch
    found = np.empty(int(counts.sum()), np.int64)
    position = starts[order]
    rows = firsts[order]
    ends = starts.copy()
    active = _active(falling, 0)
    step = 0
    while active >= _FEW:
        now = position[:active]
        found[rows[:active] + step] = now
        now += _step(buffer, now)
        step += 1
        active = _active(falling, step)
    ends[order] = position
    for batch in order[:active].tolist():
        row = int(firsts[batch]) + step
        stop = int(firsts[batch] + counts[batch])
        positions, end = _walk(body, int(ends[batch]), stop - row)
        found[row:stop] = positions
        ends[batch] = end
    return found, ends


def _active(falling: Ints, step: int) -> int:
    """How many batches have more records than `step`."""
    return int(np.searchsorted(-falling, -step, side="left"))


def _step(buffer: Bytes, positions: Ints) -> Ints:
    steps: Ints = _STEPS[two_bytes(buffer, positions + 1, positions)]
    if not steps.all():
        wide = np.flatnonzero(steps == 0)
        sizes, ends = varints(buffer, positions[wide])
        steps[wide] = np.where(sizes < 0, _FAR, ends - positions[wide] + sizes)
    return steps


def _walk(body: bytes, position: int, count: int) -> tuple[list[int], int]:
    """The same for one batch. A length that lies leads to an end that is far away."""
    found: list[int] = []
    append = found.append
    try:
        for _ in range(count):
            append(position)
            size = body[position]
            if size < 128:
                position += 1 + (size >> 1)
                continue
            second = body[position + 1]
            if second < 128:
                position += 2 + ((size & 127) >> 1) + (second << 6)
                continue
            position += int(_step(np.frombuffer(body, np.uint8), np.array([position]))[0])
    except IndexError:
        return found + [position] * (count - len(found)), _FAR
    return found, position
