# SPDX-License-Identifier: Apache-2.0
"""Stock clients go over to the other protocol one by one, while their group reads on (KIP-848).

The same is asked of Apache Kafka, where its jars can be had. It refuses the upgrade of a
cooperative group of librdkafka: the leader hands back to each member what that has said, and Kafka
takes this for the data of an assignor that it does not know.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event, Thread
from typing import Self

import pytest
from tests.clients.conftest import SETTINGS
from tests.clients.member_processes import (
    Crew,
    Member,
    assert_nothing_committed_is_read_again,
    create_topic,
    numbers_read,
    produce,
    settled,
)
from tests.peers.java_client import JavaConsumer
from tests.peers.java_client import produce as java_produce
from tests.peers.kafka import Kafka, unavailable
from tests.waiting import eventually

from kohort.testing import Broker

pytestmark = [pytest.mark.clients, pytest.mark.timeout(1200)]

PARTITIONS = 8
MEMBERS = 4
EAGER, COOPERATIVE = "confluent-classic", "confluent-cooperative"
KAFKA = pytest.mark.java
# Upstream lets no session of the consumer protocol be shorter, unless it is told so.
OF_KAFKA = SETTINGS | {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
}


@pytest.fixture
def bootstrap(whose: str) -> Iterator[str]:
    """The address of a broker: ours, or Apache Kafka."""
    if whose == "kohort":
        with Broker(SETTINGS, process=True) as running:
            yield running.bootstrap
        return
    if reason := unavailable():
        pytest.skip(reason)
    with Kafka(OF_KAFKA) as peer:
        yield peer.address


class Stream:
    """Records that keep coming while the group changes."""

    def __init__(self, bootstrap: str) -> None:
        self.sent = 0
        self._over = Event()
        self._thread = Thread(target=self._run, args=(bootstrap,))

    def _run(self, bootstrap: str) -> None:
        while not self._over.is_set():
            produce(bootstrap, "orders", range(self.sent, self.sent + 50))
            self.sent += 50
            self._over.wait(0.2)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def test_our_own_members_go_over_and_back(crew: Crew) -> None:
    """K848-116: beside members of librdkafka, which know nothing of them."""
    with Broker(SETTINGS, process=True) as running:
        rolled(crew, running.bootstrap, "kohort-classic", "confluent-consumer")
        crew.end()
        crew.members.clear()
    with Broker(SETTINGS, process=True) as running:
        rolled(crew, running.bootstrap, "kohort-consumer", "confluent-cooperative")


def rolled(crew: Crew, bootstrap: str, before: str, after: str) -> None:
    """Four members of one kind become four of another, one by one, and read every record."""
    create_topic(bootstrap, "orders", PARTITIONS)
    members: list[Member] = []
    while len(members) < MEMBERS:
        members.append(crew.join(before, bootstrap, "orders", "g"))
        settled(members, PARTITIONS)
    with Stream(bootstrap) as stream:
        for _ in range(MEMBERS):
            members.pop(0).leave()
            members.append(crew.join(after, bootstrap, "orders", "g"))
            settled(members, PARTITIONS)
    eventually(
        lambda: set(numbers_read(crew.members)) == set(range(stream.sent)),
        f"{stream.sent} records are read",
    )
    assert_nothing_committed_is_read_again(crew.members)


@pytest.mark.parametrize(
    ("classic", "whose"),
    [
        (EAGER, "kohort"),
        (COOPERATIVE, "kohort"),
        pytest.param(EAGER, "kafka", marks=KAFKA),
    ],
)
def test_a_rolling_upgrade_loses_nothing(classic: str, bootstrap: str, crew: Crew) -> None:
    """K848-116: no record is lost, and none is read again that was committed."""
    rolled(crew, bootstrap, classic, "confluent-consumer")


@pytest.mark.parametrize(
    ("classic", "whose"),
    [
        (EAGER, "kohort"),
        (COOPERATIVE, "kohort"),
        pytest.param(EAGER, "kafka", marks=KAFKA),
        pytest.param(COOPERATIVE, "kafka", marks=KAFKA),
    ],
)
def test_a_rolling_downgrade_loses_nothing(classic: str, bootstrap: str, crew: Crew) -> None:
    """K848-116, K848-117."""
    rolled(crew, bootstrap, "confluent-consumer", classic)


@pytest.mark.java
@pytest.mark.prove  # two minutes, of which most is sessions that run out
def test_java_members_go_over_and_back(bootstrap_of_ours: str) -> None:
    """K848-116, K848-117: two members change the protocol in turn, and change it back."""
    topic, group = "orders", "g"
    everything = {(topic, index) for index in range(PARTITIONS)}
    create_topic(bootstrap_of_ours, topic, PARTITIONS)
    with ExitStack() as stack:

        def joined(protocol: str) -> JavaConsumer:
            properties = {} if protocol == "consumer" else {"heartbeat.interval.ms": 300}
            consumer = JavaConsumer(
                bootstrap_of_ours, group, topic, protocol=protocol, properties=properties
            )
            return stack.enter_context(consumer)

        members = [joined("classic"), joined("classic")]
        every = list(members)
        sent = 0
        for protocol in (None, "consumer", "consumer", "classic", "classic"):
            if protocol is not None:
                members.pop(0).leave()
                members.append(joined(protocol))
                every.append(members[-1])
            for one in members:
                one.until(lambda it: len(it.assigned) == PARTITIONS // 2)
            assert members[0].assigned | members[1].assigned == everything
            sent += java_produced(bootstrap_of_ours, topic, 40)
            members[0].until(lambda _, sent=sent: sum(len(it.records) for it in every) >= sent)
            for one in members:
                one.until(lambda it: sum(it.committed.values()) >= len(it.records))
        values = sorted(int(value or "") for it in every for value in it.values())
        assert values == sorted([*range(40)] * 5)


def java_produced(bootstrap: str, topic: str, count: int) -> int:
    java_produce(bootstrap, topic, count)
    return count


@pytest.fixture
def bootstrap_of_ours() -> Iterator[str]:
    if reason := unavailable():
        pytest.skip(reason)
    with Broker(SETTINGS, process=True) as running:
        yield running.bootstrap
