# SPDX-License-Identifier: Apache-2.0
"""The groups of a broker under test."""

import asyncio
import threading
from itertools import count

import pytest
from tests.serve.talk import Talk
from tests.testing.members import beat, join

from kohort.client.admin.views import TopicPartition
from kohort.errors import ApiError, KohortError
from kohort.terms import GroupState
from kohort.testing import Because, Broker, WaitTimeoutError
from kohort.testing.groups import ASKED_FOR_MAX
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.sync_group import SyncGroupRequest


@pytest.fixture(scope="module", params=[False, True], ids=["thread", "process"])
def broker(request):
    with Broker(process=request.param) as broker:
        broker.create_topic("t", 2)
        broker.produce("t", "a", "b", partition=0)
        broker.produce("t", "c", partition=1)
        yield broker


@pytest.fixture
def client(broker):
    with Talk(broker.bootstrap) as client:
        yield client


@pytest.fixture
def group(broker, request):
    group = broker.groups[request.node.name]
    yield group
    group.delete()


def test_a_group_that_does_not_exist(broker, group):
    assert group.state is GroupState.DEAD
    assert (group.members, group.owners, group.committed(), group.lag()) == ((), {}, {}, {})
    assert (group.records(), group.history(), group.commits()) == ((), (), ())
    assert group.describe() is None
    assert group.wait("Dead") is None
    assert group.remove_members() == 0
    assert str(group) == f"group {group.id}: does not exist"
    assert repr(group) == f"<group {group.id}>"
    assert group.id not in broker.groups
    group.delete()


def test_a_group_with_a_member(broker, client, group):
    join(client, group.id)
    described = group.wait(state="Stable", members=1)
    assert (described.state, described.group_epoch) == ("Stable", 2)
    assert group.wait(GroupState.STABLE) == described
    assert group.is_now("stable", members=1)
    assert not group.is_now("Stable", members=2)
    assert group.is_now(where=lambda one: one.group_epoch == 2)
    assert group.owners == {TopicPartition("t", 0): "m", TopicPartition("t", 1): "m"}
    assert [one.client_id for one in group.members] == ["talk"]
    assert dict(group.history()[-1].owners) == {"m": {"t": (0, 1)}}
    assert group.id in broker.groups
    assert group.id in list(broker.groups)
    assert len(broker.groups) == len(list(broker.groups))


def test_what_is_committed(client, group):
    assert client.commit(group.id, "t", 1) == 0
    assert client.commit(group.id, "t", 1, index=1, metadata="here") == 0
    assert group.committed() == {TopicPartition("t", 0): 1, TopicPartition("t", 1): 1}
    assert group.lag() == {TopicPartition("t", 0): 1, TopicPartition("t", 1): 0}
    assert group.wait_committed("t", 1) == group.committed()
    assert group.wait_committed("t", partition=1) == group.committed()
    with pytest.raises(WaitTimeoutError, match=r"not within 0 s: committed t:0 at 2, t:1 at 1\n"):
        group.wait_committed("t", timeout=0)
    assert client.commit(group.id, "t", 2) == 0
    assert group.wait_committed("t")[TopicPartition("t", 0)] == 2
    assert [(one.place, one.offset, one.metadata) for one in group.commits()] == [
        (TopicPartition("t", 0), 1, ""),
        (TopicPartition("t", 1), 1, "here"),
        (TopicPartition("t", 0), 2, ""),
    ]


def test_a_group_is_put_at_an_offset(client, group):
    group.commit("t")
    group.commit("t", 1, partition=1)
    assert group.committed() == {TopicPartition("t", 0): 0, TopicPartition("t", 1): 1}
    with pytest.raises(ApiError):
        group.commit("no-such-topic")
    join(client, group.id)
    with pytest.raises(ApiError, match="UNKNOWN_MEMBER_ID"):
        group.commit("t")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"topic": "nope"}, "topic nope does not exist"),
        ({"topic": "t", "partition": 7}, "topic t has no partition 7, expected 0 to 1"),
        ({"topic": "t", "offset": -4}, "offset is -4, expected a whole number, 0 or more"),
        ({"topic": "t", "offset": "1"}, "offset is '1', expected a whole number, 0 or more"),
    ],
)
def test_an_offset_that_cannot_be_is_told(group, arguments, why):
    with pytest.raises(KohortError, match=why):
        group.commit(**arguments)


def test_a_mistake_in_a_question_is_told(broker, group):
    with pytest.raises(KohortError, match="where is 3, expected a function of a description"):
        group.wait(where=3)
    with pytest.raises(KohortError, match="a group's id is 3, expected a text"):
        broker.groups[3]


def test_what_did_not_come_is_told_with_what_is_there(client, group):
    join(client, group.id)
    assert client.commit(group.id, "t", 1) == 25, "only members commit while there are some"
    with pytest.raises(WaitTimeoutError) as raised:
        group.wait("Empty", 3, timeout=0.05)
    text = str(raised.value)
    assert text.startswith("not within 0.05 s: state='Empty', members=3\n")
    assert f"group {group.id}: consumer Stable, epoch 2, 1 member\n" in text
    assert "  m (talk) at epoch 2: t 0 1\n" in text
    assert "  epoch 2 (join: m): m: t 0 1\n" in text
    assert "new -> consumer Stable; member m joins" in text
    assert isinstance(raised.value, TimeoutError)
    with pytest.raises(WaitTimeoutError, match="not within 0 s: where=<function"):
        group.wait(where=lambda one: one.group_epoch == 99, timeout=0)


