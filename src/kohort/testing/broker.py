# SPDX-License-Identifier: Apache-2.0
"""A broker in a `with` block, for any client: in a thread of the test, or in another process."""

import atexit
import os
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from kohort.config.broker import BrokerConfig
from kohort.config.settings import plain
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.runtime.clocks import monotonic, sleep, wall
from kohort.security.names import PLAINTEXT
from kohort.testing.arguments import (
    absolute_path,
    check_bool,
    check_choice,
    check_mapping,
    check_seconds,
    check_text,
    check_whole,
)
from kohort.testing.broker_harness import BrokerSpec
from kohort.testing.clock import Kind
from kohort.testing.cluster_client import ClusterClient, Isolation
from kohort.testing.faults import Faults
from kohort.testing.groups import LOOK_S, WAIT_S, Groups, WaitTimeoutError
from kohort.testing.handles import ClockHandle, NodeHandle
from kohort.testing.hosts import IN_MEMORY, Host, ProcessHost, ThreadHost
from kohort.testing.loop import LoopThread
from kohort.testing.records import Content, Headers, Record, content, headers_of, shortened
from kohort.wire.batch.reading import Record as WireRecord
from kohort.wire.offered import offered_versions

if TYPE_CHECKING:
    from kohort.testing.authority import Authority
    from kohort.testing.security import ListenerSecurity

_SETTINGS = {
    # Tests need not wait for more members to join.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    # A rebalance of KIP-848 takes some heartbeats of those whom it concerns.
    "group.consumer.heartbeat.interval.ms": "100",
    # A client in the process of the test may live in the time to which the test has frozen it.
    "log.message.timestamp.after.max.ms": str((1 << 63) - 1),
}

__tracebackhide__ = True  # pytest shows the line of the test that has asked
_getpid = os.getpid
_OWN_SETTINGS = ("listeners", "log.dir", "log.dirs")


