# SPDX-License-Identifier: Apache-2.0
"""Many numbers and strings out of one buffer at once: the steps that the fast readers are made of.

No position is trusted. What lies outside the buffer is read as if it were its last bytes, and
whoever asked compares every end with the end of its own record before he believes what he got.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_VARINT_BYTES = 8  # 56 bits: longer ones are for the slow way


def big_endian(buffer: Bytes, kind: str, positions: Ints) -> npt.NDArray[Any]:
    """The number at every position, as the numpy type `kind` has it: an overlapping view, whose
    items begin at every byte. Two bytes are quicker one by one.
    """
    wanted = np.dtype(kind)
    if wanted.itemsize == 2 and len(buffer):
        return two_bytes(buffer, positions, positions + 1).view(wanted.newbyteorder("="))
    last = len(buffer) - wanted.itemsize
    if last < 0:
        return np.zeros(len(positions), wanted.newbyteorder("="))
    view: npt.NDArray[Any] = np.ndarray((last + 1,), wanted, buffer, strides=(1,))
    if len(positions) and (positions.min() < 0 or positions.max() > last):
        positions = np.clip(positions, 0, last)
    found: npt.NDArray[Any] = view[positions]
    return found.astype(wanted.newbyteorder("="))


def two_bytes(buffer: Bytes, high: Ints, low: Ints) -> npt.NDArray[np.uint16]:
    """The numbers whose bytes stand at these positions."""
    found: npt.NDArray[np.uint16] = buffer.take(high, mode="clip").astype(np.uint16)
    found <<= 8
    found |= buffer.take(low, mode="clip")
    return found


def structures(buffer: Any, kind: np.dtype[np.void], positions: Ints) -> npt.NDArray[np.void]:
    """The fields at every position. All of them are inside the buffer, and there is one or more.

    Numpy copies bytes that have no fields much faster.
    """
    size = kind.itemsize
    first, last = int(positions[0]), int(positions[-1])
    if last - first == size * (len(positions) - 1) and (np.diff(positions) == size).all():
        return np.frombuffer(buffer, kind, len(positions), first)
    view: npt.NDArray[np.void] = np.ndarray(
        (len(buffer) - size + 1,), np.dtype((np.void, size)), buffer, strides=(1,)
    )
    return view[positions].view(kind)


def unsigned_varints(buffer: Bytes, positions: Ints) -> tuple[Ints, Ints]:
    """The varint at every position, and where it ends: behind the buffer if it has no end."""
    byte = buffer.take(positions, mode="clip")
    values = byte.astype(np.int64)
    ends = positions + 1
    more = np.flatnonzero(byte > 127)
    if len(more):
        values[more] &= 127
    shift = 7
    while len(more):
        if shift == 7 * _VARINT_BYTES:
            ends[more] = len(buffer) + 1
            break
        byte = buffer.take(ends[more], mode="clip")
        values[more] |= (byte & 127).astype(np.int64) << shift
        ends[more] += 1
        more = more[byte > 127]
        shift += 7
    return values, ends


def varints(buffer: Bytes, positions: Ints) -> tuple[Ints, Ints]:
    """The zigzag varint at every position, and where it ends."""
    values, ends = unsigned_varints(buffer, positions)
    return (values >> 1) ^ -(values & 1), ends


def column(kind: pa.DataType, values: npt.NDArray[Any], there: Bools | None = None) -> pa.Array:
    """Numbers as a column, null where they are not `there`."""
    buffers = [_bitmap(there), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def slices(
    kind: pa.DataType, buffer: Any, starts: Ints, sizes: Ints, there: Bools | None = None
) -> pa.Array:
    """Byte ranges of a buffer of less than 2 GiB as a column of binary or string.

    Each range is inside the buffer. Starts and ends in turn are the offsets of an array twice as
    long, and every second item of it is asked for: Arrow copies them, not Python. What lies between
    two ranges may be negative, since it is never asked for.
    """
    count = len(starts)
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2] = starts
    np.add(starts, sizes, out=offsets[1::2], casting="same_kind")
    offsets[-1] = len(buffer)
    both = pa.Array.from_buffers(
        kind, 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)]
    )
    return both.take(column(pa.int32(), _even(count), there))


_EVEN = np.arange(0, 1 << 17, 2, dtype=np.int32)


def _even(count: int) -> npt.NDArray[np.int32]:
    return _EVEN[:count] if count <= len(_EVEN) else np.arange(0, 2 * count, 2, dtype=np.int32)


def _bitmap(there: Bools | None) -> pa.Buffer | None:
    return None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