def test_it_waits_for_what_another_thread_does(broker, group):
    def other() -> None:
        with Talk(broker.bootstrap) as client:
            join(client, group.id)

    later = threading.Timer(0.05, other)
    later.start()
    assert group.wait("Stable", 1)
    later.join()


def test_a_target_that_is_not_reached_is_shown(client, group):
    epoch = join(client, group.id, "a")
    join(client, group.id, "b")
    assert beat(client, group.id, epoch, "a") == 0
    assert "should have t " in str(group)
    assert group.wait("Reconciling", 2)


def test_members_are_removed_and_do_not_know(client, group):
    epoch = join(client, group.id)
    assert group.remove_members("somebody else") == 0
    assert group.remove_members("talk") == 1
    assert group.state == "Empty"
    assert beat(client, group.id, epoch) == 25


def test_the_history_says_why_each_epoch_began(client, group):
    join(client, group.id)
    group.remove_members()
    began, ended = group.history()
    assert [one.cause for one in began.causes] == ["join"]
    assert (ended.epoch, dict(ended.owners)) == (3, {})
    assert ended.causes == (Because("leave", "m", None),)
    assert "  epoch 3 (leave: m): nobody" in str(group)
    assert {one.cause for record in group.records() for one in record.causes} == {"join", "leave"}


def test_members_of_a_classic_group_too(client, group):
    request = JoinGroupRequest(
        group_id=group.id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    request.member_id = client.ask(request, 5).member_id
    joined = client.ask(request, 5)
    sync = SyncGroupRequest(
        group_id=group.id, generation_id=joined.generation_id, member_id=joined.member_id
    )
    assert client.ask(sync, 3).error_code == 0
    group.wait("Stable", 1)
    assert [(one.epoch, dict(one.owners)) for one in group.history()] == [
        (1, {joined.member_id: {}})
    ]
    assert f"group {group.id}: classic Stable, 1 member" in str(group)
    assert group.remove_members() == 1
    group.wait("Empty")


def test_a_group_is_deleted_with_its_members(client, group):
    join(client, group.id)
    group.delete()
    assert group.state is GroupState.DEAD


@pytest.fixture
def before_delete(broker, monkeypatch):
    """Lets something happen to a group right before it is deleted, once for each that is given."""
    todo = []
    ask = broker.ask

    def asked(question, *arguments):
        if question == "delete_group" and todo:
            todo.pop()()
        return ask(question, *arguments)

    monkeypatch.setattr(broker, "ask", asked)
    return todo


def test_a_member_that_comes_back_while_its_group_is_deleted(client, group, before_delete):
    join(client, group.id)
    before_delete += [lambda: join(client, group.id)] * 3
    group.delete()
    assert group.state is GroupState.DEAD


def test_a_group_that_goes_while_it_is_deleted(broker, client, group, before_delete):
    assert client.commit(group.id, "t", 0) == 0
    before_delete.append(lambda: broker.ask("delete_group", group.id))
    group.delete()
    assert group.state is GroupState.DEAD


def test_members_that_come_back_for_ever(client, group, before_delete, monkeypatch):
    monkeypatch.setattr("kohort.testing.groups.DELETE_S", 0)
    before_delete += [lambda: join(client, group.id)] * 99
    with pytest.raises(ApiError, match="NON_EMPTY_GROUP"):
        group.delete()
    before_delete.clear()


def test_a_groups_coordinator_moves():
    with Broker(nodes=3) as broker, Talk(broker.bootstrap.split(",")[0]) as client:
        broker.create_topic("t")
        group = broker.groups["g"]
        before = group.coordinator()
        with Talk(broker.node(before).address) as one:
            epoch = join(one, "g")
            assert one.commit("other", "t", 0) in (0, 16)
            after = group.move()
            assert after != before
            assert group.coordinator() == after
            assert beat(one, "g", epoch) == 16  # NOT_COORDINATOR
        with Talk(broker.node(after).address) as two:
            assert beat(two, "g", epoch) == 0, "what the log says is known"
        assert group.move(before) == before
        with pytest.raises(KohortError, match="there is no node 9, expected 0 to 2"):
            group.move(9)
        assert client.metadata("t").topics[0].error_code == 0


def test_one_node_cannot_move_a_group(group):
    with pytest.raises(KohortError, match="has one node, expected two or more"):
        group.move()


def test_without_a_broker_nothing_is_told():
    broker = Broker()
    with pytest.raises(KohortError, match="does not run, start it first"):
        _ = broker.groups["g"].state
    with pytest.raises(KohortError, match="does not run, start it first"):
        broker.groups["g"].coordinator()
    assert str(broker.groups["g"]).startswith("group g: cannot be asked: ")


def test_an_error_of_the_broker_is_raised(client, group):
    assert client.commit(group.id, "t", 0) == 0
    broker_log = group.records()
    assert broker_log
    with pytest.raises(ApiError):
        group.wait_committed("no-such-topic")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"state": "Stabel"}, "no state of a group is called 'Stabel'; did you mean Stable?"),
        ({"state": "PREPARING_REBALANCE"}, "did you mean PreparingRebalance?"),
        ({"state": ["Stable"]}, "no state of a group"),
        ({"members": "2"}, "members is '2', expected a whole number"),
    ],
)
def test_what_no_group_can_be_is_not_waited_for(group, wanted, told):
    with pytest.raises(KohortError, match=told):
        group.wait(**wanted)
    with pytest.raises(KohortError, match=told):
        group.is_now(**wanted)


