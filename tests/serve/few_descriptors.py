# SPDX-License-Identifier: Apache-2.0
"""A broker with a low limit of open files and many partitions: everybody is served, throughout."""

import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.serve.talk import ServeProcess, Talk, serving
from tests.waiting import SOON_S, eventually

from kohort.errors import ErrorCode
from kohort.wire.batch import build, records, walk
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

AT_ONCE = 100  # partitions in a request
TOO_MANY = ("Too many open files", "out of system resource")


@contextmanager
def limited(limit: int, path: Path, *argv: str) -> Iterator[ServeProcess]:
    """A broker that may have so many files open."""

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    with serving("--data-dir", str(path), *argv, prepare=prepare) as broker:
        yield broker
        for text in TOO_MANY:
            assert text not in broker.errors, broker.errors


def create(client: Talk, name: str, partitions: int = 1) -> tuple[int, str | None]:
    """The error code and text."""
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    topic = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=60_000)).topics[0]
    return topic.error_code, topic.error_message


def delete(client: Talk, name: str) -> int:
    answer = client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000), 5)
    return answer.responses[0].error_code


class Newcomers:
    """While this runs, one new client after the other connects, makes a topic, and deletes it."""

    def __init__(self, broker: ServeProcess) -> None:
        self._broker = broker
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.served = 0
        self.errors: list[BaseException] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(SOON_S)

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                with self._broker.talk() as client:
                    name = f"passing-{self.served}"
                    assert create(client, name) == (0, None)
                    assert delete(client, name) == 0
                self.served += 1
                time.sleep(0.05)
        except BaseException as error:  # noqa: BLE001  (told by the test)
            self.errors.append(error)


def without_leader(client: Talk, topic: str) -> list[int]:
    found = client.metadata(topic).topics[0].partitions
    return [one.partition_index for one in found if one.error_code or one.leader_id < 0]


def write(client: Talk, topic: str, partitions: int, value: bytes) -> None:
    """A record to each partition, many in a request."""
    now = int(time.time() * 1000)
    for first in range(0, partitions, AT_ONCE):
        data = [
            PartitionProduceData(index=index, records=build([(None, value)], now))
            for index in range(first, min(first + AT_ONCE, partitions))
        ]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=60_000,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        for one in client.ask(request, 9).responses[0].partition_responses:
            assert one.error_code == ErrorCode.NONE, one


def read(client: Talk, topic: str, partitions: int) -> dict[int, list[bytes]]:
    """The values in each partition."""
    found: dict[int, list[bytes]] = {}
    for first in range(0, partitions, AT_ONCE):
        wanted = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in range(first, min(first + AT_ONCE, partitions))
        ]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 30,
            topics=[FetchTopic(topic=topic, partitions=wanted)],
        )
        for one in client.ask(request, 12).responses[0].partitions:
            assert one.error_code == ErrorCode.NONE, one
            data = one.records or b""
            found[one.partition_index] = [
                record.value for at, _ in walk(data) for record in records(data, at)
            ]
    return found


def open_files(broker: ServeProcess) -> int:
    return len(list(Path(f"/proc/{broker.process.pid}/fd").iterdir()))


def fill_and_restart(limit: int, topics: int, partitions: int, path: Path, *argv: str) -> None:
    """Create, write, read, restart in order and not, and read again; newcomers are served."""
    names = [f"many-{number}" for number in range(topics)]
    expected = {index: [b"first"] for index in range(partitions)}
    with limited(limit, path, *argv) as broker, Newcomers(broker) as newcomers:
        with broker.talk() as client:
            for name in names:
                assert create(client, name, partitions) == (0, None)
                eventually(lambda name=name: not without_leader(client, name), f"leaders of {name}")
                write(client, name, partitions, b"first")
                assert open_files(broker) <= limit
            for name in names:
                assert read(client, name, partitions) == expected
        newcomers.__exit__()
        assert not newcomers.errors, (newcomers.errors, broker.errors)
        assert newcomers.served
        assert broker.end() == 0
    expected = {index: [b"first", b"second"] for index in range(partitions)}
    with limited(limit, path, *argv) as broker, Newcomers(broker) as newcomers:
        with broker.talk() as client:
            for name in names:
                eventually(lambda name=name: not without_leader(client, name), f"leaders of {name}")
                write(client, name, partitions, b"second")
                assert read(client, name, partitions) == expected
        newcomers.__exit__()
        assert not newcomers.errors, (newcomers.errors, broker.errors)
        broker.end(9)
    with limited(limit, path, *argv) as broker, broker.talk() as client:
        for name in names:
            eventually(lambda name=name: not without_leader(client, name), f"leaders of {name}")
            assert read(client, name, partitions) == expected
        assert broker.end() == 0
