"""A broker on a disk, a clock and ids that are not the real ones."""

import asyncio
from pathlib import Path

from tests.observer import Told

from kohort.server.broker import Broker
from kohort.server.clock import Clock
from kohort.server.surroundings import Surroundings
from kohort.sim.disk import MemoryFiles


def test_a_broker_takes_everything_from_its_surroundings():
    disk, told = MemoryFiles(), Told()
    around = Surroundings(
        clock=lambda: Clock(lambda: 1000.0, lambda: 5.0),
        files=disk,
        new_id=lambda: bytes(15) + b"\x07",
        observe=told,
    )
    broker = Broker(data_dir=Path("/data"), surroundings=around)

    async def life():
        async with broker:
            assert broker.now() == 1_000_000
            return broker.cluster.offsets_topic().topic_id

    assert asyncio.run(life()) == bytes(15) + b"\x07"
    assert "/data/kohort.catalog.json" in disk.files
    assert not told.errors
