# SPDX-License-Identifier: Apache-2.0
"""A cluster to talk to in messages: requests go in and answers come out as classes, on a clock that
a test moves.
"""

from collections.abc import Mapping
from itertools import count
from types import MappingProxyType
from typing import Any

from tests.world import START, Client, World

from kohort.assignors import Assign
from kohort.server.access import May
from kohort.server.descriptors import Limit
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.batch import build
from kohort.wire.frames import RequestHeader, encode_request
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

__all__ = ["START", "Asked", "Desk"]


class Asked:
    """A request on its way. `answer` is None until there is one."""

    def __init__(self, response: type[Any], version: int, *, flexible: bool) -> None:
        self.response = response
        self.version = version
        self.flexible = flexible
        self.answer: Any = None


class Desk(World):
    """One connection to each node of a cluster. `now` moves when a test calls `wait`."""

    def __init__(
        self,
        *,
        nodes: int = 1,
        files: Any = None,
        path: str = "/data",
        may: May | None = None,
        seed: int = 11,
        now: int = START,
        assignors: Mapping[str, Assign] = MappingProxyType({}),
        limit: Limit = Limit(),  # noqa: B008  (a constant)
        **settings: str,
    ) -> None:
        super().__init__(
            {name.replace("_", "."): text for name, text in settings.items()},
            nodes=nodes,
            files=files,
            path=path,
            seed=seed,
            now=now,
            may=may,
            assignors=assignors,
            limit=limit,
        )
        self.clients = [self.connect(node) for node in range(nodes)]
        self.asked: dict[int, Asked] = {}
        self.numbers = count(1)

    def another(self) -> None:
        """A second connection to the first node: it is asked as the next number of node."""
        self.clients.append(self.connect(0))

    @property
    def connections(self) -> list[Any]:
        return [client.connection for client in self.clients]

    def frame(self, request: Any, version: int) -> bytes:
        """A request as it is sent. Its answer is `Asked`, when it comes on a client of the desk."""
        api = APIS[request.api_key]
        flexible = api.flexible(version)
        number = next(self.numbers)
        header = RequestHeader(
            request_api_key=api.key,
            request_api_version=version,
            correlation_id=number,
            client_id="desk",
        )
        self.asked[number] = Asked(
            api.response, version, flexible=flexible and api.name != "ApiVersions"
        )
        return encode_request(header, codec.encode(request, version), flexible=flexible)

    def send(self, request: Any, version: int, *, node: int = 0) -> Asked:
        frame = self.frame(request, version)
        asked = self.asked[int.from_bytes(frame[8:12])]
        self.clients[node].put(frame)
        return asked

    def ask(self, request: Any, version: int, *, node: int = 0) -> Any:
        """Send, let everything happen that happens at once, and take the answer."""
        asked = self.send(request, version, node=node)
        self.settle()
        assert asked.answer is not None, "the request is parked"
        return asked.answer

    def settle(self, *, sync: bool = True) -> None:
        super().settle(sync=sync)
        self.take()

    def take(self) -> None:
        """Read the answers that have come."""
        for client in getattr(self, "clients", ()):
            self._take(client)

    def _take(self, client: Client) -> None:
        while client.answers:
            frame = client.answers.pop(0)
            asked = self.asked.pop(int.from_bytes(frame[:4]))
            start = 5 if asked.flexible else 4
            asked.answer = codec.decode(asked.response, asked.version, frame, start)

    def wait(self, ms: int) -> None:
        self.advance(ms)

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
