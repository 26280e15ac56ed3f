# SPDX-License-Identifier: Apache-2.0
"""From the bytes of a Fetch answer to records, a batch at a time.

The cost of a consumer is here: the loop is written out, and nothing is decoded before somebody
wants it.
"""

from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from kohort.client.fetcher.record import AnyRecord, ConsumerRecord
from kohort.errors import KohortError, WireError
from kohort.terms import TopicPartition
from kohort.wire.batch import (
    BatchHeader,
    marker_commits,
    peek,
    plain_records,
    read_headers,
    read_varint,
    records,
)
from kohort.wire.compression import OUTPUT_LIMIT
from kohort.wire.messages.fetch import AbortedTransaction

CREATE, APPEND = "create", "append"

# What a varint of one or two bytes says, by its 14 bits.
_ZIGZAG = array(
    "h", (number for pair in zip(range(8192), range(-1, -8193, -1), strict=True) for number in pair)
)


class RecordError(KohortError):
    """A record that cannot be handed out: its bytes are damaged, or a deserializer raises.

    The position of the partition stays at it: `seek` beyond `offset` to go on.
    """

    def __init__(self, partition: TopicPartition, offset: int, why: str) -> None:
        super().__init__(f"{partition} at offset {offset}: {why}")
        self.partition = partition
        self.offset = offset
        self.why = why

    def __reduce__(self) -> tuple[type["RecordError"], tuple[TopicPartition, int, str]]:
        """It may go to another process."""
        return type(self), (self.partition, self.offset, self.why)


def whole_batches(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch. A broker may cut the last one off anywhere.

    It sends the first one whole, however long, so that a reader gets on. Raises WireError.
    """
    position = 0
    while position < len(data):
        try:
            header = peek(data, position)
        except WireError:
            if position:
                return
            raise
        if header.length > len(data) - position:
            if position:
                return
            raise WireError(f"a batch of {header.length} bytes, of which {len(data)} were sent")
        yield position, header
        position += header.length


class AbortedBatchFilter:
    """Which batches of an answer belong to transactions that were aborted.

    The broker names producers and first offsets; each holds until its producer's abort marker.
    """

    def __init__(self, told: Collection[AbortedTransaction] | None) -> None:
        self._to_come = sorted(
            ((aborted.first_offset, aborted.producer_id) for aborted in told or ()), reverse=True
        )
        self._open: set[int] = set()

    def drops(self, data: bytes, position: int, header: BatchHeader) -> bool:
        """Whether nobody may see this batch; batches have to come in their order."""
        while self._to_come and self._to_come[-1][0] <= header.last_offset:
            self._open.add(self._to_come.pop()[1])
        if header.is_control:
            for marker in records(data, position):
                if not marker_commits(marker.key):
                    self._open.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._open


def records_of(
    partition: TopicPartition,
    data: bytes,
    position: int,
    header: BatchHeader,
    first: int,
) -> list[AnyRecord]:
    """The records of a whole batch from offset `first` on. Raises WireError and nothing else."""
    body, at, end = plain_records(data, position, header, OUTPUT_LIMIT)
    new, make, zigzag = tuple.__new__, ConsumerRecord, _ZIGZAG
    topic, index = partition
    kind = APPEND if header.is_append_time else CREATE
    append_time = header.max_timestamp if header.is_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    epoch = header.partition_leader_epoch
    skip = first - base_offset  # records below this delta were handed out before
    found: list[AnyRecord] = []
    last_delta = -1
    try:
        for _ in range(header.count):
            # One or two bytes are the common length of every varint here: they are read inline.
            byte = body[at]
            at += 1
            if byte < 0x80:
                size = zigzag[byte]
            elif (more := body[at]) < 0x80:
                size = zigzag[(byte & 0x7F) | more << 7]
                at += 1
            else:
                size, at = read_varint(body, at - 1)
            record_end = at + size
            if size < 0 or record_end > end:
                raise WireError(f"record of {size} bytes at {at}, {end - at} are left in its batch")
            byte = body[at + 1]  # after the attributes, which have no meaning yet
            at += 2
            if byte < 0x80:
                delta = zigzag[byte]
            elif (more := body[at]) < 0x80:
                delta = zigzag[(byte & 0x7F) | more << 7]
                at += 1
            else:
                delta, at = read_varint(body, at - 1)
            timestamp = base_timestamp + delta if append_time is None else append_time
            byte = body[at]
            at += 1
            if byte < 0x80:
                delta = zigzag[byte]
            elif (more := body[at]) < 0x80:
                delta = zigzag[(byte & 0x7F) | more << 7]
                at += 1
            else:
                delta, at = read_varint(body, at - 1)
            if delta <= last_delta:
                raise WireError(f"record at {at} has offset delta {delta} after {last_delta}")
            last_delta = delta
            if delta < skip:
                at = record_end
                continue
            byte = body[at]
            at += 1
            if byte < 0x80:
                size = zigzag[byte]
            elif (more := body[at]) < 0x80:
                size = zigzag[(byte & 0x7F) | more << 7]
                at += 1
            else:
                size, at = read_varint(body, at - 1)
            key: bytes | None = None
            if size >= 0:
                key = body[at : at + size]
                at += size
            byte = body[at]
            at += 1
            if byte < 0x80:
                size = zigzag[byte]
            elif (more := body[at]) < 0x80:
                size = zigzag[(byte & 0x7F) | more << 7]
                at += 1
            else:
                size, at = read_varint(body, at - 1)
            value: bytes | None = None
            if size >= 0:
                value = body[at : at + size]
                at += size
            if at >= record_end:  # the count of headers has a byte of its own
                raise WireError(f"key and value reach to {at}, their record ends at {record_end}")
            headers: tuple[Any, ...] = ()
            if body[at]:
                decoded, at = read_headers(body, at, record_end)
                headers = tuple(decoded)
            else:
                at += 1
            if at != record_end:
                raise WireError(f"record reads up to {at}, its length says {record_end}")
            found.append(
                new(
                    make,
                    (
                        topic,
                        index,
                        base_offset + delta,
                        timestamp,
                        kind,
                        key,
                        value,
                        headers,
                        epoch,
                    ),
                )
            )
    except IndexError:
        raise WireError(f"a record is cut at the end of its batch of {end} bytes") from None
    if at != end:
        raise WireError(f"{end - at} bytes follow the {header.count} records of the batch")
    if last_delta > header.last_offset_delta:
        raise WireError(
            f"last record has offset delta {last_delta}, its batch {header.last_offset_delta}"
        )
    return found


def deserialized(
    raw: Sequence[AnyRecord],
    key: Callable[[bytes], Any] | None,
    value: Callable[[bytes], Any] | None,
) -> tuple[list[AnyRecord], RecordError | None]:
    """The records up to the first that a deserializer does not take, and why it does not."""
    found: list[AnyRecord] = []
    for record in raw:
        try:
            if key is not None and record.key is not None:
                record = record._replace(key=key(record.key))  # noqa: PLW2901
            if value is not None and record.value is not None:
                record = record._replace(value=value(record.value))  # noqa: PLW2901
        except Exception as error:  # noqa: BLE001  (the application's own)
            failure = RecordError(
                TopicPartition(record.topic, record.partition),
                record.offset,
                f"it cannot be deserialized: {error!r}",
            )
            failure.__cause__ = error
            return found, failure
        found.append(record)
    return found, None
