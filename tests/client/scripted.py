# SPDX-License-Identifier: Apache-2.0
"""A cluster that plays a part: real sockets and real bytes, answers from a table of functions.

What no broker of ours does any more (old versions, a coordinator that moves, a node that hangs) is
played here, so that the client is seen to live with it.
"""

import asyncio
import functools
import inspect
from collections.abc import Callable
from ssl import SSLContext
from typing import Any, NamedTuple, Self

from kohort.client.admin import AdminClient
from kohort.client.network.address import Address
from kohort.client.network.cluster import Backoff, Cluster
from kohort.security.settings import NO_SECURITY, Security
from kohort.wire.apis import APIS
from kohort.wire.codec import decode, encode
from kohort.wire.frames import FrameReader, decode_request_header, encode_response, peek
from kohort.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kohort.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kohort.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kohort.wire.schema import Versions

CLOSE = object()  # an answer: the connection breaks


class ReceivedRequest(NamedTuple):
    """A request as a node got it."""

    node: int
    request: Any
    version: int

    @property
    def name(self) -> str:
        return self.request.name


Answer = Callable[[ReceivedRequest], Any]


class Node:
    """One broker: the versions it offers, and whether it listens at all."""

    def __init__(self, node_id: int) -> None:
        self.id = node_id
        self.port = 0
        self.offered = {api.name: api.request.versions for api in APIS.values()}
        self.server: asyncio.Server | None = None
        self.writers: list[asyncio.StreamWriter] = []

    def offer(self, name: str, versions: str | None) -> None:
        """Offer other versions of an API than all that have a layout; None: not at all."""
        if versions is None:
            del self.offered[name]
        else:
            self.offered[name] = Versions.of(versions)


