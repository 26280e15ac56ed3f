# SPDX-License-Identifier: Apache-2.0
"""Members in processes of their own, and what a test asks of them."""

import json
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.waiting import SOON_S, eventually

MEMBER = Path(__file__).with_name("member.py")
KINDS = [
    *("confluent-classic", "confluent-consumer", "kafka-python", "aiokafka"),
    *("kohort-classic", "kohort-consumer"),
]


class Member:
    """One process of member.py and its journal."""

    def __init__(
        self,
        kind: str,
        bootstrap: str,
        topic: str,
        group: str,
        journal: Path,
        instance: str | None = None,
    ) -> None:
        self.journal = journal
        journal.touch()
        self._notes: list[dict[str, Any]] = []
        self._read_bytes = 0
        self._reading = Lock()
        self.errors = journal.with_suffix(".err").open("w")
        arguments = [sys.executable, str(MEMBER), kind, bootstrap, topic, group, str(journal)]
        arguments += [] if instance is None else [instance]
        self.process = subprocess.Popen(arguments, stderr=self.errors)

    def notes(self, kind: str) -> list[Any]:
        with self._reading:
            with self.journal.open("rb") as journal:
                journal.seek(self._read_bytes)
                whole, _, _ = journal.read().rpartition(b"\n")
            if whole:
                self._read_bytes += len(whole) + 1
                self._notes += map(json.loads, whole.split(b"\n"))
            return [note[kind] for note in self._notes if kind in note]

    @property
    def owns(self) -> list[int]:
        """What it has by its own account."""
        known = self.notes("owns")
        return known[-1] if known else []

    def last_words(self) -> str:
        code = self.process.poll()
        failed = self.notes("failed")[-1:]
        errors = Path(self.errors.name).read_text(encoding="utf-8")[-1500:]
        fate = "runs" if code is None else f"has ended with {code}"
        return f"{fate}, owns {self.owns}, last failure {failed}, stderr: {errors}"

    def leave(self, seconds: float = SOON_S) -> None:
        """End in an orderly way: commit nothing more, leave the group."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(seconds)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(SOON_S)


class Crew:
    """All members that a test has started; they are ended with it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.members: list[Member] = []
        self._numbers = count(1)

    def join(
        self, kind: str, bootstrap: str, topic: str, group: str, instance: str | None = None
    ) -> Member:
        journal = self.directory / f"member-{next(self._numbers)}.jsonl"
        member = Member(kind, bootstrap, topic, group, journal, instance)
        self.members.append(member)
        return member

    def end(self) -> None:
        """End all members. What each of them last did is told to a test that has failed."""
        for number, member in enumerate(self.members, 1):
            print(f"member {number}: {member.last_words()}")
            if member.process.poll() is None:
                member.process.kill()
                member.process.wait(SOON_S)
            member.errors.close()


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    """A crew for one test."""
    crew = Crew(tmp_path)
    yield crew
    crew.end()


def settled(members: Iterable[Member], partitions: int) -> None:
    """Wait until the members own every partition between them, each by one."""
    members = list(members)

    def done() -> bool:
        owned = [index for member in members for index in member.owns]
        return sorted(owned) == list(range(partitions)) and all(one.owns for one in members)

    eventually(done, f"{len(members)} members own {partitions} partitions")


def numbers_read(members: Iterable[Member]) -> Counter[int]:
    """How often each record was seen, by all members together."""
    return Counter(one[2] for member in members for read in member.notes("read") for one in read)


def assert_nothing_committed_is_read_again(members: Iterable[Member]) -> None:
    """What was committed before a read began is not read by it."""
    events = sorted(
        (note["at"], index, note)
        for index, member in enumerate(members)
        for note in map(json.loads, member.journal.read_text(encoding="utf-8").splitlines())
    )
    committed: dict[int, int] = defaultdict(int)
    for _, _, note in events:
        for partition, offset, number in note.get("read", ()):
            assert offset >= committed[partition], f"record {number} was committed before"
        for partition, offset in note.get("committed", ()):
            committed[partition] = max(committed[partition], offset)


def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(SOON_S)


def produce(bootstrap: str, topic: str, numbers: Iterable[int]) -> None:
    """Records whose value is their number; all acknowledged when this returns."""
    failures: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in numbers:
        while True:
            try:
                producer.produce(
                    topic,
                    str(number),
                    key=str(number),
                    on_delivery=lambda error, _: failures.append(error) if error else None,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(SOON_S) == 0
    assert not failures
