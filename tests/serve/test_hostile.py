# SPDX-License-Identifier: Apache-2.0
"""Random and spoiled bytes on many connections, while another client is served."""

import os
from contextlib import suppress
from random import Random

import pytest
from tests.serve.hostile import requests, stream
from tests.serve.talk import Talk, serving
from tests.world import World

from kohort.wire.messages.api_versions import ApiVersionsRequest

ASK = ApiVersionsRequest(client_software_name="talk", client_software_version="1")


def assault(broker, random: Random, rounds: int) -> None:
    """Spoiled streams from several clients at a time; one honest client must be served on."""
    frames = requests()
    with broker.talk() as honest:
        honest.create_topic("kept")
        for number in range(rounds):
            hostile = []
            for _ in range(8):
                client = Talk(broker.address)
                client.socket.setblocking(False)
                with suppress(OSError):
                    client.socket.send(stream(random, frames, random.randint(1, 12)))
                hostile.append(client)
            assert honest.ask(ASK).error_code == 0
            assert honest.produce("kept", b"%d" % number).error_code in (0, 3)
            for client in hostile:
                if random.random() < 0.5:
                    with suppress(OSError):
                        client.socket.recv(1 << 16)
                client.socket.close()
            if number % 20 == 0:
                honest.create_topic("kept")  # a spoiled request may have deleted it
    assert broker.process.poll() is None
    assert "Traceback" not in broker.errors
    assert " has failed" not in broker.errors


@pytest.mark.parametrize("seed", range(2))
def test_a_live_broker(seed, tmp_path):
    with serving("--data-dir", str(tmp_path), "-X", "log.sync=none") as broker:
        assault(broker, Random(seed), 60)
        assert broker.resident_mib() < 400
        assert broker.end() == 0
    with serving("--data-dir", str(tmp_path)) as broker, broker.talk() as client:
        assert client.ask(ASK).error_code == 0  # whatever it was told, it starts again


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_a_live_broker_for_long(tmp_path):
    rounds = int(os.environ.get("KOHORT_FUZZ_ROUNDS", "4000"))
    with serving("--data-dir", str(tmp_path), "-X", "log.sync=none") as broker:
        assault(broker, Random(rounds), rounds)
        assert broker.end() == 0
    with serving("--data-dir", str(tmp_path)) as broker, broker.talk() as client:
        assert client.ask(ASK).error_code == 0


def flood(random: Random, streams: int) -> None:
    """The same without sockets, where anything that is raised comes up to the test."""
    frames = requests()
    world = World({"offsets.topic.num.partitions": "4"})
    for number in range(streams):
        client = world.connect()
        data = stream(random, frames, 8)
        cut = random.randrange(len(data) + 1)
        client.send(data[:cut])
        if not client.closed:
            client.send(data[cut:])
        for slot in client.connection.slots:
            world.cluster.fetch_purgatory.cancel(slot)
        client.connection.close()
        if number % 50 == 0:
            world.advance(1000)
    assert world.told.errors == []


@pytest.mark.parametrize("seed", range(2))
def test_a_broker_without_sockets(seed):
    flood(Random(seed), 300)


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 104))
def test_a_broker_without_sockets_for_long(seed):
    flood(Random(seed), int(os.environ.get("KOHORT_FUZZ_STREAMS", "12000")))
