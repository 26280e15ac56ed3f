# SPDX-License-Identifier: Apache-2.0
"""Big loads: many groups, many connections, many records."""

import threading
import time
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, Producer
from tests.clients.member_processes import create_topic, eventually
from tests.serve.talk import Talk, serving

from kohort.testing import Broker
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.list_groups import ListGroupsRequest

ASK = ApiVersionsRequest(client_software_name="talk", client_software_version="1")


def groups_live_on(count: int) -> None:
    """Groups with a member each and a commit each, before and after a kill."""
    names = [f"group-{number}" for number in range(count)]
    with Broker({"group.consumer.session.timeout.ms": "60000"}, process=True) as broker:
        with Talk(broker.bootstrap) as client:
            client.create_topic("t", 2)
            epochs = {}
            for name in names:
                join = ConsumerGroupHeartbeatRequest(
                    group_id=name,
                    member_id=f"member-of-{name}",
                    member_epoch=0,
                    rebalance_timeout_ms=60_000,
                    subscribed_topic_names=["t"],
                    topic_partitions=[],
                )
                answer = client.ask(join)
                assert answer.error_code == 0, answer
                epochs[name] = answer.member_epoch
            for name in names:
                assert client.commit(f"plain-{name}", "t", len(name)) == 0
            assert len(client.ask(ListGroupsRequest()).groups) == 2 * count
        broker.kill()
        broker.restart()
        with Talk(broker.bootstrap) as client:
            for name in names:
                assert client.committed(f"plain-{name}") == {("t", 0): len(name)}
                beat = ConsumerGroupHeartbeatRequest(
                    group_id=name, member_id=f"member-of-{name}", member_epoch=epochs[name]
                )
                assert client.ask(beat).error_code == 0
            listed = client.ask(ListGroupsRequest(states_filter=["Stable"])).groups
            assert len(listed) == count


def connections_at_once(count: int) -> None:
    with serving("--in-memory") as broker, ExitStack() as stack:
        clients = [stack.enter_context(broker.talk()) for _ in range(count)]
        for _ in range(3):
            for client in clients:
                client.send(ASK)
            for client in clients:
                assert client.answer()
        print(f"{count} connections, {broker.resident_mib():.0f} MiB")


def records_through_two_consumers(count: int) -> None:
    """Each record is seen by one of the two, none is missing."""
    seen = bytearray(count)
    with Broker(process=True) as broker:
        create_topic(broker.bootstrap, "t", 6)
        begin = time.monotonic()
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20})
        for number in range(count):
            while True:
                try:
                    producer.produce("t", b"%d" % number)
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 1000 == 0:
                producer.poll(0)
        assert producer.flush(60) == 0
        middle = time.monotonic()
        ending = threading.Event()
        threads = [
            threading.Thread(target=_read, args=(broker.bootstrap, seen, ending)) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        try:
            eventually(lambda: 0 not in seen, f"{count} records were read", 120)
        finally:
            ending.set()
            for thread in threads:
                thread.join(30)
        end = time.monotonic()
    assert max(seen) == 1  # nobody died, so nothing came twice
    print(f"{count} records: {middle - begin:.1f} s in, {end - middle:.1f} s out")


def _read(bootstrap: str, seen: bytearray, ending: threading.Event) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": True,
            "auto.commit.interval.ms": 500,
        }
    )
    consumer.subscribe(["t"])
    while not ending.is_set():
        for message in consumer.consume(10_000, 0.2):
            if message.error() is None:
                seen[int(message.value())] += 1
    consumer.close()


def test_fifty_groups():
    groups_live_on(50)


def test_a_hundred_connections():
    connections_at_once(100)


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_a_thousand_groups():
    groups_live_on(1000)


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_two_thousand_connections():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2100:
        pytest.skip(f"only {hard} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2100), hard))
    try:
        connections_at_once(2000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_a_million_records():
    records_through_two_consumers(1_000_000)
