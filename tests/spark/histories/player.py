# SPDX-License-Identifier: Apache-2.0
"""Plays a script on a broker and notes the truth: what was done when, and what the brokers' admin
API said after it. Nothing here looks into the log.
"""

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Protocol

from tests.spark.histories import steps
from tests.spark.histories.steps import Script, Step

from kohort.client.admin import AdminClient, GroupDescription, MemberDescription, NewTopic
from kohort.errors import ApiError
from kohort.terms import uuid_text

MEMBER = Path(__file__).with_name("member.py")
WAIT_SECONDS = 120.0
CONFIRM_SECONDS = 0.4
LEARN_SECONDS = 0.5


class Running(Protocol):
    """A broker that is up."""

    bootstrap: str

    def crash(self) -> None:
        """Be killed, and start again on the same directory."""


class HistoryError(RuntimeError):
    """The history did not go as the script says: there is no truth to record."""


def now() -> int:
    return int(time.time() * 1000)


class Client:
    """A process of member.py."""

    def __init__(self, bootstrap: str, step: steps.Start) -> None:
        given = {
            "bootstrap": bootstrap,
            "kind": step.kind,
            "group": step.group,
            "client_id": step.member,
            "topics": list(step.topics),
            "instance_id": step.instance_id,
            "rebalance_timeout_ms": step.rebalance_timeout_ms,
        }
        self.start = step
        self.topics = step.topics
        self.told: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [sys.executable, str(MEMBER), json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told.append({"member": self.start.member, **json.loads(line)})

    def order(self, what: str, **rest: Any) -> None:
        """Tell it what to do and wait until it has told that it is done."""
        before = self.done(what)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": what, **rest}) + "\n")
        self.process.stdin.flush()
        deadline = time.monotonic() + WAIT_SECONDS
        while self.done(what) == before:
            if time.monotonic() > deadline or self.process.poll() not in (None, 0):
                raise HistoryError(f"{self.start.member} did not {what}")
            time.sleep(0.01)

    def done(self, what: str) -> int:
        return sum(one.get("done") == what for one in list(self.told))

    def end(self) -> None:
        self.process.kill()
        self.process.wait(10)


class Player:
    """Plays one script; `truth` is complete when `play` has ended.

    Names of the script's groups and topics get `prefix`, so that histories can be read together.
    """

    def __init__(self, broker: Running, script: Script, on: str) -> None:
        self.broker = broker
        self.script = script
        self.prefix = f"{script.name}-{on}-"
        self.topics: dict[str, int] = {}
        self.clients: dict[str, Client] = {}
        self.gone: list[Client] = []
        self.groups: set[str] = set()
        self.truth: dict[str, Any] = {"name": script.name, "on": on, "steps": []}

    def play(self) -> dict[str, Any]:
        # A new broker has no coordinator yet: this question is repeated until it has one.
        self.ask(lambda admin: admin.list_group_offsets({f"{self.prefix}nobody": None})).all()
        for step in map(self.named, self.script.steps):
            note = {"do": type(step).__name__, **asdict(step), "before": now()}
            found = self.act(step)
            self.truth["steps"].append({**note, "after": now(), **(found or {})})
        self.truth["end"] = self.ask(self.look_around)
        everybody = [*self.gone, *self.clients.values()]
        self.truth["told"] = sorted(
            (told for client in everybody for told in client.told), key=lambda told: told["at"]
        )
        return self.truth

    def end(self) -> None:
        for client in self.clients.values():
            client.end()

    def named(self, step: Step) -> Step:
        """The step with names that no other history has."""
        changes: dict[str, Any] = {}
        for field in fields(step):
            value = getattr(step, field.name)
            if field.name in {"group", "topic"}:
                changes[field.name] = self.prefix + value
            elif field.name == "topics":
                changes[field.name] = tuple(
                    f"^{self.prefix}{one[1:]}" if one.startswith("^") else self.prefix + one
                    for one in value
                )
        return replace(step, **changes)

    def ask(self, question: Callable[[AdminClient], Awaitable[Any]]) -> Any:
        async def asked() -> Any:
            async with AdminClient(self.broker.bootstrap, timeout=WAIT_SECONDS) as admin:
                return await question(admin)

        return asyncio.run(asked())

    def act(self, step: Step) -> dict[str, Any] | None:
        match step:
            case steps.Start():
                self.groups.add(step.group)
                self.clients[step.member] = Client(self.broker.bootstrap, step)
            case steps.Stable():
                return self.until_stable(step)
            case steps.Commit():
                self.clients[step.member].order("commit", offsets=_triples(step))
            case steps.Transaction():
                order = {"offsets": _triples(step), "end": step.end}
                self.clients[step.member].order("transaction", **order)
            case steps.Finish():
                self.clients[step.member].order("finish", end=step.end)
            case steps.Leave() | steps.Kill():
                client = self.clients.pop(step.member)
                self.gone.append(client)
                if isinstance(step, steps.Leave):
                    client.order("leave")
                client.end()
            case steps.Subscribe():
                self.clients[step.member].topics = step.topics
                self.clients[step.member].order("subscribe", topics=list(step.topics))
            case steps.Stall():
                self.clients[step.member].order("stall", seconds=step.seconds)
            case steps.Crash():
                self.broker.crash()
            case steps.Sleep():
                time.sleep(step.seconds)
            case steps.Produce():
                return {"produced": self.produce(step)}
            case _:
                self.administer(step)
        return None

    def administer(self, step: Step) -> None:
        from kafka.admin import KafkaAdminClient, NewPartitions
        from kafka.structs import OffsetAndMetadata, TopicPartition

        match step:
            case steps.Topic():
                self.topics[step.topic] = step.partitions
                new = NewTopic(step.topic, step.partitions, 1)
                self.ask(lambda admin: admin.create_topics([new])).all()
                self.until_known(step.topic)
            case steps.DropTopic():
                del self.topics[step.topic]
                self.ask(lambda admin: admin.delete_topics([step.topic])).all()
            case steps.DeleteGroup():
                self.ask(lambda admin: admin.delete_groups([step.group])).all()
            case steps.Grow() | steps.AdminCommit() | steps.DeleteOffsets():
                admin = KafkaAdminClient(bootstrap_servers=self.broker.bootstrap)
                if isinstance(step, steps.Grow):
                    self.topics[step.topic] = step.partitions
                    admin.create_partitions({step.topic: NewPartitions(step.partitions)})
                elif isinstance(step, steps.AdminCommit):
                    self.groups.add(step.group)
                    offsets = {
                        TopicPartition(step.topic, index): OffsetAndMetadata(offset, "", -1)
                        for index, offset in step.offsets.items()
                    }
                    admin.alter_group_offsets(step.group, offsets)
                else:
                    partitions = [TopicPartition(step.topic, one) for one in step.partitions]
                    admin.delete_group_offsets(step.group, partitions)
                admin.close()

    def produce(self, step: steps.Produce) -> list[list[int]]:
        """Each record's partition, offset and timestamp, as the broker acknowledged them."""
        from confluent_kafka import Producer

        produced: list[list[int]] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                raise HistoryError(f"a record was not taken: {error}")
            produced.append([message.partition(), message.offset(), message.timestamp()[1]])

        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for partition, count in step.counts.items():
            for _ in range(count):
                producer.produce(step.topic, b"x", partition=partition, on_delivery=delivered)
        if producer.flush(WAIT_SECONDS) or len(produced) != sum(step.counts.values()):
            raise HistoryError(f"not all records were taken by {step.topic}")
        return sorted(produced)

    def until_known(self, topic: str) -> None:
        """Until a new topic is known to the broker, and to its group coordinator right after: who
        joined before that would get partitions by a rebalance more.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            seen = dict(self.ask(lambda admin: admin.describe_topics([topic])).items())[topic]
            if not isinstance(seen, ApiError):
                time.sleep(LEARN_SECONDS)
                return
            time.sleep(0.05)
        raise HistoryError(f"{topic} is not known: {seen}")

    def until_stable(self, step: steps.Stable) -> dict[str, Any]:
        """The group's description, as it was twice in a row."""
        deadline = time.monotonic() + WAIT_SECONDS
        last: dict[str, Any] | None = None
        seen: GroupDescription | ApiError | None = None
        while time.monotonic() < deadline:
            asked = now()
            seen = dict(self.ask(lambda admin: admin.describe_groups([step.group])).items())[
                step.group
            ]
            described = self.settled(step, seen)
            if described is not None and last is not None and described == last["described"]:
                return last
            if described is not None:
                last = {"described": described, "asked": asked, "answered": now()}
                time.sleep(CONFIRM_SECONDS)
            else:
                last = None
                time.sleep(0.05)
        raise HistoryError(f"{step.group} did not settle with {step.members}: {seen}")

    def settled(
        self, step: steps.Stable, seen: GroupDescription | ApiError
    ) -> dict[str, Any] | None:
        if isinstance(seen, ApiError):
            return None  # not there yet, or its coordinator is loading
        if sorted(one.client_id for one in seen.members) != sorted(step.members):
            return None
        if seen.state != ("Stable" if step.members else "Empty"):
            return None
        if not all(self.is_part_of_it(one) for one in seen.members):
            return None
        subscribed = {topic for name in step.members for topic in self.matches(name)}
        expected = sorted(
            (topic, index) for topic in subscribed for index in range(self.topics[topic])
        )
        owned = sorted(
            (topic, index)
            for one in seen.members
            for topic, partitions in (one.assignment or {}).items()
            for index in partitions
        )
        return _described(seen) if owned == expected else None

    def is_part_of_it(self, described: MemberDescription) -> bool:
        """Whether the description is of this life of the client: it got partitions, and the
        coordinator knows what it subscribes now.
        """
        client = self.clients[described.client_id]
        told = any("got" in one for one in list(client.told))
        names = sorted(one for one in client.topics if not one.startswith("^"))
        return told and sorted(described.subscribed_topics or ()) == names

    def matches(self, member: str) -> list[str]:
        return [
            topic
            for topic in self.topics
            if any(
                re.fullmatch(one[1:], topic) if one.startswith("^") else one == topic
                for one in self.clients[member].topics
            )
        ]

    async def look_around(self, admin: AdminClient) -> dict[str, Any]:
        """The state of everything at the end."""
        before = now()
        listed = {
            one.group_id: {"state": one.state, "type": one.type, "protocol_type": one.protocol_type}
            for one in await admin.list_groups()
            if one.group_id in self.groups
        }
        offsets = (await admin.list_group_offsets(dict.fromkeys(sorted(self.groups)))).all()
        described = (await admin.describe_groups(sorted(listed))).all()
        topics = (await admin.describe_topics(sorted(self.topics))).all()
        partitions = [
            (topic, index) for topic, count in self.topics.items() for index in range(count)
        ]
        ends = (await admin.end_offsets(partitions)).all()
        return {
            "before": before,
            "after": now(),
            "groups": listed,
            "described": {name: _described(one) for name, one in described.items()},
            "offsets": [
                [group, *partition, one.offset]
                for group, of_group in offsets.items()
                for partition, one in sorted(of_group.items())
                if one is not None and not isinstance(one, ApiError)
            ],
            "topic_ids": {name: uuid_text(one.topic_id) for name, one in topics.items()},
            "end_offsets": [[*partition, one.offset] for partition, one in sorted(ends.items())],
        }


def _triples(step: steps.Commit | steps.Transaction) -> list[list[Any]]:
    return [[step.topic, index, offset] for index, offset in step.offsets.items()]


def _described(seen: GroupDescription) -> dict[str, Any]:
    """What is kept of a description: members by member id."""
    return {
        "type": seen.type,
        "state": seen.state,
        "assignor": seen.assignor,
        "group_epoch": seen.group_epoch,
        "assignment_epoch": seen.assignment_epoch,
        "members": {
            one.member_id: {
                "client_id": one.client_id,
                "client_host": one.client_host,
                "instance_id": one.instance_id,
                "type": one.type,
                "member_epoch": one.member_epoch,
                "subscribed_topics": sorted(one.subscribed_topics or ()),
                "subscribed_regex": one.subscribed_regex,
                "assignment": {
                    topic: list(partitions) for topic, partitions in (one.assignment or {}).items()
                },
            }
            for one in sorted(seen.members, key=lambda one: one.member_id)
        },
    }