class Broker:
    """A Kohort broker on a free port of the loopback interface.

        with Broker() as broker:
            ...  # a client on broker.bootstrap
            broker.clock.advance(45)
            broker.restart()

    It runs in a thread of this process: any client may use it, from any other thread or process.
    With `process=True` it is another process, which a test can `kill`. Everything else is the same.

    The address and the log live from `start` to `close`. `stop` and `kill` only end the broker, so
    `start` and `restart` go on with the same log at the same address. The end of the `with` block,
    or of the interpreter, closes it.

    Args:
        settings: Kafka's configuration names to values, on top of some that suit tests (sessions
            may be short, the first rebalance does not wait).
        data_dir: the directory of the log, which is kept; a relative one is that of the folder in
            which the test is now. None keeps the log until `close`: in
            memory for a thread, in a directory of its own for a process.
        in_memory: keep nothing at all. A restart then starts empty.
        nodes: how many nodes of one cluster, each on a port of its own.
        versions: the highest version to offer of an API, by name: `{"OffsetFetch": 7}`.
        process: live in a process of its own.
        clock: "real" goes on by itself; "manual" stands, but for `broker.clock.advance`.
        security: how clients connect: SSL, SASL_SSL, SASL_PLAINTEXT or PLAINTEXT, or several of
            them, each on a port of its own. `tls` has the certificates.
        users: the passwords of users by their names, for SASL; by default of one, alice.

    Raises ConfigError for settings and versions that do not exist, KohortError for a data_dir in
    memory. After `start`, `bootstrap` is what clients connect to. `start` raises KohortError, with
    the reason, when it does not come up. `groups`, `faults` and `clock` speak of the running
    broker, and raise KohortError without one.
    """

    def __init__(
        self,
        settings: Mapping[str, str | float] | None = None,
        *,
        data_dir: Path | str | None = None,
        in_memory: bool = False,
        nodes: int = 1,
        versions: Mapping[str, int] | None = None,
        process: bool = False,
        clock: Kind = "real",
        security: str | Sequence[str] = PLAINTEXT,
        users: Mapping[str, str] | None = None,
    ) -> None:
        self.bootstrap = ""  # first of all: an error shows the repr of what it is about
        self._host: Host | None = None
        self._security: ListenerSecurity | None = None
        try:
            self.settings = _settings(settings, versions)
            if security != PLAINTEXT or users is not None:
                self._secure(security, users)
        except KohortError as error:
            raise error.with_traceback(None) from None  # where it was raised says nothing to a test
        for name, flag in (("in_memory", in_memory), ("process", process)):
            check_bool(name, flag)
        check_choice("clock", clock, ("real", "manual"))
        check_whole("nodes", nodes, least=1)
        if data_dir is not None and in_memory:
            raise KohortError(f"data_dir is {data_dir}, not allowed with in_memory")
        self.nodes = nodes
        self.in_memory = in_memory
        self.process = process
        self.moved_ms = 0  # how far the clock was moved
        self.groups = Groups(self)
        self.faults = Faults(self)
        self.clock = ClockHandle(self)
        self._clock_kind = clock
        self._begin_ms = 0
        self._started_by: int | None = None  # a process
        self._own_dir = process and data_dir is None and not in_memory
        self.data_dir = None if data_dir is None else absolute_path("data_dir", data_dir)
        self._ports = dict.fromkeys(self._listeners, 0)
        self._has_users = self._security is None  # of SCRAM, which are in the log
        self._addresses: dict[str, str] = {}  # by listener
        self._loop: LoopThread | None = None
        self._asker: ClusterClient | None = None

    def __repr__(self) -> str:
        where = f"at {self.bootstrap}" if self.is_running else "that does not run"
        return f"<broker {where}>"

    @property
    def is_running(self) -> bool:
        """Whether it runs. If its process died by itself, `log` has the reason."""
        return self._host is not None and self._host.is_running

    @property
    def pid(self) -> int:
        """The id of its own process. Raises KohortError when there is none."""
        if self._host is None:
            raise KohortError("the broker does not run, start it first")
        return self._host.pid

    def start(self) -> Self:
        """Start it on the log that an earlier life has left; clients may connect on return.

        Raises KohortError when it already runs, or does not start. A first start that fails leaves
        nothing behind, as a `with` block closes what has started only.
        """
        if self.is_running:
            where = f"process {self.pid}" if self.process else "a thread"
            raise KohortError(f"the broker already runs as {where}, stop it first")
        self._check_process()
        is_first = self._host is None
        try:
            self._start()
        except BaseException:
            if is_first:
                self.close()
            raise
        return self

    def _start(self) -> None:
        self._started_by = _getpid()
        self._forget_life()
        atexit.register(self._end_with_interpreter)
        if self._own_dir and self.data_dir is None:
            self.data_dir = Path(mkdtemp(prefix="kohort-"))
        if self._loop is None:
            self._loop = LoopThread()
            self._loop.start()
        if self._host is None:
            self._host = ProcessHost() if self.process else ThreadHost(self._loop)
        self._begin_ms = self._begin_ms or int(wall() * 1000)
        plan = BrokerSpec(
            settings=self.settings,
            data_dir=self._where(),
            nodes=self.nodes,
            ports=self._ports,
            clock=self._clock_kind,
            begin_ms=self._begin_ms,
            moved_ms=self.moved_ms,
        )
        try:
            self._addresses = self._host.start(plan)
        except KohortError as error:
            raise KohortError(f"the broker did not start: {error}") from None
        self.bootstrap = next(iter(self._addresses.values()))
        self._ports = {name: _first_port(text) for name, text in self._addresses.items()}
        self._create_users()
        running.add(self)

    def recover(self) -> Self:
        """Undo what a test has done to it: it runs, with all its nodes, has no fault, and its clock
        is where it would be if nobody had moved it. Topics, records and groups stay. The plugin of
        pytest and `BrokerCase` call it after each test.
        """
        if self._host is not None:
            self._host.resume()
        try:
            if self.is_running:
                self.faults.clear()
                self.command("start_nodes")
                self.command("return_clock")
        except KohortError:
            if self.is_running:  # else the test has killed it a moment ago
                raise
        self.moved_ms = 0
        return self if self.is_running else self.start()

    def stop(self) -> None:
        """End it in order. Its log is kept; nothing happens when it does not run."""
        self._check_process()
        self._forget_life()
        if self._host is not None:
            self._host.stop()

    def kill(self) -> None:
        """End its process as `kill -9` does: it writes nothing more, and clients are not told.

        Raises KohortError without `process=True`.
        """
        if not self.process:
            raise KohortError("a thread cannot be killed, use Broker(process=True)")
        self._check_process()
        self._forget_life()
        if self._host is not None:
            self._host.kill()

    def restart(self) -> Self:
        """Stop it if it runs, and start it again on the same log and the same address."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop it, and remove its own directory, its log of lines and its address.

        `close` may be called at any time, and more than once. A `start` after it begins anew. In a
        forked process it does nothing: the broker is not its own.
        """
        if self._started_by not in (None, _getpid()):
            return
        self.stop()
        if self._host is not None:
            self._host.close()
            self._host = None
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        if self._own_dir and self.data_dir is not None:
            rmtree(self.data_dir, ignore_errors=True)
            self.data_dir = None
        self.bootstrap, self._addresses = "", {}
        self._ports = dict.fromkeys(self._listeners, 0)
        if self._security is not None:
            self._security.close()
            self._has_users = False
        self.moved_ms = self._begin_ms = 0
        running.discard(self)
        atexit.unregister(self._end_with_interpreter)

    @property
    def tls(self) -> "Authority":
        """The authority that has signed the broker's certificate: its files, and certificates for
        clients. They end with `close`. Raises KohortError where no listener speaks TLS.
        """
        authority = None if self._security is None else self._security.authority
        if authority is None:
            raise KohortError('no listener speaks TLS, expected Broker(security="SSL")')
        return authority

    def bootstrap_of(self, protocol: str) -> str:
        """What clients of one of several protocols connect to. Raises KohortError."""
        check_choice("protocol", protocol, self._protocols)
        return self._addresses.get(protocol, "")

    def client_settings(
        self,
        client: str,
        *,
        protocol: str | None = None,
        user: str | None = None,
        password: str | None = None,
        mechanism: str | None = None,
    ) -> dict[str, Any]:
        """What a client needs to connect: as a dict with the names of "librdkafka" or of "java", or
        as keywords for clients in "python" (kafka-python, aiokafka, Kohort's own).

        `protocol` is one of the broker's, by default the first. For SASL `user` is one of `users`,
        by default the first, and the password is his unless another is given; the mechanism is
        PLAIN unless another is. For SSL `user` is the name in a certificate of the client; without
        a user the client shows none. Raises KohortError for what the broker has not.
        """
        from kohort.testing import client_settings as dialects  # noqa: PLC0415  (only then)

        check_choice("client", client, dialects.CLIENTS)
        protocol = self._protocols[0] if protocol is None else protocol
        bootstrap = self.bootstrap_of(protocol)
        if not bootstrap:
            raise KohortError("the broker does not run, start it first")
        login = dialects.Login(protocol, user, password, mechanism)
        return dialects.client_settings(client, bootstrap, login, self._security)

    def node(self, index: int) -> NodeHandle:
        """One node of a cluster of several, counted from 0."""
        check_whole("index", index)
        if index >= self.nodes:
            raise KohortError(f"there is no node {index}, expected 0 to {self.nodes - 1}")
        return NodeHandle(self, index)

    def log(self) -> str:
        """What the broker has told since the first start, line by line: among others, each change
        of a group's state.
        """
        self._check_process()
        return "" if self._host is None else self._host.log()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        configs: Mapping[str, str | float] | None = None,
    ) -> str:
        """Create a topic; its name. Raises ApiError when there is one."""
        check_text("name", name)
        check_whole("partitions", partitions, least=1)
        check_whole("replication_factor", replication_factor, least=1)
        check_mapping("configs", configs or {})
        try:
            texts = plain(configs or {})
        except KohortError as error:
            raise error.with_traceback(None) from None
        self.ask("create_topic", name, partitions, replication_factor, texts)
        return name

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records. Raises ApiError when there is none."""
        check_text("name", name)
        self.ask("delete_topic", name)

    def move_leader(self, topic: str, partition: int = 0, node: int | None = None) -> int:
        """Let another node of several lead a partition, by its index; that index. A partition of
        `__consumer_offsets` or `__transaction_state` takes its groups or transactions with it.
        Raises KohortError.
        """
        check_text("topic", topic)
        check_whole("partition", partition)
        if node is not None:
            check_whole("node", node)
        chosen: int = self.command("move_partition", topic, partition, node)
        return chosen

    @property
    def topics(self) -> list[str]:
        """The names of all topics but the broker's own, sorted."""
        found: list[str] = self.ask("topic_names")
        return found

    def produce(
        self,
        topic: str,
        *values: Content,
        key: Content = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> list[Record]:
        """Append a record for each value, all with the same key and headers. They are durable on
        return.

        A text goes as UTF-8, and what is neither text nor bytes as JSON. A record with a key goes
        to the partition where Java's producer would put it, and others to the first one, unless a
        partition is given. The time is the broker's. Returns the records as they stand. Raises
        ApiError, as when there is no such topic.
        """
        check_text("topic", topic)
        at = self.clock.now_ms if timestamp_ms is None else timestamp_ms
        check_whole("timestamp_ms", at)
        if partition is not None:
            check_whole("partition", partition)
        pairs = headers_of(headers)
        entries = [WireRecord(0, at, content(key), content(value), pairs) for value in values]
        written: list[Record] = self.ask("produce", topic, entries, partition)
        return written

    def read(
        self,
        topic: str,
        count: int | None = None,
        *,
        partition: int | None = None,
        isolation_level: Isolation = "read_committed",
        timeout: float = WAIT_S,
    ) -> list[Record]:
        """All records that a topic, or one partition of it, has now, partition by partition.

        Without another `isolation_level` these are the committed ones: nothing of a transaction
        that was aborted, and nothing from the first open transaction of a partition on.
        "read_uncommitted" shows whatever the log holds.

        With a count it waits until there are so many, and raises WaitTimeoutError with those that
        are there after `timeout` seconds.
        """
        check_text("topic", topic)
        if count is not None:
            check_whole("count", count)
        if partition is not None:
            check_whole("partition", partition)
        check_choice("isolation_level", isolation_level, ("read_committed", "read_uncommitted"))
        check_seconds("timeout", timeout)
        deadline = monotonic() + timeout
        while True:
            found: list[Record] = self.ask("read", topic, partition, isolation_level)
            if len(found) >= (count or 0):
                return found
            if monotonic() > deadline:
                raise WaitTimeoutError(
                    f"not within {timeout:g} s: {count} records of {topic}, it has "
                    f"{shortened(found)}"
                )
            sleep(LOOK_S)

    def ask(self, question: str, *arguments: Any) -> Any:
        """Ask by the protocol; see `ClusterClient`."""
        self._check_process()
        loop = self._loop
        if loop is None or not self.is_running:
            raise KohortError("the broker does not run, start it first")
        if self._asker is None:
            self._asker = self._new_asker()
        work: Coroutine[Any, Any, Any] = getattr(self._asker, question)(*arguments)
        try:
            return loop.run(work)
        except ApiError as error:
            if error.code is ErrorCode.REQUEST_TIMED_OUT and self._host is not None:
                self._host.check()  # it may be known why
            raise

    def command(self, command: str, *arguments: Any, **named: Any) -> Any:
        """Give a command to the broker's own side; see `BrokerHarness`."""
        self._check_process()
        if self._host is None:
            raise KohortError("the broker does not run, start it first")
        return self._host.ask(command, *arguments, **named)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_process(self) -> None:
        """Raises KohortError in a process that was forked from the one that started the broker."""
        if self._started_by not in (None, _getpid()):
            raise KohortError(
                f"the broker belongs to process {self._started_by}, from which this one was forked:"
                " use a client on its `bootstrap` here"
            )

    def _secure(self, security: str | Sequence[str], users: Mapping[str, str] | None) -> None:
        """Let its listeners have these protocols. Raises KohortError."""
        # Nothing of it is imported for a broker of plain text.
        from kohort.testing.security import ListenerSecurity  # noqa: PLC0415

        self._security = ListenerSecurity(security, users, self.settings)
        self.settings = self._security.settings
        self._security.check()

    @property
    def _protocols(self) -> tuple[str, ...]:
        return (PLAINTEXT,) if self._security is None else self._security.protocols

    @property
    def _listeners(self) -> tuple[str, ...]:
        return (PLAINTEXT,) if self._security is None else self._security.listeners

    def _new_asker(self) -> ClusterClient:
        """What asks the broker by the protocol, whatever it demands of others."""
        security = self._security
        if security is None:
            return ClusterClient(self.bootstrap)
        return ClusterClient(self._addresses[self._listeners[-1]], security.own)

    def _create_users(self) -> None:
        """Those of SCRAM, where the log does not have them yet."""
        security = self._security
        if security is not None and (self.in_memory or not self._has_users):
            for mechanism in security.scram_mechanisms:
                self.ask("create_users", security.users, mechanism)
        self._has_users = True

    def _where(self) -> str | None:
        if self.in_memory:
            return None
        return IN_MEMORY if self.data_dir is None else str(self.data_dir)

    def _end_with_interpreter(self) -> None:
        """Nobody has closed it."""
        if self._started_by != _getpid():
            return
        self._forget_life()
        if self._host is not None:
            self._host.abandon()
        self.close()

    def _forget_life(self) -> None:
        """What speaks of one life of the broker ends with it."""
        self.faults.forget()
        asker, self._asker = self._asker, None
        if asker is not None and self._loop is not None:
            self._loop.run(asker.close())


def _first_port(addresses: str) -> int:
    return int(addresses.split(",", maxsplit=1)[0].rpartition(":")[2])


def _settings(
    settings: Mapping[str, str | float] | None, versions: Mapping[str, int] | None
) -> dict[str, str]:
    """The settings of a broker with those that suit tests. Raises KohortError for wrong ones."""
    check_mapping("settings", settings or {})
    check_mapping("versions", versions or {})
    given = plain(settings or {})
    for name in _OWN_SETTINGS:
        if name in given:
            raise KohortError(
                f"{name} is {given[name]!r}, not allowed here: the broker takes free ports,"
                " and security and data_dir are arguments"
            )
    whole = {**_SETTINGS, **given}
    if versions:
        for name, version in versions.items():
            check_whole(f"the version of {name}", version, least=-1)
        text = ",".join(f"{name}:{version}" for name, version in versions.items())
        whole["api.versions.max"] = text
    offered_versions(BrokerConfig.of(whole).api_versions_max)
    return whole


running: "WeakSet[Broker]" = WeakSet()
"""Those that were started and not closed, for the report of a test that fails."""
