# SPDX-License-Identifier: Apache-2.0
"""The same as on a full disk, without one: a world whose disk fills up, empties and crashes."""

from tests.serve.talk import frame
from tests.world import World

from kohort.errors import ErrorCode
from kohort.server.catalog import Topic
from kohort.sim.disk import SimulatedFiles
from kohort.terms import TopicId
from kohort.wire.batch import build
from kohort.wire.codec import decode
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from kohort.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


def make_topic(catalog) -> None:
    catalog.create(
        Topic(name="t", topic_id=TopicId(b"t" * 16), partitions=1, replication_factor=1, configs={})
    )


class Disk:
    """A broker on a disk of the test's own; `again` is the broker that finds it after a crash."""

    def __init__(self, files: SimulatedFiles) -> None:
        self.files = files
        settings = {"offsets.topic.num.partitions": "1"}
        self.world = World(settings, files=files, prepare=make_topic)
        self.client = self.world.connect()

    def again(self) -> "Disk":
        files = self.files.after_crash()
        files.room_bytes = None  # somebody has made room
        return Disk(files)

    def wait(self, ms: int = 1500) -> None:
        """Until a shard that has failed is read again."""
        self.world.advance(ms)

    def ask(self, request, version, response, start):
        self.client.send(frame(request, version))
        return decode(response, version, self.client.answers.pop(), start)

    def commit(self, offset: int) -> int:
        place = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name="t", partitions=[place])
        request = OffsetCommitRequest(group_id="g", topics=[topic])
        answer = self.ask(request, 8, OffsetCommitResponse, 5)
        return answer.topics[0].partitions[0].error_code

    def committed(self) -> int:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        (group,) = self.ask(request, 8, OffsetFetchResponse, 5).groups
        assert group.error_code == 0
        return group.topics[0].partitions[0].committed_offset

    def produce(self, value: bytes):
        data = PartitionProduceData(index=0, records=build([(None, value)], self.world.now))
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name="t", partition_data=[data])],
        )
        answer = self.ask(request, 9, ProduceResponse, 5)
        return answer.responses[0].partition_responses[0]


def test_a_disk_that_fills_up_and_empties():
    disk = Disk(SimulatedFiles())
    assert disk.commit(1) == 0
    assert disk.produce(b"first").error_code == 0

    disk.files.room_bytes = 50  # a part of the next batch fits
    assert disk.produce(b"no room").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert disk.commit(2) == ErrorCode.NOT_COORDINATOR
    disk.wait(0)
    assert disk.committed() == 1  # it is read again at once
    for _ in range(3):
        assert disk.commit(2) == ErrorCode.NOT_COORDINATOR
        assert disk.committed() == 1, "who reads is served"
    disk.wait()
    assert disk.committed() == 1
    assert disk.again().committed() == 1

    disk.files.room_bytes = None
    assert disk.commit(3) == ErrorCode.NOT_COORDINATOR  # it has just looked
    disk.wait()
    assert disk.commit(3) == 0
    assert disk.produce(b"second").base_offset == 1
    found = disk.again()
    assert found.committed() == 3
    assert found.produce(b"third").base_offset == 2


def test_a_tail_that_cannot_be_cut_off():
    """The torn write stays until it can be cut; nothing is written behind it."""
    disk = Disk(SimulatedFiles())
    assert disk.produce(b"first").error_code == 0
    disk.files.room_bytes = 50
    disk.files.refuses_truncate = True
    for _ in range(2):
        assert disk.produce(b"no room").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert disk.again().produce(b"after a crash").base_offset == 1
    disk.files.room_bytes = None
    assert disk.produce(b"still torn").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.files.refuses_truncate = False
    assert disk.produce(b"second").base_offset == 1
    assert disk.again().produce(b"third").base_offset == 2


def test_a_disk_with_little_room_for_long():
    """What does not fit is refused, and what comes behind it until there is room for a block."""
    disk = Disk(SimulatedFiles())
    assert disk.commit(0) == 0
    last = 0
    for number in range(1, 200):
        disk.files.room_bytes = number * 370 % 8000
        code = disk.commit(number)
        if code == 0:
            last = number
        else:
            assert code == ErrorCode.NOT_COORDINATOR
            disk.wait()
        assert disk.committed() == last
        if number % 20 == 0:
            assert disk.again().committed() == last
    assert last > 100
