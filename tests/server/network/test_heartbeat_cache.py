# SPDX-License-Identifier: Apache-2.0
"""Remembered heartbeats answer what the normal path would, and notice every change."""

import pytest
from tests.coordinator.classics import join_request, sync_request
from tests.server.desk import Desk
from tests.server.test_rules import GROUP, READ, Ruled
from tests.world import World

from kohort.errors import ApiError, ErrorCode
from kohort.server.network import heartbeat_cache
from kohort.server.network.heartbeat_cache import HeartbeatCache
from kohort.wire import codec
from kohort.wire.codegen.varints import uvarint
from kohort.wire.frames import RequestHeader, encode_request
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kohort.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

SESSION_MS = 45_000


class Group:
    """A world with one topic, and members that heartbeat over one connection."""

    def __init__(self):
        self.world = World({})
        self.client = self.world.connect()
        self.correlation = 0
        topic = CreatableTopic(
            name="t", num_partitions=4, replication_factor=1, assignments=[], configs=[]
        )
        self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 19, 5)

    def ask(self, request, key, version) -> bytes:
        self.correlation += 1
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self.correlation,
            client_id="c",
        )
        self.client.send(encode_request(header, codec.encode(request, version), flexible=True))
        assert int.from_bytes(self.client.answers[-1][:4], "big") == self.correlation
        return self.client.answers[-1]

    def beat(self, member, epoch, **fields) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=epoch, **fields
        )
        return codec.decode(ConsumerGroupHeartbeatResponse, 1, self.ask(request, 68, 1), 5)

    def join(self, member) -> int:
        answer = self.beat(
            member,
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        return answer.member_epoch


@pytest.fixture
def taken(monkeypatch):
    """How many heartbeats were answered from memory."""
    counted = []
    answer = HeartbeatCache.answer

    def counting(self, *arguments):
        found = answer(self, *arguments)
        counted.append(found)
        return found

    monkeypatch.setattr(HeartbeatCache, "answer", counting)
    return counted


def test_the_second_quiet_heartbeat_comes_from_memory_and_says_the_same(taken):
    group = Group()
    epoch = group.join("a")

    answers = [group.beat("a", epoch) for _ in range(3)]

    assert answers[0] == answers[1] == answers[2]
    assert answers[0].member_epoch == epoch
    assert taken[-3:] == [False, True, True]


def test_a_change_of_the_group_is_noticed():
    """A second member joins: the first is told to give up half of what it has."""
    group = Group()
    epoch = group.join("a")
    group.beat("a", epoch)
    group.beat("a", epoch)

    group.join("b")
    told = group.beat("a", epoch)

    assert told.assignment is not None
    assert len(told.assignment.topic_partitions[0].partitions) == 2


def test_a_change_of_the_topic_is_noticed():
    group = Group()
    epoch = group.join("a")
    group.beat("a", epoch)
    group.beat("a", epoch)

    topic = CreatePartitionsTopic(name="t", count=6, assignments=None)
    group.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=1000, validate_only=False), 37, 2)
    told = group.beat("a", epoch)

    assert told.member_epoch == epoch + 1
    assert len(told.assignment.topic_partitions[0].partitions) == 6


def test_a_fenced_member_is_fenced():
    group = Group()
    epoch = group.join("a")
    group.beat("a", epoch)
    group.beat("a", epoch)

    group.world.advance(SESSION_MS + 1)

    assert group.beat("a", epoch).error_code != 0


def test_a_remembered_heartbeat_keeps_the_session_alive(taken):
    group = Group()
    epoch = group.join("a")
    for _ in range(4):
        group.world.advance(SESSION_MS - 1000)
        assert group.beat("a", epoch).error_code == 0

    assert taken[-1]


def test_a_member_that_leaves_is_forgotten():
    group = Group()
    epoch = group.join("a")
    group.beat("a", epoch)
    group.beat("a", epoch)

    group.beat("a", -1)

    assert group.beat("a", epoch).error_code != 0


