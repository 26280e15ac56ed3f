# SPDX-License-Identifier: Apache-2.0
"""Whether the records of a batch match its header: a producer may be wrong, or lie.

The crc only says that the bytes are those that were sent. A batch whose header is wrong would stop
every consumer that reads it. So its counts are held against its bytes before anything is unpacked,
it must not unfold beyond a bound, and its records are counted and must fill it to the last byte.
Times, and keys where a topic needs them, are looked at in every record. All fields of the first
records are looked at, since a producer that builds records wrongly builds these wrongly; those of
all records would cost ten times as much. Nothing of a record is copied.
"""

from typing import Any, NamedTuple

from kohort.errors import WireError
from kohort.wire.batch.header import CODEC_MASK, BatchHeader
from kohort.wire.batch.reading import plain_records, read_varint
from kohort.wire.compression import OUTPUT_LIMIT, unpacked

READ_WHOLE = 8  # records whose every field is looked at
HEADERS_LOOKED_AT = 128 * 1024  # of a batch, or one for each byte: 100 MB could hold 50 million
FAULTS_MAX = 100  # records that a refusal names: the look ends there
COMPRESSED_RECORDS_MAX = 2 * 1024 * 1024
KEYED_RECORDS_MAX = 128 * 1024  # the same, where the cleaner holds all records of a batch at once
LEAST_RECORD = 7  # bytes: its size, and six fields of a byte each
_NO_TIMESTAMP = -1
_SHORT_DELTA_MS = 8192  # a time delta of one or two bytes is smaller
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


class Times(NamedTuple):
    """The times that records may have, in ms; besides, a record may have none."""

    earliest: int = _INT64_MIN
    latest: int = _INT64_MAX

    def fit(self, time: int) -> bool:
        return self.earliest <= time <= self.latest or time == _NO_TIMESTAMP


class RecordFaults(NamedTuple):
    """What a topic does not take of records that match their header: `FAULTS_MAX` at most."""

    keyless: list[int]
    """Places in the batch."""
    out_of_time: list[tuple[int, int]]
    """Place and time."""


def check_contents(
    data: bytes,
    header: BatchHeader,
    times: Times | None = None,
    *,
    keyed: bool = False,
    limit: int = OUTPUT_LIMIT,
) -> RecordFaults:
    """Hold the records against the header. `data` is the batch alone, and may unfold to `limit`
    bytes; `times` are those that are allowed (None: any), `keyed` says that every record needs a
    key. Raises WireError where the records do not match the header.
    """
    compressed = header.attributes & CODEC_MASK
    most = KEYED_RECORDS_MAX if keyed else COMPRESSED_RECORDS_MAX
    if compressed and header.count > most:
        raise WireError(f"{header.count} compressed records, expected at most {most}")
    if not compressed:
        _check_count(header, header.length)
    body, at, end = plain_records(data, 0, header, limit, unpacked)
    _check_count(header, end - at)
    return _RecordScan(body, end, header, times, keyed=keyed).faults(at)


def _check_count(header: BatchHeader, size: int) -> None:
    if header.count * LEAST_RECORD > size:
        raise WireError(
            f"{header.count} records in {size} bytes, expected {LEAST_RECORD} bytes each or more"
        )