def test_a_partition_that_does_not_exist_is_not_waited_for(group):
    with pytest.raises(KohortError, match="partition is 7, expected 0 to 1"):
        group.wait_committed("t", 1, partition=7)


def test_a_wait_inside_an_event_loop_says_how_to_wait(group):
    async def wait():
        group.wait("Stable", timeout=0)

    with pytest.raises(WaitTimeoutError, match=r"asyncio\.to_thread"):
        asyncio.run(wait())


def test_lag_counts_what_was_never_committed(broker, client, group):
    """The tools of Kafka show a dash there: a test wants to know what is left to do."""
    assert group.lag() == {}
    join(client, group.id)
    assert group.lag() == {("t", 0): 2, ("t", 1): 1}
    assert "  t:0 committed nothing, end 2, lag 2" in str(group).splitlines()
    group.remove_members()
    group.commit("t", 1)
    assert group.lag() == {("t", 0): 1}, "nobody subscribes to the other one now"
    join(client, group.id)
    assert group.lag() == {("t", 0): 1, ("t", 1): 1}


def test_lag_counts_what_is_subscribed_to_and_not_assigned_yet(broker, client, group):
    """A second member waits until the first has given up what it is to have."""
    join(client, group.id, "first")
    group.wait("Stable", 1)
    join(client, group.id, "second")
    assert group.lag() == {("t", 0): 2, ("t", 1): 1}


def test_lag_begins_where_the_log_begins():
    with Broker(in_memory=True) as broker, Talk(broker.bootstrap) as client:
        broker.create_topic("t", configs={"retention.ms": 60_000})
        broker.produce("t", "a", "b")
        broker.clock.advance(301)
        broker.produce("t", "c")
        join(client, "g")
        assert broker.groups["g"].lag() == {("t", 0): 1}


def damage(data_dir, shard):
    """Flip a bit of the log of a shard."""
    (log,) = data_dir.rglob(f"{shard.topic}-{shard.partition}/*.log")
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_the_groups_of_other_shards_are_listed_though_one_is_damaged(process, tmp_path):
    settings = {"offsets.topic.num.partitions": 4}
    with Broker(settings, data_dir=tmp_path, process=process) as broker:
        broker.create_topic("t")
        shards = {}
        for name in map("g{}".format, range(12)):
            broker.groups[name].commit("t")
            shards[name] = broker.ask("shard_of", name)
        assert sorted(broker.groups) == sorted(shards)
        assert broker.groups.missing == {}
        gone = shards["g0"]
        broker.stop()
        damage(tmp_path, gone)
        broker.start()
        there = [name for name, shard in shards.items() if shard != gone]
        with pytest.warns(RuntimeWarning, match="groups are missing: ") as warned:
            assert sorted(broker.groups) == sorted(there)
        (line,) = {str(warning.message) for warning in warned}
        assert f"those of {gone} (COORDINATOR_NOT_AVAILABLE" in line
        assert "\n" not in line
        assert list(broker.groups.missing) == [gone]
        with pytest.warns(RuntimeWarning, match=f"groups are missing: those of {gone}"):
            assert len(broker.groups) == len(there)
        assert there[0] in broker.groups
        unknown = next(
            name for name in map("u{}".format, count()) if broker.ask("shard_of", name) != gone
        )
        assert unknown not in broker.groups, "its shard is there, and does not have it"
        with pytest.raises(ApiError, match="nobody coordinates partition"):
            _ = "g0" in broker.groups


def test_a_node_that_is_away_hides_no_groups_of_others():
    with Broker({"offsets.topic.num.partitions": 4}, nodes=2, in_memory=True) as broker:
        broker.create_topic("t", replication_factor=2)
        names = [f"g{index}" for index in range(8)]
        for name in names:
            broker.groups[name].commit("t")
        there = [name for name in names if broker.groups[name].coordinator() == 0]
        assert 0 < len(there) < len(names)
        broker.node(1).stop(takeover=False)
        with pytest.warns(RuntimeWarning, match="groups are missing: those of __consumer_offsets:"):
            assert list(broker.groups) == there


def test_the_ids_that_were_asked_for_are_bounded_where_no_plugin_forgets_them():
    broker = Broker()
    for number in range(2 * ASKED_FOR_MAX):
        assert broker.groups[f"g-{number}"].id == f"g-{number}"
    assert len(broker.groups.asked_for) == ASKED_FOR_MAX
