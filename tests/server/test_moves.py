# SPDX-License-Identifier: Apache-2.0
"""A group, or a transaction, in each of its states gets another coordinator: nothing is lost.

What a coordinator alone knows, as who waits and for how long yet, is lost as in Kafka: those who
wait are told to look elsewhere, and sessions begin anew.
"""

import pytest
from tests.coordinator.classics import commit_request, join_request, sync_request
from tests.coordinator.test_share_and_streams import WHOLE
from tests.server.apis.test_group_configs import SESSION, alter, changed, shown
from tests.server.desk import Desk
from tests.server.transactional import Producing, committed, seen

from kohort.errors import ApiError, ErrorCode
from kohort.server.partitions.partition import Partition
from kohort.sim.disk import SimulatedFiles
from kohort.wire import batch as batches
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.offset_commit import OffsetCommitRequest

ELSEWHERE = ErrorCode.NOT_COORDINATOR
SESSION_MS, REBALANCE_MS = 10_000, 60_000


class Town(Desk):
    """Three nodes, a topic of four partitions, and the group g, which `move` gives to another."""

    def __init__(self, way, **more):
        super().__init__(
            nodes=3,
            group_initial_rebalance_delay_ms="3000",
            group_consumer_session_timeout_ms=str(SESSION_MS),
            group_consumer_min_session_timeout_ms="1000",
            group_consumer_assignment_interval_ms="0",
            transaction_max_timeout_ms="900000",
            **more,
        )
        self.way = way
        self.topic_id = self.create(partitions=4)

    def home(self, key="g", kind=0):
        """The node that a client finds, or the code of the refusal."""
        asked = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        nodes = [one.id for one in self.cluster.placement.brokers]
        (one,) = self.ask(asked, 4, node=nodes[0]).coordinators
        return -one.error_code or one.node_id

    def move(self, key="g", kind=0, rest_ms=10 * REBALANCE_MS):
        """Another node takes over, in one of three ways; the former coordinator refuses. Time does
        not count for members while nobody leads.
        """
        former = self.home(key, kind)
        if self.way == "by hand":
            topic = "__transaction_state" if kind else "__consumer_offsets"
            index = self.cluster.placement.shard_of(key)
            if kind:
                index, _ = self.cluster.placement.transaction_coordinator_of(key)
            topic = self.cluster.catalog.by_name[topic]
            self.rearrange(lambda place: place.move(topic, index, (former + 1) % 3))
        elif self.way == "as its node stops":
            self.rearrange(lambda place: place.leave(former))
        else:
            self.rearrange(lambda place: place.leave(former, replaced=False))
            assert self.home(key, kind) == -ErrorCode.COORDINATOR_NOT_AVAILABLE
            self.wait(rest_ms)
            self.rearrange(lambda place: place.join(former))
            assert self.home(key, kind) == former
            return
        assert self.home(key, kind) not in (former, -1)
        if not kind:
            beat = HeartbeatRequest(group_id=key)
            assert self.ask(beat, 4, node=former).error_code == ELSEWHERE

    def all_back(self):
        """Every node serves."""
        for index in range(3):
            if not self.cluster.placement.serves(index):
                self.rearrange(lambda place, index=index: place.join(index))

    def to_group(self, request, version):
        """Ask the coordinator of the group."""
        return self.ask(request, version, node=self.home())

    def parked(self, request, version):
        """A request that is not answered yet."""
        self.clients.append(self.connect(self.home()))  # others would wait behind it
        asked = self.send(request, version, node=len(self.clients) - 1)
        self.settle()
        assert asked.answer is None
        return asked

    # --- classic members

    def newcomer(self, **fields):
        """A member's id, and its join, which waits."""
        member = ""
        if "group_instance_id" not in fields:
            member = self.to_group(join_request(**fields), 9).member_id
        return member, self.parked(join_request(member, **fields), 9)

    def first(self, **fields):
        """A member that has joined as the first one: id and generation."""
        _member, joined = self.newcomer(**fields)
        self.wait(3000)
        assert joined.answer.error_code == 0
        return joined.answer.member_id, joined.answer.generation_id

    def stable(self, **fields):
        member, generation = self.first(**fields)
        named = {key: value for key, value in fields.items() if key == "group_instance_id"}
        synced = self.to_group(sync_request(member, generation, {member: b"all"}, **named), 5)
        assert synced.error_code == 0
        return member, generation

    def beat(self, member, generation, **fields):
        request = HeartbeatRequest(
            group_id="g", member_id=member, generation_id=generation, **fields
        )
        return self.to_group(request, 4).error_code

    def classic(self):
        """State and members' assignments."""
        (group,) = self.to_group(DescribeGroupsRequest(groups=["g"]), 5).groups
        return group.group_state, [one.member_assignment for one in group.members]

    # --- members of the other protocol

    def consume(self, member, epoch, owned=None, **fields):
        """One heartbeat; error, epoch and partitions if they are told."""
        if epoch == 0:
            fields = {"subscribed_topic_names": ["orders"], **fields}
            fields["rebalance_timeout_ms"] = REBALANCE_MS
            owned = []
        parts = None
        if owned is not None:
            parts = [TopicPartitions(topic_id=self.topic_id, partitions=owned)] if owned else []
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=epoch, topic_partitions=parts, **fields
        )
        answer = self.to_group(request, 1)
        told = answer.assignment
        if told is not None:
            told = sorted(index for one in told.topic_partitions for index in one.partitions)
        return answer.error_code, answer.member_epoch, told

    def alone(self, **fields):
        """A member that has everything; its epoch."""
        code, epoch, owned = self.consume("m", 0, **fields)
        assert (code, owned) == (0, [0, 1, 2, 3])
        assert self.consume("m", epoch, owned=owned, **fields)[:2] == (0, epoch)
        return epoch

    def consumers(self):
        """State, and each member's partitions."""
        (group,) = self.to_group(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups
        return group.group_state, {
            one.member_id: sorted(
                index for part in one.assignment.topic_partitions for index in part.partitions
            )
            for one in group.members
        }


WAYS = ["by hand", "as its node stops", "as its node stops and nobody takes over until it is back"]


@pytest.fixture(params=WAYS)
def town(request):
    return Town(request.param)


def test_a_first_join_that_waits_is_made_again(town):
    """PreparingRebalance: the log knows that there is such a group."""
    member, joined = town.newcomer()
    town.move()
    assert joined.answer.error_code == ELSEWHERE
    assert town.classic() == ("Empty", [])
    again, _ = town.stable()
    assert again != member
    assert town.classic() == ("Stable", [b"all"])


def test_a_rebalance_that_waits_for_a_member_begins_again(town):
    """PreparingRebalance: the log knows the generation before, whose member goes on."""
    member, generation = town.stable()
    other, joined = town.newcomer()
    assert town.beat(member, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    town.move()
    assert joined.answer.error_code == ELSEWHERE
    assert town.classic() == ("Stable", [b"all"])
    assert town.beat(member, generation) == 0
    joined = town.send(join_request(other), 9, node=town.home())
    town.settle()
    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    other, joined = town.newcomer()
    mine = town.to_group(join_request(member), 9)
    assert (joined.answer.generation_id, mine.generation_id) == (generation + 1, generation + 1)


def test_a_rebalance_that_waits_for_its_leader_begins_again(town):
    """CompletingRebalance: the new generation is not in the log."""
    member, generation = town.stable()
    other, joined = town.newcomer()
    assert town.to_group(join_request(member), 9).error_code == 0
    synced = town.parked(sync_request(other, generation + 1), 5)
    assert joined.answer.generation_id == generation + 1
    town.move()
    assert synced.answer.error_code == ELSEWHERE
    assert town.beat(member, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert town.beat(other, generation + 1) == ErrorCode.UNKNOWN_MEMBER_ID
    other, joined = town.newcomer()
    mine = town.to_group(join_request(member), 9)
    assert mine.generation_id == joined.answer.generation_id == generation + 1
    assert mine.leader == member
    leading = sync_request(member, generation + 1, {member: b"1", other: b"2"})
    assert town.to_group(leading, 5).assignment == b"1"
    assert town.to_group(sync_request(other, generation + 1), 5).assignment == b"2"


def test_a_stable_classic_group_goes_on_and_its_sessions_begin_anew(town):
    member, generation = town.stable()
    places = {("orders", 1): 7}
    commit = commit_request(places, member_id=member, generation_id_or_member_epoch=generation)
    assert town.to_group(commit, 8).topics[0].partitions[0].error_code == 0
    town.wait(SESSION_MS - 1)
    town.move()
    town.wait(SESSION_MS - 1)
    assert town.classic() == ("Stable", [b"all"])
    assert town.beat(member, generation) == 0
    assert town.to_group(sync_request(member, generation), 5).assignment == b"all"
    town.wait(SESSION_MS)
    assert town.classic() == ("Empty", [])
    assert town.to_group(commit, 8).topics[0].partitions[0].error_code == (
        ErrorCode.UNKNOWN_MEMBER_ID
    )


def test_a_static_classic_member_is_known_by_its_instance(town):
    named = {"group_instance_id": "one"}
    member, generation = town.stable(**named)
    town.move()
    assert town.beat(member, generation, **named) == 0
    again = town.to_group(join_request("", **named), 9)
    assert (again.error_code, again.generation_id) == (0, generation)
    assert again.member_id != member
    assert town.beat(member, generation, **named) == ErrorCode.FENCED_INSTANCE_ID
    town.move()
    assert town.beat(member, generation, **named) == ErrorCode.FENCED_INSTANCE_ID
    assert town.beat(again.member_id, generation, **named) == 0
    synced = town.to_group(sync_request(again.member_id, generation, **named), 5)
    assert synced.assignment == b"all"


def test_a_consumer_group_in_the_middle_of_a_reconciliation_goes_on(town):
    """Who has to give up partitions is asked again, and who waits for them gets them."""
    first = town.alone()
    _, second, got = town.consume("n", 0)
    assert got == []
    code, epoch, kept = town.consume("m", first, owned=[0, 1, 2, 3])
    assert (code, epoch, len(kept)) == (0, first, 2)
    assert town.consumers()[0] == "Reconciling"
    town.move()
    assert town.consumers()[0] == "Reconciling"
    everything = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": ["orders"]}
    told = town.consume("m", first, owned=[0, 1, 2, 3], **everything)
    assert told == (0, first, kept), "clients say all of it to another coordinator"
    assert town.consume("n", second, owned=[])[2] in (None, [])
    assert town.consume("m", first, owned=kept)[:2] == (0, second)
    got = town.consume("n", second, owned=[])[2]
    assert sorted(got + kept) == [0, 1, 2, 3]
    town.consume("n", second, owned=got)
    assert town.consumers() == ("Stable", {"m": kept, "n": got})


def test_who_does_not_give_up_partitions_has_the_whole_time_again_and_then_is_out(town):
    first = town.alone()
    _, second, _ = town.consume("n", 0)
    town.consume("m", first, owned=[0, 1, 2, 3])

    def hang_on(ms):
        """Time passes in which m answers and keeps what it has."""
        codes = set()
        for _ in range(0, ms, 5000):
            town.wait(5000)
            codes.add(town.consume("m", first)[0])
            town.consume("n", second)
        return codes

    assert hang_on(REBALANCE_MS - 10_000) == {0}
    town.move()
    assert hang_on(REBALANCE_MS - 10_000) == {0}, "it was put off"
    assert ErrorCode.UNKNOWN_MEMBER_ID in hang_on(15_000)
    (_, owned), *_ = town.consumers()[1].items()
    assert owned == [0, 1, 2, 3], "n has all of them"


def test_a_stable_consumer_group_goes_on_and_its_sessions_begin_anew(town):
    epoch = town.alone()
    town.wait(SESSION_MS - 1)
    town.move()
    town.wait(SESSION_MS - 1)
    assert town.consumers() == ("Stable", {"m": [0, 1, 2, 3]})
    assert town.consume("m", epoch) == (0, epoch, None)
    assert town.consume("m", 9)[0] == ErrorCode.FENCED_MEMBER_EPOCH
    town.wait(SESSION_MS)
    assert town.consumers() == ("Empty", {})


def test_a_static_member_that_is_away_comes_back_to_what_it_had(town):
    fields = {"instance_id": "one"}
    epoch = town.alone(**fields)
    assert town.consume("m", -2, **fields)[:2] == (0, -2)
    town.move()
    assert town.consume("m2", 0, **fields) == (0, epoch, [0, 1, 2, 3])
    town.move()
    assert town.consume("m", epoch, **fields)[0] == ErrorCode.FENCED_INSTANCE_ID
    assert town.consume("m2", epoch, **fields)[0] == 0


def test_a_static_member_that_stays_away_is_out_after_a_session(town):
    fields = {"instance_id": "one"}
    town.consume("m", 0, **fields)
    assert town.consume("m", -2, **fields)[:2] == (0, -2)
    town.move()
    town.wait(SESSION_MS - 1)
    assert list(town.consumers()[1]) == ["m"]
    town.wait(1)
    assert town.consumers() == ("Empty", {})


@pytest.mark.parametrize("way", WAYS)
def test_a_classic_member_of_a_consumer_group_goes_on_and_its_session_begins_anew(way):
    town = Town(way, group_consumer_migration_policy="bidirectional")
    epoch = town.alone()
    member = town.to_group(join_request(), 9).member_id
    joined = town.to_group(join_request(member), 9)
    assert joined.error_code == 0
    synced = town.to_group(sync_request(member, joined.generation_id), 5)
    assert synced.error_code == 0
    town.move()
    town.wait(SESSION_MS - 1)
    assert set(town.consumers()[1]) == {"m", member}
    assert town.consume("m", epoch)[0] == 0
    assert town.beat(member, joined.generation_id) in (0, ErrorCode.REBALANCE_IN_PROGRESS)
    town.move()
    assert set(town.consumers()[1]) == {"m", member}
    town.wait(SESSION_MS - 1)
    town.consume("m", epoch)
    town.wait(1)
    assert set(town.consumers()[1]) == {"m"}


def test_a_pattern_is_resolved_where_the_group_is(town):
    fields = {"subscribed_topic_names": None, "subscribed_topic_regex": "ord.*"}
    assert town.consume("m", 0, **fields)[0] == 0
    _, epoch, owned = town.consume("m", 1)
    assert owned == [0, 1, 2, 3]
    town.consume("m", epoch, owned=owned)
    town.move()
    assert town.consumers() == ("Stable", {"m": owned})
    assert town.consume("m", epoch) == (0, epoch, None)
    town.create("ordinary", 1)
    town.wait(5000)
    for _ in range(3):
        _, epoch, _told = town.consume("m", epoch)
    (group,) = town.to_group(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups
    (member,) = group.members
    names = {one.topic_name for one in member.target_assignment.topic_partitions}
    assert names == {"orders", "ordinary"}


def test_a_pattern_that_is_being_resolved_is_resolved_by_who_takes_over(town):
    """What the former coordinator's thread brings later is not taken."""
    fields = {"subscribed_topic_names": None, "subscribed_topic_regex": "ord.*"}
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=REBALANCE_MS,
        topic_partitions=[],
        **fields,
    )
    asked = town.send(request, 1, node=town.home())
    town.cluster.turn(town.now)
    task_run = town.cluster.begin_task()
    assert task_run is not None
    while task_run.step():
        pass
    town.settle()
    town.take()
    assert asked.answer.error_code == 0
    town.move()
    town.cluster.end_task(task_run)
    town.settle()
    for _ in range(2):
        town.consume("m", 1)
    assert town.consumers()[1] == {"m": [0, 1, 2, 3]}


@pytest.mark.parametrize("way", WAYS)
def test_a_foreign_assignor_that_fails_while_its_group_moves_is_asked_again(way):
    """What it brings to the former coordinator harms nobody; the new one has a target of its own.
    Another group of the shard is served meanwhile.
    """
    asked = []

    def theirs(members, partitions):
        asked.append(list(members))
        if len(asked) == 1:
            raise ZeroDivisionError("a bug of theirs")
        (topic,) = partitions
        return {member: {topic: tuple(range(partitions[topic]))} for member in members}

    town = Town(way, assignors={"theirs": theirs}, group_consumer_assignors="uniform,range,theirs")
    commit = commit_request({("orders", 0): 7}, group_id="g")
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=REBALANCE_MS,
        server_assignor="theirs",
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    assert town.to_group(commit, 8).topics[0].partitions[0].error_code == 0
    joined = town.send(request, 1, node=town.home())
    town.cluster.turn(town.now)
    task_run = town.cluster.begin_task()
    assert task_run is not None
    town.move()
    while task_run.step():
        pass
    town.cluster.end_task(task_run)
    town.settle()
    assert "a bug of theirs" in town.told.errors[-1]
    assert joined.answer.error_code == 0
    epoch = joined.answer.member_epoch
    for _ in range(3):
        code, epoch, _ = town.consume("m", epoch)
        assert code == 0
    assert town.consumers()[1] == {"m": [0, 1, 2, 3]}
    assert committed(town, node=town.home()) == 7


def test_groups_of_other_kinds_move_and_are_known(town):
    shard = town.cluster.placement.shard_of("g")
    driver = town.cluster.drivers[shard]
    entries = [(one.key, one.value) for one in WHOLE]
    driver.log.append(batches.build(entries, town.now), len(entries))
    town.rearrange(lambda place: place.leave(town.home()))
    town.all_back()

    def shown():
        groups = town.to_group(ListGroupsRequest(), 5).groups
        return [(one.group_id, one.group_state, one.group_type) for one in groups]

    assert shown() == [("g", "Stable", "streams")]
    town.move()
    assert shown() == [("g", "Stable", "streams")]
    refused = town.to_group(join_request(), 9).error_code
    assert refused == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_settings_of_a_group_are_with_its_new_coordinator(town):
    assert alter(town, changed("g", (SESSION, "50000")), node=1) == [0]
    town.consume("m", 0)
    town.move()
    nodes = [one.id for one in town.cluster.placement.brokers]
    for node in nodes:
        assert shown(town, "g", node)[SESSION] == ("50000", 8)
    town.wait(49_999)
    assert list(town.consumers()[1]) == ["m"]
    town.wait(1)
    assert town.consumers() == ("Empty", {})
    assert alter(town, changed("g", (SESSION, None)), node=nodes[-1]) == [0]
    town.consume("m", 0)
    town.wait(SESSION_MS)
    assert town.consumers() == ("Empty", {})


def test_settings_of_the_broker_count_for_those_who_take_over(town):
    name = "group.consumer.assignment.interval.ms"
    epoch = town.alone()
    assert alter(town, changed("", (name, "9000"), kind=4), node=town.home()) == [0]
    town.move()
    town.wait(9000)
    assert town.consume("n", 0)[1] > epoch
    at = town.consume("o", 0)[1]
    assert town.consumers()[0] == "Assigning"
    town.wait(5000)
    town.consume("o", at)
    assert town.consumers()[0] == "Assigning"
    town.wait(4000)
    town.consume("o", at)
    assert town.consumers()[0] != "Assigning"


# --- transactions


@pytest.fixture
def one(town):
    topic = town.cluster.catalog.by_name["orders"]
    town.rearrange(lambda place: [place.move(topic, index, 0) for index in range(4)])
    return Producing(town)


def moved(town, one):
    """The transactions of the producer get another coordinator, which it finds."""
    town.move("t", 1, rest_ms=5000)
    if town.way == "by hand":
        assert one.end() == ELSEWHERE
    town.all_back()
    one.node = town.home("t", 1)


def test_a_producer_without_a_transaction_goes_on(town, one):
    """Empty, and CompleteCommit."""
    moved(town, one)
    assert one.state() == "Empty"
    one.write(b"a")
    assert one.end() == 0
    moved(town, one)
    assert one.state() == "CompleteCommit"
    one.write(b"b")
    assert one.end(commit=False) == 0
    moved(town, one)
    assert one.state() == "CompleteAbort"
    one.write(b"c")
    assert one.end() == 0
    assert seen(town) == [b"a", b"c"]


@pytest.mark.parametrize("commit", [True, False])
def test_an_open_transaction_goes_on_and_ends(town, one, commit):
    one.write(b"a")
    one.write(b"b", partition=1)
    assert one.commit_offsets(5, node=town.home()) == 0
    moved(town, one)
    assert one.state() == "Ongoing"
    one.write(b"c", partition=2)
    town.move(rest_ms=5000)
    assert committed(town, node=town.home()) == -ErrorCode.UNSTABLE_OFFSET_COMMIT
    town.all_back()
    assert one.end(commit=commit) == 0
    town.wait(1000)
    assert [seen(town, partition=index) for index in range(3)] == (
        [[b"a"], [b"b"], [b"c"]] if commit else [[], [], []]
    )
    assert committed(town, node=town.home()) == (5 if commit else -1)


def test_an_open_transaction_is_given_up_in_time_by_who_takes_over(town, one):
    one.write(b"a")
    moved(town, one)
    town.wait(60_000)
    town.wait(20_000)
    assert one.state() in ("CompleteAbort", "Empty")
    assert seen(town) == []
    assert one.send(b"b").error_code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_that_is_decided_is_carried_out_by_who_takes_over(town, one, commit, monkeypatch):
    one.write(b"a")
    one.write(b"b", partition=1)
    faulty = town.cluster.partition("orders", 1)
    write = Partition.end_transaction

    def end(self, *place, **more):
        if self is faulty:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
        write(self, *place, **more)

    monkeypatch.setattr(Partition, "end_transaction", end)
    assert one.end(commit=commit) == 0
    assert one.state() == ("PrepareCommit" if commit else "PrepareAbort")
    moved(town, one)
    assert one.state() == ("PrepareCommit" if commit else "PrepareAbort")
    assert one.add(("orders", 3)) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    monkeypatch.undo()
    town.wait(2000)
    assert one.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert seen(town, partition=1) == ([b"b"] if commit else [])
    one.write(b"c")
    assert one.end() == 0
    assert seen(town)[-1] == b"c"


# --- partitions


def leaders(town, topic="orders", node=None):
    """Leader and leader epoch of each partition, as a node tells them; all tell the same."""
    nodes = [one.id for one in town.cluster.placement.brokers] if node is None else [node]
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    told = []
    for index in nodes:
        (answer,) = town.ask(asked, 12, node=index).topics
        told.append(
            {one.partition_index: (one.leader_id, one.leader_epoch) for one in answer.partitions}
        )
    assert all(one == told[0] for one in told)
    return told[0]


def fetched(town, node, epoch, version=16):
    """One fetch of partition 0 by a client that knows this leader epoch."""
    part = FetchPartition(
        partition=0, fetch_offset=0, current_leader_epoch=epoch, partition_max_bytes=1 << 20
    )
    topic = FetchTopic(topic_id=town.topic_id, partitions=[part])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic])
    ((one,),) = (one.partitions for one in town.ask(request, version, node=node).responses)
    return one


def leader_moves(town):
    """Partition 0 gets another leader, in one of three ways; the former one."""
    former, _ = leaders(town)[0]
    topic = town.cluster.catalog.by_name["orders"]
    if town.way == "by hand":
        town.rearrange(lambda place: place.move(topic, 0, (former + 1) % 3))
    elif town.way == "as its node stops":
        town.rearrange(lambda place: place.leave(former))
    else:
        town.rearrange(lambda place: place.leave(former, replaced=False))
        assert leaders(town)[0][0] == -1
        town.rearrange(lambda place: place.join(former))
    return former


def test_the_leader_epoch_grows_whenever_another_node_leads(town):
    """A client keeps what it knows unless it is told of a newer epoch (KIP-320, KIP-951)."""
    before = leaders(town)
    assert before[0][1] == 0
    town.produce(partition=0, node=before[0][0])
    for number in range(1, 4):
        former = leader_moves(town)
        leader, epoch = leaders(town)[0]
        assert epoch == (2 * number if leader == former else number)
        if town.way == "by hand":
            assert [leaders(town)[index] for index in (1, 2, 3)] == [
                before[1],
                before[2],
                before[3],
            ]
        if leader != former and town.cluster.placement.serves(former):
            old = fetched(town, former, epoch - 1)
            assert old.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert (old.current_leader.leader_id, old.current_leader.leader_epoch) == (
                leader,
                epoch,
            )
        assert fetched(town, leader, epoch - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert town.produce(partition=0, node=leader).error_code == 0
        read = fetched(town, leader, epoch)
        assert read.error_code == 0
        headers = [header for _, header in batches.walk(read.records)]
        assert headers[-1].partition_leader_epoch == epoch
        if town.way == "as its node stops":
            town.rearrange(lambda place, former=former: place.join(former))
            assert leaders(town)[0] == (former, epoch + 1)
            break


def test_a_leader_epoch_does_not_go_back_when_the_broker_starts_again():
    """A client that was there all the time would take nothing older."""
    files = SimulatedFiles()
    town = Town("by hand", files=files)
    for _ in range(3):
        leader_moves(town)
    epoch = leaders(town)[0][1]
    assert epoch == 3
    town.cluster.close()
    again = Desk(nodes=3, files=files)
    assert leaders(again)[0][1] >= epoch


def test_a_topic_that_is_made_while_a_node_is_away_is_known_to_it_when_it_is_back(town):
    town.rearrange(lambda place: place.leave(1, replaced=town.way != WAYS[2]))
    (made,) = town.ask(
        CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name="late",
                    num_partitions=6,
                    replication_factor=1,
                    assignments=[],
                    configs=[],
                )
            ]
        ),
        7,
    ).topics
    assert made.error_code == 0
    while_away = leaders(town, "late")
    assert 1 not in {leader for leader, _ in while_away.values()}
    town.rearrange(lambda place: place.join(1))
    back = leaders(town, "late")
    assert back == leaders(town, "late", node=1)
    assert 1 in {leader for leader, _ in back.values()}
    for index, (leader, epoch) in back.items():
        grown = leader != while_away[index][0]
        assert epoch == while_away[index][1] + grown
        assert town.produce("late", index, node=leader).error_code == 0


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_in_partitions_that_other_nodes_lead(commit):
    town = Town("by hand")
    topic = town.cluster.catalog.by_name["orders"]
    town.rearrange(lambda place: [place.move(topic, index, 0) for index in range(4)])
    one = Producing(town)
    one.write(b"a")
    one.write(b"b", partition=1)
    other = min({0, 1, 2} - {one.node})
    town.rearrange(lambda place: [place.move(topic, index, other) for index in range(2)])
    assert one.end(commit=commit) == 0
    town.wait(1000)
    assert one.state() == ("CompleteCommit" if commit else "CompleteAbort")
    town.rearrange(lambda place: [place.move(topic, index, 0) for index in range(2)])
    assert seen(town) == ([b"a"] if commit else [])
    assert seen(town, partition=1) == ([b"b"] if commit else [])


