# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a broker are called: upstream's names, as Prometheus spells them.

METRICS is the whole list; the page of the documentation is made from it. A name that begins with
`kafka_` is that of a metric of Apache Kafka: its domain, its type and its name, in lower case. A
counter ends in `_total`, as Prometheus wants it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kohort.errors import ErrorCode
from kohort.runtime.clocks import perf_counter_ns
from kohort.runtime.driver import Condition
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kohort.server.cluster import Cluster
from kohort.server.coordinators.coordinator_partitions import AnyDriver, Driver
from kohort.server.metrics.durations import MS, PERCENTILES
from kohort.server.metrics.meters import UNSUPPORTED, Traffic
from kohort.terms import GroupState, GroupType, PartitionIndex
from kohort.wire.apis import APIS

COUNTER, GAUGE = "counter", "gauge"
_MANAGER = "kafka_coordinator_group_groupmetadatamanager_"
_COORDINATOR = "kafka_server_group_coordinator_metrics_"
_SOCKETS = "kafka_server_socket_server_metrics_"
_REQUESTS = "kafka_network_requestmetrics_"
_STATES = (
    GroupState.EMPTY,
    GroupState.ASSIGNING,
    GroupState.RECONCILING,
    GroupState.STABLE,
    GroupState.DEAD,
)


class MetricsSnapshot:
    """A broker, and what several metrics are read from. Made anew for each reading, on any thread:
    nothing here changes anything, and nothing is walked but the shards.
    """

    def __init__(self, cluster: Cluster, traffic: Traffic) -> None:
        self.meters = cluster.meters
        self.traffic = traffic
        self.shares = cluster.shares
        self.log_files = cluster.logs.open_files
        self.producers = cluster.producers.count
        self.shards: list[Driver] = [*cluster.drivers.copy().values()]
        self.queued = self.meters.turns.read_queued()
        self.taken = self.meters.turns.read_taken()
        self.parked = self.meters.parked.read()
        self.flushed = self.meters.syncs.read()
        self.groups: dict[tuple[GroupType, GroupState], int] = {}
        self.offsets = 0
        for driver in self.shards:
            if driver.active:
                machine = driver.machine
                for type_and_state, count in machine.event_log.gauges.counts.copy().items():
                    self.groups[type_and_state] = self.groups.get(type_and_state, 0) + count
                self.offsets += machine.offsets.count.number

    def count(self, kind: GroupType, *states: GroupState) -> int:
        """Groups of a type, in these states or in any."""
        return sum(
            count
            for (of_type, state), count in self.groups.items()
            if of_type is kind and (not states or state in states)
        )

    def conditions(self, condition: Condition) -> int:
        return sum(1 for driver in self.shards if driver.condition is condition)


Sample = tuple[tuple[str, ...], float]
"""The values of a metric's labels, and the number."""


@dataclass(frozen=True)
class Metric:
    """A row of the list. `kafka` is upstream's own name, empty for one that is ours."""

    name: str
    kind: str
    text: str
    read: Callable[[MetricsSnapshot], Iterable[Sample]]
    kafka: str = ""
    labels: tuple[str, ...] = ()


def _one(read: Callable[[MetricsSnapshot], float]) -> Callable[[MetricsSnapshot], Iterable[Sample]]:
    return lambda reading: [((), read(reading))]


def _old(name: str, text: str, *states: GroupState) -> Metric:
    return Metric(
        _MANAGER + name.lower(),
        GAUGE,
        text,
        _one(lambda reading: reading.count(GroupType.CLASSIC, *states)),
        f"kafka.coordinator.group:type=GroupMetadataManager,name={name}",
    )


def _computations(reading: MetricsSnapshot) -> Iterable[Sample]:
    counters = reading.meters.counters
    return [
        (("asked",), counters.computations),
        (("installed",), counters.computations_installed),
        (("failed",), counters.computations_failed),
        (("invalid",), counters.computations_invalid),
        (("late",), counters.computations_late),
    ]


def _kafka_name(name: str) -> str:
    return f"group-coordinator-metrics: {name}"


