"""A cluster to talk to in messages: requests go in and answers come out as classes, on a clock that
a test moves.
"""

from itertools import count
from random import Random
from typing import Any

from kohort.config import BrokerConfig
from kohort.server.catalog import Catalog, MemoryStore
from kohort.server.cluster import Cluster
from kohort.server.connection import Connection
from kohort.server.logs import Logs, MemoryLogs
from kohort.server.opening import create_offsets_topic
from kohort.terms import Millis
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.batch import build
from kohort.wire.frames import FrameReader, RequestHeader, encode_request
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

START = Millis(1_700_000_000_000)


class Asked:
    """A request on its way. `answer` is None until there is one."""

    def __init__(self, response: type[Any], version: int, *, flexible: bool) -> None:
        self.response = response
        self.version = version
        self.flexible = flexible
        self.answer: Any = None


class Desk:
    """One connection to each node of a cluster. `now` moves when a test calls `wait`."""

    def __init__(
        self, *, nodes: int = 1, logs: Logs | None = None, store: Any = None, **settings: str
    ) -> None:
        random = Random(11)
        self.now = START
        self.config = BrokerConfig.of(
            {name.replace("_", "."): text for name, text in settings.items()}
        )
        catalog = Catalog(store or MemoryStore(), lambda: "cluster-of-a-test")
        create_offsets_topic(catalog, self.config, lambda: random.randbytes(16))
        self.cluster = Cluster(
            self.config, catalog, logs or MemoryLogs(), lambda: random.randbytes(16), print
        )
        self.ready: list[tuple[Connection, FrameReader]] = []
        first = self.config.node_id
        self.cluster.start([(first + one, "localhost", 9000 + one) for one in range(nodes)], START)
        self.connections = [self._connect(node) for node in self.cluster.nodes]
        self.asked: dict[int, Asked] = {}
        self.numbers = count(1)

    def _connect(self, node: Any) -> Connection:
        reader = FrameReader(1 << 30)
        connection = Connection(
            node, "127.0.0.1", 1 << 24, lambda: self.ready.append((connection, reader))
        )
        return connection

    def another(self) -> None:
        """A second connection to the first node: it is asked as the next number of node."""
        self.connections.append(self._connect(self.cluster.nodes[0]))

    def send(self, request: Any, version: int, *, node: int = 0) -> Asked:
        api = APIS[request.api_key]
        flexible = api.flexible(version)
        number = next(self.numbers)
        header = RequestHeader(
            request_api_key=api.key,
            request_api_version=version,
            correlation_id=number,
            client_id="desk",
        )
        asked = self.asked[number] = Asked(
            api.response, version, flexible=flexible and api.name != "ApiVersions"
        )
        data = encode_request(header, codec.encode(request, version), flexible=flexible)
        self.connections[node].receive(data, self.now)
        return asked

    def ask(self, request: Any, version: int, *, node: int = 0) -> Any:
        """Send, let everything happen that happens at once, and take the answer."""
        asked = self.send(request, version, node=node)
        self.settle()
        assert asked.answer is not None, "the request is parked"
        return asked.answer

    def collect(self) -> bool:
        """Take the answers that may leave; whether there were any."""
        moved = bool(self.ready)
        while self.ready:
            connection, reader = self.ready.pop(0)
            for frame in reader.feed(connection.output()):
                asked = self.asked.pop(int.from_bytes(frame[:4]))
                start = 5 if asked.flexible else 4
                asked.answer = codec.decode(asked.response, asked.version, frame, start)
            connection.go_on(self.now)
        return moved

    def settle(self, *, sync: bool = True) -> None:
        """Turns until nothing moves. Without `sync` the disk is still busy when this returns."""
        while True:
            self.cluster.turn(self.now)
            moved = self.collect()
            logs = self.cluster.begin_sync() if sync else []
            if logs:
                self.cluster.end_sync([log.sync() for log in logs])
                moved = True
            if not moved:
                return

    def wait(self, ms: int) -> None:
        end = self.now + ms
        while True:
            wake = self.cluster.wake_at()
            if wake is None or wake > end:
                break
            self.now = Millis(max(self.now, wake))
            self.settle()
        self.now = Millis(end)
        self.settle()

    # --- what most tests need

    def create(self, name: str = "orders", partitions: int = 1, **configs: str) -> bytes:
        """A topic; its id."""
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=[],
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        (created,) = self.ask(CreateTopicsRequest(topics=[wanted]), 7).topics
        assert created.error_code == 0, created.error_message
        topic_id: bytes = created.topic_id
        return topic_id

    def produce(self, topic: str = "orders", partition: int = 0, **more: Any) -> Any:
        """One batch to one partition; the partition's answer."""
        asked = self.send_batch(topic, partition, **more)
        self.settle()
        return asked.answer.responses[0].partition_responses[0]

    def send_batch(
        self,
        topic: str = "orders",
        partition: int = 0,
        *,
        records: int = 1,
        acks: int = -1,
        node: int = 0,
        value: bytes = b"value",
        **more: Any,
    ) -> Asked:
        batch = build([(b"key", value)] * records, self.now, **more)
        request = ProduceRequest(
            acks=acks,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=partition, records=batch)],
                )
            ],
        )
        return self.send(request, 9, node=node)
