# SPDX-License-Identifier: Apache-2.0
"""What a request costs inside the broker, without a socket: frame in, turn, frame out.

    python benchmarks/in_process.py [--rounds 400] [--count 200]

Prints the minimum of the rounds in microseconds for a quiet heartbeat, a one-partition commit and
an OffsetFetch of 100 partitions. A minimum hardly depends on what else the machine does, so two
commits may be compared by it.
"""

import argparse
import asyncio
import gc
import logging
import time

from wire_client import commit_request, fetch_request, heartbeat_request

from kohort.server.broker import Broker
from kohort.server.network.sockets import ClientProtocol
from kohort.wire.apis import APIS
from kohort.wire.codec import decode, encode
from kohort.wire.frames import RequestHeader, encode_request
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

SETTINGS = {"log.sync": "none", "group.initial.rebalance.delay.ms": 0}


class Wire:
    """A transport that keeps what is written."""

    def __init__(self):
        self.written = []

    def get_extra_info(self, _name):
        return "127.0.0.1", 1

    def write(self, data):
        self.written.append(data)

    def writelines(self, parts):
        self.written += parts

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return False

    def resume_reading(self):
        pass

    def pause_reading(self):
        pass

    def abort(self):
        pass


def frame_of(request, version):
    api = APIS[request.api_key]
    header = RequestHeader(
        request_api_key=api.key,
        request_api_version=version,
        correlation_id=7,
        client_id="bench",
    )
    return encode_request(header, encode(request, version), flexible=api.flexible(version))


async def measure(rounds, count):
    async with Broker(SETTINGS) as broker:
        wire = Wire()
        protocol = ClientProtocol(broker, 0)
        protocol.connection_made(wire)

        def ask(data):
            protocol.data_received(data)
            broker._turn()  # noqa: SLF001  (as the loop would at the end of its iteration)
            answer = b"".join(wire.written)
            wire.written.clear()
            return answer

        create = CreateTopicsRequest(
            topics=[CreatableTopic(name="t", num_partitions=100, replication_factor=1)],
            timeout_ms=5000,
        )
        ask(frame_of(create, 5))
        await asyncio.sleep(0.5)
        wire.written.clear()
        joined = ask(frame_of(heartbeat_request("g", "m", 0, topics=["t"], owned={}), 1))
        answer = decode(ConsumerGroupHeartbeatResponse, 1, joined, 9)
        assert answer.error_code == 0, answer
        quiet = frame_of(heartbeat_request("g", "m", answer.member_epoch), 1)
        commit = frame_of(commit_request("h", [("t", [0])]), 8)
        ask(frame_of(commit_request("f", [("t", range(100))]), 8))
        fetch = frame_of(fetch_request([("f", [("t", range(100))])]), 8)
        figures = {}
        for name, data in (("quiet heartbeat", quiet), ("commit", commit), ("fetch", fetch)):
            best = float("inf")
            for _ in range(3):
                assert len(ask(data)) > 10
            turns = max(count // 10, 10) if name == "fetch" else count
            gc.collect()
            gc.disable()
            for _ in range(rounds):
                begin = time.perf_counter()
                for _ in range(turns):
                    ask(data)
                best = min(best, (time.perf_counter() - begin) / turns)
                await asyncio.sleep(0)
            gc.enable()
            figures[name] = best * 1e6
        return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    for name, figure in asyncio.run(measure(args.rounds, args.count)).items():
        print(f"{name:>16}  {figure:7.2f} us")


if __name__ == "__main__":
    main()
