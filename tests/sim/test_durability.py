# SPDX-License-Identifier: Apache-2.0
"""What the checker of the disk knows of a file whose end was cut off and written anew, and which
records came before a request.
"""

import pytest

from kohort.records import codec
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue
from kohort.sim.checkers.durability import DurabilityChecker
from kohort.sim.disk import SimulatedFiles
from kohort.wire import batch as batches
from kohort.wire.apis import APIS
from kohort.wire.codec import encode
from kohort.wire.frames import RequestHeader, encode_request, encode_response
from kohort.wire.messages import offset_commit, offset_delete
from kohort.wire.messages.produce import PartitionProduceResponse, TopicProduceResponse

FOLDER, VERSION = "/data/t-0", 9
GROUP_LOG = "/data/__consumer_offsets-0"
PRODUCE = APIS[0]


class World:
    """A disk with one log, and a checker that watches one connection."""

    def __init__(self, folder=FOLDER):
        disk = SimulatedFiles()
        disk.make_directory(folder)
        self.file = disk.open(f"{folder}/00000000000000000000.log")
        for directory in ("", "/data", folder):
            disk.sync_directory(directory)
        self.alarms = []
        self._checker = DurabilityChecker(self.alarms.append, lambda: disk, lambda _: "t")

    def append(self, data):
        self.file.write(self.file.size(), data)
        self.file.sync()

    def ask(self, request, version):
        head = RequestHeader(request.api_key, version, 1, "c")
        flexible = APIS[request.api_key].flexible(version)
        frame = encode_request(head, encode(request, version), flexible=flexible)
        self._checker.arrived("line", frame, to_broker=True)

    def answer(self, response, version):
        flexible = APIS[response.api_key].flexible(version)
        frame = encode_response(1, encode(response, version), flexible=flexible)
        self._checker.leaves("line", frame)

    def acknowledge(self, offset):
        """A producer is told that its record has this offset."""
        head = RequestHeader(0, VERSION, offset, "c")
        request = encode(PRODUCE.request(acks=-1, timeout_ms=1, topic_data=[]), VERSION)
        self._checker.arrived("line", encode_request(head, request, flexible=True), to_broker=True)
        part = PartitionProduceResponse(index=0, error_code=0, base_offset=offset)
        topic = TopicProduceResponse(name="t", partition_responses=[part])
        answer = encode(PRODUCE.response(responses=[topic]), VERSION)
        self._checker.leaves("line", encode_response(offset, answer, flexible=True))


def batch(offset, size=10):
    return batches.build([(None, b"v" * size)], 1000, base_offset=offset)


def test_what_is_acknowledged_is_on_the_disk():
    world = World()
    world.append(batch(0))
    world.acknowledge(0)
    assert world.alarms == []
    world.acknowledge(1)
    assert world.alarms == [
        "durable: Produce: offset 1 of t-0 is acknowledged, on the disk it ends at 1"
    ]


def test_a_torn_batch_is_not_on_the_disk():
    world = World()
    world.append(batch(0)[:-1] + b"x")
    world.acknowledge(0)
    assert len(world.alarms) == 1


def test_what_was_cut_off_and_written_anew_elsewhere_is_seen():
    world = World()
    world.append(batch(0))
    world.acknowledge(0)
    end = world.file.size()
    world.append(batch(1, 100))
    world.acknowledge(1)
    world.file.truncate(end)  # and before it is synced, a look
    world.acknowledge(1)
    world.file.sync()
    for offset in range(1, 6):
        world.append(batch(offset))
        world.acknowledge(offset)
    assert world.alarms == []


def offsets(first, *committed):
    """A batch of the group log: what g has committed of t-0, one after the other."""
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    entries = []
    for offset in committed:
        value = None
        if offset is not None:
            value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=0)
        entries.append(codec.encode(codec.Record(key, value)))
    return batches.build(entries, 1000, base_offset=first)


COMMIT_OF_3 = (
    offset_commit.OffsetCommitRequest(
        group_id="g",
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name="t",
                partitions=[
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=3, committed_metadata=""
                    )
                ],
            )
        ],
    ),
    offset_commit.OffsetCommitResponse(
        topics=[
            offset_commit.OffsetCommitResponseTopic(
                name="t",
                partitions=[offset_commit.OffsetCommitResponsePartition(partition_index=0)],
            )
        ]
    ),
    7,
)
DELETION = (
    offset_delete.OffsetDeleteRequest(
        group_id="g",
        topics=[
            offset_delete.OffsetDeleteRequestTopic(
                name="t",
                partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)],
            )
        ],
    ),
    offset_delete.OffsetDeleteResponse(
        topics=[
            offset_delete.OffsetDeleteResponseTopic(
                name="t",
                partitions=[offset_delete.OffsetDeleteResponsePartition(partition_index=0)],
            )
        ]
    ),
    0,
)


@pytest.mark.parametrize(
    ("exchange", "others"), [(COMMIT_OF_3, [9]), (DELETION, [None, 9])], ids=["commit", "deletion"]
)
def test_what_others_wrote_counts_only_where_it_came_after_the_request(exchange, others):
    """The cleaner may take away what they replace. What came before replaces nothing of it, though
    nobody had read it yet.
    """
    request, response, version = exchange
    world = World(GROUP_LOG)
    world.ask(request, version)
    world.append(offsets(0, *others))
    world.answer(response, version)
    assert world.alarms == []

    world = World(GROUP_LOG)
    world.append(offsets(0, *others))
    world.ask(request, version)
    world.answer(response, version)
    assert len(world.alarms) == 1
