"""Many `kill -9` at random moments, while real clients produce, consume and commit."""

import os
import threading
import time
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from tests.clients.crew import Crew, Member, create_topic, eventually, numbers_read, settled
from tests.serve.talk import Talk

from kohort.testing import Broker

PARTITIONS = 6
KINDS = {"new": "confluent-consumer", "old": "confluent-classic"}
SETTINGS = {
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "300",
}
KILLS = int(os.environ.get("KOHORT_KILLS", "25"))


class Writer:
    """Produces numbers for as long as it runs; `acknowledged` is what the broker has promised."""

    def __init__(self, bootstrap: str, *, idempotent: bool, size: int) -> None:
        self._size = size
        self.acknowledged: set[int] = set()
        self.sent = 0
        self._ending = threading.Event()
        settings = {
            "bootstrap.servers": bootstrap,
            "linger.ms": 2,
            "acks": "all",
            "enable.idempotence": idempotent,
            "reconnect.backoff.max.ms": 300,
            "message.timeout.ms": 60_000,
            "log_level": 0,  # of every lost connection it would write a line
        }
        self._producer = Producer(settings)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            number = self.sent
            try:
                self._producer.produce(
                    "t",
                    str(number).rjust(self._size),
                    key=str(number),
                    on_delivery=self._delivered,
                )
                self.sent += 1
            except (BufferError, KafkaException):
                pass
            self._producer.poll(0.002)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged.add(int(message.value()))

    def end(self) -> None:
        self._ending.set()
        self._thread.join(30)
        assert self._producer.flush(60) == 0


class Committer:
    """Commits for a group without members as fast as it may, with long texts: the log of its group
    grows by a segment in a second.
    """

    def __init__(self, bootstrap: str) -> None:
        self.last = 0
        self._bootstrap = bootstrap
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ending.is_set():
            with suppress(OSError, EOFError), Talk(self._bootstrap, 5) as client:
                while not self._ending.is_set():
                    number += 1
                    if client.commit("busy", "t", number, metadata="x" * 4000) == 0:
                        self.last = number
                    time.sleep(0.002)
            time.sleep(0.05)

    def end(self) -> None:
        self._ending.set()
        self._thread.join(30)


def promised(members: list[Member]) -> dict[tuple[str, int], int]:
    """The highest offset of each partition that some member was told is committed."""
    highest: dict[tuple[str, int], int] = {}
    for member in members:
        for commit in member.notes("committed"):
            for partition, offset in commit:
                if offset < 0:
                    continue  # of it librdkafka had nothing to commit
                key = ("t", partition)
                highest[key] = max(highest.get(key, 0), offset)
    return highest


def killed_again_and_again(
    crew: Crew,
    kills: int,
    seed: int,
    *,
    idempotent: bool,
    settings: dict[str, str] | None = None,
    size: int = 0,
) -> None:
    random = Random(seed)
    with Broker(SETTINGS | (settings or {}), process=True) as broker:
        create_topic(broker.bootstrap, "t", PARTITIONS)
        groups = {
            group: [crew.join(kind, broker.bootstrap, "t", group) for _ in range(2)]
            for group, kind in KINDS.items()
        }
        for members in groups.values():
            settled(members, PARTITIONS)
        writer = Writer(broker.bootstrap, idempotent=idempotent, size=size)
        committer = Committer(broker.bootstrap)
        last: dict[str, dict[tuple[str, int], int]] = {group: {} for group in groups}
        try:
            for _ in range(kills):
                time.sleep(random.uniform(0.05, 2.5))
                broker.kill()
                told = {group: promised(members) for group, members in groups.items()}
                busy = committer.last
                broker.restart()
                with Talk(broker.bootstrap) as client:
                    assert client.committed("busy").get(("t", 0), 0) >= busy
                for group in groups:
                    with Talk(broker.bootstrap) as client:
                        found = client.committed(group)
                    for key, offset in (*told[group].items(), *last[group].items()):
                        assert found.get(key, -1) >= offset, (group, key, offset, found)
                    last[group] = found
        finally:
            committer.end()
            writer.end()
        assert len(writer.acknowledged) > 10 * kills
        for members in groups.values():
            eventually(
                lambda members=members: set(numbers_read(members)) >= writer.acknowledged,
                "every acknowledged record was read",
                90,
            )
            settled(members, PARTITIONS)
        if idempotent:
            with Talk(broker.bootstrap) as client:
                assert stored(client) == writer.sent
        assert "a shard has failed" not in broker.log()
        assert "Traceback" not in broker.log()
        print(f"{kills} kills, {writer.sent} records sent, {len(writer.acknowledged)} acknowledged")


def stored(client: Talk) -> int:
    """How many records the topic holds."""
    from kohort.wire.messages.list_offsets import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    wanted = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(PARTITIONS)]
    topic = ListOffsetsTopic(name="t", partitions=wanted)
    answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    return sum(one.offset for one in answer.topics[0].partitions)


@pytest.fixture
def crew(tmp_path):
    crew = Crew(tmp_path)
    yield crew
    crew.end()


@pytest.mark.clients
def test_two_kills(crew):
    killed_again_and_again(crew, 2, 1, idempotent=True)


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("seed", "idempotent"), [(2, True), (3, False)])
def test_many_kills(crew, seed, idempotent):
    killed_again_and_again(crew, KILLS, seed, idempotent=idempotent)


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_many_kills_while_segments_roll_and_are_cleaned(crew):
    small = {
        "offsets.topic.segment.bytes": "1048576",
        "log.segment.bytes": "1048576",
        "offsets.topic.num.partitions": "2",
        "log.cleaner.backoff.ms": "200",
    }
    killed_again_and_again(crew, KILLS, 4, idempotent=True, settings=small, size=4000)
