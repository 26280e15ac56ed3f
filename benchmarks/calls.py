# SPDX-License-Identifier: Apache-2.0
"""What one request costs the server in calls, Python's and C's, and what a start loads in modules.

    KOHORT_CODEC=python python benchmarks/calls.py [--by-name] [--only PART] [--json] [--write]

No clock is read, so the figures are the same on a loaded machine: `calls.json` has those that are
agreed, and tests/project/test_calls.py holds the broker to them. A broker runs in a thread of its
own, on uvloop, whose loop is not counted. One connection asks one request after the other, and
`sys.setprofile` counts on the server's thread only. A figure is that of the cheapest round: what
is done once in a while falls into another one.

The agreed figures are those with the codec in Python, which is there everywhere. With the native
one, which is used by default where it was built, a message is one call.

`--by-name` adds every function that a request calls, dearest first. `--write` writes calls.json.
"""

import argparse
import asyncio
import json
import logging
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from wire_client import (
    Connection,
    commit_request,
    fetch_request,
    frame,
    heartbeat_request,
    make_topics,
    stable_member,
    wait_for_coordinator,
)

from kohort.config.broker import BrokerConfig
from kohort.native.choice import CODEC, PYTHON
from kohort.server.broker import Broker
from kohort.wire.batch.building import build
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

AGREED = Path(__file__).with_suffix(".json")
SETTINGS = {"log.sync": "none", "group.initial.rebalance.delay.ms": "0"}
ROUNDS = 4
PATIENCE_S = 60.0

Frames = Iterator[bytes]


class Server(threading.Thread):
    """A broker on its own loop, and the count of what its thread calls."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ready = threading.Event()
        self.calls: Counter[str] = Counter()

    def run(self) -> None:
        import uvloop

        uvloop.run(self._serve())

    async def _serve(self) -> None:
        settings = BrokerConfig.of(SETTINGS)
        with tempfile.TemporaryDirectory() as folder:
            async with Broker(settings, data_dir=Path(folder)) as broker:
                self.port = broker.addresses[0][1]
                self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
                self.ready.set()
                await self.end.wait()

    def on_loop(self, action: Callable[[], object]) -> None:
        """Run a function on the server's thread, and wait for it."""
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (action(), done.set()))
        if not done.wait(PATIENCE_S):
            raise SystemExit("the server's loop does not answer")

    def count(self, action: Callable[[], object]) -> Counter[str]:
        """What the server's thread calls while the action goes on here."""
        calls: Counter[str] = Counter()

        def hook(frame_: Any, event: str, arg: Any) -> None:
            if event == "call":
                code = frame_.f_code
                calls[code.co_filename.split("/kohort/")[-1] + ":" + code.co_qualname] += 1
            elif event == "c_call":
                calls["C " + getattr(arg, "__qualname__", str(arg))] += 1

        self.on_loop(lambda: sys.setprofile(hook))
        action()
        self.on_loop(lambda: sys.setprofile(None))
        return calls


def cheapest_round(
    server: Server, link: Connection, frames: Frames, times: int
) -> tuple[float, Counter[str]]:
    """The calls of a request, and of which functions, in the round that has fewest."""

    def ask() -> None:
        for data in [next(frames) for _ in range(times)]:
            link.socket.sendall(data)
            while not link.frames.feed(link.socket.recv(1 << 20)):
                pass

    ask()
    rounds = [server.count(ask) for _ in range(ROUNDS)]
    best = min(rounds, key=lambda calls: calls.total())
    return best.total() / times, best


def again(request: Any, version: int) -> Frames:
    data = frame(request, version)
    while True:
        yield data


def joins_of_classic_groups() -> Frames:
    """The first member of one group after another, none of which ends meanwhile."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(10))
    for number in range(1_000_000):
        request = JoinGroupRequest(
            group_id=f"classic-{number}",
            session_timeout_ms=40_000,
            rebalance_timeout_ms=40_000,
            member_id="",
            protocol_type="consumer",
            protocols=[protocol],
        )
        yield frame(request, 3)  # the newest that does not ask for a member id first


def joins_of_consumer_groups() -> Frames:
    for number in range(1_000_000):
        yield frame(heartbeat_request(f"consumer-{number}", "m", 0, topics=["t"], owned={}), 1)


def resting_member(link: Connection) -> int:
    """A member of a consumer group at rest; its epoch."""
    answer = link.call(heartbeat_request("g", "m", 0, topics=["t"], owned={}), 1)
    for _ in range(100):
        owned = None
        if answer.assignment is not None:
            owned = {
                one.topic_id: list(one.partitions) for one in answer.assignment.topic_partitions
            }
        epoch = answer.member_epoch
        answer = link.call(heartbeat_request("g", "m", epoch, owned=owned), 1)
        if answer.assignment is None and answer.member_epoch == epoch > 0 and owned is None:
            return epoch
        time.sleep(0.05)
    raise SystemExit("the member of the consumer group did not come to rest")


def produce_request() -> ProduceRequest:
    batch = build([(b"key", bytes(100))], int(time.time() * 1000))
    data = [PartitionProduceData(index=0, records=batch)]
    topics = [TopicProduceData(name="p", partition_data=data)]
    return ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics)


def read_request() -> FetchRequest:
    """The first record of the topic that `produce_request` writes to, and no more."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topics = [FetchTopic(topic="p", partitions=[partition])]
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=topics)


