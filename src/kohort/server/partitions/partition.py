# SPDX-License-Identifier: Apache-2.0
"""A partition of a topic: its log, its producers, and how far consumers may read.

Batches are stored as they came, once `batch_validation` has checked them. Consumers see what is
durable: with log.sync=group the high watermark follows the sync after the turn.
"""

from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

from kohort.config import BrokerConfig, TopicConfig
from kohort.errors import ApiError, Broken, ErrorCode, StorageError, UnsettledError, WireError
from kohort.machines.effects import Producer
from kohort.server.catalog import Topic
from kohort.server.partitions import batch_validation
from kohort.server.partitions.log_reader import AT_ONCE_BATCHES, PendingReadError
from kohort.server.partitions.partition_producers import PartitionProducers
from kohort.server.partitions.partition_transactions import AbortedTxn, PartitionTransactions
from kohort.server.partitions.producers import ActiveProducer, Producers, ignore_producer_id
from kohort.storage.log import EVERY_BATCH, StoredLog
from kohort.terms import Millis, Offset, PartitionIndex
from kohort.wire import batch as batches

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
AT_HAND = frozenset({LATEST, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD})
"""The points that are told without a look into the log."""

READ_UNCOMMITTED, READ_COMMITTED = 0, 1  # isolation levels

_NO_TIMESTAMP = -1


class AppendResult(NamedTuple):
    """Where a batch was written. `size_bytes` is 0 for one that was there already."""

    base_offset: Offset
    log_append_time_ms: int
    size_bytes: int


class TimestampAndOffset(NamedTuple):
    """An answer of ListOffsets. -1 stands for nothing."""

    offset: int
    timestamp: int
    leader_epoch: int


class ProducerRead(NamedTuple):
    """What must be read of a partition before an idempotent producer may write to it."""

    partition: "Partition"

    def read_on(self, most: int) -> bool:
        """Read at most so many batches; true while there are more. Raises ApiError."""
        return self.partition.read_producers(most)


def _ignore_damage(_partition: "Partition", _damage: str) -> None:
    """Nobody listens."""


