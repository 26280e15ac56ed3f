# SPDX-License-Identifier: Apache-2.0
"""Carries the markers of transactions to the partitions that they end in, and tells how that went.

A marker for a partition of groups goes to its machine, any other into the log. Once all of them are
durable, or refused, the machine that has asked for them is told. It asks again for those that were
refused. A partition whose topic is gone has nothing to end: its marker counts as written.
"""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Protocol

from kohort.coordinator.offsets.transactional import EndOffsets
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import BROKER, Call, Marker
from kohort.runtime.driver import PartitionDriver
from kohort.runtime.observers import Observer
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Catalog
from kohort.server.partitions.log_reads import LogReadQueue
from kohort.server.partitions.partition import Partition
from kohort.server.placement import NOBODY, Placement
from kohort.server.requests.reply_tokens import ReplyToken
from kohort.server.scheduler import MACHINES, NEW, Over, Scheduler
from kohort.terms import Millis, PartitionIndex, TopicPartition
from kohort.transactions.messages import Markers, MarkersWritten

AT_ONCE = 64  # markers of a transaction: nearly every one has fewer
ANYTHING = 1 << 62  # bytes: with a marker readers may have all that waited for it


class ClusterAccess(Protocol):
    """What the sender needs of the cluster."""

    catalog: Catalog
    placement: Placement
    observe: Observer
    drivers: dict[PartitionIndex, Any]
    log_reads: LogReadQueue
    scheduler: Scheduler

    @property
    def now(self) -> Millis: ...
    def partition(self, name: str, index: int) -> Partition | None: ...
    def submit(self, driver: PartitionDriver[Any], call: Call[Any]) -> None: ...
    def wrote(self, partition: Partition, now: Millis, size_bytes: int) -> None: ...
    def answer_behind(
        self, token: ReplyToken, response: Any, partitions: list[Partition]
    ) -> None: ...


class DiscardToken:
    """A token for which nobody waits."""

    def answer(self, response: Any) -> None: ...
    def fail(self, error: Exception) -> None: ...


class MarkerSender:
    """The token of one machine of transactions: what it answers to it are `Markers`."""

    def __init__(
        self,
        world: ClusterAccess,
        partition: Partition,
        driver: Callable[[], PartitionDriver[Any]],
    ) -> None:
        self._world = world
        self._partition = partition  # the machine's own: its leader is the coordinator
        self._driver = driver
        self._reported_failures: dict[
            tuple[str, TopicPartition], str
        ] = {}  # why a marker is not written

    def answer(self, response: Markers) -> None:
        """Carry markers out. They are durably decided."""
        driver = self._driver()
        marker = Marker(response.commit, self._partition.leader_epoch)

        def carry(place: TopicPartition, part: _MarkerToken) -> None:
            self._carry(place, part, response, marker)

        round_ = _MarkerBatch(self._world, driver, response, self._reported_failures, carry)
        if round_.go_on(AT_ONCE):
            self._world.scheduler.enter(round_)

    def fail(self, error: Exception) -> None:
        """The decision may not be durable: the machine is read anew and asks again if it is."""

    def _carry(
        self, place: TopicPartition, part: "_MarkerToken", markers: Markers, marker: Marker
    ) -> None:
        """Have one marker written. Raises ApiError or PendingReadError."""
        world = self._world
        topic = world.catalog.by_name.get(place.topic)
        if topic is None or not 0 <= place.partition < topic.partitions:
            part.answer(None)
            return
        if place.topic == TRANSACTIONS_TOPIC:  # let in by an older broker
            world.observe.warning(
                f"the transaction of {markers.transactional_id!r} has {place} among its "
                "partitions, which belongs to no transaction: its marker is left out"
            )
            part.answer(None)
            return
        if world.placement.leader(topic, place.partition) == NOBODY:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{place} has no leader")
        partition = world.partition(*place)
        shard = world.drivers.get(PartitionIndex(place.partition))
        if place.topic == OFFSETS_TOPIC and shard is not None:
            world.submit(shard, Call(part, EndOffsets(markers.producer, marker), 0, BROKER))
        elif partition is None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{place} is not open")
        else:
            self._write(partition, part, markers, marker)

    def _write(
        self, partition: Partition, part: "_MarkerToken", markers: Markers, marker: Marker
    ) -> None:
        """Write one marker into a log. Raises ApiError or PendingReadError."""
        world = self._world
        partition.end_transaction(
            markers.producer,
            world.now,
            commit=markers.commit,
            coordinator_epoch=marker.coordinator_epoch,
        )
        world.wrote(partition, world.now, ANYTHING)
        world.answer_behind(part, None, [partition])


class _MarkerBatch:
    """One message, until every partition has said what became of its marker. A transaction may have
    tens of thousands of them: those that are not sent at once are, in slices.
    """

    line = MACHINES

    def __init__(
        self,
        world: ClusterAccess,
        driver: PartitionDriver[Any],
        markers: Markers,
        told: dict[tuple[str, TopicPartition], str],
        carry: "Callable[[TopicPartition, _MarkerToken], None]",
    ) -> None:
        self.had_ns = NEW
        self._carry = carry
        self._left = iter(markers.partitions)
        self._world = world
        self._reported_failures = told
        self._driver = driver
        self._markers = markers
        self._written: list[TopicPartition] = []
        self._failed: list[TopicPartition] = []
        self._sent = False

    def marker_done(self, place: TopicPartition, error: Exception | None) -> None:
        """A marker is durable, or why it is not. It is tried often, and told of once."""
        about = self._markers.transactional_id, place
        if error is None:
            self._written.append(place)
            self._reported_failures.pop(about, None)
        else:
            self._failed.append(place)
            if self._reported_failures.get(about) != str(error):
                self._reported_failures[about] = str(error)
                self._world.observe.warning(
                    f"the transaction of {about[0]!r} cannot be ended in {place} yet: {error}"
                )
        self._tell()

    def run(self, over: Over) -> bool:
        while self.go_on(1):
            if over():
                return True
        return False

    def go_on(self, count: int) -> bool:
        """Send so many more; true while there may be others."""
        for place in islice(self._left, count):
            part = _MarkerToken(self, place)
            self._world.log_reads.attempt(partial(self._carry, place, part), part)
            count -= 1
        if count:
            self._sent = True
            self._tell()
        return not self._sent

    def _tell(self) -> None:
        if self._sent and len(self._written) + len(self._failed) == len(self._markers.partitions):
            told = MarkersWritten(
                self._markers.transactional_id,
                self._markers.ticket,
                tuple(self._written),
                tuple(self._failed),
            )
            self._world.submit(self._driver, Call(DiscardToken(), told, 0, BROKER))


class _MarkerToken:
    """The token of one marker. It is answered with None, or with why it is not written."""

    __slots__ = ("_place", "_round")

    def __init__(self, round_: _MarkerBatch, place: TopicPartition) -> None:
        self._round = round_
        self._place = place

    def answer(self, response: ApiError | None) -> None:
        self._round.marker_done(self._place, response)

    def fail(self, error: Exception) -> None:
        self._round.marker_done(self._place, error)
