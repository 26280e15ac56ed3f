# SPDX-License-Identifier: Apache-2.0
"""Topics whose partitions belong to a machine: it alone writes their logs, and answers from them.

MACHINE_FACTORIES is the list. The cluster gives each partition of these topics a driver when it is
opened.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from kohort.assignors import Assign
from kohort.config import BrokerConfig
from kohort.coordinator.counters import GroupCounters
from kohort.coordinator.shard import Shard
from kohort.coordinator.state import TopicRights
from kohort.errors import Broken
from kohort.machines.topics import Topics
from kohort.runtime.clocks import perf_counter_ns
from kohort.runtime.driver import PartitionDriver
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kohort.server.metrics.meters import Meters
from kohort.server.partitions.partition import Partition
from kohort.server.requests.reply_tokens import ReplyToken
from kohort.server.scheduler import MACHINES, NEW, Over, Scheduler
from kohort.terms import Offset
from kohort.transactions.machine import TransactionCoordinator

Driver = PartitionDriver[Shard]
TransactionDriver = PartitionDriver[TransactionCoordinator]
AnyDriver = PartitionDriver[Any]


class MachineContext(NamedTuple):
    """What a new machine is given: the settings, a source of ids, one of producer ids (None while
    more are being reserved), the topics of now, what says how large a record may be at the time,
    who may know of which topics (None: everybody of all), the assignors of others, where it counts,
    the token of those who carry its messages out, and who is told of producer ids that are in use.
    """

    config: BrokerConfig
    new_uuid: Callable[[], bytes]
    new_producer_id: Callable[[], int | None]
    topics: Topics
    limit_bytes: Callable[[], int]
    rights: TopicRights | None
    plugin_assignors: Mapping[str, Assign]
    counters: GroupCounters
    marker_sender: ReplyToken
    note_producer_id: Callable[[int], None]


NewMachine = Callable[[MachineContext], Any]
"""Makes a `machines.machine.Machine` that knows nothing yet."""


def _new_shard(context: MachineContext) -> Shard:
    return Shard(
        context.config,
        context.new_uuid,
        context.topics,
        context.plugin_assignors,
        record_limit=context.limit_bytes,
        rights=context.rights,
        counters=context.counters,
    )


def _new_transaction_coordinator(context: MachineContext) -> TransactionCoordinator:
    return TransactionCoordinator(
        context.config, context.new_producer_id, context.marker_sender, context.note_producer_id
    )


MACHINE_FACTORIES: Mapping[str, NewMachine] = {
    OFFSETS_TOPIC: _new_shard,
    TRANSACTIONS_TOPIC: _new_transaction_coordinator,
}


class CoordinatorPartition:
    """A partition and its driver. Once a part of the log is durable, the driver's replies are
    released and consumers may read it; to them it is an ordinary partition.
    """

    line = MACHINES

    def __init__(
        self,
        driver: AnyDriver,
        partition: Partition,
        turn: "Callable[[CoordinatorPartition, Over], bool]",
        scheduler: Scheduler,
        meters: Meters,
    ) -> None:
        self.driver = driver
        self.partition = partition
        self.log = driver.log
        self.run: Callable[[Over], bool] = partial(turn, self)  # the driver takes a turn
        self._scheduler = scheduler
        self._meters = meters
        self.had_ns = NEW
        self._parked_ns = 0  # since when answers wait for the log

    def await_sync(self) -> None:
        """Its answers wait until the log is durable."""
        if not self._parked_ns:
            self._parked_ns = perf_counter_ns()

    def durable(self, end: Offset) -> None:
        if self._parked_ns:
            self._meters.parked.add(perf_counter_ns() - self._parked_ns)
            self._parked_ns = 0
        if self.partition.high_watermark != end:
            self.partition.durable(end)
        for reply in self.driver.synced(end):
            reply.token.answer(reply.response)

    def lost(self, error: Broken) -> None:
        self.partition.lost(error)
        for reply in self.driver.lost(error):
            reply.token.fail(error)

    def after_sync(self) -> None:
        """The driver goes on in the next turn."""
        self._scheduler.enter(self)