def _coordinator(
    name: str,
    kind: str,
    text: str,
    read: Callable[[MetricsSnapshot], Iterable[Sample]],
    *labels: str,
) -> Metric:
    prometheus = _COORDINATOR + name.replace("-", "_")
    return Metric(prometheus, kind, text, read, _kafka_name(name), labels)


def _times(
    name: str, text: str, figures: Callable[[MetricsSnapshot], dict[str, float]]
) -> list[Metric]:
    """A metric for the longest and for each percentile, as upstream has them."""

    def of(figure: str) -> Callable[[MetricsSnapshot], Iterable[Sample]]:
        return _one(lambda reading: figures(reading)[figure])

    told = {"max": "the longest of the last minute or two"}
    told |= {name: f"{part * 100:g} % are shorter" for name, part in PERCENTILES.items()}
    return [
        _coordinator(f"{name}-{figure}", GAUGE, f"{text}: {how}", of(figure))
        for figure, how in told.items()
    ]


def _requests(reading: MetricsSnapshot) -> Iterable[Sample]:
    for (key, version), meter in reading.meters.requests.copy().items():
        shown = "unsupported" if version == UNSUPPORTED else str(version)
        yield (APIS[key].name, shown), meter.count


def _errors(reading: MetricsSnapshot) -> Iterable[Sample]:
    found: dict[tuple[str, str], int] = {}
    for (key, _), meter in reading.meters.requests.copy().items():
        for code, count in meter.errors.copy().items():
            names = APIS[key].name, ErrorCode(code).name
            found[names] = found.get(names, 0) + count
    return found.items()


def _sockets(
    name: str, kind: str, text: str, read: Callable[[Traffic], float], kafka: str
) -> Metric:
    own = _one(lambda reading: read(reading.traffic))
    return Metric(_SOCKETS + name, kind, text, own, f"socket-server-metrics: {kafka}")


