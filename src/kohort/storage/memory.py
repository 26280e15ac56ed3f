# SPDX-License-Identifier: Apache-2.0
"""A log in a list: for brokers without a directory, and for tests."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from struct import Struct

from kohort.storage.epochs import LeaderEpochs
from kohort.storage.log import EVERY_BATCH, NO_TIMESTAMP
from kohort.terms import Millis, Offset
from kohort.wire import batch as batches
from kohort.wire.batch import BatchHeader

_MAX_TIMESTAMP = Struct(">q")
_MAX_TIMESTAMP_AT = 35
_EVERYTHING_BYTES = 1 << 62


class MemoryLog:
    """Keeps the contract of `Log` but for surviving the process."""

    def __init__(self, start: Offset = Offset(0), leader_epoch: int = 0) -> None:  # noqa: B008
        self.start = start
        self.end = start
        self.leader_epoch = leader_epoch
        self.epochs = LeaderEpochs([(leader_epoch, start)])
        self.size_bytes = 0
        self.highest_producer_id = -1  # it is empty when it is opened
        self._batches: list[bytes] = []
        self._next: list[Offset] = []  # for each batch the offset behind it
        self._times: list[int] = []  # for each batch its latest time

    @property
    def synced(self) -> Offset:
        return self.end

    @property
    def max_timestamp(self) -> int:
        return max(self._times, default=NO_TIMESTAMP)

    def next_leader(self) -> None:
        self.leader_epoch += 1
        self.epochs.begin(self.leader_epoch, self.end)

    def append(self, batch: bytes, count: int) -> Offset:
        self._batches.append(batches.stamp(batch, self.end, self.leader_epoch))
        self._times.append(_MAX_TIMESTAMP.unpack_from(batch, _MAX_TIMESTAMP_AT)[0])
        self.size_bytes += len(batch)
        self.end = Offset(self.end + count)
        self._next.append(self.end)
        return self.end

    def append_all(self, parts: Sequence[tuple[bytes, int]]) -> Offset:
        for batch, count in parts:
            self.append(batch, count)
        return self.end

    def lacks_index(self, _start: Offset) -> bool:
        return False

    def index_some(self, _start: Offset | None, _most: int) -> bool:
        return False

    def mend(self) -> None:
        """No write to memory is refused."""

    def try_room(self) -> None:
        """There is room."""

    def sync(self) -> Offset:
        return self.end

    def read(self, start: Offset, limit_bytes: int) -> Iterator[bytes]:
        left = limit_bytes
        position = start
        while left > 0:
            # The list may have been cut from the front since the last batch was given.
            index = bisect_right(self._next, position)
            if index == len(self._next):
                return
            data = self._batches[index]
            position = self._next[index]
            left -= len(data)
            yield data

    def fetch(self, start: Offset, limit_bytes: int) -> bytes:
        first = bisect_right(self._next, start)
        if first == len(self._next):
            return b""
        size = len(self._batches[first])
        last = first + 1
        while last < len(self._batches):
            size += len(self._batches[last])
            if size > limit_bytes:
                break
            last += 1
        return b"".join(self._batches[first:last])

    def headers(self, start: Offset) -> Iterator[BatchHeader]:
        return (batches.peek(data) for data in self.read(start, _EVERYTHING_BYTES))

    def first_since(self, since: Millis, most: int = EVERY_BATCH) -> Offset | None:
        del most  # nothing has to be read
        for index, time in enumerate(self._times):
            if time >= since:
                return max(self.start, self._next[index - 1] if index else self.start)
        return self.end

    def find_timestamp(self, timestamp: int) -> tuple[int, Offset] | None:
        for index in range(bisect_right(self._next, self.start), len(self._batches)):
            if self._times[index] >= timestamp:
                for offset, time in batches.times(self._batches[index]):
                    if time >= timestamp and offset >= self.start:
                        return time, Offset(offset)
        return None

    def retention_start(
        self, now: Millis, retention_ms: int, retention_bytes: int, most: int = EVERY_BATCH
    ) -> Offset | None:
        del most  # nothing has to be read
        count = 0
        size = self.size_bytes
        while count < len(self._batches):
            old = retention_ms >= 0 and self._times[count] < now - retention_ms
            length = len(self._batches[count])
            if not old and not (0 <= retention_bytes <= size - length):
                break
            size -= length
            count += 1
        return max(self.start, self._next[count - 1]) if count else self.start

    def note_start(self, start: Offset) -> None:
        """Nothing to do: a log in memory is never opened again."""

    def move_start(self, start: Offset) -> None:
        self.start = max(self.start, min(start, self.end))
        count = bisect_right(self._next, self.start)
        self.size_bytes -= sum(len(data) for data in self._batches[:count])
        del self._batches[:count]
        del self._next[:count]
        del self._times[:count]

    @property
    def has_old_files(self) -> bool:
        return False

    def remove_oldest(self) -> bool:
        return False

    def close(self) -> None:
        pass
