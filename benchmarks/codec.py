"""Encoding and decoding: kohort.wire beside kafka-python 3 and kio, on the same bytes.

    python benchmarks/codec.py [--rounds 15]

Two messages of a group's life: an OffsetCommit v8 request of 10 topics x 10 partitions, and an
OffsetFetch v8 response of 100 groups x 10 partitions. Each library first proves that it gives back
the bytes it was given.
"""

import argparse
import gc
import io
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from kafka.protocol.consumer import group as kafka_python
from kio.schema.offset_commit.v8.request import OffsetCommitRequest as KioCommit
from kio.schema.offset_fetch.v8.response import OffsetFetchResponse as KioFetch
from kio.serial import entity_reader, entity_writer
from processes import load_average, machine, require_linux
from wire_client import commit_request

from kohort.wire.codec import decode, encode
from kohort.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

VERSION = 8
OURS = "kohort"
SLICE_SECONDS = 0.05


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


def seconds_per_call(call: Callable[[], Any]) -> float:
    """The mean over a short slice; the collector runs before, not within."""
    count, gc_was = 0, gc.isenabled()
    gc.collect()
    gc.disable()
    begin = time.perf_counter()
    end = begin
    while end - begin < SLICE_SECONDS:
        call()
        count += 1
        end = time.perf_counter()
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
    line = f"{what:40s}"
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
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    path = results / f"codec-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps({"machine": machine(), "codecs": told}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
