# SPDX-License-Identifier: Apache-2.0
"""What a partition remembers of its idempotent producers (KIP-98): an epoch and five batches each.

A producer may have five requests under way: a batch that is sent again is one of these.
"""

from collections.abc import Callable, Container, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Producer
from kohort.terms import Millis, Offset
from kohort.wire.batch import BatchHeader

_REMEMBERED = 5
_SEQUENCES = 2**31
_REFUSED_MAX = 1000  # producers of batches that were turned away: anybody can name one
_EXPIRED_AT_ONCE = 10_000


class WrittenBatch(NamedTuple):
    """A batch that is in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    timestamp: int


class ActiveProducer(NamedTuple):
    """What is known of a producer: -1 stands for nothing."""

    producer_id: int
    epoch: int
    last_sequence: int
    timestamp: int
    coordinator_epoch: int  # of its last marker


class _RefusedBatch(NamedTuple):
    """The first of the batches that were turned away and may come again."""

    epoch: int
    sequence: int
    at: Millis


class _Producer:
    __slots__ = ("batches", "begins_anew", "coordinator_epoch", "epoch", "timestamp", "used_at")

    def __init__(self, epoch: int, *, begins_anew: bool) -> None:
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.timestamp = -1
        self.begins_anew = begins_anew  # its first batch must have sequence 0
        self.batches: list[WrittenBatch] = []
        self.used_at = Millis(0)


def ignore_producer_id(_producer_id: int) -> None:
    """The note of a producer id that nobody takes."""


class Producers:
    """The producers of one partition, by id. `written` for each batch rebuilds them.

    `whole` if these are all batches since the first offset. Otherwise a producer whose first is a
    marker may have written before, and its batches are gone. `note` is called with each id that
    comes up: nobody else may be given it.
    """

    def __init__(
        self, *, whole: bool = True, note: Callable[[int], None] = ignore_producer_id
    ) -> None:
        self._whole = whole
        self._note = note
        self._producers: dict[int, _Producer] = {}  # the one that wrote last stands last
        self._refused: dict[int, _RefusedBatch] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._producers

    def admit(self, header: BatchHeader, *, begins: bool = False) -> WrittenBatch | None:
        """The batch as it was written before, or None when it must be appended now.

        An unknown producer may start at any sequence: it may have been silent for long. With
        `begins` it may not, because it has another epoch for each transaction (KIP-890). Raises
        ApiError for a batch of an older epoch, or one that does not follow the last.
        """
        first = self._refused.get(header.producer_id)
        if first is not None and first.epoch == header.producer_epoch:
            self._must_be(header, min(header.base_sequence, first.sequence))
        known = self._producers.get(header.producer_id)
        if known is None:
            if begins:
                self._must_be(header, 0)
            return None
        self.check_epoch(Producer(header.producer_id, header.producer_epoch))
        if header.producer_epoch > known.epoch:
            self._must_be(header, 0)
            return None
        for batch in known.batches:
            if (
                batch.first_sequence == header.base_sequence
                and batch.last_sequence == header.last_sequence
            ):
                return batch
        if known.batches:
            self._must_be(header, (known.batches[-1].last_sequence + 1) % _SEQUENCES)
        elif known.begins_anew:
            self._must_be(header, 0)
        return None

    def refused(self, header: BatchHeader, now: Millis) -> None:
        """A batch was turned away before anybody looked at its sequence. When it comes again, it
        must not find one behind it that was sent together with it (KIP-890).
        """
        first = self._refused.get(header.producer_id)
        mine = _RefusedBatch(header.producer_epoch, header.base_sequence, now)
        if first is None or first.epoch < mine.epoch:
            self._refused[header.producer_id] = mine
        elif first.epoch == mine.epoch:
            sequence = min(first.sequence, mine.sequence)
            self._refused[header.producer_id] = mine._replace(sequence=sequence)
        if len(self._refused) > _REFUSED_MAX:
            del self._refused[next(iter(self._refused))]

    def check_epoch(self, producer: Producer) -> None:
        """Raises ApiError for an epoch that is over."""
        known = self._producers.get(producer.id)
        if known is not None and producer.epoch < known.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer.id} is at epoch {known.epoch}, "
                f"its batch says {producer.epoch}",
            )

    def check_coordinator(self, producer_id: int, coordinator_epoch: int) -> None:
        """Raises ApiError for a marker of a coordinator that another one has taken the place of."""
        known = self._producers.get(producer_id)
        if known is not None and coordinator_epoch < known.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"the last marker of producer {producer_id} is of coordinator epoch "
                f"{known.coordinator_epoch}, this one of {coordinator_epoch}",
            )

    def active(self) -> Iterator[ActiveProducer]:
        """All that are remembered now. One that is forgotten before its turn is left out."""
        for producer_id in list(self._producers):
            producer = self._producers.get(producer_id)
            if producer is not None:
                yield ActiveProducer(
                    producer_id,
                    producer.epoch,
                    producer.batches[-1].last_sequence if producer.batches else -1,
                    producer.timestamp,
                    producer.coordinator_epoch,
                )

    def written(
        self, header: BatchHeader, base_offset: Offset, now: Millis, coordinator_epoch: int = -1
    ) -> None:
        """Remember a batch that is in the log now; of a marker, whose it is."""
        self._refused.pop(header.producer_id, None)
        before = self._producers.pop(header.producer_id, None)
        known = before
        if known is None or header.producer_epoch > known.epoch:
            known = _Producer(header.producer_epoch, begins_anew=self._whole or before is not None)
            if before is None:
                self._note(header.producer_id)
            else:
                known.coordinator_epoch = before.coordinator_epoch
        self._producers[header.producer_id] = known
        known.used_at = now
        known.timestamp = header.max_timestamp
        if header.is_control:  # a marker ends a transaction and has no sequence
            known.coordinator_epoch = coordinator_epoch
            return
        known.batches.append(
            WrittenBatch(
                header.base_sequence, header.last_sequence, base_offset, header.max_timestamp
            )
        )
        if len(known.batches) > _REMEMBERED:
            del known.batches[0]

    def expire(self, before: Millis, keep: Container[int] = ()) -> None:
        """Forget the producers that have written nothing since, but for those with an open
        transaction. There may be a million of them: the next call goes on. After a clock went back
        they stay until the time of the last batch before that comes again.
        """
        silent = takewhile(lambda each: each[1].used_at < before, self._producers.items())
        self._drop(islice((one for one, _ in silent if one not in keep), _EXPIRED_AT_ONCE))
        if self._refused:
            self._refused = {
                key: refused for key, refused in self._refused.items() if refused.at >= before
            }

    def forget(self, count: int, keep: Container[int] = ()) -> int:
        """Forget so many of those that have been silent longest; how many that were."""
        return self._drop(islice((one for one in self._producers if one not in keep), count))

    def _drop(self, some: Iterator[int]) -> int:
        dropped = list(some)
        for producer_id in dropped:
            del self._producers[producer_id]
        return len(dropped)

    @staticmethod
    def _must_be(header: BatchHeader, expected: int) -> None:
        if header.base_sequence != expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} must go on with sequence {expected}, "
                f"its batch starts at {header.base_sequence}",
            )
