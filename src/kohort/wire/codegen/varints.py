# SPDX-License-Identifier: Apache-2.0
"""Unsigned varints and the lengths made of them, as flexible versions write them."""

from kohort.errors import WireError


def read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes, and the position behind it."""
    result = shift = 0
    while shift < 35:
        byte = data[position]
        position += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, position
        shift += 7
    raise WireError(f"a varint at byte {position - 5} is longer than five bytes")


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


LENGTHS = [uvarint(length + 1) for length in range(1024)]


def compact_length(length: int) -> bytes:
    """How a flexible version writes the length of a string or an array: one more than it is."""
    return LENGTHS[length] if length < 1024 else uvarint(length + 1)
