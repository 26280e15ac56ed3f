# SPDX-License-Identifier: Apache-2.0
"""A batch that grows record by record: each is encoded when it comes, and never again."""

from collections.abc import Iterable

from kohort.wire.batch.varints import NULL, SMALL, VARINTS, encoded_varint

_ZERO = b"\x00"
_EMPTY = b""
_SIZE_MAX = 5  # what the size of a record takes itself, at most


class BatchBuilder:
    """The records of a batch to come. `body` is what they take, without header and compression."""

    __slots__ = ("base_timestamp", "body", "count", "max_timestamp")

    def __init__(self) -> None:
        self.body = bytearray()
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1

    def add(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes | None]],
        limit: int,
    ) -> bool:
        """Append a record. False, and nothing is changed, where the body would grow beyond `limit`
        bytes; but a first record is always taken.
        """
        varints = VARINTS
        count = self.count
        if count:
            delta = timestamp - self.base_timestamp
            after = varints[delta] if 0 <= delta < SMALL else encoded_varint(delta)
            place = varints[count] if count < SMALL else encoded_varint(count)
        else:
            after = place = _ZERO
        if key is None:
            key_size, key = NULL, _EMPTY
        else:
            size = len(key)
            key_size = varints[size] if size < SMALL else encoded_varint(size)
        if value is None:
            value_size, value = NULL, _EMPTY
        else:
            size = len(value)
            value_size = varints[size] if size < SMALL else encoded_varint(size)
        rest = _encoded_headers(headers) if headers else _ZERO
        record = b"".join((_ZERO, after, place, key_size, key, value_size, value, rest))
        size = len(record)
        body = self.body
        if count and len(body) + size + _SIZE_MAX > limit and not _fits(len(body), size, limit):
            return False
        body += varints[size] if size < SMALL else encoded_varint(size)
        body += record
        self.count = count + 1
        if not count:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return True


def _fits(before: int, size: int, limit: int) -> bool:
    return before + len(encoded_varint(size)) + size <= limit


def _encoded_headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    parts: list[bytes] = []
    count = 0
    for name, item in headers:
        encoded = name.encode("utf-8", "surrogateescape")
        parts += (encoded_varint(len(encoded)), encoded)
        parts += (NULL,) if item is None else (encoded_varint(len(item)), item)
        count += 1
    return encoded_varint(count) + b"".join(parts)
