"""Remembered heartbeats answer what the normal path would, and notice every change."""

import pytest
from tests.world import World

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
