# SPDX-License-Identifier: Apache-2.0
"""What the nodes of one process share: topics, partitions, shards, and their turns.

No sockets and no clock: `turn(now)` takes what has arrived as one batch, and `wake` says when to
come again. `begin_sync` hands out logs that must be synced, and `end_sync` takes them back;
`begin_work` and `end_work` do this for longer work on the disk, `begin_task` and `end_task` for
what machines want to know. `broker.py` is the asyncio side;
tests with a clock of their own drive this class directly.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kohort.assignors import Assign
from kohort.config import BrokerConfig, IneffectiveSetting, with_dynamic
from kohort.config.listeners import client_listeners
from kohort.errors import Broken, ErrorCode, KohortError, StorageError
from kohort.machines.effects import Call
from kohort.machines.topics import Topics
from kohort.runtime.clocks import perf_counter_ns
from kohort.runtime.driver import Condition, PartitionDriver
from kohort.runtime.observers import Observer
from kohort.server.access import May, everyone_may
from kohort.server.authorizer import authorizer_or_none, report_access
from kohort.server.background.background_tasks import TaskRun
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Catalog, Draft, Topic
from kohort.server.coordinators.coordinator_partitions import (
    MACHINE_FACTORIES,
    AnyDriver,
    CoordinatorPartition,
    Driver,
    MachineContext,
    NewMachine,
    TransactionDriver,
)
from kohort.server.coordinators.loader import Loader
from kohort.server.coordinators.marker_sender import ANYTHING, MarkerSender
from kohort.server.descriptors import WAITING_MAX, Limit, Shares, coordinator_logs, share_out
from kohort.server.metrics.meters import Meters
from kohort.server.partitions.disk_work import OPEN_SLICE_LOGS, DiskWork, Finish
from kohort.server.partitions.durability import Durability, SyncListener
from kohort.server.partitions.housekeeping import Housekeeping
from kohort.server.partitions.log_reads import LogReadQueue
from kohort.server.partitions.logs import Logs
from kohort.server.partitions.partition import Partition
from kohort.server.partitions.partition_table import PartitionTable
from kohort.server.partitions.producer_expiration import ProducerExpiration
from kohort.server.placement import NOBODY, Endpoint, Placement
from kohort.server.requests.fetch_purgatory import Answer, DelayedFetch, FetchPurgatory, WatchKey
from kohort.server.requests.fetch_sessions import FetchSession, FetchSessions
from kohort.server.requests.memory_pool import MemoryPool
from kohort.server.requests.reply_tokens import ReplyToken
from kohort.server.scheduler import Over, Scheduler
from kohort.server.topic_creation_failures import TopicCreationFailures
from kohort.terms import Millis, Offset, PartitionIndex
from kohort.wire.messages.fetch import FetchResponse

if TYPE_CHECKING:  # a broker of plain text has none
    from kohort.server.tls_listener import Certificates

START_LOGS = 1000  # opened before the first request is answered; the rest while others are


class Cluster:
    """The broker without its sockets. Call `start`, then `turn` whenever something arrives."""

    def __init__(
        self,
        config: BrokerConfig,
        catalog: Catalog,
        logs: Logs,
        new_uuid: Callable[[], bytes],
        observe: Observer,
        may: May | None = None,
        plugin_assignors: Mapping[str, Assign] | None = None,
        stopwatch: Callable[[], int] = perf_counter_ns,
        limit: Limit = Limit(),  # noqa: B008  (a constant)
    ) -> None:
        self.base_config = config  # of the file
        self._configured = catalog.broker_configs
        self.dynamic = with_dynamic(config, catalog.broker_configs)
        self.config = config = self.dynamic.config
        self.authorizer = authorizer_or_none(config) if may is None else None
        self.may = may or self.authorizer or everyone_may
        self.certificates: Certificates | None = None  # of the listeners of TLS
        self.when_reconfigured: Callable[[BrokerConfig], None] | None = None  # the connections
        self.plugin_assignors = plugin_assignors or {}  # assignors of others
        self.catalog = catalog
        self.logs = logs
        self.new_uuid = new_uuid
        self.observe = observe
        self.meters = Meters()
        self.placement = Placement(catalog)
        self.unsent = MemoryPool(1 << 62)  # answers that clients have not read yet, in bytes
        self.table = PartitionTable(config, catalog, logs, observe, self)
        self._drivers: dict[str, dict[PartitionIndex, AnyDriver]] = {
            name: {} for name in MACHINE_FACTORIES
        }
        self.drivers: dict[PartitionIndex, Driver] = self._drivers[OFFSETS_TOPIC]  # of groups
        self.transaction_coordinators: dict[PartitionIndex, TransactionDriver] = self._drivers[
            TRANSACTIONS_TOPIC
        ]
        self._coordinator_partitions: dict[AnyDriver, CoordinatorPartition] = {}
        self.fetch_purgatory = FetchPurgatory()
        self.scheduler = Scheduler(stopwatch)
        self.log_reads = LogReadQueue(self.scheduler)
        self.producers = ProducerExpiration(observe)
        self._housekeeping = Housekeeping(
            config, logs, observe, self.scheduler, self.table.starts, self._may_touch
        )
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots, new_uuid, self._session_evicted
        )
        self.durability = Durability(synced=config.log_sync != "none")
        self.now = Millis(0)  # of the last turn or write
        self._due = Millis(0)  # of the last turn
        self.wake: Millis | None = None  # when `turn` must be called at the latest
        self._loader = Loader(self.scheduler, self.meters.loads, lambda: self.now, self._turn_next)
        self.tasks: deque[TaskRun] = deque()  # that `begin_task` has to give
        self._running_tasks = 0
        self._note_synced_at = Millis(0)
        self.topic_creation_failures = TopicCreationFailures()
        self._told: set[str] = set()  # of damage that somebody has come across
        self._limit = limit
        self.shares = self.shares_with(0)
        self._adopt_shares()

    def start(self, brokers: Sequence[Endpoint], now: Millis) -> None:
        """Open the logs, those of groups first, and begin to load the shards."""
        self.placement = Placement(self.catalog, brokers)
        self.now = now
        self._adopt_rules()
        report_access(self.config, self.catalog.acls, self.observe)
        self._report_ineffective(())
        self.table.open_missing()
        for _ in range(START_LOGS // OPEN_SLICE_LOGS):
            work = self.begin_work()
            if work is None:
                break
            work.run()
            self.end_work(work, now)

    def close(self) -> None:
        """Make every log durable, note that, and release every file."""
        clean = self.table.whole
        synced = {}
        for place, partition in self.table.open.items():
            if not partition.failed:
                self._settle(partition)
                self._shorten(partition)
            clean = clean and not partition.failed
            synced[place] = partition.log.synced
            partition.log.close()
        try:
            self.logs.note_synced(synced)
        except KohortError as error:
            clean = False
            self.observe.warning(str(error))
        self.logs.close(clean=clean)

    def _settle(self, partition: Partition) -> None:
        """Make a log durable, also where what stands behind its end cannot be removed: then it is
        only not closed in order, which would promise that there is no torn end.
        """
        for step in (partition.log.mend, partition.log.sync):
            try:
                step()
            except KohortError as error:
                partition.failed = True
                self.observe.warning(f"{partition} is not closed in order: {error}")

    def _shorten(self, partition: Partition) -> None:
        """Remove the files that would be gone soon: the next start would set them aside."""
        log = partition.log
        with suppress(KohortError):
            if log.has_old_files:
                log.note_start(log.start)
            while log.remove_oldest():
                pass

    def has_failed(self, topic: str, index: int) -> bool:
        """Whether a coordinator cannot be loaded from its log, which is open."""
        driver = self._drivers[topic].get(PartitionIndex(index))
        return driver is not None and driver.condition is Condition.FAILED

    def try_writes(self) -> None:
        """Look at once whether logs have room again: `kohort.testing` has given it back."""
        for drivers in self._drivers.values():
            for driver in drivers.values():
                driver.try_writes()

    @property
    def busy(self) -> bool:
        """Whether something is under way that ends by itself, without time and without requests."""
        under_way = self.scheduler.waiting or self.tasks or self._running_tasks
        return bool(under_way or self.durability.busy or self.table.busy)

    @property
    def topics(self) -> Topics:
        known = self.catalog.known_image
        return self.catalog.image(self.placement.racks) if known is None else known

    def partition(self, name: str, index: int) -> Partition | None:
        return self.table.get(name, index)

    def opened(self, partition: Partition, now: Millis) -> None:
        """A partition is there."""
        partition.on_damage = self._tell_of_damage
        partition.on_loss = self._tell_of_loss
        new_machine = MACHINE_FACTORIES.get(partition.topic.name)
        if new_machine is not None:
            self._host(partition, new_machine, now)

    def dropped(self, partition: Partition) -> None:
        """A partition is gone, with its topic."""
        self._housekeeping.forget(partition)
        self.log_reads.forget(partition)
        self.durability.forget(partition, partition.log.close)
        for parked in self.fetch_purgatory.changed((partition.topic.name, partition.index)):
            self.scheduler.enter(parked)

    def start_moved(self, partition: Partition) -> None:
        """A log begins later."""
        self._housekeeping.shorten(partition)

    def topics_changed(self, now: Millis) -> None:
        """The catalog has changed: tell every machine."""
        self._adopt_rules()
        if self._configured != self.catalog.broker_configs:
            self._configured = self.catalog.broker_configs
            before = (*self.dynamic.ineffective, *self.dynamic.unread)
            self.dynamic = with_dynamic(self.base_config, self._configured)
            self._report_ineffective(before)
            self._reconfigure(self.dynamic.config)
        self._adopt_shares()
        for driver in self._coordinator_partitions:
            driver.topics_changed(self.topics, now)
            self._turn_next(driver)

    def _adopt_rules(self) -> None:
        if self.authorizer is not None:
            self.authorizer.adopt(self.catalog.acls)

    def shares_with(self, more: int) -> Shares:
        """The shares of descriptors if coordinators had so many more logs."""
        on_disk = self.logs.open_files is not None
        always_open = coordinator_logs(self.catalog.by_name.values()) + more if on_disk else 0
        waiting = WAITING_MAX * len(client_listeners(self.config))
        most = self.config.max_connections + waiting
        return share_out(self._limit, always_open, most, on_disk=on_disk)

    def _adopt_shares(self) -> None:
        self.shares = self.shares_with(0)
        if self.logs.open_files is not None:
            self.logs.open_files.share = self.shares.log_files

    def _report_ineffective(self, told: Collection[IneffectiveSetting]) -> None:
        for setting in (*self.dynamic.ineffective, *self.dynamic.unread):
            if setting not in told:
                self.observe.warning(str(setting))

    def _reconfigure(self, config: BrokerConfig) -> None:
        """Settings of the broker have been changed: they count from now on."""
        self.config = config
        self.table.reconfigure(config)
        self._housekeeping.config = config
        for driver in self.drivers.values():
            driver.machine.reconfigure(config)
        if self.when_reconfigured is not None:
            self.when_reconfigured(config)

    def _host(self, partition: Partition, new_machine: NewMachine, now: Millis) -> None:
        """Give a partition its driver, and begin to load that."""

        def limit_bytes() -> int:
            return partition.config.max_message_bytes

        def machine() -> Any:
            return new_machine(
                MachineContext(
                    self.config,
                    self.new_uuid,
                    self.new_producer_id,
                    self.topics,
                    limit_bytes,
                    self.authorizer,
                    self.plugin_assignors,
                    self.meters.counters,
                    marker_sender,
                    self.catalog.note_producer_id,
                )
            )

        marker_sender = MarkerSender(self, partition, lambda: driver)
        driver: AnyDriver = PartitionDriver(
            partition.log,
            machine,
            self.observe,
            name=str(partition),
            limit_bytes=limit_bytes,
        )
        self._drivers[partition.topic.name][partition.index] = driver
        self._coordinator_partitions[driver] = CoordinatorPartition(
            driver, partition, self._take_turn, self.scheduler, self.meters
        )
        if self.placement.leader(partition.topic, partition.index) == NOBODY:
            return
        driver.start_loading()
        if partition.log.end == partition.log.start:
            driver.load_some(now)
            self._turn_next(driver)
        else:
            self._loader.load(driver)

    def new_producer_id(self) -> int | None:
        """A producer id that nobody has had. None when the reserved ones are used up: more are
        being reserved from then on.
        """
        producer_id = self.catalog.next_producer_id()
        if producer_id is None:
            self.reserve_producer_ids(lambda _error: None)
        return producer_id

    def reserve_producer_ids(self, finish: Finish) -> None:
        """Reserve more producer ids, then call `finish`."""

        def reserve(draft: Draft) -> Finish:
            draft.reserve_producer_ids()
            return finish

        self.table.change(reserve)

    def rearrange(self, change: Callable[[Placement], None]) -> None:
        """Change which node serves what. Groups and transactions that get another coordinator are
        loaded again from the log, since a new coordinator knows only what the log says. Those that
        get none rest. Fetches that wait at a former leader are answered, and look elsewhere. A
        partition that gets another leader, or none, has a higher leader epoch.
        """
        led = {
            partition: self.placement.leader(partition.topic, partition.index)
            for partition in self.table.open.values()
        }
        coordinated = [
            (driver, place.partition) for driver, place in self._coordinator_partitions.items()
        ]
        before = [self.placement.leader(place.topic, place.index) for _, place in coordinated]
        watched = [
            (key, topic, self.placement.leader(topic, key[1]))
            for key in self.fetch_purgatory.places()
            if (topic := self.catalog.by_name.get(key[0])) is not None
        ]
        change(self.placement)
        for partition, former in led.items():
            if self.placement.leader(partition.topic, partition.index) != former:
                self._raise_epoch(partition)
        for (driver, partition), former in zip(coordinated, before, strict=True):
            leader = self.placement.leader(partition.topic, partition.index)
            if leader != former:
                driver.resign(f"node {former} does not coordinate {driver.name} any more")
                self._turn_next(driver)
                if leader != NOBODY:
                    driver.start_loading()
                    self._loader.load(driver)
        for key, topic, former in watched:
            if self.placement.leader(topic, key[1]) != former:
                for parked in self.fetch_purgatory.changed(key):
                    self.scheduler.enter(parked)

    def _raise_epoch(self, partition: Partition) -> None:
        try:
            partition.log.next_leader()
        except StorageError as error:
            self.observe.warning(f"{partition}: its new leader epoch is not kept: {error}")

    def expire_offsets(self, now: Millis) -> None:
        """Look for expired offsets now, and not only after the check interval."""
        for driver in self.drivers.values():
            if driver.active:
                driver.machine.expire_offsets(now)
                self._turn_next(driver)

    def offsets_topic(self) -> Topic:
        return self.catalog.by_name[OFFSETS_TOPIC]

    def submit(self, driver: AnyDriver, call: Call[Any]) -> None:
        """Give a call to a machine; it is answered in this turn or a later one."""
        driver.submit(call)
        self.scheduler.enter(self._coordinator_partitions[driver])

    def _turn_next(self, driver: AnyDriver) -> None:
        self.scheduler.enter(self._coordinator_partitions[driver])

    def wrote(self, partition: Partition, now: Millis, size_bytes: int) -> None:
        """A partition has grown. Readers wait until that is durable, and so does its answer."""
        self.now = now
        partition.unannounced_bytes += size_bytes
        self.durability.wrote(partition)
        if partition.high_watermark == partition.log.end:
            self._readable(partition)

    def answer_behind(
        self, token: ReplyToken, response: Any, partitions: Iterable[Partition]
    ) -> None:
        """Answer once all that these partitions hold now is durable."""
        self.durability.answer(token, response, partitions)

    def _readable(self, partition: Partition) -> None:
        """Consumers may read more of a partition than before: wake the fetches that wait for it."""
        size_bytes = partition.take_unannounced()
        if self.fetch_purgatory.fetches:
            key = partition.topic.name, partition.index
            if partition.topic.name in MACHINE_FACTORIES:
                size_bytes = ANYTHING  # what a machine writes is not counted
            for parked in self.fetch_purgatory.arrived(key, size_bytes):
                self.scheduler.enter(parked)

    def park(
        self,
        token: ReplyToken,
        answer: Answer,
        keys: Iterable[WatchKey],
        *,
        missing_bytes: int,
        deadline: Millis,
    ) -> DelayedFetch:
        """Have a fetch wait until so much has arrived; see `FetchPurgatory.park`."""
        self._wake_by(deadline)
        return self.fetch_purgatory.park(
            token, answer, keys, missing_bytes=missing_bytes, deadline=deadline
        )

    def _session_evicted(self, session: FetchSession) -> None:
        """A fetch that waits would keep the session in memory: its client begins another one."""
        parked = session.parked
        if parked is not None and not parked.done:
            self.fetch_purgatory.take(parked)
            refused = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
            parked.answer = lambda: refused
            self.scheduler.enter(parked)

    def housekeep(self, now: Millis) -> None:
        """Look at what is done now and then; what is due enters the line."""
        self.table.open_missing()  # what could not be opened or deleted before
        silent_since = Millis(now - self.config.producer_id_expiration_ms)
        self.producers.look(self.table.open.values(), silent_since)
        self._tell_of_refused_writes()
        self.topic_creation_failures.tell(self.observe)
        if now >= self._note_synced_at:
            self._note_synced_at = Millis(now + self.config.log_flush_offset_checkpoint_interval_ms)
            self.table.note_synced()
        self._housekeeping.look(self.table.open.values(), now)

    def _tell_of_refused_writes(self) -> None:
        """The writes that were refused since the last time. Clients could fill the log of a broker
        if each of them had a line.
        """
        refusing = [one for one in self.table.open.values() if one.refused_writes]
        if refusing:
            writes = sum(partition.refused_writes for partition in refusing)
            self.observe.warning(
                f"writes were refused: {writes}, to partitions: {len(refusing)},"
                f" the last to {refusing[-1]}: {refusing[-1].refusal}"
            )
        for partition in refusing:
            partition.refused_writes = 0

    def _tell_of_damage(self, partition: Partition, damage: str) -> None:
        """Once for each place: it does not go away, and readers come again and again."""
        if damage not in self._told:
            self._told.add(damage)
            self.observe.warning(f"{partition} is damaged and cannot be read there: {damage}")

    def _tell_of_loss(self, partition: Partition, why: object) -> None:
        self.observe.error(f"{partition} could not be synced and is out of service: {why}")

    def _may_touch(self, partition: Partition) -> bool:
        """Whether housekeeping may touch a log: not one that is being loaded or is lost."""
        drivers = self._drivers.get(partition.topic.name)
        driver = None if drivers is None else drivers.get(partition.index)
        return not partition.failed and (driver is None or driver.active)

    def turn(self, now: Millis, due: Millis | None = None) -> None:
        """Handle what has arrived, and what is due at `due`: after a stall in which no client could
        be heard, that is an earlier time. It ends with the share of the round; `has_more` tells
        whether another turn must follow.
        """
        self.now = now
        self._due = due = now if due is None else due
        if self.wake is not None and self.wake <= due:
            self._wake_up(due)
        if self.scheduler.waiting:
            self.meters.turns.add(*self.scheduler.run_round())
        else:
            self.scheduler.arrived = 0

    def _take_turn(self, coordinator_partition: CoordinatorPartition, over: Over) -> bool:
        """Have a machine handle what has arrived for it; true while there is more."""
        driver, partition = coordinator_partition.driver, coordinator_partition.partition
        readable = partition.high_watermark
        driver.turn(self.now, self._due, over)
        end = driver.log.end
        if driver.durable < end:
            if self.durability.synced:
                coordinator_partition.await_sync()
            self.durability.wrote(coordinator_partition)
        else:
            coordinator_partition.durable(end)
        if partition.high_watermark != readable:
            self._readable(partition)
        if driver.loading is not None:
            self._loader.load(driver)
        while driver.tasks:
            self.tasks.append(TaskRun(driver, driver.tasks.popleft()))
        wake = driver.wake_at()
        if wake is not None and (self.wake is None or wake < self.wake):
            self.wake = wake
        return driver.has_more

    @property
    def has_more(self) -> bool:
        """Whether another turn has something to do at once."""
        return bool(self.scheduler.waiting)

    def clock_jumped(self, by_ms: int) -> None:
        """The wall clock has jumped while time went on as ever: the deadlines move with it."""
        for driver in self._coordinator_partitions:
            driver.clock_jumped(by_ms)
        self.fetch_purgatory.clock_jumped(by_ms)
        self._housekeeping.clock_jumped(by_ms)
        self._note_synced_at = Millis(self._note_synced_at + by_ms)
        self.wake = Millis(0)

    def _wake_up(self, due: Millis) -> None:
        for parked in self.fetch_purgatory.due(due):
            self.scheduler.enter(parked)
        self.wake = None
        self._wake_by(self.fetch_purgatory.wake_at())
        for driver in self._coordinator_partitions:
            wake = driver.wake_at()
            if wake is not None and wake <= due:
                self._turn_next(driver)
            else:
                self._wake_by(wake)

    def _wake_by(self, at: Millis | None) -> None:
        if at is not None and (self.wake is None or at < self.wake):
            self.wake = at

    def begin_sync(self) -> list[SyncListener]:
        """Hand out those whose logs must be synced now. Sync each of them, on any thread, and give
        the result to `end_sync`.
        """
        return self.durability.begin()

    def end_sync(self, listener: SyncListener, outcome: Offset | Broken) -> None:
        """One log is durable up to an end, or its sync has failed: release what waited for it."""
        if isinstance(outcome, Broken) and not listener.partition.failed:
            self._tell_of_loss(listener.partition, outcome)
        self.durability.end(listener, outcome)
        self._readable(listener.partition)

    def begin_work(self) -> DiskWork | None:
        """Long work for the disk, for another thread to `run`; None when there is none, or a piece
        is out already. Give it back to `end_work`.
        """
        return self.table.begin()

    def end_work(self, work: DiskWork, now: Millis) -> None:
        """Adopt the result, and answer the requests that wait for it."""
        self.now = now
        self.table.end(work, now)

    def begin_task(self) -> TaskRun | None:
        """What a machine wants done beside the loop, for a thread to `step` until there is no more
        of it; None when there is nothing. Give it back to `end_task`.
        """
        if not self.tasks:
            return None
        self._running_tasks += 1
        return self.tasks.popleft()

    def end_task(self, task_run: TaskRun) -> None:
        """Its machine takes the outcome in the next turn."""
        self._running_tasks -= 1
        if task_run.failure is not None:
            self.observe.error(task_run.failure)
        task_run.driver.task_done(task_run.task, task_run.outcome)
        if task_run.driver in self._coordinator_partitions:
            self._turn_next(task_run.driver)