def paths(link: Connection) -> Iterator[tuple[str, Frames, int]]:
    """What is asked, as frames, and how often in a round."""
    heartbeat = heartbeat_request("g", "m", resting_member(link))
    classic_heartbeat = stable_member(link, "k")
    for number in range(100):
        link.call(commit_request(f"f{number}", [("t", range(10))]), 8)
    for number in range(900):
        link.call(commit_request(f"e{number}", [("t", [0])]), 8)
    hundred = fetch_request([(f"f{number}", [("t", range(10))]) for number in range(100)])
    describe = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    link.call(produce_request(), 9)
    yield "KIP-848 heartbeat", again(heartbeat, 1), 100
    yield "classic heartbeat", again(classic_heartbeat, 4), 100
    yield "commit of 1 partition", again(commit_request("c", [("t", [0])]), 8), 100
    yield "commit of 100 partitions", again(commit_request("c", [("t", range(100))]), 8), 20
    yield "fetch of 1 group x 10", again(fetch_request([("f0", [("t", range(10))])]), 8), 100
    yield "fetch of 100 groups x 10", again(hundred, 8), 10
    yield "list about 1,000 groups", again(ListGroupsRequest(), 5), 5
    yield "list Stable, 2 of 1,000", again(ListGroupsRequest(states_filter=["Stable"]), 5), 5
    yield "describe a classic group", again(DescribeGroupsRequest(groups=["k"]), 5), 50
    yield "describe a consumer group", again(describe, 1), 50
    yield "produce 1 record", again(produce_request(), 9), 100
    yield "read 1 record", again(read_request(), 12), 100
    yield "join of a classic group", joins_of_classic_groups(), 50
    yield "join of a consumer group", joins_of_consumer_groups(), 50


def requests(only: str, *, by_name: bool) -> dict[str, int]:
    logging.disable(logging.WARNING)
    server = Server()
    server.start()
    if not server.ready.wait(PATIENCE_S):
        raise SystemExit("the broker did not start")
    make_topics(server.port, {"t": 100, "p": 1})
    wait_for_coordinator(server.port)
    figures = {}
    with Connection(server.port) as link:
        for name, frames, times in paths(link):
            if only in name:
                figure, calls = cheapest_round(server, link, frames, times)
                figures[name] = round(figure)
                if by_name:
                    print(f"{name}: {figure:.0f} calls")
                    for function, count in calls.most_common():
                        print(f"    {count / times:9.2f}  {function}")
    server.on_loop(server.end.set)
    server.join(PATIENCE_S)
    return figures


def modules_of(argv: list[str]) -> dict[str, int]:
    """The modules that a command loads until it has printed its first line."""
    loaded = _loaded_by("-m", "kohort", *argv) - _loaded_by("-c", "print()")
    ours = {name for name in loaded if name.partition(".")[0] == "kohort"}
    command = f"kohort {argv[0]}"
    return {f"modules of {command}, ours": len(ours), f"modules of {command}": len(loaded)}


def _loaded_by(*argv: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", *argv]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        if process.stdout is None or not process.stdout.readline():
            raise SystemExit(f"{' '.join(argv)} printed nothing")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        errors.seek(0)
        return {line.rpartition("|")[2].strip() for line in errors if "import time:" in line}


def count(only: str = "", *, by_name: bool = False) -> dict[str, int]:
    """Every figure whose name holds `only`."""
    figures = requests(only, by_name=by_name)
    with tempfile.TemporaryDirectory() as folder:
        for argv in (["serve", "--listen", "127.0.0.1:0", "--data-dir", folder], ["--help"]):
            found = modules_of(argv).items()
            figures.update({name: figure for name, figure in found if only in name})
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--by-name", action="store_true", help="the functions of each request too")
    parser.add_argument("--only", default="", metavar="PART", help="figures whose name has this")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--write", action="store_true", help=f"write {AGREED.name}")
    args = parser.parse_args()
    if args.write and CODEC != PYTHON:
        parser.error(f"the figures of {AGREED.name} are counted with KOHORT_CODEC={PYTHON}")
    figures = count(args.only, by_name=args.by_name)
    agreed = json.loads(AGREED.read_text(encoding="utf-8")) if AGREED.exists() else {}
    if args.json:
        print(json.dumps(figures))
    else:
        print(f"codec: {CODEC}")
        for name, figure in figures.items():
            print(f"{name:30} {figure:7}  (agreed with {PYTHON}: {agreed.get(name, '-')})")
    if args.write:
        text = json.dumps({**agreed, **figures}, indent=2)
        AGREED.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