class ScriptedCluster:
    """`answers` says what is answered to a request class, by a function of what was asked.

    A function may answer None (never), or CLOSE, or be a coroutine that answers late.
    `coordinators` says who coordinates a group; node 0 all others. `topics` has the partitions'
    leaders by name.
    """

    def __init__(
        self,
        nodes: int = 1,
        answers: dict[type, Answer] | None = None,
        tls: SSLContext | None = None,
    ) -> None:
        self.tls = tls
        self.nodes = [Node(index) for index in range(nodes)]
        self.answers = {
            ApiVersionsRequest: self._api_versions,
            MetadataRequest: self._metadata,
            FindCoordinatorRequest: self._find_coordinator,
            SaslHandshakeRequest: lambda _: SaslHandshakeResponse(error_code=34),
            **(answers or {}),
        }
        self.coordinators: dict[str, int] = {}
        self.topics: dict[str, list[int]] = {}
        self.asked: list[ReceivedRequest] = []

    def offer(self, name: str, versions: str | None) -> None:
        for node in self.nodes:
            node.offer(name, versions)

    def names(self) -> list[str]:
        """What was asked, without the handshakes and Metadata."""
        known = ("ApiVersions", "Metadata", "SaslHandshake")
        return [one.name for one in self.asked if one.name not in known]

    def sent(self, name: str) -> list[ReceivedRequest]:
        return [one for one in self.asked if one.name == name]

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.nodes[0].port}"

    async def __aenter__(self) -> Self:
        for node in self.nodes:
            serve = functools.partial(self._serve, node)
            node.server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=self.tls)
            node.port = node.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self.nodes:
            await self.stop(node.id)

    async def stop(self, node_id: int) -> None:
        """The node is gone; its port refuses."""
        node = self.nodes[node_id]
        if node.server is not None:
            node.server.close()
        for writer in node.writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    async def stop_connections(self) -> None:
        """Every connection breaks; new ones may be made."""
        for node in self.nodes:
            for writer in node.writers:
                writer.transport.abort()
        await asyncio.sleep(0)

    def admin(self, timeout: float = 5.0) -> AdminClient:
        """A client with short pauses."""
        admin = AdminClient(self.bootstrap, timeout=timeout)
        admin._cluster._backoff = Backoff(0.001, 0.002)
        return admin

    def cluster(self, security: Security = NO_SECURITY) -> Cluster:
        bootstrap = [Address("127.0.0.1", node.port) for node in self.nodes]
        return Cluster(
            bootstrap,
            client_id="test",
            backoff=Backoff(0.001, 0.002),
            chance=lambda: 0.5,
            security=security,
        )

    async def _serve(
        self, node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        node.writers.append(writer)
        frames = FrameReader(1 << 20)
        while data := await _read(reader):
            for frame in frames.feed(data):
                if not await self._answer(node, frame, writer):
                    writer.transport.abort()
                    return

    async def _answer(self, node: Node, frame: bytes, writer: asyncio.StreamWriter) -> bool:
        key, version, correlation_id = peek(frame)
        api = APIS[key]
        offered = node.offered[api.name]
        if version not in offered:
            assert api.name == "ApiVersions", f"{api.name} v{version} is not offered"
            refused = ApiVersionsResponse(
                error_code=35,
                api_keys=[ApiVersion(api_key=18, min_version=0, max_version=offered.last)],
            )
            writer.write(encode_response(correlation_id, encode(refused, 0), flexible=False))
            return True
        flexible = api.flexible(version)
        _, start = decode_request_header(frame, flexible=flexible)
        asked = ReceivedRequest(node.id, decode(api.request, version, frame, start), version)
        self.asked.append(asked)
        answer = self.answers[api.request](asked)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is CLOSE:
            return False
        if answer is not None:
            body = encode(answer, version)
            tagged = flexible and api.name != "ApiVersions"
            writer.write(encode_response(correlation_id, body, flexible=tagged))
        return True

    def _api_versions(self, asked: ReceivedRequest) -> ApiVersionsResponse:
        keys = {api.name: key for key, api in APIS.items()}
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=keys[name], min_version=one.first, max_version=one.last)
                for name, one in self.nodes[asked.node].offered.items()
            ]
        )

    def _metadata(self, asked: ReceivedRequest) -> MetadataResponse:
        brokers = [
            MetadataResponseBroker(node_id=one.id, host="127.0.0.1", port=one.port)
            for one in self.nodes
        ]
        wanted = asked.request.topics
        named = self.topics if wanted is None else [one.name for one in wanted]
        topics = [
            MetadataResponseTopic(
                name=name,
                error_code=0 if name in self.topics else 3,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index,
                        leader_id=leader,
                        replica_nodes=[leader],
                        isr_nodes=[leader],
                    )
                    for index, leader in enumerate(self.topics.get(name, []))
                ],
            )
            for name in named
        ]
        return MetadataResponse(brokers=brokers, controller_id=0, topics=topics)

    def _find_coordinator(self, asked: ReceivedRequest) -> FindCoordinatorResponse:
        request = asked.request
        if asked.version < 4:
            node = self.nodes[self.coordinators.get(request.key, 0)]
            return FindCoordinatorResponse(node_id=node.id, host="127.0.0.1", port=node.port)
        coordinators = []
        for key in request.coordinator_keys:
            node = self.nodes[self.coordinators.get(key, 0)]
            coordinators.append(
                Coordinator(key=key, node_id=node.id, host="127.0.0.1", port=node.port)
            )
        return FindCoordinatorResponse(coordinators=coordinators)


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(65536)
    except ConnectionError:
        return b""


def asynchronous(test: Callable[..., Any]) -> Callable[..., None]:
    """A test that is a coroutine, as pytest wants it."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def in_turn(*answers: Any) -> Answer:
    """Answers one after the other, the last one for ever. A function among them is called."""
    left = list(answers)

    def answer(asked: ReceivedRequest) -> Any:
        one = left.pop(0) if len(left) > 1 else left[0]
        return one(asked) if callable(one) else one

    return answer
