"""Everything that the nodes of one process share: topics, partitions, shards, and the turns they
take.

No sockets and no clock: `turn(now)` takes what has arrived as one batch, `wake_at` says when to
come again, and
what must reach the disk first is handed out by `begin_sync` and taken back by `end_sync`. The
asyncio side of it
is `broker.py`; tests with a clock of their own drive this class directly.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from kohort.config import BrokerConfig, TopicConfig
from kohort.coordinator.effects import Call
from kohort.coordinator.shard import Shard
from kohort.coordinator.topics import Topics
from kohort.errors import Broken, StorageError
from kohort.runtime.driver import Condition, PartitionDriver
from kohort.runtime.observers import Observer
from kohort.server.catalog import OFFSETS_TOPIC, Catalog, Topic
from kohort.server.connection import Connection, Token
from kohort.server.fetch_sessions import FetchSessions
from kohort.server.housekeeping import Housekeeping, Kept
from kohort.server.logs import Logs
from kohort.server.node import Node
from kohort.server.partitions import Partition
from kohort.server.placement import coordinator_partition
from kohort.server.waiting import Parked, Waiting
from kohort.storage.log import Log
from kohort.terms import GroupId, Millis, Offset, TopicId

LOAD_SLICE_RECORDS = 20_000


class Synced(Protocol):
    """Something with a log that was written to, and that wants to know what of it is durable."""

    log: Log

    def durable(self, end: Offset) -> None: ...


class _ShardSync:
    """A shard's log: what it makes durable releases the shard's replies."""

    def __init__(self, driver: PartitionDriver) -> None:
        self.driver = driver
        self.log = driver.log

    def durable(self, end: Offset) -> None:
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
        self.touched: list[Connection] = []
        self._syncs: dict[PartitionDriver, _ShardSync] = {}
        self._submitted: dict[PartitionDriver, None] = {}
        self._dirty: dict[Synced, None] = {}
        self._in_sync: list[Synced] = []
        self._closing: list[Log] = []  # deleted while a sync has them in hand
        self._held: deque[tuple[int, Token, Any]] = deque()
        self._round = 0
        self._writes = 0
        self._written_at = Millis(0)
        self._answered_writes = 0
        self._wake: Millis | None = None
        self._loading: list[PartitionDriver] = []

    # --- life

    def start(self, nodes: Sequence[tuple[int, str, int]], now: Millis) -> None:
        """Open every log and begin to load the shards. `nodes` are (id, host, port)."""
        self.nodes = [Node(self, node_id, host, port) for node_id, host, port in nodes]
        self.node_ids = tuple(node.id for node in self.nodes)
        for topic in list(self.catalog.deleting):
            self._delete_logs(topic)
        self._open_logs(now)

    def load_some(self, now: Millis) -> bool:
        """Go on loading shards, a slice at a time; true while there is more to load."""
        while self._loading:
            driver = self._loading[0]
            if driver.load_some(now, LOAD_SLICE_RECORDS):
                return True
            self._loading.pop(0)
            self._submitted[driver] = None
        return False

    def close(self) -> None:
        for partition in self.partitions.values():
            partition.log.close()
        for driver in self.drivers:
            driver.log.close()
        self.logs.close()

    # --- topics and partitions

    @property
    def topics(self) -> Topics:
        return self.catalog.image()

    def partition(self, name: str, index: int) -> Partition | None:
        return self.partitions.get((name, index))

    def topics_changed(self, now: Millis) -> None:
        """After a change of the catalog: open what is new, drop what is gone, tell every shard."""
        known = self.catalog.by_name
        for name, index in [key for key in self.partitions if key[0] not in known]:
            partition = self.partitions.pop((name, index))
            self._dirty.pop(partition, None)
            if partition in self._in_sync:
                self._closing.append(partition.log)
            else:
                partition.log.close()
            for parked in self.waiting.changed((name, index)):
                self.resume(parked, now)
        for topic in list(self.catalog.deleting):
            self._delete_logs(topic)
        self._open_logs(now)
        for driver in self.drivers:
            driver.topics_changed(self.topics, now)
            self._submitted[driver] = None

    def _open_logs(self, now: Millis) -> None:
        for topic in self.catalog.by_name.values():
            for index in range(topic.partitions):
                if topic.name == OFFSETS_TOPIC:
                    if index == len(self.drivers):
                        self._add_driver(self.logs.open(topic, index, self.config, now), now)
                elif (topic.name, index) not in self.partitions:
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
        self.partitions[topic.name, index] = Partition(topic, index, log, self.config)

    def _delete_logs(self, topic: Topic) -> None:
        for index in range(topic.partitions):
            self.logs.delete(topic, index)
        self.catalog.deleted(topic)

    def _add_driver(self, log: Log, now: Millis) -> None:
        def new_shard() -> Shard:
            return Shard(self.config, self.new_uuid, self.topics)

        driver = PartitionDriver(log, new_shard, self.observe)
        self.drivers.append(driver)
        self._syncs[driver] = _ShardSync(driver)
        driver.start_loading()
        if log.end == log.start:
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

    def submit(self, driver: PartitionDriver, call: Call[Any], now: Millis) -> None:
        """Give a call to a shard; it is answered in this turn or a later one."""
        del now
        driver.submit(call)
        self._submitted[driver] = None

    def wrote(self, partition: Partition, now: Millis, size_bytes: int) -> None:
        """A partition has grown. Its answer, and its readers, wait until that is durable."""
        self._writes += 1
        partition.unread_bytes += size_bytes
        if self.config.log_sync == "none":
            partition.durable(partition.log.end)
            self._readable(partition, now)
        else:
            self._dirty[partition] = None
            self._written_at = now

    def _readable(self, partition: Partition, now: Millis) -> None:
        """Consumers may read more of a partition than before: wake those who wait for it."""
        if self.waiting:
            key = partition.topic.name, partition.index
            for parked in self.waiting.arrived(key, partition.take_unread()):
                self.resume(parked, now)
        else:
            partition.take_unread()

    def answer(self, token: Token, response: Any) -> None:
        """Answer now, or, when something was written since the last answer, once that is
        durable.
        """
        if self.config.log_sync != "none" and self._writes != self._answered_writes:
            self._answered_writes = self._writes
            self._held.append((self._round + 1, token, response))
        else:
            token.answer(response)

    def resume(self, parked: Parked, now: Millis) -> None:
        """Answer a fetch that has waited long enough, or for enough."""
        parked.token.answer(parked.work(now))

    def touched_by(self, connection: Connection) -> None:
        """A connection has an answer: whoever owns the sockets fetches it after the turn."""
        self.touched.append(connection)

    def gone(self, connection: Connection) -> None:
        """A client has left: its fetches need no longer wait."""
        for slot in connection.slots:
            self.waiting.cancel(slot)

    def housekeep(self, now: Millis) -> bool:
        """What is done now and then, a slice of it; true when it should go on soon."""
        if not self._housekeeping.busy:
            self._open_logs(now)  # those that could not be opened before
            silent_since = Millis(now - self.config.producer_id_expiration_ms)
            for partition in self.partitions.values():
                partition.expire_producers(silent_since)
        return self._housekeeping.step(self._kept, now)

    def _kept(self) -> Iterator[Kept]:
        for partition in self.partitions.values():
            if not partition.failed:
                yield Kept(str(partition), partition.log, partition.config)
        settings = TopicConfig.of(self.config, self.offsets_topic().configs)
        for index, driver in enumerate(self.drivers):
            if driver.condition is Condition.ACTIVE:
                yield Kept(f"{OFFSETS_TOPIC}-{index}", driver.log, settings)

    # --- turns

    def turn(self, now: Millis) -> None:
        """Everything that has arrived and everything that is due."""
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
        if self.config.log_sync == "none":
            self._syncs[driver].durable(driver.log.end)
        elif driver.waits_for_sync:
            self._dirty[self._syncs[driver]] = None
        else:
            self._syncs[driver].durable(driver.log.end)
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
        """The logs that must be made durable now; empty when there is none, or a sync is under
        way.
        """
        if self._in_sync or not self._dirty:
            return []
        self._in_sync = list(self._dirty)
        self._dirty.clear()
        self._answered_writes = self._writes  # those without an answer hold back nobody else's
        self._round += 1
        return [one.log for one in self._in_sync]

    def end_sync(self, ends: list[Offset]) -> None:
        """What `begin_sync` handed out is durable up to these ends: release what waited for it."""
        if len(ends) != len(self._in_sync):
            raise Broken(f"{len(ends)} logs were synced, expected {len(self._in_sync)}")
        for one, end in zip(self._in_sync, ends, strict=True):
            one.durable(end)
            if isinstance(one, Partition):
                self._readable(one, self._written_at)
        self._in_sync = []
        while self._closing:
            self._closing.pop().close()
        while self._held and self._held[0][0] <= self._round:
            _, token, response = self._held.popleft()
            token.answer(response)

    @property
    def loading(self) -> bool:
        return any(driver.condition is Condition.LOADING for driver in self.drivers)


__all__ = ["Cluster", "TopicId"]