class Partition:
    """One partition. After a failed sync it stays failed: nobody knows what is on the disk."""

    __slots__ = (
        "_note_producer_id",
        "_producer_expiration_ms",
        "_producers",
        "_transactions",
        "config",
        "failed",
        "high_watermark",
        "index",
        "log",
        "on_damage",
        "on_loss",
        "refusal",
        "refused_writes",
        "topic",
        "unannounced_bytes",
        "writers_wait",
    )

    def __init__(
        self,
        topic: Topic,
        index: PartitionIndex,
        log: StoredLog,
        broker: BrokerConfig,
        note_producer_id: Callable[[int], None] = ignore_producer_id,
    ) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.config = TopicConfig.of(broker, topic.configs)
        self.high_watermark = log.end
        self.unannounced_bytes = 0  # written, and not yet counted for those who wait to read
        self.failed = False
        self.writers_wait = False  # some wait to write until it is read, and nobody overtakes them
        # Called with what a reader has come across, and with the failed sync that a write has.
        self.on_damage: Callable[[Partition, str], None] = _ignore_damage
        self.on_loss: Callable[[Partition, str], None] = _ignore_damage
        self.refused_writes = 0  # since that was last told
        self.refusal = ""  # of the last of them
        self._producers: PartitionProducers | None = None
        self._note_producer_id = note_producer_id
        self._producer_expiration_ms = broker.producer_id_expiration_ms
        self._transactions: PartitionTransactions | None = None
        if log.start == log.end:
            self._transactions = PartitionTransactions(log.end)

    @property
    def leader_epoch(self) -> int:
        """The log's own: it grows when another node begins to lead."""
        return self.log.leader_epoch

    @property
    def last_stable_offset_if_known(self) -> Offset:
        """`last_stable_offset` where it is known without reading the log, else the high watermark.

        Readers of all records are told this one. It is not known where nobody has asked for
        committed records since the start.
        """
        known = self._transactions
        if known is None or known.seen < self.log.end:
            return self.high_watermark
        return self._stable(known)

    @property
    def is_read(self) -> bool:
        """Whether `last_stable_offset` is told without a look into the log."""
        known = self._transactions
        return known is not None and known.seen == self.log.end

    def read_on(self, most: int) -> bool:
        """Read at most so many batches of what `last_stable_offset` must know and would read by
        itself; true while there are more. Raises ApiError where the log cannot be read.
        """
        known = self._transactions
        if known is None:
            known = self._transactions = PartitionTransactions(self.log.start)
        if known.seen == self.log.end:
            return False
        try:
            return known.catch_up(self.log, most)
        except (Broken, WireError) as error:
            raise self._unreadable(error) from error

    def read_producers(self, most: int) -> bool:
        """Read at most so many batches of what must be known of producers; true while there are
        more. Raises ApiError where the log cannot be read.
        """
        known = self._producers
        if known is None:
            return False
        try:
            return known.read_on(self.log, most)
        except (Broken, WireError) as error:
            raise self._unreadable(error) from error

    def last_stable_offset(self) -> Offset:
        """The end for readers of committed records: the first record of an open transaction, or
        the high watermark. Raises ApiError where the log cannot be read.
        """
        return self._stable(self._known_transactions())

    def _stable(self, known: PartitionTransactions) -> Offset:
        """The first record of an open transaction may have been deleted."""
        return max(known.stable(self.high_watermark), self.log.start)

    def aborted(self, start: Offset, end: Offset) -> list[AbortedTxn]:
        """The aborted transactions that a reader of these offsets must know of. Call
        `last_stable_offset` before it.
        """
        known = self._known_transactions()
        known.forget_before(self.log.start)
        return known.aborted(start, end)

    @property
    def partition(self) -> "Partition":
        """Itself, as `durability.SyncListener` has it."""
        return self

    def durable(self, end: Offset) -> None:
        """Everything before `end` is on the disk and may be read. For a failed partition that is
        unknown, so nothing changes.
        """
        if not self.failed:
            self.high_watermark = end

    def lost(self, error: Broken) -> None:
        """A sync has failed: what could be read stays readable, and nothing more is accepted."""
        del error
        self.failed = True

    def after_sync(self) -> None:
        """Nothing follows: those who wait for the log are answered one by one."""

    def take_unannounced(self) -> int:
        """The number of bytes that have become readable since the last call.

        Bytes written while the disk was busy count twice: a reader may wake too early.
        """
        size_bytes = self.unannounced_bytes
        if self.high_watermark == self.log.end:
            self.unannounced_bytes = 0
        return size_bytes

    def reconfigure(self, topic: Topic, broker: BrokerConfig) -> None:
        """Adopt the changed settings of the topic."""
        self.topic = topic
        self.config = TopicConfig.of(broker, topic.configs)

    def check_sound(self) -> None:
        """Raises ApiError once nobody knows what is on the disk."""
        if self.failed:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self} could not be synced")

    def append(self, records: bytes, now: Millis, *, begins: bool = False) -> AppendResult:
        """Check a batch as it came and write it; `begins` where a producer that is not known must
        be at its first batch. Raises ApiError or PendingReadError, and then writes nothing.
        """
        self.check_sound()
        header = batch_validation.check(records, self.config, self, now)
        append_time = now if self.config.log_append_time else _NO_TIMESTAMP
        producers = None
        if header.producer_id >= 0:
            if self.writers_wait:
                raise PendingReadError(self)
            if header.is_transactional:
                self._transactions_at_hand()
            producers = self._known_producers(now)
            if begins and header.producer_id not in producers:
                producers.refused(header, now)  # until it is written
            before = producers.admit(header, begins=begins)
            if before is not None:
                return AppendResult(before.base_offset, before.timestamp, 0)
        if append_time != _NO_TIMESTAMP:
            records = batches.with_append_time(records, append_time)
        base_offset = self._write(records, header.last_offset_delta + 1)
        if producers is not None:
            producers.written(header, base_offset, now)
        end = self.log.end
        if self._producers is not None and self._producers.seen == base_offset:
            self._producers.seen = end
        known = self._transactions
        if known is not None and known.seen == base_offset:
            known.seen = end
            if header.is_transactional:
                known.wrote(header.producer_id, base_offset)
        return AppendResult(base_offset, append_time, len(records))

    def refused_in_transaction(self, records: bytes, now: Millis) -> None:
        """A batch was turned away because its transaction has not let it in, perhaps only yet.
        Raises PendingReadError, or ApiError where the log cannot be read.
        """
        if self.writers_wait:
            raise PendingReadError(self)
        self._known_producers(now).refused(batches.header_at(records), now)

    def end_transaction(
        self, producer: Producer, now: Millis, *, commit: bool, coordinator_epoch: int
    ) -> None:
        """Write the marker that ends a producer's transaction. Raises ApiError or PendingReadError,
        and then writes nothing.
        """
        self.check_sound()
        if self.writers_wait:
            raise PendingReadError(self)
        known, producers = self._transactions_at_hand(), self._known_producers(now)
        marker = batches.build_marker(
            commit=commit,
            timestamp=now,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            coordinator_epoch=coordinator_epoch,
        )
        offset = self._write(marker, 1)
        producers.written(batches.header_at(marker), offset, now, coordinator_epoch)
        known.ended(producer.id, offset, commit=commit)
        known.seen = self.log.end
        if self._producers is not None:
            self._producers.seen = self.log.end

    def check_marker(self, producer: Producer, coordinator_epoch: int, now: Millis) -> None:
        """Raises ApiError for a marker whose producer, or whose coordinator, has a newer epoch
        here. Raises PendingReadError.
        """
        known = self._known_producers(now)
        known.check_epoch(producer)
        known.check_coordinator(producer.id, coordinator_epoch)

    def active_producers(self, now: Millis) -> Iterator[tuple[ActiveProducer, Offset | None]]:
        """The producers that have written here not too long ago, each with the first record of its
        open transaction. Raises PendingReadError, or ApiError where the log cannot be read.
        """
        begun = self._transactions_at_hand().producers
        active = self._known_producers(now).active()
        return ((producer, begun.get(producer.producer_id)) for producer in active)

    @property
    def producer_count(self) -> int:
        """How many producers are remembered."""
        return 0 if self._producers is None else len(self._producers.producers)

    def _write(self, batch: bytes, count: int) -> Offset:
        """Append a batch; the offset of its first record. Raises ApiError."""
        base_offset = self.log.end
        try:
            self.log.append(batch, count)
        except Broken as error:  # a sync has failed, in this call or unnoticed before
            raise self.out_of_service(error) from error
        except StorageError as error:
            self.refused_writes += 1
            self.refusal = str(error)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, self.refusal) from error
        return base_offset

    def read(self, offset: int, limit_bytes: int, end: Offset) -> bytes:
        """Whole batches from the one that holds `offset`, all of them before `end`.

        The first one comes even when it is larger than the limit. Raises ApiError for an offset
        that is not there.
        """
        log = self.log
        if not log.start <= offset <= log.end:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self} has offsets {log.start} to {log.end}, {offset} was asked for",
            )
        if offset >= end:
            return b""
        try:
            data = log.fetch(Offset(offset), limit_bytes)
        except Broken as error:
            raise self._unreadable(error) from error
        return data if end >= log.end else _until(data, end)

    def out_of_service(self, error: Broken | UnsettledError) -> ApiError:
        """Nobody knows what is on the disk: nothing more is accepted. What a request gets."""
        if not self.failed:
            self.failed = True
            self.on_loss(self, str(error))
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def _unreadable(self, error: Broken | WireError) -> ApiError:
        self.on_damage(self, str(error))
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def find(self, timestamp: int, end: Offset) -> TimestampAndOffset:
        """The offset of a special point or of the first record at or after a time, up to `end`.

        Raises ApiError when the records do not match their header, or cannot be read.
        """
        if timestamp == LATEST:
            return TimestampAndOffset(end, _NO_TIMESTAMP, self.log.leader_epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            start = self.log.start
            return TimestampAndOffset(start, _NO_TIMESTAMP, self.log.epochs.at(start))
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):  # nothing is tiered here
            return TimestampAndOffset(-1, _NO_TIMESTAMP, -1)
        try:
            if timestamp == MAX_TIMESTAMP:
                timestamp = self.log.max_timestamp
                if timestamp < 0:
                    return TimestampAndOffset(-1, _NO_TIMESTAMP, -1)
            found = self.log.find_timestamp(timestamp)
        except WireError as error:  # records are not looked at when they are written
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{self}: {error}") from error
        except Broken as error:
            raise self._unreadable(error) from error
        if found is None or found[1] >= end:
            return TimestampAndOffset(-1, _NO_TIMESTAMP, -1)
        return TimestampAndOffset(found[1], found[0], self.log.epochs.at(found[1]))

    def epoch_end(self, epoch: int) -> tuple[int, Offset] | None:
        """The largest leader epoch up to this one and where its durable records ended; None when
        there is none such (`LeaderEpochs.end_of`).
        """
        return self.log.epochs.end_of(epoch, self.log.start, self.high_watermark)

    def new_start(self, offset: int) -> Offset:
        """Where the log begins without the records before an offset; -1 means all. Raises ApiError
        for an offset that is not there.
        """
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self} ends at {self.high_watermark}, deletion up to {offset} was asked for",
            )
        return max(Offset(offset), self.log.start)

    def expire_producers(self, before: Millis) -> int:
        """Forget the producers that have been silent since `before`; how many are left."""
        if self._producers is None:
            return 0
        producers = self._producers.producers
        producers.expire(before, self._in_transaction)
        return len(producers)

    def forget_producers(self, count: int) -> int:
        """Forget so many of those that have been silent longest; how many that were."""
        if self._producers is None:
            return 0
        return self._producers.producers.forget(count, self._in_transaction)

    @property
    def _in_transaction(self) -> Container[int]:
        """The producers with an open transaction, as far as that is known."""
        return () if self._transactions is None else self._transactions.producers

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.index}"

    def _known_transactions(self) -> PartitionTransactions:
        """The transactions. They are read from the log when somebody first asks: most partitions
        never see one. What a machine has written to its own log is read then, too.
        """
        self.read_on(EVERY_BATCH)
        assert self._transactions is not None
        return self._transactions

    def _transactions_at_hand(self) -> PartitionTransactions:
        """The same, for those who can wait: raises PendingReadError where much must be read for
        them.
        """
        if self.read_on(AT_ONCE_BATCHES):
            raise PendingReadError(self, self)
        assert self._transactions is not None
        return self._transactions

    def _known_producers(self, now: Millis) -> Producers:
        """The producers, also those of what a machine has written to its own log. Raises
        PendingReadError where much must be read for them.
        """
        known = self._producers
        if known is None:
            known = self._producers = PartitionProducers(
                self.log.start, self._note_producer_id, now, self._producer_expiration_ms
            )
        if known.seen != self.log.end:
            known.now = now
            if self.read_producers(AT_ONCE_BATCHES):
                raise PendingReadError(self, ProducerRead(self))
        return known.producers


def _until(data: bytes, end: Offset) -> bytes:
    """The batches before `end`."""
    for position, header in batches.walk(data):
        if header.last_offset >= end:
            return data[:position]
    return data
