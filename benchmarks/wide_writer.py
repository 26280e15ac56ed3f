# SPDX-License-Identifier: Apache-2.0
"""A producer that writes one record to each of many partitions, again and again, until it is ended.

    python benchmarks/wide_writer.py PORT

The neighbour in `measures/small_write.py`, in a process of its own.
"""

import sys
import time

from wire_client import Connection

from kohort.wire.batch import build
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC = "wide"
PARTITIONS = 64
PAUSE_SECONDS = 0.02
VERSION = 9


def produce(topic: str, partitions: int) -> ProduceRequest:
    batch = build([(b"key", b"value")], int(time.time() * 1000))
    data = [PartitionProduceData(index=at, records=batch) for at in range(partitions)]
    return ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def write_on(port: int) -> None:
    """The other producer, in a process of its own: it writes until it is ended."""
    request = produce(TOPIC, PARTITIONS)
    with Connection(port) as connection:
        while True:
            connection.call(request, VERSION)
            time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    write_on(int(sys.argv[1]))
