# SPDX-License-Identifier: Apache-2.0
"""What a cleaner without any patience would leave of a log: of each key the last value that counts.

A record in a transaction counts where it stands once the transaction is committed, and not at all
when it is aborted. While the transaction is open it is kept, and so is what it may replace.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kohort.machines.effects import Producer
from kohort.storage.log import Log
from kohort.wire import batch as batches

READ_LIMIT_BYTES = 1 << 62


class LastRecord(NamedTuple):
    """A record that is left; `producer` has it in an open transaction."""

    offset: int
    key: bytes
    value: bytes | None
    producer: Producer | None = None


def last_values(log: Log) -> Iterator[LastRecord]:
    """The records in the order of their offsets. Raises what reading the log raises."""
    last: dict[bytes, LastRecord] = {}
    waiting: dict[int, list[LastRecord]] = {}  # by producer id
    for data in log.read(log.start, READ_LIMIT_BYTES):
        header = batches.header_at(data)
        entries = batches.entries(data)
        if header.is_control:
            commit = all(batches.marker_commits(key) for _, _, key, _ in entries)
            for record in waiting.pop(header.producer_id, ()):
                if commit:
                    _take(last, record._replace(producer=None))
            continue
        producer = None
        if header.is_transactional:
            producer = Producer(header.producer_id, header.producer_epoch)
        for offset, _, key, value in entries:
            if key is None:
                continue
            record = LastRecord(offset, key, value, producer)
            if producer is None:
                _take(last, record)
            else:
                waiting.setdefault(producer.id, []).append(record)
    left = [record for record in last.values() if record.value is not None]
    for opened in waiting.values():
        left += [record for record in opened if not _is_deleted(last, record)]
    yield from sorted(left, key=lambda record: record.offset)


def _take(last: dict[bytes, LastRecord], record: LastRecord) -> None:
    """The later record counts, not the later marker."""
    before = last.get(record.key)
    if before is None or before.offset < record.offset:
        last[record.key] = record


def _is_deleted(last: dict[bytes, LastRecord], record: LastRecord) -> bool:
    """Whether a tombstone behind it has taken it away already."""
    after = last.get(record.key)
    return after is not None and after.value is None and after.offset > record.offset
