# SPDX-License-Identifier: Apache-2.0
"""How a log is taken over from whoever has it: fence first, read then.

A new owner gets the next epoch of the log's own transactional id and writes one batch with it. From
that batch on the partition refuses the former owner (KIP-98), so what stands before it is all that
the former owner was ever told of. Only then is the log read. To read first would miss what the
former owner writes meanwhile.

A cluster forgets a transactional id after transactional.id.expiration.ms, and gives another
producer id to the next owner, which fences nobody. So each other producer id that is met in the log
is fenced too, by a batch with the highest epoch, and the log is read on until nobody is left.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kohort.errors import ErrorCode, FencedError, KohortError
from kohort.machines.effects import Producer
from kohort.terms import Millis, Offset
from kohort.wire import batch
from kohort.wire.batch import BatchHeader

LAST_EPOCH = 32767  # nobody has a higher one


class InitProducerId(NamedTuple):
    """Ask for the producer id of a transactional id, and the next epoch. Answered by `initialised`.

    With `producer`, ask for the next epoch as the one who has this one (KIP-360): the cluster
    refuses it when somebody else has asked since.
    """

    transactional_id: str
    producer: Producer | None = None


class Write(NamedTuple):
    """Have this batch written and replicated. Answered by `written`."""

    batch: bytes


class Read(NamedTuple):
    """Read the log from an offset on, or from its start. Answered by `read`."""

    offset: Offset | None


Request = InitProducerId | Write | Read


class ClaimRecord(NamedTuple):
    """What a claim writes. Its key is the same each time, so compaction keeps the last one."""

    key: bytes
    value: bytes
    timestamp: Millis


class ClaimResult(NamedTuple):
    """A log that is ours: who writes it from now on, by which sequence, and where it ends."""

    producer: Producer
    sequence: int
    end: Offset


class Claim:
    """Takes over one log. `request` says what to do next, until `result` is there.

    A request that has got no answer, or one that is retriable, is simply made again: a batch that
    is sent twice is written once. Raises FencedError where another one claims the log later.
    """

    def __init__(self, transactional_id: str, record: ClaimRecord) -> None:
        self.request: Request = InitProducerId(transactional_id)
        self.result: ClaimResult | None = None
        self._record = record
        self._producer = Producer(-1, -1)
        self._next: Offset | None = None  # to be read
        self._written_at = -1  # the last batch of ours
        self._strangers: dict[int, int] = {}  # other producer ids, and their highest epochs
        self._fencing = -1  # the one whose fence is being written

    def initialised(self, producer: Producer) -> None:
        """The cluster has given the producer."""
        self._producer = producer
        self.request = Write(self._batch(producer))

    def written(self, code: ErrorCode, base_offset: int) -> None:
        """The batch of `request` was written, or refused for good. Retriable errors are the
        caller's.
        """
        refused = code is not ErrorCode.NONE
        if refused and self._fencing < 0:
            raise FencedError(f"the claim of producer {self._producer} is refused: {code.name}")
        if refused and code is not ErrorCode.INVALID_PRODUCER_EPOCH:
            raise KohortError(f"producer {self._fencing} cannot be fenced: {code.name}")
        if not refused:
            self._written_at = max(self._written_at, base_offset)
        if self._fencing >= 0:  # by us now, or by somebody else before
            self._strangers[self._fencing] = LAST_EPOCH
            self._fencing = -1
        self._go_on()

    def read(self, headers: Iterable[BatchHeader], following: Offset) -> None:
        """What was read: whole batches, and the offset behind them."""
        for header in headers:
            if header.is_control or header.producer_id in (-1, self._producer.id):
                continue  # a marker is of the cluster itself, and fences nobody
            known = self._strangers.get(header.producer_id, -1)
            self._strangers[header.producer_id] = max(known, header.producer_epoch)
        self._next = following
        self._go_on()

    def _go_on(self) -> None:
        """Fence whoever is not fenced yet, and read up to the last batch of ours: nobody whom it
        fences has written behind it.
        """
        for stranger, epoch in self._strangers.items():
            if epoch < LAST_EPOCH:
                self._fencing = stranger
                self.request = Write(self._batch(Producer(stranger, LAST_EPOCH)))
                return
        if self._next is None or self._next <= self._written_at:
            self.request = Read(self._next)
        else:
            self.result = ClaimResult(self._producer, 1, self._next)

    def _batch(self, producer: Producer) -> bytes:
        key, value, timestamp = self._record
        return batch.build(
            [(key, value)],
            timestamp,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=0,
        )
