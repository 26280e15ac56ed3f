# SPDX-License-Identifier: Apache-2.0
"""Batches of records as producers make them, and as they should not: one function for each kind.

Each is made when its step is sent, from the memory of one broker: producer ids differ between the
two, times are those of the run. Sealing is done here, not by the broker's own code, so that a batch
can say whatever it likes.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from struct import Struct

import google_crc32c
from tests.prove.differential.steps import Memory

_PREFIX = Struct(">qiibI")
_COVERED = Struct(">hiqqqhii")
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
TRANSACTIONAL = 16  # of the attributes


def varint(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def record(
    delta: int,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    *,
    time_delta: int = 0,
    headers: bytes = b"\0",
) -> bytes:
    parts = [b"\0", varint(time_delta), varint(delta)]
    for one in (key, value):
        parts += [varint(-1)] if one is None else [varint(len(one)), one]
    body = b"".join(parts) + headers
    return varint(len(body)) + body


def sealed(
    memory: Memory,
    body: bytes,
    count: int,
    *,
    last_delta: int | None = None,
    attributes: int = 0,
    base_offset: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    time: int = 0,
    latest: int = 0,
    crc: int | None = None,
    magic: int = 2,
) -> bytes:
    """A batch that says what it is told to say."""
    last = count - 1 if last_delta is None else last_delta
    at = memory.started_ms + time
    covered = _COVERED.pack(attributes, last, at, at + latest, *producer, count) + body
    known = google_crc32c.value(covered) if crc is None else crc
    return _PREFIX.pack(base_offset, len(covered) + 9, -1, magic, known) + covered


def plain(memory: Memory, count: int = 1, codec: int = 0, size: int = 1) -> bytes:
    body = b"".join(record(index, value=b"v" * size) for index in range(count))
    return sealed(memory, _packed(codec, body), count, attributes=codec)


def keyless(memory: Memory, count: int = 3) -> bytes:
    """Every second record has no key."""
    records = [record(index, None if index % 2 else b"k") for index in range(count)]
    return sealed(memory, b"".join(records), count)


def timed(memory: Memory, *times: int) -> bytes:
    """Records of different times."""
    records = [record(index, time_delta=time) for index, time in enumerate(times)]
    return sealed(memory, b"".join(records), len(times), latest=max(times))


def of_producer(memory: Memory, place: int, sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    """An idempotent producer's batch."""
    known, at = memory.producers[place] if place < len(memory.producers) else (-1, -1)
    body = b"".join(record(index) for index in range(count))
    return sealed(memory, body, count, producer=(known, at + epoch, sequence))


def two(memory: Memory) -> bytes:
    return plain(memory) + plain(memory, 2)


def zeros(memory: Memory, size: int = 20) -> bytes:
    return bytes(size)


def counting(memory: Memory, count: int, last_delta: int, real: int) -> bytes:
    """The counts say one thing, the records another."""
    body = b"".join(record(index) for index in range(real))
    return sealed(memory, body, count, last_delta=last_delta)


def compressed_counting(memory: Memory, count: int, real: int, codec: int = GZIP) -> bytes:
    body = b"".join(record(index) for index in range(real))
    return sealed(memory, _packed(codec, body), count, attributes=codec)


def deltas(memory: Memory, *given: int, codec: int = 0) -> bytes:
    """Offset deltas that are not 0, 1, 2 and so on."""
    body = b"".join(record(delta) for delta in given)
    return sealed(memory, _packed(codec, body), len(given), attributes=codec)


def junk(memory: Memory, attributes: int = 0, count: int = 5, fill: int = 255) -> bytes:
    """Forty bytes that are neither records nor anything compressed."""
    return sealed(memory, bytes([fill]) * 40, count, attributes=attributes)


def trailing(memory: Memory, codec: int = 0) -> bytes:
    body = record(0) + b"more"
    return sealed(memory, _packed(codec, body), 1, attributes=codec)


def cut(memory: Memory, codec: int = 0) -> bytes:
    """The last record ends before it ends."""
    body = record(0) + record(1)[:-2]
    return sealed(memory, _packed(codec, body), 2, attributes=codec)


def headers(memory: Memory, said: int, *, codec: int = 0) -> bytes:
    """A record that has one header and says that it has so many."""
    body = record(0, headers=varint(said) + varint(1) + b"h" + varint(1) + b"x")
    return sealed(memory, _packed(codec, body), 1, attributes=codec)


def bad_crc(memory: Memory) -> bytes:
    return sealed(memory, record(0), 1, crc=1)


def old(memory: Memory, magic: int = 1) -> bytes:
    return sealed(memory, record(0), 1, magic=magic)


def based(memory: Memory, base_offset: int) -> bytes:
    return sealed(memory, record(0), 1, base_offset=base_offset)


def flagged(memory: Memory, attributes: int) -> bytes:
    """Control, transactional, append time, and flags that nobody knows."""
    return sealed(memory, record(0), 1, attributes=attributes)


def transactional(
    memory: Memory, actor: str, topic: str, index: int, count: int, ahead: int = 0
) -> bytes:
    """The next records of a transactional producer in a partition, at the epoch that it has."""
    producer_id, epoch = memory.transaction_coordinators.get(actor, (-1, -1))
    if producer_id < 0:  # Kafka takes a transaction of nobody, and it is none
        return plain(memory, count)
    place = producer_id, epoch, topic, index
    sequence = memory.sequences.get(place, 0) + ahead
    memory.sequences[place] = sequence + count
    body = b"".join(record(delta) for delta in range(count))
    producer = producer_id, epoch, sequence
    return sealed(memory, body, count, attributes=TRANSACTIONAL, producer=producer)


def late(memory: Memory, time: int) -> bytes:
    return sealed(memory, record(0), 1, time=time)


def short(memory: Memory, missing: int = 3) -> bytes:
    return plain(memory)[:-missing]


def _packed(codec: int, body: bytes) -> bytes:
    from kohort.wire.compression import compress

    if codec == GZIP:
        return gzip.compress(body, mtime=0)
    return compress(codec, body) if codec else body


MAKERS: dict[str, Callable[..., bytes]] = {
    one.__name__: one
    for one in (
        *(plain, keyless, timed, of_producer, two, zeros, counting, compressed_counting, deltas),
        *(junk, trailing, cut, headers, bad_crc, old, based, flagged, late, short),
        transactional,
    )
}


def names() -> Sequence[str]:
    return tuple(MAKERS)