METRICS: tuple[Metric, ...] = (
    _old("NumGroups", "classic groups, those that only hold offsets among them"),
    Metric(
        _MANAGER + "numoffsets",
        GAUGE,
        "committed offsets of groups of every type",
        _one(lambda reading: reading.offsets),
        "kafka.coordinator.group:type=GroupMetadataManager,name=NumOffsets",
    ),
    _old(
        "NumGroupsPreparingRebalance",
        "classic groups that wait for joins",
        GroupState.PREPARING_REBALANCE,
    ),
    _old(
        "NumGroupsCompletingRebalance",
        "classic groups that wait for their leader",
        GroupState.COMPLETING_REBALANCE,
    ),
    _old("NumGroupsStable", "classic groups at rest, with members", GroupState.STABLE),
    _old("NumGroupsDead", "always 0: a group that is deleted is gone", GroupState.DEAD),
    _old("NumGroupsEmpty", "classic groups without members", GroupState.EMPTY),
    _coordinator(
        "group-count",
        GAUGE,
        "groups by type",
        lambda reading: [((kind.value,), reading.count(kind)) for kind in GroupType],
        "protocol",
    ),
    _coordinator(
        "consumer-group-count",
        GAUGE,
        "groups of the consumer protocol by state",
        lambda reading: [
            ((state.lower(),), reading.count(GroupType.CONSUMER, state)) for state in _STATES
        ],
        "state",
    ),
    _coordinator(
        "offset-commit-count",
        COUNTER,
        "offsets committed, one for each partition of a request",
        _one(lambda reading: reading.meters.counters.offset_commits),
    ),
    _coordinator(
        "offset-expiration-count",
        COUNTER,
        "offsets ended because nobody had needed them for long",
        _one(lambda reading: reading.meters.counters.offset_expirations),
    ),
    _coordinator(
        "offset-deletion-count",
        COUNTER,
        "offsets deleted by request, with their group or with their topic",
        _one(lambda reading: reading.meters.counters.offset_deletions),
    ),
    _coordinator(
        "group-completed-rebalance-count",
        COUNTER,
        "rebalances of classic groups that ended with assignments for all",
        _one(lambda reading: reading.meters.counters.completed_rebalances),
    ),
    _coordinator(
        "consumer-group-rebalance-count",
        COUNTER,
        "new epochs of consumer groups: each asks for a new target. Changes of state do not count",
        _one(lambda reading: reading.meters.counters.group_epochs),
    ),
    _coordinator(
        "num-partitions",
        GAUGE,
        "shards (partitions of `__consumer_offsets`) by what they can do",
        lambda reading: [
            ((condition.value,), reading.conditions(condition)) for condition in Condition
        ],
        "state",
    ),
    _coordinator(
        "partition-load-time-max",
        GAUGE,
        "milliseconds that the longest load of a shard took, since the broker was started",
        _one(lambda reading: reading.meters.loads.longest_ns / MS),
    ),
    _coordinator(
        "partition-load-time-avg",
        GAUGE,
        "milliseconds that a load of a shard took on average, since the broker was started",
        _one(
            lambda reading: reading.meters.loads.total_ns / MS / max(reading.meters.loads.count, 1)
        ),
    ),
    _coordinator(
        "event-queue-size",
        GAUGE,
        "requests that wait for the next turn of their shard",
        _one(lambda reading: sum(driver.waiting for driver in reading.shards)),
    ),
    _coordinator(
        "thread-idle-ratio-avg",
        GAUGE,
        "part of the time in which no turn was taken, in the last 4096 turns: there is one thread",
        _one(lambda reading: reading.meters.turns.idle_ratio(perf_counter_ns())),
    ),
    *_times(
        "event-queue-time-ms",
        "milliseconds that the first request of a turn waited for it",
        lambda reading: reading.queued,
    ),
    *_times(
        "event-processing-time-ms",
        "milliseconds of a turn, in which all that has arrived is handled",
        lambda reading: reading.taken,
    ),
    *_times(
        "event-purgatory-time-ms",
        "milliseconds from the end of a turn until what a shard wrote was durable and answered",
        lambda reading: reading.parked,
    ),
    *_times(
        "batch-flush-time-ms",
        "milliseconds of an `fdatasync` of one log, those of other topics among them",
        lambda reading: reading.flushed,
    ),
    Metric(
        "kafka_server_replicamanager_produceridcount",
        GAUGE,
        "idempotent producers that are remembered, counted in each partition that they write to",
        _one(lambda reading: reading.producers),
        "kafka.server:type=ReplicaManager,name=ProducerIdCount",
    ),
    _sockets(
        "connection_count",
        GAUGE,
        "open connections",
        lambda traffic: traffic.opened - traffic.closed,
        "connection-count",
    ),
    _sockets(
        "connection_creation",
        COUNTER,
        "connections that were accepted",
        lambda traffic: traffic.opened,
        "connection-creation-total",
    ),
    _sockets(
        "connection_close",
        COUNTER,
        "connections that have ended",
        lambda traffic: traffic.closed,
        "connection-close-total",
    ),
    _sockets(
        "incoming_byte",
        COUNTER,
        "bytes received",
        lambda traffic: traffic.received_bytes,
        "incoming-byte-total",
    ),
    _sockets(
        "outgoing_byte",
        COUNTER,
        "bytes sent",
        lambda traffic: traffic.sent_bytes,
        "outgoing-byte-total",
    ),
    _sockets(
        "successful_authentication",
        COUNTER,
        "clients that have authenticated by SASL",
        lambda traffic: traffic.authentications.succeeded,
        "successful-authentication-total",
    ),
    _sockets(
        "failed_authentication",
        COUNTER,
        "clients that could not authenticate by SASL",
        lambda traffic: traffic.authentications.failed,
        "failed-authentication-total",
    ),
    _sockets(
        "successful_reauthentication",
        COUNTER,
        "clients that have authenticated again on an open connection",
        lambda traffic: traffic.authentications.reauthenticated,
        "successful-reauthentication-total",
    ),
    _sockets(
        "failed_reauthentication",
        COUNTER,
        "clients that could not authenticate again",
        lambda traffic: traffic.authentications.reauthentication_failed,
        "failed-reauthentication-total",
    ),
    _sockets(
        "expired_connections_killed",
        COUNTER,
        "connections that were closed because their session had ended",
        lambda traffic: traffic.authentications.expired,
        "expired-connections-killed-count",
    ),
    Metric(
        _REQUESTS + "requests",
        COUNTER,
        "requests by API and version; `unsupported` stands for versions that are not served",
        _requests,
        "kafka.network:type=RequestMetrics,name=RequestsPerSec",
        ("request", "version"),
    ),
    Metric(
        _REQUESTS + "errors",
        COUNTER,
        "error codes in answers, one for each place that has one: a partition, a group, a member",
        _errors,
        "kafka.network:type=RequestMetrics,name=ErrorsPerSec",
        ("request", "error"),
    ),
    Metric(
        "kohort_log_syncs",
        COUNTER,
        "syncs of a log that answers have waited for, those of other topics among them",
        _one(lambda reading: reading.meters.syncs.count),
    ),
    Metric(
        "kohort_connections_refused",
        COUNTER,
        "connections that were closed: beyond `max.connections.per.ip`, beyond those that may wait "
        "for `max.connections`, or beyond their share of the limit of open files",
        _one(lambda reading: reading.traffic.refused),
    ),
    Metric(
        "kohort_connections_share",
        GAUGE,
        "connections for which there are file descriptors",
        _one(lambda reading: reading.shares.connections),
    ),
    Metric(
        "kohort_log_files_open",
        GAUGE,
        "open files of logs, without those of groups and transactions that are always open",
        _one(lambda reading: 0 if reading.log_files is None else reading.log_files.count),
    ),
    Metric(
        "kohort_log_files_share",
        GAUGE,
        "how many of them may be open at a time",
        _one(lambda reading: reading.shares.log_files),
    ),
    Metric(
        "kohort_log_files_pinned",
        GAUGE,
        "files of logs that stay open: those of groups and transactions, and what somebody still "
        "reads although it is deleted",
        _one(lambda reading: 0 if reading.log_files is None else reading.log_files.pinned),
    ),
    Metric(
        "kohort_log_files_opened",
        COUNTER,
        "how often a file of a log was opened: if this grows with each request, the share is small",
        _one(lambda reading: 0 if reading.log_files is None else reading.log_files.opened),
    ),
    Metric(
        "kohort_replies_parked",
        GAUGE,
        "answers that wait until the log of their shard is durable",
        _one(lambda reading: sum(driver.parked for driver in reading.shards)),
    ),
    Metric(
        "kohort_client_side_assignments",
        COUNTER,
        "assignments that members were asked to compute, and what became of them: `asked`, "
        "`installed`, `failed` (an error of the assignor), `invalid` (refused), `late`",
        _computations,
        labels=("outcome",),
    ),
)

