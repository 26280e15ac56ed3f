"""What a partition remembers of its idempotent producers (KIP-98): an epoch and five batches each.

A producer may have five requests under way: a batch that is sent again is one of these.
"""

from collections.abc import Container
from typing import NamedTuple

from kohort.coordinator.effects import Producer
from kohort.errors import ApiError, ErrorCode
from kohort.terms import Millis, Offset
from kohort.wire.batch import BatchHeader

_REMEMBERED = 5
_SEQUENCES = 2**31


class Written(NamedTuple):
    """A batch that is in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    timestamp: int


class _Producer:
    __slots__ = ("batches", "begins_anew", "epoch", "used_at")

    def __init__(self, epoch: int, *, begins_anew: bool) -> None:
        self.epoch = epoch
        self.begins_anew = begins_anew  # its first batch must have sequence 0
        self.batches: list[Written] = []
        self.used_at = Millis(0)


class Producers:
    """The producers of one partition, by id. `written` for each batch rebuilds them."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def admit(self, header: BatchHeader) -> Written | None:
        """The batch as it was written before, or None when it must be appended now.

        An unknown producer may start at any sequence: it may have been silent for long. Raises
        ApiError for a batch of an older epoch, or one that does not follow the last.
        """
        known = self._producers.get(header.producer_id)
        if known is None:
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

    def check_epoch(self, producer: Producer) -> None:
        """Raises ApiError for an epoch that is over."""
        known = self._producers.get(producer.id)
        if known is not None and producer.epoch < known.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer.id} is at epoch {known.epoch}, "
                f"its batch says {producer.epoch}",
            )

    def written(self, header: BatchHeader, base_offset: Offset, now: Millis) -> None:
        """Remember a batch that is in the log now."""
        known = self._producers.get(header.producer_id)
        if known is None or header.producer_epoch > known.epoch:
            known = self._producers[header.producer_id] = _Producer(
                header.producer_epoch, begins_anew=known is not None
            )
        known.used_at = now
        if header.is_control:  # a marker ends a transaction and has no sequence
            return
        known.batches.append(
            Written(header.base_sequence, header.last_sequence, base_offset, header.max_timestamp)
        )
        if len(known.batches) > _REMEMBERED:
            del known.batches[0]

    def expire(self, before: Millis, keep: Container[int] = ()) -> None:
        """Forget the producers that have written nothing since, but for those with an open
        transaction.
        """
        over = [
            producer_id
            for producer_id, one in self._producers.items()
            if one.used_at < before and producer_id not in keep
        ]
        for producer_id in over:
            del self._producers[producer_id]

    @staticmethod
    def _must_be(header: BatchHeader, expected: int) -> None:
        if header.base_sequence != expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} must go on with sequence {expected}, "
                f"its batch starts at {header.base_sequence}",
            )
