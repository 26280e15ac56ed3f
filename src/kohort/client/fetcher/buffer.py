# SPDX-License-Identifier: Apache-2.0
"""What was fetched of a partition and waits to be handed out: bytes, decoded a batch at a time.

`take_from` is the place of the next record to hand out, `fetch_from` that of the next to ask for.
"""

from collections import deque
from collections.abc import Iterator

from kohort.client.fetcher.decoding import (
    AbortedBatchFilter,
    RecordError,
    deserialized,
    records_of,
    whole_batches,
)
from kohort.client.fetcher.record import AnyRecord, OffsetAndEpoch
from kohort.client.fetcher.settings import FetchSettings
from kohort.errors import KohortError, WireError
from kohort.terms import TopicPartition
from kohort.wire.batch import BatchHeader, check
from kohort.wire.messages.fetch import PartitionData


class _Answer:
    """The batches of one answer that are not decoded yet."""

    def __init__(self, data: bytes, aborted: AbortedBatchFilter | None) -> None:
        self.data = data
        self.aborted = aborted
        self.batches: Iterator[tuple[int, BatchHeader]] = whole_batches(data)


class Buffer:
    """Records of one partition from a place on. `error` is why nothing can be handed out behind
    what is there; it stays until somebody seeks.
    """

    def __init__(
        self, partition: TopicPartition, place: OffsetAndEpoch, settings: FetchSettings
    ) -> None:
        self.partition = partition
        self.fetch_from = place
        self.bytes = 0
        self.error: KohortError | None = None
        self._take_from = place
        self._settings = settings
        self._answers: deque[_Answer] = deque()
        self._rows: list[AnyRecord] = []
        self._row = 0

    @property
    def take_from(self) -> OffsetAndEpoch:
        """The next record that is handed out, or the end of what is known where there is none."""
        if self._row < len(self._rows):
            row = self._rows[self._row]
            return OffsetAndEpoch(row.offset, row.leader_epoch)
        return self._take_from

    @property
    def has_something(self) -> bool:
        """Whether `take` may find records, or an error."""
        return self._row < len(self._rows) or bool(self._answers) or self.error is not None

    def add(self, answer: PartitionData) -> None:
        """What was fetched from `fetch_from` on. Only the headers of batches are looked at.

        Bytes without a batch that goes beyond `fetch_from` are an error: they would come again. The
        records before it are handed out.
        """
        data = answer.records
        if not data:
            return
        try:
            end = _end(data, self.fetch_from)
        except WireError as error:
            self.error = RecordError(self.partition, self.fetch_from.offset, str(error))
            return
        committed = self._settings.reads_committed
        aborted = AbortedBatchFilter(answer.aborted_transactions) if committed else None
        self._answers.append(_Answer(data, aborted))
        self.bytes += len(data)
        self.fetch_from = end

    def take(self, most: int) -> list[AnyRecord]:
        """Up to so many records. Without any, `error` may be set."""
        while self._row == len(self._rows) and self._answers:
            self._decode_next()
        found = self._rows[self._row : self._row + most]
        self._row += len(found)
        if self._row == len(self._rows):
            self._rows, self._row = [], 0
        return found

    def _decode_next(self) -> None:
        """The next batch, or the end of an answer. What is decoded begins at `_take_from`."""
        answer = self._answers[0]
        try:
            batch = next(answer.batches, None)
            if batch is None:
                self._answers.popleft()
                self.bytes -= len(answer.data)
                return
            position, header = batch
            if header.last_offset < self._take_from.offset:
                if answer.aborted is not None:
                    answer.aborted.drops(answer.data, position, header)
                return
            if self._settings.check_crcs:
                check(answer.data, position, header)
            hidden = (
                header.is_control
                if answer.aborted is None
                else answer.aborted.drops(answer.data, position, header)
            )
            rows: list[AnyRecord] = []
            if not hidden:
                first = self._take_from.offset
                rows = records_of(self.partition, answer.data, position, header, first)
        except WireError as error:
            self._fail(RecordError(self.partition, self._take_from.offset, str(error)))
            return
        except Exception as error:  # noqa: BLE001  (bytes that nobody had thought of)
            why = f"it cannot be decoded: {error!r}"
            fault = RecordError(self.partition, self._take_from.offset, why)
            fault.__cause__ = error
            self._fail(fault)
            return
        settings = self._settings
        failure = None
        if settings.key_deserializer is not None or settings.value_deserializer is not None:
            rows, failure = deserialized(
                rows, settings.key_deserializer, settings.value_deserializer
            )
        self._rows, self._row = rows, 0
        if failure is None:
            self._take_from = OffsetAndEpoch(header.last_offset + 1, header.partition_leader_epoch)
        else:
            self._take_from = OffsetAndEpoch(failure.offset, header.partition_leader_epoch)
            self._fail(failure)

    def _fail(self, error: RecordError) -> None:
        self.error = error
        self._answers.clear()
        self.bytes = 0


def _end(data: bytes, begin: OffsetAndEpoch) -> OffsetAndEpoch:
    """Where the next answer has to begin. Raises WireError when that is no other place."""
    end = begin
    for _, header in whole_batches(data):
        if header.last_offset >= end.offset:
            end = OffsetAndEpoch(header.last_offset + 1, header.partition_leader_epoch)
    if end == begin:
        raise WireError(f"{len(data)} bytes were sent, and nothing from there on")
    return end