@pytest.mark.parametrize("commit", [True, False])
def test_no_marker_is_written_to_a_partition_that_nobody_leads(commit):
    """The transaction ends once somebody leads it again; until then its producer waits."""
    town = Town("by hand")
    topic = town.cluster.catalog.by_name["orders"]
    town.rearrange(lambda place: [place.move(topic, index, 0) for index in range(4)])
    one = Producing(town)
    away = next(node for node in (1, 2) if node != one.node)
    index = next(one for one in range(4) if topic.leader(one, (0, 1, 2)) == away)
    served = (index + 1) % 4
    one.write(b"a", partition=served)
    one.write(b"c", partition=index)
    town.rearrange(lambda place: place.move(topic, index, away))
    town.rearrange(lambda place: place.leave(away, replaced=False))
    assert leaders(town)[index][0] == -1
    end = town.cluster.partition("orders", index).log.end
    assert one.end(commit=commit) == 0
    town.wait(5000)
    assert one.state() == ("PrepareCommit" if commit else "PrepareAbort")
    assert town.cluster.partition("orders", index).log.end == end
    assert seen(town, partition=served) == ([b"a"] if commit else [])
    assert one.add(("orders", served)) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    town.rearrange(lambda place: place.join(away))
    town.wait(5000)
    assert one.state() == ("CompleteCommit" if commit else "CompleteAbort")
    town.rearrange(lambda place: place.move(topic, index, 0))
    assert seen(town, partition=index)[-1:] == ([b"c"] if commit else [])


def test_many_groups_move_at_once_and_no_offset_is_lost():
    desk = Desk(nodes=3, offsets_topic_num_partitions="8")
    desk.create()
    groups = [f"g{number}" for number in range(40)]

    def home(group):
        return desk.cluster.placement.coordinator_of(group)

    for number, group in enumerate(groups):
        request: OffsetCommitRequest = commit_request({("orders", 0): number}, group_id=group)
        answer = desk.ask(request, 8, node=home(group))
        assert answer.topics[0].partitions[0].error_code == 0
    for node in (1, 2):
        desk.rearrange(lambda place, node=node: place.leave(node))
        assert {home(group) for group in groups} <= {0, 1, 2} - {node}
        offsets = [committed(desk, group, node=home(group)) for group in groups]
        assert offsets == list(range(40))
        desk.rearrange(lambda place, node=node: place.join(node))
