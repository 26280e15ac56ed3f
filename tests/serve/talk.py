# SPDX-License-Identifier: Apache-2.0
"""A broker's process as an operator has it, and a client that sends whatever a test wants."""

import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import Any, Self

from tests.waiting import SOON_S

from kohort.wire.apis import APIS
from kohort.wire.batch import build
from kohort.wire.codec import decode, encode
from kohort.wire.frames import FrameReader, RequestHeader, encode_request
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

CLIENT_ID = "talk"
READY = r"kohort ready on (\S+) \(.*?\)((?:, \S+ \(\S+\) on \S+)*)(, metrics on \S+)?\n"
COORDINATOR_MOVES = (14, 15, 16)


def frame(
    request: Any, version: int, correlation_id: int = 0, *, client_id: str = CLIENT_ID
) -> bytes:
    """A request as it goes to the socket."""
    api = APIS[request.api_key]
    header = RequestHeader(
        request_api_key=api.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return encode_request(header, encode(request, version), flexible=api.flexible(version))


def address_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


class Talk:
    """One connection of a client that waits for each answer."""

    def __init__(
        self,
        address: tuple[str, int] | str,
        timeout: float = SOON_S,
        *,
        client_id: str = CLIENT_ID,
    ) -> None:
        self.address = address_of(address) if isinstance(address, str) else address
        self.client_id = client_id
        self.socket = socket.create_connection(self.address, timeout)
        self._reader = FrameReader(1 << 30)
        self._frames: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, request: Any, version: int | None = None) -> None:
        version = APIS[request.api_key].versions.last if version is None else version
        self.socket.sendall(frame(request, version, client_id=self.client_id))

    def answer(self) -> bytes:
        """The next frame. Raises EOFError when the broker has closed the connection."""
        while not self._frames:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError("the broker has closed the connection")
            self._frames += self._reader.feed(data)
        return self._frames.pop(0)

    def ask(self, request: Any, version: int | None = None) -> Any:
        api = APIS[request.api_key]
        version = api.versions.last if version is None else version
        self.send(request, version)
        start = 5 if api.flexible(version) and api.key != 18 else 4
        return decode(api.response, version, self.answer(), start)

    def create_topic(self, name: str, partitions: int = 1, replication_factor: int = 1) -> None:
        wanted = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replication_factor
        )
        answer = self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=5000))
        assert answer.topics[0].error_code in (0, 36), answer

    def produce(self, topic: str, *values: bytes, index: int = 0, acks: int = -1) -> Any:
        batch = build([(None, value) for value in values], int(time.time() * 1000))
        data = [PartitionProduceData(index=index, records=batch)]
        request = ProduceRequest(
            acks=acks,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        return self.ask(request, 9).responses[0].partition_responses[0]

    def fetch_request(self, topic: str, offset: int = 0, max_wait_ms: int = 0) -> FetchRequest:
        partition = FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=64 * 1024 * 1024
        )
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=64 * 1024 * 1024,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
        )

    def commit(
        self, group: str, topic: str, offset: int, index: int = 0, metadata: str | None = ""
    ) -> int:
        """The error code of a commit from outside the group."""
        place = OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata
        )
        topics = [OffsetCommitRequestTopic(name=topic, partitions=[place])]
        answer = self.ask(OffsetCommitRequest(group_id=group, topics=topics), 8)
        return answer.topics[0].partitions[0].error_code

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """What a group has committed; waits while its shard is loading or failed."""
        deadline = time.monotonic() + SOON_S
        while True:
            request = OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]
            )
            answer = self.ask(request, 8).groups[0]
            if answer.error_code not in COORDINATOR_MOVES:
                assert answer.error_code == 0
                return {
                    (topic.name, one.partition_index): one.committed_offset
                    for topic in answer.topics
                    for one in topic.partitions
                }
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)

    def metadata(self, *topics: str) -> Any:
        from kohort.wire.messages.metadata import MetadataRequestTopic

        return self.ask(MetadataRequest(topics=[MetadataRequestTopic(name=one) for one in topics]))

    def partitions(self, topic: str) -> int:
        """How many a topic has; one that is not there is made, and waited for."""
        deadline = time.monotonic() + SOON_S
        while not (found := self.metadata(topic).topics[0].partitions):
            assert time.monotonic() < deadline, f"{topic} is not made"
            time.sleep(0.02)
        return len(found)

    def closed_by_peer(self, seconds: float = SOON_S) -> bool:
        """Whether the broker closes the connection within so long."""
        self.socket.settimeout(seconds)
        try:
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True


class ServeProcess:
    """`kohort serve` as a process, with what it has said so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.errors = ""
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()
        assert process.stdout is not None
        ready = select.select([process.stdout], [], [], SOON_S)[0]
        self.ready_line = process.stdout.readline() if ready else ""
        match = re.fullmatch(READY, self.ready_line)
        if match is None:
            process.kill()
            process.wait(SOON_S)
            self._reader.join(5)
            raise AssertionError(f"not ready: {self.ready_line!r}\n{self.errors}")
        self.addresses = match[1].split(",")
        self.listeners = dict(re.findall(r", (\S+) \(\S+\) on (\S+?:\d+)", match[2]))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line

    @property
    def address(self) -> str:
        return self.addresses[0]

    def talk(self, node: int = 0) -> Talk:
        return Talk(self.addresses[node])

    def resident_mib(self) -> float:
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:  # noqa: PTH123
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20

    def end(self, how: int = 15, seconds: float = SOON_S) -> int:
        """Send a signal and wait; the exit code."""
        self.process.send_signal(how)
        code = self.process.wait(seconds)
        self._reader.join(5)
        return code


def command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "kohort", "serve", *argv]


@contextmanager
def serving(*argv: str, listen: str = "127.0.0.1:0", prepare: Any = None):
    """A broker that runs inside the block; killed at its end if it still does."""
    arguments = command("--listen", listen, *argv) if listen else command(*argv)
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare,  # noqa: PLW1509
    )
    try:
        yield ServeProcess(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(SOON_S)
        process.stdout.close()
        process.stderr.close()


def refused(*argv: str) -> tuple[int, str]:
    """The exit code and the one line of a broker that does not start."""
    done = subprocess.run(
        command(*argv), capture_output=True, text=True, timeout=SOON_S, check=False
    )
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    return done.returncode, line
