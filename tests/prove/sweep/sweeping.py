# SPDX-License-Identifier: Apache-2.0
"""A broker with many topics and groups is asked everything at its largest, one API after the other,
while a member beside it heartbeats: how long that one waits, and what the broker needs.
"""

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.prove.sweep.bystander import Bystander, bystander
from tests.prove.sweep.requests import (
    BIG_GROUPS,
    GROUPS,
    PIPELINED,
    TOPICS,
    WIDE,
    WIDE_TOPICS,
    Filler,
    group,
    topic,
)
from tests.serve.talk import ServeProcess, Talk, address_of, frame, serving

from kohort.server.network.routes import ROUTES
from kohort.wire.apis import APIS, Api
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_delete import OffsetDeleteRequest

WAIT_S = 0.1
"""What a member beside may wait on a quiet machine."""
WAIT_LOADED_S = 0.3
"""What it may wait on any machine: beyond that the sweep fails."""
PEAK_MIB = 300
TRIES = 3
HOPELESS_S = 1.0
"""No other program of the machine makes a wait so long: it is not tried again."""
ANSWER_S = 90.0
PREPARE_S = 300.0
_DESTROYS = (DeleteTopicsRequest, DeleteGroupsRequest, OffsetDeleteRequest)


class Row(NamedTuple):
    """One request, or many at once, and what came of it."""

    api: str
    way: str
    wait_s: float
    busy_s: float  # of a processor, by the broker: on a loaded machine waits are longer
    peak_mib: float
    took_s: float
    outcome: str

    def __str__(self) -> str:
        return (
            f"{1000 * self.wait_s:7.0f} ms, busy {1000 * self.busy_s:6.0f} ms, "
            f"{self.peak_mib:5.0f} MiB, {self.took_s:6.2f} s  "
            f"{self.api}: {self.way} [{self.outcome}]"
        )

    @property
    def holds_others_up(self) -> bool:
        return self.wait_s > WAIT_LOADED_S or self.peak_mib > PEAK_MIB


def swept_apis(*only: str) -> list[Api]:
    """All that are served, or those with these names; what destroys the topics comes last."""
    wanted = [api for _, api in sorted(APIS.items()) if not only or api.name in only]
    served = [api for api in wanted if api.request in ROUTES]
    return sorted(served, key=lambda api: api.request in _DESTROYS)


def table(rows: list[Row]) -> str:
    """The rows, longest wait first."""
    return "\n".join(str(row) for row in sorted(rows, key=lambda row: -row.wait_s))


class Sweep:
    """A broker that is asked."""

    def __init__(self, broker: ServeProcess, beside: Bystander, topic_ids: list[bytes]) -> None:
        self._broker = broker
        self._beside = beside
        self._topic_ids = topic_ids

    def rows(self, api: Api, way: str = "") -> Iterator[Row]:
        """Every way of an API whose name has this text in it. What looks bad is asked again, and
        the least of its waits counts.
        """
        filler = Filler(api, self._topic_ids)
        version = filler.version
        for one in filler.ways():
            if way in one.name:
                yield self._row(api, one.name, frame(filler.request(one), version), 1)
        name = f"{PIPELINED} requests at once"
        if way in name:
            small = frame(filler.small(), version)
            yield self._row(api, name, small * PIPELINED, PIPELINED)

    def _row(self, api: Api, way: str, data: bytes, answers: int) -> Row:
        best: Row | None = None
        for _ in range(TRIES):
            row = self._ask(api, way, data, answers)
            if best is None or row.wait_s < best.wait_s:
                best = row
            if best.wait_s <= WAIT_S or row.wait_s > HOPELESS_S:
                break
        assert best is not None
        return best

    def _ask(self, api: Api, way: str, data: bytes, answers: int) -> Row:
        self._reset_peak()
        self._beside.begin()
        begun, busy = time.perf_counter(), self._busy_s()
        size = 0
        with Talk(self._broker.address, ANSWER_S) as talk:
            try:
                talk.socket.sendall(data)
                for _ in range(answers):
                    size += len(talk.answer())
                outcome = f"{len(data):,} bytes, answered by {size:,}"
            except TimeoutError:
                outcome = "not answered"
            except (EOFError, OSError):
                outcome = f"{len(data):,} bytes, closed"
            took = time.perf_counter() - begun
        wait = self._beside.longest_s()
        return Row(api.name, way, wait, self._busy_s() - busy, self._peak_mib(), took, outcome)

    def _busy_s(self) -> float:
        """The time that the broker has spent on a processor."""
        stat = Path(f"/proc/{self._broker.process.pid}/stat").read_text(encoding="utf-8")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def _reset_peak(self) -> None:
        Path(f"/proc/{self._broker.process.pid}/clear_refs").write_text("5", encoding="ascii")

    def _peak_mib(self) -> float:
        status = Path(f"/proc/{self._broker.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024


@contextmanager
def sweeping() -> Iterator[Sweep]:
    """A broker with topics, partitions, groups and offsets, and the member beside."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kohort-sweep-"))
        settings = ("-X", "group.initial.rebalance.delay.ms=0")
        broker = stack.enter_context(serving("--data-dir", folder, *settings))
        with broker.talk() as talk:
            talk.socket.settimeout(PREPARE_S)
            topic_ids = _make_topics(talk)
            _commit(talk)
        beside = stack.enter_context(bystander(address_of(broker.address)))
        yield Sweep(broker, beside, topic_ids)


def _make_topics(talk: Talk) -> list[bytes]:
    """Make the topics, and wait until all have leaders. Their ids."""
    wanted = [
        CreatableTopic(
            name=topic(number),
            num_partitions=WIDE if number < WIDE_TOPICS else 1,
            replication_factor=1,
        )
        for number in range(TOPICS)
    ]
    answer = talk.ask(CreateTopicsRequest(topics=wanted, timeout_ms=60_000))
    assert all(one.error_code == 0 for one in answer.topics), answer.topics[:3]
    deadline = time.monotonic() + PREPARE_S
    names = [MetadataRequestTopic(name=topic(number)) for number in range(TOPICS)]
    while True:
        found = talk.ask(MetadataRequest(topics=names)).topics
        if not any(partition.error_code for one in found for partition in one.partitions):
            return [one.topic_id for one in sorted(found, key=lambda one: _number(one.name))]
        assert time.monotonic() < deadline, "the topics have no leaders"
        time.sleep(0.5)


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


def _commit(talk: Talk) -> None:
    """Offsets of a few groups for every partition of the wide topics, of the others for one."""
    for number in range(GROUPS):
        wide = number < BIG_GROUPS
        topics = [
            OffsetCommitRequestTopic(
                name=topic(at),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=0, committed_metadata=""
                    )
                    for index in range(WIDE if wide else 1)
                ],
            )
            for at in range(WIDE_TOPICS if wide else 1)
        ]
        answer = talk.ask(OffsetCommitRequest(group_id=group(number), topics=topics), 9)
        assert answer.topics[0].partitions[0].error_code == 0, answer.topics[0].partitions[0]
