# SPDX-License-Identifier: Apache-2.0
"""Data directories that a version of Kohort has left, with the truth beside them.

`python -m tests.sim.older_directories NAME` writes one of this version: a client fills topics,
groups and a transaction of a simulated broker, which then crashes and starts. What the client can
read at the end is the truth. Whoever reads the directory later must find the same.
"""

import io
import json
import sys
import tarfile
from pathlib import Path

from kohort.sim.actors.actor import Actor
from kohort.sim.actors.reading import fetch
from kohort.sim.actors.topics import topics_of
from kohort.sim.actors.transactional import TransactionalProducer
from kohort.sim.disk import SimulatedFiles
from kohort.sim.draw import draw
from kohort.sim.events import MICROS
from kohort.sim.world import World
from kohort.wire import batch as batches
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

FOLDER = Path(__file__).parents[1] / "data" / "older"
TOPICS = {"archived": {"segment.ms": "1000"}, "archived-keys": {"cleanup.policy": "compact"}}
GROUPS = tuple(f"archived-{number}" for number in range(4))
PARTITIONS = 2
EVERYTHING = frozenset(draw(1, 1, {}).faults) | {"power", "clock jump"}
ARCHIVING = 1_000_003  # a seed that no test plays: topic ids are drawn from it
TRIES = 30


class Archivist(TransactionalProducer):
    """Writes what is to be kept, and reads all of it."""

    kind = "archivist"

    def __init__(self, stage):
        Actor.__init__(self, stage, 0)
        super().__init__(stage, 0, "archived-transactions")

    async def write(self):
        wanted = [
            CreatableTopic(
                name=name,
                num_partitions=PARTITIONS,
                replication_factor=1,
                assignments=[],
                configs=[CreatableTopicConfig(name=key, value=text) for key, text in texts.items()],
            )
            for name, texts in TOPICS.items()
        ]
        assert await self.ask(CreateTopicsRequest(topics=wanted), 7, patience_ms=20_000)
        for number in range(40):
            await self._write_some(number)
            await self.pause(300)
        assert await self.init(60_000, same=False) == 0
        known = (await topics_of(self))["archived"]
        values = [b"committed:1", b"committed:2"]
        assert await self.produce("t", known, 0, values) == 0
        assert await self.commit_offsets(GROUPS[3], "archived", {0: 77}, "t") == 0
        assert await self.end(commit=True) == 0
        assert await self.produce("u", known, 1, [b"aborted"]) == 0
        assert await self.end(commit=False) == 0
        self.caller.hang_up()

    async def _write_some(self, number):
        known = await topics_of(self)
        for name in TOPICS:
            topic, index = known[name], number % PARTITIONS
            entries = [(b"%d" % (number % 3), b"%s:%d" % (name.encode(), number))]
            batch = batches.build(
                entries, 1_700_000_000_000 + self.stage.loop.now // 1000, compression=number % 5
            )
            part = PartitionProduceData(index=index, records=batch)
            data = TopicProduceData(topic_id=topic.topic_id, partition_data=[part])
            request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data])
            await self.ask(request, 13, node=topic.leaders[index])
        group = GROUPS[number % len(GROUPS)]
        places = [
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=number, committed_metadata=f"m{number}"
            )
            for index in range(PARTITIONS)
        ]
        request = OffsetCommitRequest(
            group_id=group,
            member_id="",
            topics=[OffsetCommitRequestTopic(name="archived", partitions=places)],
        )
        await self.ask_coordinator(group, request, 9)

    async def read(self):
        """Everything, as JSON has it."""
        truth = {"records": {}, "offsets": {}}
        known = await self._topics()
        for name in TOPICS:
            for index in range(PARTITIONS):
                for committed in (False, True):
                    values = await self._records(known[name], index, committed=committed)
                    kind = "committed" if committed else "all"
                    truth["records"][f"{name}-{index} {kind}"] = values
        for group in GROUPS:
            truth["offsets"][group] = await self._offsets(group)
        self.caller.hang_up()
        return truth

    async def _topics(self):
        for _ in range(TRIES):
            known = await topics_of(self)
            if known is not None and known.keys() >= TOPICS.keys():
                return known
            await self.pause(500)
        raise AssertionError("the topics are not there")

    async def _records(self, topic, index, *, committed):
        values, offset = {}, 0
        for _ in range(TRIES):
            leader = topic.leaders[index]
            place = topic.topic_id, index
            piece = await fetch(self, place, leader, offset, committed=committed)
            if piece is None or piece.code:
                await self.pause(500)
                continue
            values.update((str(at), value.decode()) for at, value in piece.values.items())
            if piece.next_offset >= piece.end:
                return values
            offset = piece.next_offset
        raise AssertionError(f"{topic.name}-{index} cannot be read")

    async def _offsets(self, group):
        topic = OffsetFetchRequestTopics(name="archived", partition_indexes=list(range(PARTITIONS)))
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])], require_stable=True
        )
        for _ in range(TRIES):
            answer = await self.ask_coordinator(group, request, 9)
            if answer is not None and not answer.groups[0].error_code:
                places = answer.groups[0].topics[0].partitions
                if not any(place.error_code for place in places):
                    return [[place.committed_offset, place.metadata] for place in places]
            await self.pause(500)
        raise AssertionError(f"{group} cannot be read")


def played(world, work):
    """The result of a coroutine, once the world has got so far."""
    task = world.loop.begin(work)
    for _ in range(2000):
        world.events.run(world.now + MICROS // 2)
        if task.done():
            return task.result()
    raise AssertionError("it does not come to its end")


def archive(name):
    """Write a directory of this version."""
    world = World(draw(ARCHIVING, 1.0, {}, EVERYTHING))
    world.begin(lambda: None)
    world.events.run(5 * MICROS)
    archivist = Archivist(world.stage)
    played(world, archivist.write())
    world.crash()
    world.events.run(world.now + 30 * MICROS)
    truth = played(world, Archivist(world.stage).read())
    played(world, world.stop())
    assert not world.alarms, world.alarms
    with tarfile.open(FOLDER / f"{name}.tar.xz", "w:xz") as tar:
        for path, content in world.disk.files.items():
            _add(tar, path.lstrip("/"), bytes(content.now))
        _add(tar, "truth.json", json.dumps(truth, indent=1).encode())


def _add(tar, name, content):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def restore(path, disk):
    """Put a directory on a disk, durably; the truth that was beside it."""
    assert isinstance(disk, SimulatedFiles)
    truth = None
    with tarfile.open(path) as tar:
        for member in tar:
            content = tar.extractfile(member).read()
            if member.name == "truth.json":
                truth = json.loads(content)
                continue
            folder, _, _ = f"/{member.name}".rpartition("/")
            disk.make_directory(folder)
            file = disk.open(f"/{member.name}")
            file.write(0, content)
            file.sync()
    for folder in disk.directories:
        disk.sync_directory(folder or "/")
    return truth


if __name__ == "__main__":
    archive(sys.argv[1])
