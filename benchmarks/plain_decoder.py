# SPDX-License-Identifier: Apache-2.0
"""A committed offset decoded as most Python programs do it: field by field, with struct."""

import struct

Commit = tuple[str, str, int, int | None, str | None, int | None]


def decode(key: bytes, value: bytes | None) -> Commit | None:
    """Group, topic, partition, offset, metadata and commit time; None for other records."""
    if struct.unpack_from(">h", key)[0] > 1:
        return None
    (size,) = struct.unpack_from(">h", key, 2)
    at = 4 + size
    group = key[4:at].decode()
    (size,) = struct.unpack_from(">h", key, at)
    topic = key[at + 2 : at + 2 + size].decode()
    (partition,) = struct.unpack_from(">i", key, at + 2 + size)
    if value is None:
        return group, topic, partition, None, None, None
    version, offset = struct.unpack_from(">hq", value)
    at = 14 if version >= 3 else 10
    if version >= 4:
        size = shift = 0
        while True:
            byte = value[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        size -= 1
    else:
        (size,) = struct.unpack_from(">h", value, at)
        at += 2
    metadata = value[at : at + size].decode()
    (timestamp,) = struct.unpack_from(">q", value, at + size)
    return group, topic, partition, offset, metadata, timestamp