def test_there_is_an_end_of_what_is_remembered(monkeypatch, taken):
    """What differs in tags that nobody knows is another heartbeat each time."""
    limit = 3 * heartbeat_cache.ENTRY_BYTES
    monkeypatch.setattr(heartbeat_cache, "LIMIT_BYTES", limit)
    group = Group()
    epoch = group.join("a")
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=epoch)
    body = codec.encode(request, 1)
    assert body[-1] == 0, "there are no tags in it"
    header = RequestHeader(
        request_api_key=68, request_api_version=1, correlation_id=7, client_id="c"
    )

    def beat(number, size):
        tag = b"\x01\x63" + uvarint(size) + number.to_bytes(2) * (size // 2)
        group.client.send(encode_request(header, body[:-1] + tag, flexible=True))

    known = group.world.dispatchers[0]._heartbeat_cache._known
    for size, most in ((100, 2), (1000, 1), (5000, 0)):
        known.clear()
        for number in range(50):
            beat(number, size)
            assert known.bytes <= limit
        assert len(known) == most
        for _ in range(4):  # others have been used for the last time
            beat(50, size)
        assert taken[-1] == (size < 5000)


def test_members_that_are_gone_are_not_kept():
    """A heartbeat holds its member, which may have thousands of names, and its group."""
    group = Group()
    for number in range(100):
        member = f"member-{number}"
        epoch = group.join(member)
        assert group.beat(member, epoch).error_code == 0
        assert group.beat(member, epoch).error_code == 0
        group.beat(member, -1)
    known = group.world.dispatchers[0]._heartbeat_cache._known
    assert 0 < len(known) <= 5


def test_of_those_who_stay_all_are_remembered(taken):
    group = Group()
    names = [f"member-{number}" for number in range(50)]
    for _ in range(3):
        for name in names:
            group.join(name)
    epochs = {name: group.join(name) for name in names}
    for _ in range(4):  # what is revoked and assigned has come to rest then
        for name in names:
            epochs[name] = group.beat(name, epochs[name], topic_partitions=[]).member_epoch
    taken.clear()
    for _ in range(2):
        for name in names:
            group.beat(name, epochs[name])
    assert taken[-len(names) :] == [True] * len(names)


class Classic(Ruled):
    """The only member of a classic group that is Stable, and who it is."""

    def __init__(self):
        super().__init__(group_initial_rebalance_delay_ms="0")
        for name in ("alice", "bob"):
            self.allow(name, READ, GROUP, "g")
        joining = join_request()
        self.member = self.ask_as("alice", joining, 5).member_id
        joined = self.ask_as("alice", join_request(self.member), 5)
        assert self.ask_as("alice", sync_request(self.member, 1), 3).error_code == 0
        assert joined.generation_id == 1
        self.beat = HeartbeatRequest(group_id="g", member_id=self.member, generation_id=1)

    def code(self, name="alice", version=4):
        return self.ask_as(name, self.beat, version).error_code

    def bob_joins(self):
        member = self.ask_as("bob", join_request(), 5).member_id
        self.send(join_request(member), 5, node=self.of("bob"))
        self.settle()

    def leave(self):
        members = [MemberIdentity(member_id=self.member)]
        assert self.ask_as("alice", LeaveGroupRequest(group_id="g", members=members), 5)

    def lose_log(self):
        driver = self.cluster.drivers[self.cluster.placement.shard_of("g")]
        driver.lost(OSError("the disk is gone"))

    def read_again(self):
        driver = self.cluster.drivers[self.cluster.placement.shard_of("g")]
        driver.start_loading()

    def set_fault(self):
        class Gate:
            def take(self, _node, _connection, call, _go):
                call.token.answer(call.request.refused(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)))

        self.dispatchers[0].gate = Gate()


STALE = {
    "another member joins": (Classic.bob_joins, ErrorCode.REBALANCE_IN_PROGRESS),
    "the member leaves": (Classic.leave, ErrorCode.UNKNOWN_MEMBER_ID),
    "its session ends": (lambda desk: desk.wait(10_000), ErrorCode.UNKNOWN_MEMBER_ID),
    "it has no right any more": (
        lambda desk: desk.forbid("alice"),
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ),
    "the log is lost": (Classic.lose_log, ErrorCode.NOT_COORDINATOR),
    "the log is read again": (Classic.read_again, ErrorCode.NONE),
    "a test has set a fault": (Classic.set_fault, ErrorCode.UNKNOWN_SERVER_ERROR),
}


@pytest.mark.parametrize("change", STALE)
def test_a_classic_heartbeat_that_is_stale_takes_the_normal_path(change, taken):
    desk = Classic()
    assert [desk.code() for _ in range(3)] == [ErrorCode.NONE] * 3
    assert taken[-2:] == [True, True]
    act, code = STALE[change]
    act(desk)
    taken.clear()
    assert desk.code() == code
    assert not any(taken)


def test_the_same_bytes_of_another_principal_or_version_are_judged_anew(taken):
    desk = Classic()
    assert [desk.code() for _ in range(3)] == [ErrorCode.NONE] * 3
    taken.clear()
    assert desk.code("bob") == ErrorCode.NONE  # who may as well, and is known next time
    assert desk.code("carol") == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert desk.code("carol") == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert desk.code(version=3) == ErrorCode.NONE
    assert not any(taken)
    assert [desk.code(version=version) for version in (3, 3, 0, 0)] == [ErrorCode.NONE] * 4
    assert any(taken)


def test_another_coordinator_answers_that_the_group_is_elsewhere(taken):
    desk = Desk(nodes=2, group_initial_rebalance_delay_ms="0")
    node = next(
        number
        for number in range(2)
        if desk.ask(join_request(), 5, node=number).error_code != ErrorCode.NOT_COORDINATOR
    )
    member = desk.ask(join_request(), 5, node=node).member_id
    assert desk.ask(join_request(member), 5, node=node).error_code == 0
    assert desk.ask(sync_request(member, 1), 3, node=node).error_code == 0
    beat = HeartbeatRequest(group_id="g", member_id=member, generation_id=1)
    assert [desk.ask(beat, 4, node=node).error_code for _ in range(3)] == [0] * 3
    assert taken[-2:] == [True, True]
    topic = desk.cluster.catalog.by_name["__consumer_offsets"]
    index = desk.cluster.placement.shard_of("g")
    for number, code in ((1 - node, ErrorCode.NOT_COORDINATOR), (node, ErrorCode.NONE)):
        desk.rearrange(lambda place, to=number: place.move(topic, index, to))
        taken.clear()
        assert desk.ask(beat, 4, node=node).error_code == code
        assert not any(taken)
