# SPDX-License-Identifier: Apache-2.0
"""Groups that stock clients join under both protocols, commit for, leave, delete and make anew."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from kafka import errors
from kafka.admin import KafkaAdminClient
from tests.prove.killing.actor import Actor
from tests.prove.killing.away import COORDINATOR_MOVES, is_away
from tests.prove.killing.journal import Journal
from tests.serve.talk import Talk

from kohort.errors import ErrorCode
from kohort.wire.messages.list_groups import ListGroupsRequest

PROTOCOLS = ("classic", "consumer")
PUT_OUT = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""What a member may be told that was silent while the broker was away, or has to join again."""

Offsets = dict[tuple[str, int], int]


def consumer(bootstrap: str, group: str, protocol: str, **more: Any) -> Consumer:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,
    }
    if protocol == "classic":
        settings |= {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500}
    return Consumer(settings | more)


def abandon(held: list[Consumer]) -> None:
    """Let go of members that nobody else holds, without a word. It is done beside the caller:
    librdkafka 2.16 does not always come back from it while brokers come and go.
    """
    threading.Thread(target=held.clear, name="abandon", daemon=True).start()


def admin(bootstrap: str) -> KafkaAdminClient:
    """A client that deletes groups; to be closed soon, since it leaks a socket for each connection
    that fails. That of librdkafka 2.16 waits for a coordinator that is away until its time is over,
    and then may abort the process.
    """
    return KafkaAdminClient(
        bootstrap_servers=bootstrap,
        bootstrap_timeout_ms=2000,
        reconnect_backoff_max_ms=200,
        request_timeout_ms=60_000,
    )


class Groups(Actor):
    """Knows what each of its groups may hold: one state, or two while a change is in doubt."""

    may_have_members = False

    def __init__(self, name: str, seed: int, bootstrap: str, journal: Journal) -> None:
        super().__init__(name, seed, journal)
        self.bootstrap = bootstrap
        self.possible: dict[str, list[Offsets]] = {f"{name} {one}": [{}] for one in range(3)}

    def compare(self, group: str) -> Offsets:
        """Ask for the offsets of a group. What has been read once is no longer in doubt."""
        with Talk(self.bootstrap) as client:
            found = client.committed(group)
        possible = self.possible[group]
        assert found in possible, f"{group} holds {found}, expected one of {possible}"
        self.possible[group] = [found]
        return found

    def commit(self, group: str, by: Consumer, changes: Offsets) -> None:
        old = self.compare(group)
        new = old | changes
        self.possible[group] = [old, new]
        self.say(f"{group} commits {changes}")
        wanted = [TopicPartition(topic, index, at) for (topic, index), at in changes.items()]
        for one in by.commit(offsets=wanted, asynchronous=False) or ():
            if one.error is not None:
                raise KafkaException(one.error)
        self.possible[group] = [new]
        self.done(f"commits by {self.name.split()[0]}")

    def delete(self, group: str) -> None:
        old = self.compare(group)
        self.possible[group] = [old, {}]
        self.say(f"delete {group}")
        with closing(admin(self.bootstrap)) as client:
            outcome = client.delete_groups([group])[group]
        code = 0 if outcome == "OK" else int(getattr(errors, outcome).errno)
        if code in (0, ErrorCode.GROUP_ID_NOT_FOUND):
            self.possible[group] = [{}]
        elif code not in COORDINATOR_MOVES | self.excused:
            self.possible[group] = [old]
            assert self.may_have_members, f"{group} is not deleted: {outcome}"
            assert code == ErrorCode.NON_EMPTY_GROUP, f"{group} is not deleted: {outcome}"
        if code:
            self.say(f"{group} is not deleted: {outcome}")
            return
        self.done("groups deleted")
        with Talk(self.bootstrap) as client:
            listed = client.ask(ListGroupsRequest())
        assert listed.error_code or group not in [one.group_id for one in listed.groups], group


class Keepers(Groups):
    """Groups without members: commits from outside, and deletions."""

    def __init__(
        self, seed: int, bootstrap: str, journal: Journal, topic: str, partitions: int
    ) -> None:
        super().__init__("keeper", seed, bootstrap, journal)
        self._topic, self._partitions = topic, partitions
        self._clients = {one: consumer(bootstrap, one, "classic") for one in self.possible}

    def act(self) -> None:
        group = self.random.choice(list(self.possible))
        if self.random.random() < 0.3:
            self.delete(group)
            return
        indexes = self.random.sample(range(self._partitions), self.random.randint(1, 3))
        changes = {(self._topic, index): self.random.randrange(1 << 40) for index in indexes}
        self.commit(group, self._clients[group], changes)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


class Lives(Groups):
    """Groups that begin under one protocol, end, and begin anew, perhaps under the other one. Some
    members leave, some are gone without a word.
    """

    may_have_members = True

    def __init__(
        self, number: int, seed: int, bootstrap: str, journal: Journal, topics: Sequence[str]
    ) -> None:
        super().__init__(f"life {number}", seed, bootstrap, journal)
        self._topics = topics  # the first one is there for ever
        self.excused = PUT_OUT

    def act(self) -> None:
        random = self.random
        group = random.choice(list(self.possible))
        protocol = random.choice(PROTOCOLS)
        topics = [self._topics[0], *random.sample(self._topics[1:], random.randint(0, 1))]
        self.say(f"{group} is joined, {protocol}, for {topics}")
        held = [consumer(self.bootstrap, group, protocol, error_cb=self._told)]
        try:
            held[0].subscribe(topics)
            self._live(group, held[0], random.uniform(0.3, 7))
        finally:
            # An error has frames that hold the member, so that it would not be gone.
            if random.random() < 0.8 or sys.exception() is not None:
                self.say(f"{group} is left")
                held[0].close()
            else:
                self.say(f"{group} is abandoned")
                abandon(held)
        if random.random() < 0.4:
            self.delete(group)

    def _told(self, error: KafkaError) -> None:
        self.say(f"a member is told {error}")

    def _live(self, group: str, member: Consumer, seconds: float) -> None:
        end = time.monotonic() + seconds
        joined = False
        while time.monotonic() < end and not self.ending.is_set():
            changes: Offsets = {}
            for one in member.consume(100, 0.2):
                assert one.error() is None or not one.error().fatal(), (
                    f"{group}: a member is told for good that {one.error()}"
                )
                if one.error() is None and one.topic() == self._topics[0]:
                    changes[one.topic(), one.partition()] = one.offset() + 1
            if not joined and member.assignment():
                joined = True
                self.done("joins")
            if changes:
                self.commit(group, member, changes)

    def join_all(self, partitions: int, eventually: Callable[..., Any]) -> None:
        """Every group has room for a new member, which gets all partitions."""
        for group in self.possible:
            protocol = self.random.choice(PROTOCOLS)
            self.say(f"{group} is joined for the last time, {protocol}")
            member = consumer(self.bootstrap, group, protocol)
            member.subscribe([self._topics[0]])

            def owned(member: Consumer = member) -> int:
                try:
                    member.poll(0.1)
                except KafkaException as error:
                    if not is_away(error):
                        raise
                    return 0
                return len(member.assignment())

            what = f"{group} gives {partitions} partitions to a new {protocol} member"
            eventually(lambda owned=owned: owned() == partitions, what, 90)
            member.close()
