"""Whether the records of a batch match its header: a producer may be wrong.

The crc only says that the bytes are those that were sent. A batch whose header is wrong would stop
every consumer that reads it, so its records are counted, and must fill it to the last byte. The
first records are also read in full, since a producer that builds records wrongly builds these
wrongly. Reading all of them would cost ten times as much.
"""

from kohort.errors import WireError
from kohort.wire.batch.header import CODEC_MASK, HEADER_SIZE, BatchHeader
from kohort.wire.batch.reading import read_record
from kohort.wire.compression import TooLargeError, decompress

READ_WHOLE = 8  # records whose every field is read
LOOKED_AT = 16 * 1024 * 1024  # bytes: a batch that unfolds to more is not checked


def check_contents(data: bytes, header: BatchHeader) -> None:
    """Raises WireError where the records do not match the header. `data` is the batch alone."""
    codec = header.attributes & CODEC_MASK
    if not codec:
        _check_records(data, HEADER_SIZE, header)
        return
    try:
        body = decompress(codec, bytes(data[HEADER_SIZE:]), LOOKED_AT)
    except TooLargeError:
        return
    _check_records(body, 0, header)


def _check_records(body: bytes, at: int, header: BatchHeader) -> None:
    end = len(body)
    count = header.count
    whole = min(count, READ_WHOLE)
    for number in range(whole):
        record, at = read_record(body, at, end, header)
        if record.offset != header.base_offset + number:
            raise WireError(
                f"record {number} has offset delta {record.offset - header.base_offset}"
            )
    try:
        for _ in range(count - whole):
            size = body[at]
            if size < 0x80:
                at += 1 + (size >> 1)
            else:
                size = size & 0x7F | body[at + 1] << 7
                if size < 0x4000:
                    at += 2 + (size >> 1)
                else:
                    size, start = _long(body, at)
                    at = start + (size >> 1)
            if size & 1:
                raise WireError(f"a record of negative size ends at {at}")
    except IndexError:
        raise WireError(f"fewer than {count} records in {end} bytes") from None
    if at != end:
        raise WireError(f"{count} records end at {at}, the batch at {end}")


def _long(body: bytes, at: int) -> tuple[int, int]:
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
