# SPDX-License-Identifier: Apache-2.0
"""What the set-up of a benchmark says to a server, through kohort.wire: topics, joins, commits.

The load itself is the C client's; here only frames are made and members are brought to Stable.
"""

import asyncio
import socket
import time
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Self

from kohort.wire.apis import APIS
from kohort.wire.codec import decode, encode
from kohort.wire.frames import FrameReader, RequestHeader, encode_request
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

LARGEST_ANSWER = 1 << 28
COMMITTED = 42
REBALANCE_TIMEOUT_MS = 300_000
SESSION_MS = 1_800_000  # the longest that a broker takes
LOADING = (14, 15, 16)  # the coordinator is loading, not available or elsewhere: ask again

Owned = dict[bytes, list[int]]
Assignment = Sequence[tuple[str, Sequence[int]]]


def frame(request: Any, version: int) -> bytes:
    """A request as it goes over the wire; whoever sends it writes its own correlation id."""
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=1,
        client_id="consumer-1",
    )
    flexible = APIS[request.api_key].flexible(version)
    return encode_request(header, encode(request, version), flexible=flexible)


def body_at(api_key: int, version: int) -> int:
    """Where the body of an answer starts, behind size, correlation id and perhaps tags."""
    tagged = APIS[api_key].flexible(version) and api_key != ApiVersionsRequest.api_key
    return 9 if tagged else 8


def place_of_error(answer: Any, refused: Any, version: int) -> int:
    """Where two answers that differ in one error code differ: what the load client must watch.

    The code of the refused one must be positive and below 256, so its low byte is the difference.
    """
    first, second = encode(answer, version), encode(refused, version)
    place = next(
        at for at, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]
    )
    return body_at(answer.api_key, version) + place - 1


class Connection:
    """A blocking connection: one request, one answer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.frames = FrameReader(LARGEST_ANSWER)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def call(self, request: Any, version: int) -> Any:
        self.socket.sendall(frame(request, version))
        while True:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError(f"the server closed on {request.name} v{version}")
            if frames := self.frames.feed(data):
                response = APIS[request.api_key].response
                return decode(response, version, frames[0], body_at(request.api_key, version) - 4)


class Link(asyncio.Protocol):
    """A connection for many members at once; answers come in the order of the requests."""

    def __init__(self) -> None:
        self.frames = FrameReader(LARGEST_ANSWER)
        self.waiting: deque[tuple[type[Any], int, int, asyncio.Future[Any]]] = deque()

    @classmethod
    async def open(cls, port: int) -> "Link":
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(cls, "127.0.0.1", port)
        await link.call(ApiVersionsRequest(), 0)  # the queue of unaccepted connections is short
        return link

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        for answer in self.frames.feed(data):
            response, version, start, future = self.waiting.popleft()
            if not future.done():
                future.set_result(decode(response, version, answer, start))

    def connection_lost(self, _: Exception | None) -> None:
        for *_rest, future in self.waiting:
            if not future.done():
                future.set_exception(ConnectionError("the server closed"))

    def call(self, request: Any, version: int) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        response = APIS[request.api_key].response
        start = body_at(request.api_key, version) - 4
        self.waiting.append((response, version, start, future))
        self.transport.write(frame(request, version))
        return future

    def close(self) -> None:
        self.transport.close()


def make_topics(port: int, topics: dict[str, int]) -> dict[str, bytes]:
    """Create topics with so many partitions each and wait for their leaders; their ids."""
    with Connection(port) as connection:
        wanted = [
            CreatableTopic(
                name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[]
            )
            for name, count in topics.items()
        ]
        made = connection.call(CreateTopicsRequest(topics=wanted), 7)
        for result in made.topics:
            if result.error_code not in (0, 36):  # 36: it exists
                raise RuntimeError(f"topic {result.name} refused with error {result.error_code}")
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
        )
        end = time.monotonic() + 120
        while time.monotonic() < end:
            answer = connection.call(asked, 12)
            ids = {
                topic.name: topic.topic_id
                for topic in answer.topics
                if topic.error_code == 0
                and len(topic.partitions) == topics[topic.name]
                and all(partition.error_code == 0 for partition in topic.partitions)
            }
            if len(ids) == len(topics):
                return ids
            time.sleep(0.1)
    raise RuntimeError(f"topics {list(topics)} had no leaders after 120 s")


def wait_for_coordinator(port: int, group: str = "probe") -> None:
    """Have the internal topic made, and return when the group's coordinator answers."""
    with Connection(port) as connection:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            connection.call(FindCoordinatorRequest(coordinator_keys=[group]), 4)
            answer = connection.call(fetch_request([(group, None)]), 8)
            if answer.groups[0].error_code == 0:
                return
            time.sleep(0.02)
    raise RuntimeError(f"no coordinator for group {group} after 120 s")


