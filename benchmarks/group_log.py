# SPDX-License-Identifier: Apache-2.0
"""A group log made of committed offsets: the folders of `__consumer_offsets` as Kafka has them.

    python benchmarks/group_log.py DIR [--records 3000000] [--groups 300] [--per-batch 30]
        [--codec 0] [--partitions 50]

Groups take turns, and each writes a batch of commits, one for each of its partitions in turn. Every
record is a committed offset with a topic id (version 4) and without metadata: what consumers of
today commit. Offsets grow by a hundred a commit, and times by a second a round.
"""

import argparse
import hashlib
import time
from collections.abc import Iterator
from itertools import count, cycle, islice
from pathlib import Path
from struct import pack

from kohort.records.codec import Record, encode, encode_commit_value
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue
from kohort.server.placement import coordinator_partition
from kohort.terms import TopicId, uuid_text
from kohort.wire import batch

TOPIC = "__consumer_offsets"
FIRST_MS = 1_790_000_000_000
TOPICS = 5
TOPIC_PARTITIONS = 20
STEP = 100
INDEX_INTERVAL_BYTES = 4096


def write_log(
    directory: Path,
    records: int,
    *,
    groups: int = 300,
    per_batch: int = 30,
    codec: int = 0,
    partitions: int = 50,
) -> int:
    """Writes folders of partitions into a directory, and answers how many records they hold."""
    places = [directory / f"{TOPIC}-{one}" for one in range(partitions)]
    for place in places:
        place.mkdir(parents=True)
        (place / "partition.metadata").write_text(
            f"version: 0\ntopic_id: {uuid_text(_topic_id(TOPIC))}"
        )
    writers = [_Group(f"group-{one:05}", per_batch, codec) for one in range(groups)]
    logs: list[list[_Group]] = [[] for _ in places]
    for one in writers:
        logs[coordinator_partition(one.name, partitions)].append(one)
    rounds, rest = divmod(records, per_batch * groups)
    rest_batches = -(-rest // per_batch)
    turn = {one.name: rounds + (index < rest_batches) for index, one in enumerate(writers)}
    for place, members in zip(places, logs, strict=True):
        written = indexed = 0
        path = place / f"{0:020}.log"
        with path.open("wb") as file, path.with_suffix(".index").open("wb") as index:
            for number in range(rounds + 1):
                for one in members:
                    if number < turn[one.name]:
                        data = one.batch(written, FIRST_MS + 1000 * number)
                        written += per_batch
                        if file.tell() - indexed > INDEX_INTERVAL_BYTES:
                            indexed = file.tell()
                            index.write(pack(">II", written - 1, indexed))
                        file.write(data)
    return sum(turn.values()) * per_batch


class _Group:
    """One group's commits, a batch at a time."""

    def __init__(self, name: str, per_batch: int, codec: int) -> None:
        self.name = name
        self._per_batch = per_batch
        self._codec = codec
        self._keys = cycle(_keys(name))
        self._offsets = count(0, STEP)

    def batch(self, base_offset: int, ms: int) -> bytes:
        entries = [
            (
                key,
                encode_commit_value(
                    OffsetCommitValue(
                        offset=offset,
                        leader_epoch=3,
                        metadata="",
                        commit_timestamp=ms,
                        topic_id=topic_id,
                    )
                ),
            )
            for (key, topic_id), offset in islice(
                zip(self._keys, self._offsets, strict=False), self._per_batch
            )
        ]
        return batch.build(
            entries, ms, base_offset=base_offset, compression=self._codec, leader_epoch=0
        )


def _keys(group: str) -> Iterator[tuple[bytes, TopicId]]:
    for topic in (f"orders-{one}" for one in range(TOPICS)):
        for partition in range(TOPIC_PARTITIONS):
            key = OffsetCommitKey(group=group, topic=topic, partition=partition)
            yield encode(Record(key, None))[0], _topic_id(topic)


def _topic_id(topic: str) -> TopicId:
    return TopicId(hashlib.md5(topic.encode(), usedforsecurity=False).digest())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--groups", type=int, default=300)
    parser.add_argument("--per-batch", type=int, default=30)
    parser.add_argument(
        "--codec", type=int, default=0, help="0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd"
    )
    parser.add_argument("--partitions", type=int, default=50)
    options = vars(parser.parse_args())
    start = time.perf_counter()
    written = write_log(options.pop("directory"), options.pop("records"), **options)
    print(f"{written} records in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
