# SPDX-License-Identifier: Apache-2.0
"""What a broker takes from the machine under it may be somebody else's."""

import asyncio
import time
from pathlib import Path

import pytest
from tests.observer import RecordingObserver

from kohort.server.broker import Broker
from kohort.server.clock import Clock
from kohort.server.environment import BrokerEnvironment
from kohort.sim.disk import SimulatedFiles
from kohort.storage.files import DiskFiles
from kohort.terms import Millis


class Standing(Clock):
    def __call__(self):
        return Millis(7)


class Noted(DiskFiles):
    def __init__(self):
        self.made = []

    def make_directory(self, path):
        self.made.append(path)
        return super().make_directory(path)


def test_the_real_ones_are_the_default():
    around = BrokerEnvironment()
    assert around.files is None
    assert abs(around.clock()() / 1000 - time.time()) < 60
    assert len(around.new_id()) == 16
    pool = around.threads(1, "name")
    assert pool.submit(lambda: 7).result() == 7
    pool.shutdown()


@pytest.mark.parametrize("kept", [False, True])
def test_a_broker_takes_what_it_is_given(kept, tmp_path):
    files, ids = Noted(), []

    def new_id():
        ids.append(bytes([len(ids)]) * 16)
        return ids[-1]

    async def life():
        around = BrokerEnvironment(clock=Standing, files=files, new_id=new_id)
        path = tmp_path if kept else None
        async with Broker(
            {"offsets.topic.num.partitions": 1}, data_dir=path, environment=around
        ) as broker:
            assert broker.schedule_turn() == 7
            topic = broker.cluster.offsets_topic()
            assert topic.topic_id in ids

    asyncio.run(life())
    assert bool(files.made) == kept


def test_a_broker_needs_no_machine():
    disk, told = SimulatedFiles(), RecordingObserver()
    around = BrokerEnvironment(
        clock=lambda: Clock(lambda: 1000.0, lambda: 5.0),
        files=disk,
        new_id=lambda: bytes(15) + b"\x07",
        observe=told,
    )
    broker = Broker(data_dir=Path("/data"), environment=around)

    async def life():
        async with broker:
            assert broker.schedule_turn() == 1_000_000
            return broker.cluster.offsets_topic().topic_id

    assert asyncio.run(life()) == bytes(15) + b"\x07"
    assert "/data/kohort.catalog.json" in disk.files
    assert not told.errors
