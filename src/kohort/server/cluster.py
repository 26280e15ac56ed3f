"""Everything that the nodes of one process share: topics, partitions, shards, and their turns.

No sockets and no clock: `turn(now)` takes what has arrived as one batch, `wake_at` says when to
come again, and what must reach the disk first is handed out by `begin_sync` and taken back by
`end_sync`. The asyncio side of it is `broker.py`; tests with a clock of their own drive this class
directly.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from kohort.config import BrokerConfig
from kohort.coordinator.effects import Call
from kohort.coordinator.shard import Shard
from kohort.coordinator.topics import Topics
from kohort.errors import KohortError, StorageError
from kohort.runtime.driver import Condition, PartitionDriver
from kohort.runtime.observers import Observer
from kohort.server.catalog import OFFSETS_TOPIC, Catalog, Topic
from kohort.server.durability import Durability
from kohort.server.fetch_sessions import FetchSessions
from kohort.server.housekeeping import Housekeeping, Kept
from kohort.server.logs import Logs
from kohort.server.node import Node
from kohort.server.partitions import Partition
from kohort.server.placement import coordinator_partition
from kohort.server.tokens import Token
from kohort.server.waiting import Parked, Waiting
from kohort.storage.log import Log
from kohort.terms import GroupId, Millis, Offset

LOAD_SLICE_RECORDS = 20_000
OPEN_SLICE_LOGS = 64
ANYTHING = 1 << 62  # bytes: as much as any fetch waits for


class _Coordinated:
    """The log of a shard. What of it becomes durable releases the shard's replies, and may be read
    by consumers, who see it as a partition like any other.
    """

    def __init__(self, driver: PartitionDriver, partition: Partition) -> None:
        self.driver = driver
        self.partition = partition
        self.log = driver.log

    def durable(self, end: Offset) -> None:
        self.partition.durable(end)
        for reply in self.driver.synced(end):
            reply.token.answer(reply.response)


class Cluster:
    """The broker without its sockets. Create it, call `start`, then `turn` whenever something
    arrives.
    """

    def __init__(
        self,
        config: BrokerConfig,
        catalog: Catalog,
        logs: Logs,
        new_uuid: Callable[[], bytes],
        observe: Observer,
    ) -> None:
        self.config = config
        self.catalog = catalog
        self.logs = logs
        self.new_uuid = new_uuid
        self.observe = observe
        self.nodes: list[Node] = []
        self.node_ids: tuple[int, ...] = ()
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.drivers: list[PartitionDriver] = []
        self.waiting = Waiting()
        self._housekeeping = Housekeeping(config, logs, observe)
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots, new_uuid
        )
        self.durability = Durability(synced=config.log_sync != "none")
        self._coordinated: dict[PartitionDriver, _Coordinated] = {}
        self._submitted: dict[PartitionDriver, None] = {}
        self._to_open: dict[tuple[str, int], None] = {}
        self._now = Millis(0)  # of the last turn or write
        self._wake: Millis | None = None
        self._loading: list[PartitionDriver] = []

    # --- life

    def start(self, nodes: Sequence[tuple[int, str, int]], now: Millis) -> None:
        """Open every log and begin to load the shards. `nodes` are (id, host, port)."""
        self.nodes = [Node(self, node_id, host, port) for node_id, host, port in nodes]
        self.node_ids = tuple(node.id for node in self.nodes)
        self._now = now
        self._delete_leaving()
        self._open_logs(now)
        while self._to_open:
            self._open_some(now)

    @property
    def loading(self) -> bool:
        """Whether `load_some` has something to do."""
        return bool(self._loading or self._to_open)

    def load_some(self, now: Millis) -> bool:
        """Go on opening logs and loading shards, a slice at a time; true while there is more."""
        self._open_some(now)
        while self._loading:
            driver = self._loading[0]
            if driver.load_some(now, LOAD_SLICE_RECORDS):
                return True
            self._loading.pop(0)
            self._submitted[driver] = None
        return self.loading

    def close(self) -> None:
        """Make durable what is not, and release every file."""
        for partition in self.partitions.values():
            if not partition.failed:
                with suppress(KohortError):
                    partition.log.sync()
            partition.log.close()
        self.logs.close()

    # --- topics and partitions

    @property
    def topics(self) -> Topics:
        return self.catalog.image()

    def partition(self, name: str, index: int) -> Partition | None:
        return self.partitions.get((name, index))

    def node(self, node_id: int) -> Node | None:
        return next((node for node in self.nodes if node.id == node_id), None)

    def topics_changed(self, now: Millis) -> None:
        """After a change of the catalog: open what is new, drop what is gone, tell every shard."""
        known = self.catalog.by_name
        for name, index in [key for key in self.partitions if key[0] not in known]:
            partition = self.partitions.pop((name, index))
            self.durability.forget(partition, partition.log.close)
            for parked in self.waiting.changed((name, index)):
                self.resume(parked, now)
        self._delete_leaving()
        self._open_logs(now)
        for driver in self.drivers:
            driver.topics_changed(self.topics, now)
            self._submitted[driver] = None

    def _delete_leaving(self) -> None:
        """Remove the logs of deleted topics; what cannot be removed now is tried again later."""
        for topic in list(self.catalog.deleting):
            try:
                for index in range(topic.partitions):
                    self.logs.delete(topic, index)
                self.catalog.deleted(topic)
            except StorageError as error:
                self.observe(f"{topic.name} is deleted, its logs are not yet: {error}")

    def _open_logs(self, now: Millis) -> None:
        """Open what is not open yet: a handful at once, the rest between the turns."""
        for topic in self.catalog.by_name.values():
            for index in range(topic.partitions):
                if (topic.name, index) not in self.partitions:
                    self._to_open[topic.name, index] = None
        self._open_some(now)

    def _open_some(self, now: Millis) -> None:
        for name, index in list(islice(self._to_open, OPEN_SLICE_LOGS)):
            del self._to_open[name, index]
            topic = self.catalog.by_name.get(name)
            if topic is not None and (name, index) not in self.partitions:
                self._open_partition(topic, index, now)

    def _open_partition(self, topic: Topic, index: int, now: Millis) -> None:
        """A log that cannot be opened now (no room) is tried again later; until then its
        partition is unknown.
        """
        try:
            log = self.logs.open(topic, index, self.config, now)
        except StorageError as error:
            self.observe(f"{topic.name}-{index} is not there yet: {error}")
            return
        partition = Partition(topic, index, log, self.config)
        self.partitions[topic.name, index] = partition
        if topic.name == OFFSETS_TOPIC:
            self._add_driver(partition, now)

    def _add_driver(self, partition: Partition, now: Millis) -> None:
        def new_shard() -> Shard:
            return Shard(self.config, self.new_uuid, self.topics)

        driver = PartitionDriver(partition.log, new_shard, self.observe)
        self.drivers.append(driver)
        self._coordinated[driver] = _Coordinated(driver, partition)
        driver.start_loading()
        if partition.log.end == partition.log.start:
            driver.load_some(now)
        else:
            self._loading.append(driver)

    def leader(self, topic: Topic, partition: int) -> int:
        """The id of the node that serves a partition."""
        return topic.leader(partition, self.node_ids)

    def offsets_topic(self) -> Topic:
        return self.catalog.by_name[OFFSETS_TOPIC]

    def coordinator(self, group_id: GroupId) -> tuple[int, PartitionDriver]:
        """The node that coordinates a group, and the shard that holds it."""
        index = coordinator_partition(group_id, len(self.drivers))
        return self.leader(self.offsets_topic(), index), self.drivers[index]

    # --- requests and answers

    def submit(self, driver: PartitionDriver, call: Call[Any]) -> None:
        """Give a call to a shard; it is answered in this turn or a later one."""
        driver.submit(call)
        self._submitted[driver] = None

    def wrote(self, partition: Partition, now: Millis, size_bytes: int) -> None:
        """A partition has grown. Its readers wait until that is durable; so must its answer: see
        `answer_behind`.
        """
        self._now = now
        partition.unread_bytes += size_bytes
        self.durability.wrote(partition)
        if partition.high_watermark == partition.log.end:
            self._readable(partition)

    def answer_behind(self, token: Token, response: Any, partitions: Iterable[Partition]) -> None:
        """Answer once all that these partitions hold now is durable."""
        self.durability.answer(token, response, partitions)

    def _readable(self, partition: Partition) -> None:
        """Consumers may read more of a partition than before: wake those who wait for it."""
        size_bytes = partition.take_unread()
        if self.waiting:
            key = partition.topic.name, partition.index
            if partition.topic.name == OFFSETS_TOPIC:
                size_bytes = ANYTHING  # nobody counts what the coordinator writes
            for parked in self.waiting.arrived(key, size_bytes):
                self.resume(parked, self._now)

    def resume(self, parked: Parked, now: Millis) -> None:
        """Answer a fetch that has waited long enough, or for enough."""
        try:
            response = parked.work(now)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            parked.token.fail(error)
        else:
            parked.token.answer(response)

    def housekeep(self, now: Millis) -> bool:
        """What is done now and then, a slice of it; true when it should go on soon."""
        if not self._housekeeping.busy:
            self._delete_leaving()
            self._open_logs(now)  # those that could not be opened before
            silent_since = Millis(now - self.config.producer_id_expiration_ms)
            for partition in self.partitions.values():
                partition.expire_producers(silent_since)
        return self._housekeeping.step(self._kept, now)

    def _kept(self) -> Iterator[Kept]:
        """The logs that housekeeping may touch: not those that are being read back, or are lost."""
        idle = {one.partition for one in self._coordinated.values() if not one.driver.active}
        for partition in self.partitions.values():
            if not partition.failed and partition not in idle:
                yield Kept(str(partition), partition.log, partition.config)

    # --- turns

    def turn(self, now: Millis) -> None:
        """Everything that has arrived and everything that is due."""
        self._now = now
        if self._wake is not None and self._wake <= now:
            self._wake_up(now)
        while self._submitted:
            drivers, self._submitted = list(self._submitted), {}
            for driver in drivers:
                driver.turn(now)
                self._after_turn(driver)

    def _wake_up(self, now: Millis) -> None:
        for parked in self.waiting.due(now):
            self.resume(parked, now)
        self._wake = None
        for driver in self.drivers:
            wake = driver.wake_at()
            if wake is not None and wake <= now:
                self._submitted[driver] = None
            else:
                self._wake_by(wake)

    def _after_turn(self, driver: PartitionDriver) -> None:
        one = self._coordinated[driver]
        if driver.waits_for_sync:
            self.durability.wrote(one)
        else:
            one.durable(driver.log.end)
        if self.waiting and one.partition.high_watermark == driver.log.end:
            self._readable(one.partition)
        if driver.condition is Condition.LOADING and driver not in self._loading:
            self._loading.append(driver)
        self._wake_by(driver.wake_at())

    def _wake_by(self, at: Millis | None) -> None:
        if at is not None and (self._wake is None or at < self._wake):
            self._wake = at

    def wake_at(self) -> Millis | None:
        """When `turn` must be called at the latest."""
        self._wake_by(self.waiting.wake_at())
        return self._wake

    # --- the disk

    def begin_sync(self) -> list[Log]:
        """The logs that must be made durable now; none when a sync is under way."""
        return self.durability.begin()

    def end_sync(self, ends: list[Offset]) -> None:
        """What `begin_sync` handed out is durable up to these ends: release what waited for it."""
        for one in self.durability.end(ends):
            if isinstance(one, _Coordinated):
                self._readable(one.partition)
            elif isinstance(one, Partition):
                self._readable(one)
