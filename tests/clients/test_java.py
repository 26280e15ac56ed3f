# SPDX-License-Identifier: Apache-2.0
"""The Java client as a member of a group on our broker, under both protocols (K848-169)."""

import asyncio
import time

import pytest
from tests.peers.java_client import JavaConsumer, produce
from tests.peers.kafka import unavailable
from tests.waiting import SOON_S

from kohort.client.admin import AdminClient
from kohort.testing import Broker

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.timeout(1200)]

SETTINGS = {
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.heartbeat.interval.ms": "300",
    "num.partitions": "6",
}


@pytest.fixture(scope="module")
def broker():
    if reason := unavailable():
        pytest.skip(reason)
    with Broker(SETTINGS, process=True) as running:
        yield running


def member(broker, group, topic, protocol):
    properties = {}
    if protocol == "classic":  # it notices a change at its heartbeat
        properties = {"heartbeat.interval.ms": 300, "session.timeout.ms": 3000}
    return JavaConsumer(broker.bootstrap, group, topic, protocol=protocol, properties=properties)


def until_described(broker, group, protocol, state, owned):
    """Wait until the group is described so: what members have said arrives at heartbeats."""
    wanted = protocol, state, sorted(sorted(one) for one in owned)

    async def met():
        async with AdminClient(broker.bootstrap) as admin:
            deadline = time.monotonic() + SOON_S
            while True:
                view = (await admin.describe_groups([group]))[group]
                has = [
                    sorted(
                        (name, index) for name, all_of in one.assignment.items() for index in all_of
                    )
                    for one in view.members
                ]
                shown = view.type, view.state, sorted(has)
                if shown == wanted or time.monotonic() > deadline:
                    break
                await asyncio.sleep(0.1)
            assert shown == wanted

    asyncio.run(met())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_java_members_share_leave_crash_and_go_on(broker, protocol):
    """Three members; one leaves, one is killed; no record is lost, the offsets are kept."""
    topic, group = f"orders-{protocol}", f"java-{protocol}"
    everything = {(topic, partition) for partition in range(6)}
    produce(broker.bootstrap, topic, 60)
    with member(broker, group, topic, protocol) as first:
        first.until(lambda it: it.assigned == everything and len(it.records) == 60)
        assert sorted(map(int, first.values())) == list(range(60))
        first.until(lambda it: sum(it.committed.values()) == 60)
        with (
            member(broker, group, topic, protocol) as second,
            member(broker, group, topic, protocol) as third,
        ):
            for one in (first, second, third):
                one.until(lambda it: len(it.assigned) == 2)
            assert first.assigned | second.assigned | third.assigned == everything
            until_described(
                broker, group, protocol, "Stable", [it.assigned for it in (first, second, third)]
            )
            second.leave()
            third.until(lambda it: len(it.assigned) == 3)
            first.until(lambda it: it.assigned == everything - third.assigned)
            third.kill()
            first.until(lambda it: it.assigned == everything)
            until_described(broker, group, protocol, "Stable", [everything])
            assert not second.records
            assert not third.records
        first.leave()

    produce(broker.bootstrap, topic, 30)
    with member(broker, group, topic, protocol) as heir:
        heir.until(lambda it: len(it.records) == 30)
        assert sorted(map(int, heir.values())) == list(range(30))
        heir.leave()
    until_described(broker, group, protocol, "Empty", [])


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_java_member_outlives_a_restart_of_the_broker(broker, protocol):
    """What was committed before the broker was killed is not read again after it."""
    topic, group = f"kept-{protocol}", f"java-kept-{protocol}"
    produce(broker.bootstrap, topic, 20)
    with member(broker, group, topic, protocol) as reader:
        reader.until(lambda it: sum(it.committed.values()) == 20)
        broker.kill()
        broker.restart()
        produce(broker.bootstrap, topic, 20)
        reader.until(lambda it: len(it.records) == 40)
        reader.until(lambda it: sum(it.committed.values()) == 40)
        assert sorted(map(int, reader.values())) == sorted([*range(20), *range(20)])