PROCESS = {  # what the library itself tells, where the system has a /proc
    "process_cpu_seconds_total": "seconds of processor time that the broker has used",
    "process_resident_memory_bytes": "memory that it holds",
    "process_virtual_memory_bytes": "memory that it has asked for",
    "process_start_time_seconds": "when it was started, in seconds since 1970",
    "process_open_fds": "open files and sockets",
    "process_max_fds": "how many it may have",
}


def served_name(metric: Metric) -> str:
    """The name that a scraper sees."""
    return metric.name + "_total" if metric.kind == COUNTER else metric.name


def missing(cluster: Cluster | None) -> list[str]:
    """Why a broker is not ready, a line for each shard that cannot serve; empty when it is."""
    if cluster is None:
        return ["the broker is not started"]
    if OFFSETS_TOPIC not in cluster.catalog.by_name:
        return [f"{OFFSETS_TOPIC} does not exist"]
    return [
        *_without_machine(cluster, OFFSETS_TOPIC, cluster.drivers.copy()),
        *_without_machine(cluster, TRANSACTIONS_TOPIC, cluster.transaction_coordinators.copy()),
    ]


def _without_machine(
    cluster: Cluster, name: str, drivers: Mapping[PartitionIndex, AnyDriver]
) -> Iterator[str]:
    """A line for each partition whose machine does not serve. A topic that nobody has needed yet,
    as that of transactions may be, lacks nothing.
    """
    topic = cluster.catalog.by_name.get(name)
    for index in range(0 if topic is None else topic.partitions):
        driver = drivers.get(PartitionIndex(index))
        if driver is None:
            yield f"{name}-{index} is not open"
        elif not driver.active:
            yield f"{name}-{index} is {driver.condition.value}"
