# SPDX-License-Identifier: Apache-2.0
"""A leader as a producer's queue sees it: it takes batches in the order of their sequences."""

from collections import defaultdict
from typing import Any

from kohort.client.accumulator.accumulator import Limits, Outcome, RecordAccumulator
from kohort.client.accumulator.batch import Batch, ProducerId
from kohort.errors import ErrorCode
from kohort.terms import TopicPartition
from kohort.wire.batch import header_at, records

KNOWN_AGAIN = 5
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ID = ProducerId(7, 0)


def batch_of(*values: bytes, number: int = 1, place: TopicPartition = T0) -> Batch:
    batch = Batch(place, number, limit=1 << 20, codec=0, created=0, expires=1000)
    for value in values or (b"a",):
        batch.take(5, None, value, (), value.decode(), 10)
    return batch


def queue_of(**options: Any) -> RecordAccumulator:
    limits = {
        "batch_size": 100,
        "linger_ms": 5,
        "max_request_size": 1000,
        "delivery_timeout_ms": 1000,
        "codec": 0,
    }
    given = {"idempotent": True, "transactional": False, "pause_ms": lambda _: 10, **options}
    limits.update({name: given.pop(name) for name in list(given) if name in limits})
    queue = RecordAccumulator(Limits(**limits), **given)
    if queue.idempotent:
        queue.producer = ID
    return queue


def put(queue: RecordAccumulator, value: str, place: TopicPartition = T0, now: int = 0) -> bool:
    return queue.add(place, 5, None, value.encode(), (), value, 10, lambda: now)


def taken(queue: RecordAccumulator, now: int, **options: Any) -> list[list[Batch]]:
    """What one look sends: everything to node 0, which is always free, unless said otherwise."""
    given = {
        "leader_of": lambda _: 0,
        "is_free": lambda _: True,
        "may_send": lambda _: True,
        **options,
    }
    return [batches for _, batches in queue.take(now, **given).shares]


def values_of(batch: Batch) -> list[str]:
    return [str(one) for one in batch.deliveries]


class Leader:
    """Keeps the values of each partition, and what it knows of the producers of each."""

    def __init__(self) -> None:
        self.log: dict[TopicPartition, list[str]] = defaultdict(list)
        self._epochs: dict[tuple[TopicPartition, int], int] = {}
        self._known: dict[tuple[TopicPartition, int], list[tuple[int, int, int]]] = {}

    def append(self, place: TopicPartition, data: bytes) -> tuple[ErrorCode, int]:
        """The error and the base offset, as Kafka answers (KIP-98, KIP-360)."""
        header = header_at(data)
        values = [(one.value or b"").decode() for one in records(data, 0)]
        log = self.log[place]
        if header.producer_id >= 0:
            who = (place, header.producer_id)
            epoch = self._epochs.get(who, -1)
            if header.producer_epoch < epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            known = self._known.get(who, []) if header.producer_epoch == epoch else []
            for first, last, offset in known:
                if (first, last) == (header.base_sequence, header.last_sequence):
                    return ErrorCode.NONE, offset
            expected = (known[-1][1] + 1) & 0x7FFFFFFF if known else 0
            if header.base_sequence != expected and (known or epoch >= 0):
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            mine = (header.base_sequence, header.last_sequence, len(log))
            self._known[who] = [*known, mine][-KNOWN_AGAIN:]
            self._epochs[who] = header.producer_epoch
        log += values
        return ErrorCode.NONE, len(log) - len(values)


def told(outcomes: list[Outcome]) -> list[tuple[list[str], int, str | None]]:
    """The values, the offset and the name of the error of each."""
    return [
        (values_of(one.batch), one.offset, one.error.code.name if one.error else None)
        for one in outcomes
    ]
