# SPDX-License-Identifier: Apache-2.0
"""Encoding and decoding: kohort.wire beside kafka-python 3 and kio, on the same bytes.

    python benchmarks/codec.py [--rounds 15]

Two messages of a group's life: an OffsetCommit v8 request of 10 topics x 10 partitions, and an
OffsetFetch v8 response of 100 groups x 10 partitions. Each library first proves that it gives back
the bytes it was given. Then our two codecs, the native one and the one in Python, on messages of
all sizes. Times are those of the processor.
"""

import argparse
import gc
import io
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from kafka.protocol.consumer import group as kafka_python
from kio.schema.offset_commit.v8.request import OffsetCommitRequest as KioCommit
from kio.schema.offset_fetch.v8.response import OffsetFetchResponse as KioFetch
from kio.serial import entity_reader, entity_writer
from processes import load_average, machine, require_linux
from wire_client import commit_request

from kohort.native.choice import CODEC, NATIVE
from kohort.records.schemas import OffsetCommitValue
from kohort.wire import python_codec
from kohort.wire.codec import decode, encode
from kohort.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from kohort.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

VERSION = 8
OURS = "kohort"
SLICE_SECONDS = 0.05  # of the processor: neighbours on the machine do not count
LOOK_SECONDS = 0.0005  # between two looks at the clock, which takes as long as a small message


class Codec(NamedTuple):
    """One library's way with one message."""

    encode: Callable[[], bytes]
    decode: Callable[[], Any]


def commit_message() -> Any:
    return commit_request(
        "payments-consumer", [(f"orders-{number}", range(10)) for number in range(10)]
    )


def fetch_message() -> OffsetFetchResponse:
    def partition(index: int) -> OffsetFetchResponsePartitions:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=10**6 + index, committed_leader_epoch=4
        )

    def group(number: int) -> OffsetFetchResponseGroup:
        topic = OffsetFetchResponseTopics(name="orders", partitions=list(map(partition, range(10))))
        return OffsetFetchResponseGroup(group_id=f"group-{number:04d}", topics=[topic])

    return OffsetFetchResponse(groups=[group(number) for number in range(100)])


def codecs(message: Any, theirs: Any, kio_class: Any) -> dict[str, Codec]:
    """The same message in the hands of the three libraries."""
    data = encode(message, VERSION)
    read, write = entity_reader(kio_class), entity_writer(kio_class)
    parsed, _ = read(data, 0)
    other = theirs.decode(data, version=VERSION)
    other._header = None  # noqa: SLF001  (what it has decoded it cannot encode until this is set)

    def kio_encode() -> bytes:
        out = io.BytesIO()
        write(out, parsed)
        return out.getvalue()

    found = {
        OURS: Codec(lambda: encode(message, VERSION), lambda: decode(type(message), VERSION, data)),
        "kafka-python": Codec(
            lambda: other.encode(version=VERSION), lambda: theirs.decode(data, version=VERSION)
        ),
        "kio": Codec(kio_encode, lambda: read(data, 0)),
    }
    for name, codec in found.items():
        if bytes(codec.encode()) != data:
            raise RuntimeError(f"{name} writes other bytes for {type(message).__name__}")
    return found


