# SPDX-License-Identifier: Apache-2.0
"""The two brokers of a comparison: a real Apache Kafka and `kohort serve`, set up alike.

Kafka gets one network thread and one request thread, so that requests of different connections are
taken in the order in which they were sent: `Barrier` builds on that.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import struct
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.peers.kafka import Kafka
from tests.prove.differential import impatience
from tests.prove.differential.lines import Line

from kohort.java import id_hash
from kohort.terms import uuid_text
from kohort.testing import Broker
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

SHARDS = 4
LONG_MS = 1_800_000  # sessions that end while a comparison runs would end at different times
PATIENCE_SECONDS = 300.0  # with a start on a busy machine, not with an answer
BARRIER_TOPIC = "barrier"
TOPICS = {"t1": 3, "t2": 2, "t3": 1}  # of every sequence
CATALOG = "kohort.catalog.json"

SHARED = {
    "auto.create.topics.enable": "false",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.max.session.timeout.ms": f"{LONG_MS}",
    "group.consumer.max.size": "4",
    "group.consumer.migration.policy": "disabled",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.session.timeout.ms": f"{LONG_MS}",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.session.timeout.ms": f"{LONG_MS}",
    "group.max.size": "4",
    "group.min.session.timeout.ms": "6000",
    "log.message.timestamp.after.max.ms": "3600000",  # a broker under test takes any time
    "node.id": "1",
    "offsets.topic.num.partitions": f"{SHARDS}",
    "offsets.topic.replication.factor": "1",
}
KAFKA = {
    "num.network.threads": "1",
    "num.io.threads": "1",
    "metadata.max.idle.interval.ms": "25",  # see Pair.settle_metadata
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "500",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
KOHORT = {"log.sync": "none"}  # Kafka does not wait for the disk either


class Pair:
    """Both brokers, and topics for so many sequences: `async with Pair(...) as pair:`.

    Topic ids are drawn by chance, and an assignor's picks depend on their order. So the topics of
    the sequences are made by Kafka, and stand in Kohort's catalog under the same ids.
    """

    def __init__(
        self,
        sequences: int,
        settings: Mapping[str, str] | None = None,
        *,
        impatient: bool = False,
    ) -> None:
        shared = {**SHARED, **(settings or {})}
        min_bounds = {  # upstream's
            "group.consumer.min.session.timeout.ms": "45000",
            "group.consumer.min.heartbeat.interval.ms": "5000",
        }
        # A thousand logs are made at the start: where there is a disk of memory, they go there.
        memory = Path("/dev/shm")
        folder = memory if os.access(memory, os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="kohort-pair-", dir=folder))
        (self.folder / "kafka").mkdir()
        ahead = self.folder / "classes" if impatient else None
        if ahead is not None:
            impatience.put_into(ahead)
        self.kafka = Kafka(
            {**shared, **KAFKA, **(settings or {})},
            heap="768M",
            directory=self.folder / "kafka",
            ahead=ahead,
        )
        # Range takes topics one by one: their ids, which are drawn by chance, do not matter to it.
        self.by_range = shared.get("group.consumer.assignors") == "range"
        self.data = self.folder / "kohort"
        self.kohort = Broker({**min_bounds, **shared, **KOHORT}, data_dir=self.data, process=True)
        self.lines: list[Line] = []
        self.prefixes = [f"s{number}-" for number in range(sequences * 4 // 3 + 8)]
        self.ids: dict[str, bytes] = {}

    async def __aenter__(self) -> Self:
        try:
            await asyncio.to_thread(self._start_kafka)
            await self._connect(self.kafka.port)
            await self._make_topics()
            await asyncio.to_thread(self._start_kohort)
            await self._connect(*self.ports[1:])
        except BaseException:
            self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    @property
    def ports(self) -> tuple[int, int]:
        return self.kafka.port, int(self.kohort.bootstrap.rpartition(":")[2])

    def take(self) -> tuple[str, dict[str, bytes]]:
        """The prefix of a sequence, and the ids of its topics. Raises IndexError: start anew."""
        prefix = self.prefixes.pop()
        return prefix, {name: self.ids[prefix + name] for name in TOPICS}

    def close(self) -> None:
        for line in self.lines:
            line.close()
        self.kafka.close()
        self.kohort.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def restart(self) -> None:
        """Kill both, start both, and wait until both know their groups again."""

        def again() -> None:
            self.kafka.kill()
            self.kohort.kill()
            self.kafka.launch()
            self.kohort.restart()
            self.kafka.wait_until_answering()

        for line in self.lines:
            line.close()
        self.lines.clear()
        await asyncio.to_thread(again)
        await self._connect(*self.ports)

    def _start_kafka(self) -> None:
        self.kafka.format()
        self.kafka.start()

    def _start_kohort(self) -> None:
        """Start twice: what the first one leaves is a catalog, in which the topics are written."""
        self.kohort.start()
        self.kohort.stop()
        file = self.data / CATALOG
        content = json.loads(file.read_text())
        content["version"] = 1  # without a checksum
        content["topics"] += [
            {
                "name": name,
                "topic_id": uuid_text(self.ids[name]),
                "partitions": count,
                "replication_factor": 1,
            }
            for name, count in self.counts.items()
        ]
        file.write_text(json.dumps(content))
        self.kohort.start()

    def _in_order(self, prefix: str) -> bool:
        buckets = set()
        for name in TOPICS:
            known = id_hash(self.ids[prefix + name])
            buckets.add((known ^ (known & 0xFFFFFFFF) >> 16) & 15)
        return len(buckets) == len(TOPICS)

    def _counts(self) -> dict[str, int]:
        counts = {BARRIER_TOPIC: 1}
        for prefix in self.prefixes:
            counts |= {prefix + name: count for name, count in TOPICS.items()}
        return counts

    async def _make_topics(self) -> None:
        self.counts = counts = self._counts()
        names = list(counts)
        for start in range(0, len(names), 300):
            some = {name: counts[name] for name in names[start : start + 300]}
            answer = await self.lines[0].ask(creation(some), 7)
            assert not [one for one in answer.topics if one.error_code], answer
        await self.settle_metadata()
        (self.ids,) = await self.topic_ids(names)
        # Topics of one bucket of a hash table come in an order that is drawn anew by each JVM.
        self.prefixes = [one for one in self.prefixes if self._in_order(one)]

    async def _connect(self, *ports: int) -> None:
        """Talk to the brokers on these ports, and wait until they coordinate groups."""
        for port in ports:
            line = Line("pair", asyncio.Event())
            await line.open(port)
            self.lines.append(line)

            async def known(line: Line = line) -> bool:  # makes Kafka create the internal topic
                answer = await line.ask(FindCoordinatorRequest(coordinator_keys=["barrier"]), 4)
                return not answer.coordinators[0].error_code

            async def gives(line: Line = line) -> bool:  # waits for Kafka's controller, once
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60000)
                return not (await line.ask(request, 4)).error_code

            async def leads(line: Line = line) -> bool:  # logs may be opened after the start
                request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
                answer = await line.ask(request, 12)
                return not any(
                    one.error_code for topic in answer.topics for one in topic.partitions
                )

            async def knows(line: Line = line) -> bool:  # the other internal topic
                request = FindCoordinatorRequest(key_type=1, coordinator_keys=["barrier"])
                return not (await line.ask(request, 4)).coordinators[0].error_code

            await patiently(known)
            await patiently(knows)
            await patiently(gives)
            await patiently(leads)
            if self.ids:
                barrier = Barrier(line)
                for shard in range(SHARDS):
                    await patiently(barrier.is_open, shard)

    async def settle_metadata(self) -> None:
        """Return when Kafka's broker has taken in everything that its controller has decided.

        The broker applies one change of metadata after the other, and tells the one that it applies
        as the epoch of its features; the controller writes something every
        `metadata.max.idle.interval.ms`. So what was decided before this call has been applied, by
        logs and coordinators too, when that epoch has moved on from one at or behind the decision.
        """
        line = self.lines[0]
        decided = _high_watermark(await line.ask_bytes(55, 0, _DESCRIBE_QUORUM)) - 1
        request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        applying = -1
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                epoch = (await line.ask(request, 4)).finalized_features_epoch
                if applying >= decided and epoch > applying:
                    return
                if applying < decided:
                    applying = epoch
                await asyncio.sleep(0.003)

    async def topic_ids(self, names: Sequence[str]) -> list[dict[str, bytes]]:
        """The ids of the topics that are there."""
        found = []
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        for line in self.lines:
            answer = await line.ask(request, 12)
            found.append({one.name: one.topic_id for one in answer.topics if not one.error_code})
        return found

    async def remake(self, counts: Mapping[str, int]) -> None:
        """Give topics of Kohort other ids."""
        line = self.lines[1]
        answer = await line.ask(DeleteTopicsRequest(topic_names=list(counts), timeout_ms=60000), 5)
        assert not [one for one in answer.responses if one.error_code], answer
        answer = await line.ask(creation(counts), 7)
        assert not [one for one in answer.topics if one.error_code], answer


_TOPIC = b"__cluster_metadata"
_DESCRIBE_QUORUM = b"\2" + bytes([len(_TOPIC) + 1]) + _TOPIC + b"\2" + bytes(4) + b"\0\0\0"
_AFTER_TOPIC = struct.Struct(">xihiiq")


def _high_watermark(answer: bytes) -> int:
    """Of the one partition in an answer of DescribeQuorum v0."""
    start = 3 + 1 + len(_TOPIC)  # the error, how many topics, and its name
    return int(_AFTER_TOPIC.unpack_from(answer, start)[-1])


def creation(counts: Mapping[str, int]) -> CreateTopicsRequest:
    topics = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, count in counts.items()
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=60000)


def shard_of(group: str, shards: int = SHARDS) -> int:
    """The partition of a group: Java's hash of its id."""
    number = 0
    units = group.encode("utf-16-be")
    for at in range(0, len(units), 2):
        number = (31 * number + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    if number >= 1 << 31:
        number = (1 << 32) - number
    return number % shards if number < 1 << 31 else 0


def group_on(shard: int) -> str:
    """The name of a group whose commits are a barrier for one shard."""
    return next(name for name in (f"barrier-{n}" for n in range(1000)) if shard_of(name) == shard)


class Barrier:
    """Behind it, everything that was sent before has had its effect and its answer is here, unless
    the broker waits for something else to happen.

    A commit to another group of the same shard is written, so it is answered after everything that
    was written before it. Two of them, one after the other: when the first was read, what had been
    sent before it was read in the same round of the network thread at the latest, so the second
    one is behind it in every queue.
    """

    def __init__(self, line: Line) -> None:
        self.line = line
        self.groups = [group_on(shard) for shard in range(SHARDS)]

    async def passed(self, shard: int, rounds: int = 2) -> None:
        for _ in range(rounds):
            answer = await self.line.ask(self._commit(shard), 8)
            code = answer.topics[0].partitions[0].error_code
            assert code == 0, f"the barrier of shard {shard} was answered {code}"

    async def is_open(self, shard: int) -> bool:
        answer = await self.line.ask(self._commit(shard), 8)
        return answer.topics[0].partitions[0].error_code == 0

    def _commit(self, shard: int) -> Any:
        place = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=0, committed_metadata=None
        )
        topic = OffsetCommitRequestTopic(name=BARRIER_TOPIC, partitions=[place])
        return OffsetCommitRequest(group_id=self.groups[shard], topics=[topic])


async def patiently(done: Any, *arguments: Any, seconds: float = PATIENCE_SECONDS) -> None:
    """Ask again until it is so. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while True:
            if await done(*arguments):
                return
            await asyncio.sleep(0.02)
