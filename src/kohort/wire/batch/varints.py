# SPDX-License-Identifier: Apache-2.0
"""Zigzag varints, as records carry them. Small ones, which are nearly all, stand in a table."""

SMALL = 2048


def encoded_varint(number: int) -> bytes:
    """A whole number of 64 bits."""
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


VARINTS = [encoded_varint(number) for number in range(SMALL)]
NULL = b"\x01"  # the varint -1