def our_messages() -> dict[str, tuple[Any, int]]:
    """Messages with the version in which they are encoded, small ones and large ones."""
    topics = [MetadataResponseTopic(name="orders", topic_id=bytes(range(16)))]
    topics[0].partitions = [
        MetadataResponsePartition(
            partition_index=index, leader_id=1, leader_epoch=4, replica_nodes=[1], isr_nodes=[1]
        )
        for index in range(1_000)
    ]
    listed = [
        ListedGroup(
            group_id=f"group-{number:05d}",
            protocol_type="consumer",
            group_state="Stable",
            group_type="consumer",
        )
        for number in range(1_000)
    ]
    owned = Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=bytes(range(16)), topic_name="orders", partitions=[1, 2, 3])
        ]
    )
    members = [
        Member(
            member_id=f"consumer-{number}-6a0a2f1c",
            member_epoch=7,
            client_id="orders",
            client_host="/10.0.0.1",
            subscribed_topic_names=["orders"],
            assignment=owned,
            target_assignment=owned,
        )
        for number in range(10)
    ]
    described = [DescribedGroup(group_id="payments", group_state="Stable", members=members)]
    heartbeat = HeartbeatRequest(
        group_id="payments", generation_id=3, member_id="consumer-1-6a0a2f1c"
    )
    value = OffsetCommitValue(
        offset=10**6, leader_epoch=4, commit_timestamp=1_700_000_000_000, topic_id=bytes(range(16))
    )
    return {
        "Heartbeat v4 request": (heartbeat, 4),
        "OffsetCommit v8 request, 1": (commit_request("g", [("orders", [0])]), 8),
        "OffsetCommit v8 request, 100": (commit_request("g", [("orders", range(100))]), 8),
        "record of a commit, v4": (value, 4),
        "OffsetFetch v8 response, 100 x 10": (fetch_message(), 8),
        "ListGroups v5 response, 1,000": (ListGroupsResponse(groups=listed), 5),
        "ConsumerGroupDescribe v1 response, 10": (
            ConsumerGroupDescribeResponse(groups=described),
            1,
        ),
        "Metadata v12 response, 1,000": (MetadataResponse(topics=topics), 12),
    }


def compare_ours(rounds: int) -> list[dict[str, Any]]:
    if CODEC != NATIVE:
        print("the native codec is not in use: nothing to compare the codec in Python with")
        return []
    from kohort.wire import native_codec

    found = []
    for what, (message, version) in our_messages().items():
        data = encode(message, version)
        calls: dict[str, dict[str, Callable[[], Any]]] = {"encode": {}, "decode": {}}
        for name, codec in ((OURS, native_codec), ("Python", python_codec)):
            encoder = codec.encoder(type(message), version)
            decoder = codec.decoder(type(message), version, None, lenient=False)
            if encoder(decoder(data, 0)[0]) != data:
                raise RuntimeError(f"{name} writes other bytes for {what}")
            calls["encode"][name] = partial(encoder, message)
            calls["decode"][name] = partial(decoder, data, 0)
        for direction, of_both in calls.items():
            found.append(show(f"{what}: {direction}", compare(of_both, rounds)))
    return found


def seconds_per_call(call: Callable[[], Any]) -> float:
    """The mean over a short slice; the collector runs before, not within."""
    count, gc_was = 0, gc.isenabled()
    gc.collect()
    gc.disable()
    turns = 1
    begin = time.thread_time()
    end = begin
    while end - begin < SLICE_SECONDS:
        for _ in range(turns):
            call()
        count += turns
        end = time.thread_time()
        if end - begin < LOOK_SECONDS:
            turns *= 2
    if gc_was:
        gc.enable()
    return (end - begin) / count


def compare(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        for name in sorted(calls, reverse=bool(turn % 2)):
            times[name].append(seconds_per_call(calls[name]))
    return times


def show(what: str, times: dict[str, list[float]]) -> dict[str, Any]:
    """One line: microseconds of each, and how many times as long as ours the others take."""
    line = f"{what:48s}"
    for name, taken in times.items():
        line += f"  {name} {median(taken) * 1e6:8.1f} us"
        if name != OURS:
            ratios = [other / own for other, own in zip(taken, times[OURS], strict=True)]
            low, _, high = quantiles(ratios, n=4)
            line += f" ({median(ratios):.2f} x ours [{low:.2f}-{high:.2f}])"
    print(line, flush=True)
    return {"what": what, "seconds": times}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Codecs compared.")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args(arguments)
    require_linux()
    messages = {
        "OffsetCommit v8 request, 10 x 10": codecs(
            commit_message(), kafka_python.OffsetCommitRequest, KioCommit
        ),
        "OffsetFetch v8 response, 100 x 10": codecs(
            fetch_message(), kafka_python.OffsetFetchResponse, KioFetch
        ),
    }
    print(f"load average {load_average():.1f}, {given.rounds} rounds, medians")
    told = []
    for what, found in messages.items():
        for direction in ("encode", "decode"):
            calls = {name: getattr(codec, direction) for name, codec in found.items()}
            told.append(show(f"{what}: {direction}", compare(calls, given.rounds)))
    print("the native codec (kohort) and the one in Python")
    ours = compare_ours(given.rounds)
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    path = results / f"codec-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    found = {"machine": machine(), "codecs": told, "ours": ours}
    path.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
