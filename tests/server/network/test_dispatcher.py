# SPDX-License-Identifier: Apache-2.0
"""What a request must be before anybody looks at what it asks for; and that others are served."""

import pytest
from tests.server.desk import Desk
from tests.world import World

from kohort.errors import ErrorCode
from kohort.server.network.request_buffer import LONGEST_PLAIN_REQUEST
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.codegen.varints import uvarint
from kohort.wire.frames import RequestHeader, encode_request
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.list_groups import ListGroupsRequest
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
from kohort.wire.messages.sync_group import SyncGroupRequest

MARK = "#" * 40  # where a test puts its bytes
COMMITTED = OffsetCommitRequestTopic(
    name="orders",
    partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
)


def join(group_id="g", name="range", member_id=""):
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=name, metadata=b"")],
    )


def code_of(answer):
    """The first error of an answer, wherever it has its place."""
    for field in ("topics", "groups", "partitions", "results", "members"):
        inside = getattr(answer, field, None)
        if inside:
            return code_of(inside[0])
    return answer.error_code


def frame(request, version, mark=b"", client_id="desk"):
    """The request with other bytes in the place of its mark: as many of them."""
    api = APIS[request.api_key]
    header = RequestHeader(
        request_api_key=api.key, request_api_version=version, correlation_id=1, client_id=client_id
    )
    data = encode_request(header, codec.encode(request, version), flexible=api.flexible(version))
    return data.replace(MARK.encode(), mark) if mark else data


def ask(desk, data, request, version):
    client = desk.clients[0]
    client.put(data)
    World.settle(desk)
    assert client.answers, "the connection has ended"
    api = APIS[request.api_key]
    start = 5 if api.flexible(version) else 4
    return codec.decode(api.response, version, client.answers.pop(), start)


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (join(MARK), 3),
        (join(name=MARK), 7),
        (join(member_id=MARK), 9),
        (ConsumerGroupHeartbeatRequest(group_id=MARK, member_id="m", member_epoch=0), 1),
        (ConsumerGroupHeartbeatRequest(group_id="g", member_id=MARK, member_epoch=0), 1),
        (SyncGroupRequest(group_id="g", generation_id=1, member_id="m", protocol_type=MARK), 5),
        (HeartbeatRequest(group_id=MARK, generation_id=1, member_id="m"), 4),
        (OffsetCommitRequest(group_id=MARK, topics=[COMMITTED]), 8),
        (OffsetCommitRequest(group_id="g", member_id=MARK, topics=[COMMITTED]), 2),
        (OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=MARK, topics=None)]), 8),
        (DeleteGroupsRequest(groups_names=[MARK]), 2),
        (DescribeGroupsRequest(groups=[MARK]), 6),
        (InitProducerIdRequest(transactional_id=MARK, transaction_timeout_ms=1000), 4),
    ],
)
@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80"], ids=bytes.hex)
def test_text_that_is_not_utf8_is_refused_for_that_call_alone(request_, version, bad):
    """Read leniently, each bad byte becomes three, which no record has room for."""
    desk = Desk()
    desk.create()
    mark = (bad * len(MARK))[: len(MARK) // len(bad) * len(bad)].ljust(len(MARK), b"x")
    answer = ask(desk, frame(request_, version, mark), request_, version)

    assert code_of(answer) == ErrorCode.INVALID_REQUEST
    assert desk.told.errors == []
    assert desk.ask(ListGroupsRequest(), 5).groups == []
    assert desk.ask(join(), 4).error_code == ErrorCode.MEMBER_ID_REQUIRED


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (join("x" * 32_768), 6),
        (join(name="y" * 40_000), 7),
        (ConsumerGroupHeartbeatRequest(group_id="z" * 50_000, member_id="m", member_epoch=0), 1),
        (OffsetCommitRequest(group_id="g" * 40_000, topics=[COMMITTED]), 8),
        (DeleteGroupsRequest(groups_names=["ok", "g" * 40_000]), 2),
        (InitProducerIdRequest(transactional_id="t" * 32_768, transaction_timeout_ms=1000), 4),
    ],
)
def test_text_that_is_too_long_is_refused_for_that_call_alone(request_, version):
    desk = Desk()
    desk.create()
    assert code_of(desk.ask(request_, version)) == ErrorCode.INVALID_REQUEST
    assert desk.told.errors == []
    assert desk.ask(join(), 4).error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_client_id_that_no_record_has_room_for_is_refused_with_its_calls():
    desk = Desk()
    bad = frame(join(), 3, b"\xff" * 20_000, client_id=MARK)
    size = len(bad) - 4
    bad = size.to_bytes(4) + bad[4:12] + (20_000).to_bytes(2) + bad[14:]
    assert ask(desk, bad, join(), 3).error_code == ErrorCode.INVALID_REQUEST
    assert ask(desk, frame(join(), 4), join(), 4).error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_sixteen_bad_frames_among_many_good_ones():
    """The shards of others go on: nobody but the sender is told anything."""
    desk = Desk()
    desk.create()
    desk.another()
    bad = frame(OffsetCommitRequest(group_id=MARK, topics=[COMMITTED]), 8, b"\xff" * len(MARK))
    good = [
        desk.send(OffsetCommitRequest(group_id=f"g{at}", topics=[COMMITTED]), 8, node=1)
        for at in range(30)
    ]
    for _ in range(16):
        desk.clients[0].put(bad)
    World.settle(desk)
    desk.clients[0].answers.clear()
    desk.settle()
    assert [code_of(one.answer) for one in good] == [0] * 30
    assert all(driver.active for driver in desk.cluster.drivers.values())


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (FindCoordinatorRequest(key_type=0, coordinator_keys=[""] * 201), 4),
        (DescribeGroupsRequest(groups=["g"] * 201), 6),
        (MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 201), 12),
        (
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(
                        group_id="g",
                        topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[1])] * 25,
                    )
                ]
            ),
            8,
        ),
    ],
)
def test_a_request_that_names_too_much_is_refused(request_, version):
    desk = Desk(request_max_elements="200")
    answer = desk.ask(request_, version)
    codes = getattr(answer, "coordinators", None)
    assert (codes[0].error_code if codes else code_of(answer)) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "topics",
    [
        [OffsetFetchRequestTopics(name="t")] * 401,
        [OffsetFetchRequestTopics(name="t", partition_indexes=[0] * 401)],
        [OffsetFetchRequestTopics(name="t", partition_indexes=[0] * 50)] * 8,
    ],
)
def test_where_a_refusal_would_be_too_large_the_connection_ends(topics):
    desk = Desk(request_max_elements="200")
    desk.another()
    groups = [OffsetFetchRequestGroup(group_id="g", topics=topics)]
    desk.send(OffsetFetchRequest(groups=groups), 8)
    desk.settle()
    assert desk.connections[0].finished
    assert " elements, expected at most " in str(desk.connections[0].error)
    assert desk.ask(ListGroupsRequest(), 5, node=1).error_code == 0


