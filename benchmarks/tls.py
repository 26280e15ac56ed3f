# SPDX-License-Identifier: Apache-2.0
"""What TLS adds: the same requests on a plain listener and on one of TLS, in one run.

    python benchmarks/tls.py [--rounds 50] [--count 200] [--records 100000]

Prints microseconds inside the broker, without a socket, for a heartbeat and a commit (the minimum
of the rounds; the client's side is not in it), for a handshake by kind of key, and how many records
of 1,000 bytes a second librdkafka sends to a broker of its own process by sockets.
"""

import argparse
import asyncio
import logging
import ssl
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from confluent_kafka import Producer
from cryptography.hazmat.primitives.asymmetric import rsa
from in_process import Wire, frame_of
from tests.certificates import Authority
from wire_client import commit_request, heartbeat_request

from kohort.security.settings import Store
from kohort.security.stores import client_context, server_context
from kohort.server.broker import Broker
from kohort.server.network.sockets import ClientProtocol
from kohort.server.network.tls import TlsSession
from kohort.server.network.tls_sockets import TlsProtocol
from kohort.wire.codec import decode
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

SETTINGS = {"log.sync": "none", "group.initial.rebalance.delay.ms": "0"}
LISTENERS = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", "ssl.keystore.type": "PEM"}


class Plain:
    """A client without a socket."""

    def __init__(self, broker):
        self.broker, self.wire = broker, Wire()
        self.protocol = self.made()
        self.protocol.connection_made(self.wire)
        self.spent = 0.0

    def made(self):
        return ClientProtocol(self.broker, 0)

    def sealed(self, data):
        return data

    def opened(self, data):
        return data

    def ask(self, data):
        data = self.sealed(data)
        begin = time.perf_counter()
        self.protocol.data_received(data)
        self.broker._turn()  # noqa: SLF001  (as the loop would at the end of its iteration)
        self.spent += time.perf_counter() - begin
        answer = b"".join(self.wire.written)
        self.wire.written.clear()
        return self.opened(answer)


class Tls(Plain):
    """The same with TLS."""

    def __init__(self, broker, context):
        self.coming, self.going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.coming, self.going, server_hostname="localhost")
        super().__init__(broker)
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.coming.write(super().ask(b""))

    def made(self):
        certificates = self.broker._certificates  # noqa: SLF001
        return TlsProtocol(self.broker, 0, 1, certificates.of[1])

    def sealed(self, data):
        if data:
            self.tls.write(data)
        return self.going.read()

    def opened(self, data):
        if self.tls.version() is None or not data:
            return data
        self.coming.write(data)
        try:
            return self.tls.read(1 << 20)
        except ssl.SSLWantReadError:
            return data


async def inside(folder, authority, rounds, count):
    server = authority.sign("localhost").write_pem(folder / "server.pem")
    settings = SETTINGS | LISTENERS | {"ssl.keystore.location": str(server)}
    async with Broker(settings) as broker:
        context = client_context(trust=Store(text=authority.pem))
        for name, client in (("plain", Plain(broker)), ("TLS", Tls(broker, context))):
            create = CreateTopicsRequest(
                topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)],
                timeout_ms=5000,
            )
            client.ask(frame_of(create, 5))
            await asyncio.sleep(0.3)
            client.opened(b"".join(client.wire.written))  # of the topic
            client.wire.written.clear()
            request = heartbeat_request(name, "m", 0, topics=["t"], owned={})
            joined = client.ask(frame_of(request, 1))
            answer = decode(ConsumerGroupHeartbeatResponse, 1, joined, 9)
            heartbeat = frame_of(heartbeat_request(name, "m", answer.member_epoch), 1)
            commit = frame_of(commit_request("h", [("t", [0])]), 8)
            for what, data in (("heartbeat", heartbeat), ("commit", commit)):
                best = float("inf")
                for _ in range(rounds):
                    client.spent = 0.0
                    for _ in range(count):
                        client.ask(data)
                    best = min(best, client.spent / count)
                    await asyncio.sleep(0)
                print(f"{what:>10} {name:>5}  {best * 1e6:8.2f} us")


def handshakes(authority, count=100):
    context = client_context(trust=Store(text=authority.pem))
    for kind, key in (("EC", None), ("RSA", rsa.generate_private_key(65537, 2048))):
        server = server_context(Store(text=authority.sign("localhost", key=key).pem()))
        times = []
        for _ in range(count):
            coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = context.wrap_bio(coming, going, server_hostname="localhost")
            session, spent = TlsSession(server), 0.0
            while not session.established:
                with suppress(ssl.SSLWantReadError):
                    client.do_handshake()
                session.feed(going.read())
                begin = time.perf_counter()
                session.step()
                spent += time.perf_counter() - begin
                coming.write(session.output())
            times.append(spent)
        print(f" handshake {kind:>5}  {min(times) * 1e6:8.2f} us")


def producing(folder, authority, records):
    authority.write(folder / "ca.pem")
    settings = LISTENERS | {"ssl.keystore.location": str(folder / "server.pem")}
    flags = [part for name, text in settings.items() for part in ("-X", f"{name}={text}")]
    command = [sys.executable, "-m", "kohort", "serve", "--in-memory", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        try:
            ready = broker.stdout.readline().split()
            plain, tls = ready[3], ready[-1]
            of_tls = {"security.protocol": "SSL", "ssl.ca.location": str(folder / "ca.pem")}
            for name, address, more in (("plain", plain, {}), ("TLS", tls, of_tls)):
                producer = Producer(
                    {
                        "bootstrap.servers": address,
                        "linger.ms": 5,
                        "log_level": 0,
                        "queue.buffering.max.messages": records,
                        **more,
                    }
                )
                begin = time.perf_counter()
                for _ in range(records):
                    producer.produce(name, b"x" * 1000)
                assert producer.flush(120) == 0
                print(f"   produce {name:>5}  {records / (time.perf_counter() - begin):8.0f} /s")
        finally:
            broker.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--records", type=int, default=100_000)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    authority = Authority()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(inside(folder, authority, args.rounds, args.count))
        handshakes(authority)
        producing(folder, authority, args.records)


if __name__ == "__main__":
    main()
