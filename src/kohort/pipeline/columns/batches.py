# SPDX-License-Identifier: Apache-2.0
"""The batches of a log, all together: where each begins, its header, and where its records are.

Nothing that stands in the bytes raises here. `Bodies.right` says of each batch whether its header
and its checksum are believed.
"""

from struct import Struct
from typing import NamedTuple

import google_crc32c
import numpy as np

from kohort.errors import WireError
from kohort.pipeline.columns.buffers import Bools, Ints, structures
from kohort.pipeline.columns.record_positions import Headers
from kohort.wire import batch
from kohort.wire.compression import TooLargeError, decompress

_PIECE_BYTES = 1 << 30  # of log: Arrow counts bytes in 31 bits
BODY_BYTES = 16 << 20
"""A batch whose records take more is damage: three KB can unfold to a value that no JVM of ours has
room for. A broker writes batches of one MiB.
"""
UNFOLDED_BYTES = 64 << 20
"""What batches that are read together unfold to, at most; those behind them are left over."""
_LARGE = 1 << 61  # sums of two smaller numbers fit
_OLD_SIZE = 26  # bytes of the smallest message of magic 0
_LENGTH = Struct(">8xI")
_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", ">i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)


class Bodies(NamedTuple):
    """The plain records of batches: between which positions of the bytes they are."""

    data: bytes
    starts: Ints
    ends: Ints
    right: Bools
    batches: int
    """How many batches there was room for: at least one."""


def places_of(data: bytes) -> list[int]:
    """Where whole batches begin, and where the last of them ends."""
    places = [0]
    append = places.append
    size = min(len(data), _PIECE_BYTES)
    last = size - batch.HEADER_SIZE
    length_at = _LENGTH.unpack_from
    while True:
        position = places[-1]
        while position <= last:
            length = batch.PREFIX_SIZE + length_at(data, position)[0]
            position += length
            if position > size or length < batch.HEADER_SIZE:
                break
            append(position)
        old_size = _old_size(data, places[-1], size)
        if not old_size:
            return places
        append(places[-1] + old_size)


def _old_size(data: bytes, position: int, size: int) -> int:
    """How long the whole message of magic 0 or 1 is that stands here, which is less than a header
    of today may be; 0 for none.
    """
    if size - position < _OLD_SIZE or data[position + 16] not in {0, 1}:
        return 0
    length = batch.PREFIX_SIZE + int.from_bytes(data[position + 8 : position + 12], signed=True)
    return length if _OLD_SIZE <= length <= size - position else 0


def headers_of(data: bytes, places: list[int]) -> Headers:
    """The headers of whole batches. A batch that has no room for one has one without sense."""
    positions = np.array(places[:-1], np.int64)
    if not len(positions):
        return np.empty(0, _HEADER)
    if positions[-1] + batch.HEADER_SIZE > len(data):
        data += bytes(batch.HEADER_SIZE)
    return structures(data, _HEADER, positions)


def bodies_of(data: bytes, places: list[int], headers: Headers) -> Bodies:
    """Where the records of each batch are, unfolded where they were compressed."""
    edges = np.array(places, np.int64)
    starts, ends = edges[:-1] + batch.HEADER_SIZE, edges[1:].copy()
    covered = map(data.__getitem__, map(slice, (edges[:-1] + 21).tolist(), places[1:]))
    crcs = np.fromiter(map(google_crc32c.value, covered), np.int64, len(headers))
    whole = (crcs == headers["crc"]) & (headers["magic"] == 2) & (ends - starts <= BODY_BYTES)
    right = (
        whole
        & (headers["base_offset"] >= 0)
        & (headers["base_offset"] < _LARGE)
        & (headers["last_offset_delta"] >= 0)
        & (headers["count"] >= 0)
        & (headers["base_timestamp"] > -_LARGE)
        & (headers["base_timestamp"] < _LARGE)
    )
    count = len(headers)
    codecs = headers["attributes"] & batch.CODEC_MASK
    unfolded = []
    room = UNFOLDED_BYTES
    size = len(data)
    for index in np.flatnonzero(whole & (codecs != 0) & (headers["count"] > 0)).tolist():
        packed = data[places[index] + batch.HEADER_SIZE : places[index + 1]]
        try:
            body = decompress(int(codecs[index]), packed, min(BODY_BYTES, room))
        except TooLargeError:
            if room < BODY_BYTES:  # the next ones who read begin with it, and have room
                count = index
                break
            right[index] = False
            continue
        except WireError:
            right[index] = False
            continue
        room -= len(body)
        if not right[index]:  # whoever reads it in another way unfolds it again
            continue
        unfolded.append(body)
        starts[index], ends[index] = size, size + len(body)
        size += len(body)
    empty = right & (codecs != 0) & (headers["count"] == 0)
    ends[empty] = starts[empty]
    plain = b"".join((data, *unfolded)) if unfolded else data
    return Bodies(plain, starts[:count], ends[:count], right[:count], count)