@pytest.mark.parametrize(
    ("request_", "most"),
    [
        (
            DescribeLogDirsRequest(
                topics=[DescribableLogDirTopic(topic=MARK, partitions=[0] * 400)]
            ),
            400,
        ),
        (
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(
                        group_id=MARK, topics=[OffsetFetchRequestTopics(name="t")] * 80
                    )
                ]
            ),
            80,
        ),
    ],
)
def test_text_that_is_not_utf8_lets_no_more_elements_in(request_, most):
    """Such a request was read a second time, without a bound."""
    desk = Desk(request_max_elements="200")
    desk.another()
    version = APIS[request_.api_key].versions.last
    desk.clients[0].put(frame(request_, version, b"\xff" * len(MARK)))
    assert f"{most + 1} elements, expected at most {most}" in str(desk.connections[0].error)
    assert desk.ask(ListGroupsRequest(), 5, node=1).error_code == 0


@pytest.mark.parametrize("where", ["request", "header"])
def test_tags_that_nobody_knows_are_counted(where):
    """A tag takes two bytes, and as long as an element: there were millions in a large frame."""
    desk = Desk(request_max_elements="200")
    desk.another()
    tags = uvarint(1001) + b"\x09\x00" * 1001
    whole = frame(ListGroupsRequest(), 5)
    head = 4 + 8 + 2 + len("desk")
    assert whole[head] == whole[-1] == 0, "there are no tags in it"
    whole = whole[:-1] + tags if where == "request" else whole[:head] + tags + whole[head + 1 :]
    desk.clients[0].put((len(whole) - 4).to_bytes(4) + whole[4:])
    limit = 2 * 200 // 5 if where == "request" else 1000
    assert f"with tags it has 1001 elements, expected at most {limit}" in str(
        desk.connections[0].error
    )
    assert desk.ask(ListGroupsRequest(), 5, node=1).error_code == 0


def test_a_large_request_without_records_ends_its_connection():
    desk = Desk(socket_request_max_bytes=str(LONGEST_PLAIN_REQUEST * 3))
    desk.another()
    desk.send(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name="range", metadata=bytes(LONGEST_PLAIN_REQUEST))
            ],
        ),
        4,
    )
    desk.settle()
    assert desk.connections[0].finished
    assert "expected at most 8388608" in str(desk.connections[0].error)
    assert desk.ask(ListGroupsRequest(), 5, node=1).error_code == 0


def test_a_gate_is_asked_about_each_request_and_may_keep_it():
    """Also about those that would be answered from memory."""
    desk = Desk()
    desk.create("orders")
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=desk.ask(beat, 1).member_epoch
    )
    for _ in range(3):
        assert desk.ask(beat, 1).error_code == 0
    asked = []

    class Gate:
        def take(self, node, connection, call, go):
            asked.append((node.id, call.version, call.client.id))
            if len(asked) < 3:
                go(call, desk.now)

    desk.dispatchers[0].gate = Gate()
    assert [desk.ask(beat, 1).error_code for _ in range(2)] == [0, 0]
    kept = desk.send(beat, 1)
    desk.settle()
    assert kept.answer is None
    assert asked == [(desk.config.node_id, 1, "desk")] * 3


@pytest.mark.parametrize("client_id", [None, "", "é", "app"])
def test_a_connection_keeps_its_client_whatever_its_headers_are(client_id):
    """A shard that is behind tells clients apart by the object: its calls would overtake each
    other.
    """
    desk = Desk()
    connection = desk.clients[0].connection
    seen = set()
    for number, version in enumerate((3, 4, 3, 3)):  # with and without tags in the header
        header = RequestHeader(
            request_api_key=12,
            request_api_version=version,
            correlation_id=number,
            client_id=client_id,
        )
        body = codec.encode(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), version)
        connection.receive(encode_request(header, body, flexible=version == 4))
        connection.go_on(desk.now)
        seen.add(id(connection.client))
    assert len(seen) == 1
    assert connection.client.id == (client_id or "")