def heartbeat_request(
    group: str,
    member: str,
    epoch: int,
    *,
    topics: list[str] | None = None,
    owned: Owned | None = None,
) -> ConsumerGroupHeartbeatRequest:
    """A KIP-848 heartbeat; with `topics` it joins, with neither it only says that it is there."""
    parts = None
    if owned is not None:
        parts = [TopicPartitions(topic_id=id_, partitions=list(own)) for id_, own in owned.items()]
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=-1 if topics is None else REBALANCE_TIMEOUT_MS,
        subscribed_topic_names=topics,
        topic_partitions=parts,
    )


def stable_member(link: Connection, group_id: str) -> HeartbeatRequest:
    """The only member of a classic group that is Stable: its heartbeat."""
    join = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(10))],
    )
    joined = link.call(join, 3)  # the newest that does not ask for a member id first
    member = {
        "group_id": group_id,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
    }
    assigned = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"x")
    if code := link.call(SyncGroupRequest(**member, assignments=[assigned]), 3).error_code:
        raise SystemExit(f"SyncGroup of {group_id} was answered with error {code}")
    return HeartbeatRequest(**member)


def commit_request(group: str, topics: Assignment) -> OffsetCommitRequest:
    """A commit from outside any generation, as a tool or a plain consumer sends it."""
    return OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=COMMITTED,
                        committed_metadata="",
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in topics
        ],
    )


def fetch_request(groups: Iterable[tuple[str, Assignment | None]]) -> OffsetFetchRequest:
    """The offsets of many groups in one request (KIP-709); None asks for all topics."""
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=None
                if topics is None
                else [
                    OffsetFetchRequestTopics(name=name, partition_indexes=list(partitions))
                    for name, partitions in topics
                ],
            )
            for group, topics in groups
        ]
    )


def committed_of(answer: Any) -> list[int]:
    """Every offset of an OffsetFetch answer; any error in it raises."""
    offsets = []
    for group in answer.groups:
        if group.error_code:
            raise RuntimeError(f"group {group.group_id}: error {group.error_code}")
        for topic in group.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    raise RuntimeError(f"group {group.group_id}: error {partition.error_code}")
                offsets.append(partition.committed_offset)
    return offsets


class Member:
    """One KIP-848 member as the set-up drives it: what it was told last."""

    def __init__(self, group: str, topic: str) -> None:
        self.group, self.topic = group, topic
        self.id = str(uuid.uuid4())
        self.epoch = 0
        self.owned: Owned = {}
        self.acknowledge: Owned | None = None

    def request(self) -> ConsumerGroupHeartbeatRequest:
        """As the Java consumer: everything on joining, what it owns after a change, or nothing."""
        if self.epoch == 0:
            return heartbeat_request(self.group, self.id, 0, topics=[self.topic], owned={})
        return heartbeat_request(self.group, self.id, self.epoch, owned=self.acknowledge)

    def learn(self, answer: Any) -> bool:
        """Take in an answer; whether it changed anything."""
        if answer.error_code:
            raise RuntimeError(f"{self.group}: heartbeat refused with error {answer.error_code}")
        before = (self.epoch, self.owned)
        self.epoch, self.acknowledge = answer.member_epoch, None
        if answer.assignment is not None:
            given = {
                one.topic_id: sorted(one.partitions)
                for one in answer.assignment.topic_partitions
                if one.partitions
            }
            self.owned = self.acknowledge = given
        return before != (self.epoch, self.owned)


async def is_stable(link: Link, group: str, epochs: set[int]) -> bool:
    """Whether the coordinator calls the group Stable at the one epoch that its members have."""
    asked = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    (described,) = (await link.call(asked, 1)).groups
    return bool(
        described.group_state == "Stable"
        and epochs == {described.group_epoch} == {described.assignment_epoch}
    )


async def settle(link: Link, members: Sequence[Member]) -> None:
    """Heartbeat in turn until a whole round changes nothing and the group is Stable."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        changed = [member.learn(await link.call(member.request(), 1)) for member in members]
        epochs = {member.epoch for member in members}
        if not any(changed):
            if await is_stable(link, members[0].group, epochs):
                return
            await asyncio.sleep(0.2)  # the assignment interval may be pending
    raise RuntimeError(f"group {members[0].group} was not stable after 120 s")


async def join_groups(port: int, groups: Sequence[str], each: int, topic: str) -> list[Member]:
    """`each` members in every group, truly joined and Stable; they need not keep a connection."""
    links = [await Link.open(port) for _ in range(16)]
    left = list(groups)
    joined: list[Member] = []

    async def worker(link: Link) -> None:
        while left:
            group = left.pop()
            members = [Member(group, topic) for _ in range(each)]
            await settle(link, members)
            joined.extend(members)

    await asyncio.gather(*(worker(link) for link in links for _ in range(4)))
    for link in links:
        link.close()
    return joined