class _RecordScan:
    """One way through the plain records of a batch."""

    def __init__(
        self, body: Any, end: int, header: BatchHeader, times: Times | None, *, keyed: bool
    ) -> None:
        self._body = body
        self._end = end
        self._header = header
        self._times = times
        self._keyed = keyed
        self._found = RecordFaults([], [])
        self._is_full = False
        self._headers = 0  # those that were looked at

    def faults(self, at: int) -> RecordFaults:
        # The cleaner reads all fields of the records that need a key.
        whole = self._header.count if self._keyed else min(self._header.count, READ_WHOLE)
        try:
            for number in range(whole):
                at = self._whole_record(number, at)
                if self._is_full:
                    return self._found
            at = self._count(whole, at)
        except IndexError:
            raise WireError(
                f"fewer than {self._header.count} records in {self._end} bytes"
            ) from None
        if at != self._end and not self._is_full:
            raise WireError(f"{self._header.count} records end at {at}, the batch at {self._end}")
        return self._found

    def _count(self, first: int, at: int) -> int:
        """Go from record to record; where the last one ends. Raises IndexError behind the end."""
        body = self._body
        times, base = self._times, self._header.base_timestamp
        # Where no short delta leads to a wrong time, only the long ones are read.
        some = times is not None
        each = times is not None and not (
            times.earliest <= base - _SHORT_DELTA_MS and base + _SHORT_DELTA_MS <= times.latest
        )
        for number in range(first, self._header.count):
            size = body[at]
            at += 1
            if size >= 0x80:
                size = size & 0x7F | body[at] << 7
                at += 1
                if size >= 0x4000:
                    size, at = _long(body, at - 2)
            if size & 1 or size < 12:
                raise WireError(f"record {number} at {at} is shorter than {LEAST_RECORD} bytes")
            if some and (each or (body[at + 1] >= 0x80 and body[at + 2] >= 0x80)):
                self._check_time(number, read_varint(body, at + 1)[0])
                if self._is_full:
                    return at
            at += size >> 1
        return at

    def _check_time(self, number: int, delta: int) -> None:
        time = self._header.base_timestamp + delta
        if self._times is not None and not self._times.fit(time):
            self._found.out_of_time.append((number, time))
            self._note_full()

    def _note_full(self) -> None:
        self._is_full = len(self._found.keyless) + len(self._found.out_of_time) >= FAULTS_MAX

    def _whole_record(self, number: int, at: int) -> int:
        """Look at every field of a record; where it ends. Raises IndexError behind the end."""
        body = self._body
        size, at = read_varint(body, at)
        end = at + size
        if size < 0 or end > self._end:
            raise WireError(f"record of {size} bytes at {at}, {self._end - at} are left")
        at += 1  # the attributes have no meaning yet
        if self._times is None and body[at] < 0x80:
            at += 1
        else:
            delta, at = read_varint(body, at)
            self._check_time(number, delta)
        delta, at = read_varint(body, at)
        if delta != number:
            raise WireError(f"record {number} has offset delta {delta}")
        if self._keyed and body[at] & 1:  # a size below 0, as a varint has it
            self._found.keyless.append(number)
            self._note_full()
        at = _field_end(body, at, end)  # the key
        at = _field_end(body, at, end)  # the value
        if at == end - 1 and not body[at]:
            return end  # without headers, as most are
        return self._headers_end(number, at, end)

    def _headers_end(self, number: int, at: int, end: int) -> int:
        body = self._body
        headers, at = read_varint(body, at)
        if not 0 <= headers <= end - at:
            raise WireError(f"record {number} has {headers} headers in {end - at} bytes")
        self._headers += headers
        most = max(HEADERS_LOOKED_AT, self._header.length)
        if self._headers > most:
            if self._keyed:  # the cleaner takes all of them out of their records
                raise WireError(f"{self._headers} headers or more, expected at most {most}")
            return end
        for _ in range(headers):
            if body[at] & 1:
                raise WireError(f"header name at {at} is null, expected text")
            at = _field_end(body, at, end)
            at = _field_end(body, at, end)
        if at != end:
            raise WireError(f"record {number} reads up to {at}, its length says {end}")
        return end


def _field_end(body: Any, at: int, end: int) -> int:
    """Where a field of bytes ends, which may be null."""
    size = body[at]
    if size < 0x80:
        at += 1 if size & 1 else 1 + (size >> 1)
        if at > end:
            raise WireError(f"a field ends at {at}, its record at {end}")
        return at
    size, at = read_varint(body, at)
    if size > end - at:
        raise WireError(f"field of {size} bytes at {at}, {end - at} are left in its record")
    return at + max(size, 0)


def _long(body: Any, at: int) -> tuple[int, int]:
    """A size of more than two bytes, still in zigzag, and where it ends."""
    size = shift = 0
    while shift < 35:
        byte = body[at]
        at += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size, at
        shift += 7
    raise WireError(f"the size of a record at {at - 5} is longer than five bytes")
