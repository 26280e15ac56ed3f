"""What the checker of the disk knows of a file whose end was cut off and written anew."""

from kohort.sim.checkers.durable import Durable
from kohort.sim.disk import MemoryFiles
from kohort.wire import batch as batches
from kohort.wire.apis import APIS
from kohort.wire.codec import encode
from kohort.wire.frames import RequestHeader, encode_request, encode_response
from kohort.wire.messages.produce import PartitionProduceResponse, TopicProduceResponse

FOLDER, VERSION = "/data/t-0", 9
PRODUCE = APIS[0]


class World:
    """A disk with one log, and a checker that watches one connection."""

    def __init__(self):
        disk = MemoryFiles()
        disk.make_directory(FOLDER)
        self.file = disk.open(f"{FOLDER}/00000000000000000000.log")
        for directory in ("", "/data", FOLDER):
            disk.sync_directory(directory)
        self.alarms = []
        self._checker = Durable(self.alarms.append, lambda: disk, lambda _: "t")

    def append(self, data):
        self.file.write(self.file.size(), data)
        self.file.sync()

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
