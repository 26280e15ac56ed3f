"""Committed offsets: who may commit, what is kept and for how long, and how they are read and
deleted.
"""

import pytest
from tests.coordinator.classics import (
    QUICK,
    commit,
    commit_request,
    join,
    leave,
    newcomer,
    stable,
    sync,
)
from tests.coordinator.consumers import beat, given
from tests.coordinator.desk import Desk, topic_id, topics

from kohort.coordinator.effects import Producer
from kohort.coordinator.group import OtherGroup
from kohort.coordinator.offsets.cleanup import of_deleted_topics
from kohort.coordinator.offsets.delete import of_group_deleted
from kohort.coordinator.offsets.table import TopicOffsets
from kohort.coordinator.topics import Topic, Topics
from kohort.errors import Broken, ErrorCode
from kohort.records.codec import Record
from kohort.records.schemas import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kohort.terms import NO_TOPIC_ID, GroupId, GroupState, GroupType, TopicId
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

G = GroupId("g")
FIRST = ("orders", 0)


def fetched(desk: Desk, group_id: str = "g", wanted=None, *, stable_only: bool = False, **fields):
    """(offset, leader epoch, metadata, error) by partition."""
    names = None
    if wanted is not None:
        names = [
            OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
            for topic, partition in wanted
        ]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=names, **fields)],
        require_stable=stable_only,
    )
    (group,) = desk.told(request, 10).groups
    assert group.group_id == group_id
    if group.error_code:
        assert group.topics == []
        return group.error_code
    return {
        (topic.name, one.partition_index): (
            one.committed_offset,
            one.committed_leader_epoch,
            one.metadata,
            one.error_code,
        )
        for topic in group.topics
        for one in topic.partitions
    }


NOTHING = (-1, -1, "", 0)


# -- commit: who may


@pytest.mark.parametrize(
    ("fields", "version", "code"),
    [
        ({}, 9, ErrorCode.NONE),
        ({"member_id": "tool"}, 9, ErrorCode.NONE),
        ({"group_instance_id": "i"}, 9, ErrorCode.NONE),
        ({"generation_id_or_member_epoch": -2}, 9, ErrorCode.NONE),
        ({"generation_id_or_member_epoch": 0}, 9, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"generation_id_or_member_epoch": 5}, 10, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"generation_id_or_member_epoch": 5}, 8, ErrorCode.ILLEGAL_GENERATION),
        ({"group_id": ""}, 9, ErrorCode.NONE),
    ],
)
def test_a_group_that_is_not_there(fields, version, code):
    desk = Desk()
    assert commit(desk, {FIRST: 5}, version, **fields) == {FIRST: code}
    assert len(desk.log) == len(desk.shard.groups) == (code == ErrorCode.NONE)


@pytest.mark.parametrize(
    ("member_id", "generation", "code"),
    [
        ("leader", 1, ErrorCode.NONE),
        ("leader", 0, ErrorCode.ILLEGAL_GENERATION),
        ("leader", -1, ErrorCode.ILLEGAL_GENERATION),
        ("who", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_stable_group(member_id, generation, code):
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    fields = {
        "member_id": leader if member_id == "leader" else member_id,
        "generation_id_or_member_epoch": generation,
    }
    assert commit(desk, {FIRST: 5}, **fields) == {FIRST: code}


def test_members_may_commit_before_the_next_generation_but_not_while_it_begins():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    newcomer(desk)
    as_leader = {"member_id": leader, "generation_id_or_member_epoch": 1}
    assert commit(desk, {FIRST: 5}, **as_leader) == {FIRST: 0}
    join(desk, leader)
    as_leader["generation_id_or_member_epoch"] = 2
    assert commit(desk, {FIRST: 6}, **as_leader) == {FIRST: ErrorCode.REBALANCE_IN_PROGRESS}
    sync(desk, leader, 2)
    assert commit(desk, {FIRST: 6}, **as_leader) == {FIRST: 0}


def test_an_empty_group_takes_offsets_from_tools_only():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    leave(desk, leader)
    assert commit(desk, {FIRST: 5}) == {FIRST: 0}
    codes = commit(desk, {FIRST: 5}, member_id=leader, generation_id_or_member_epoch=1)
    assert codes == {FIRST: ErrorCode.UNKNOWN_MEMBER_ID}


def test_a_commit_keeps_a_session():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    for number in range(3):
        desk.wait(9_999)
        codes = commit(desk, {FIRST: number}, member_id=leader, generation_id_or_member_epoch=1)
        assert codes == {FIRST: 0}


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "code"),
    [
        ("m", 2, 9, ErrorCode.NONE),
        ("m", 2, 8, ErrorCode.UNSUPPORTED_VERSION),
        ("m", 3, 9, ErrorCode.STALE_MEMBER_EPOCH),
        ("m", 1, 9, ErrorCode.STALE_MEMBER_EPOCH),
        ("m", -1, 9, ErrorCode.STALE_MEMBER_EPOCH),
        ("who", 2, 9, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, 9, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_consumer_group(member_id, epoch, version, code):
    """K848-100, K848-102, K848-105."""
    desk = Desk()
    beat(desk, "m", 0)
    caller = {"member_id": member_id, "generation_id_or_member_epoch": epoch}
    assert commit(desk, {FIRST: 5}, version, **caller) == {FIRST: code}


def test_an_older_epoch_will_do_for_partitions_held_since_then():
    """K848-099: KIP-1251: the commit was on its way while the epoch moved on."""
    desk = Desk()
    beat(desk, "a", 0)
    beat(desk, "b", 0)
    kept = given(beat(desk, "a", 2, owned={"orders": [0, 1, 2, 3]}))
    beat(desk, "a", 2, owned=kept)
    member = desk.shard.groups.consumer(G).members["a"]
    assert member.epoch == 3
    (held,) = member.assigned.values()
    mine, other = next(iter(held)), next(one for one in range(4) if one not in held)
    caller = {"member_id": "a", "generation_id_or_member_epoch": 2}
    assert commit(desk, {("orders", mine): 5}, **caller) == {("orders", mine): 0}
    refused = commit(desk, {("orders", mine): 6, ("orders", other): 6}, **caller)
    assert set(refused.values()) == {ErrorCode.STALE_MEMBER_EPOCH}


def test_metadata_that_is_too_long_is_found_before_an_older_epoch():
    """As upstream: the epoch counts only for partitions that could be committed at all."""
    desk = Desk()
    beat(desk, "m", 0)
    caller = {"member_id": "m", "generation_id_or_member_epoch": 1}
    too_long = OffsetCommitRequestPartition(
        partition_index=1, committed_offset=1, committed_metadata="x" * 4097
    )
    request = commit_request({}, **caller)
    request.topics = [OffsetCommitRequestTopic(name="orders", partitions=[too_long])]
    (refused,) = desk.told(request, 9).topics[0].partitions
    assert refused.error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE

    request = commit_request({FIRST: 1}, **caller)
    request.topics[0].partitions.append(too_long)
    codes = [one.error_code for one in desk.told(request, 9).topics[0].partitions]
    assert codes == [ErrorCode.STALE_MEMBER_EPOCH] * 2
    assert [record for record in desk.log if hasattr(record.key, "partition")] == []


def test_a_share_group_has_no_committed_offsets():
    desk = Desk()
    desk.shard.groups.add(OtherGroup(G, GroupType.SHARE))
    assert commit(desk, {FIRST: 5}) == {FIRST: ErrorCode.GROUP_ID_NOT_FOUND}
    assert delete(desk, FIRST) == ErrorCode.GROUP_ID_NOT_FOUND
    assert fetched(desk, wanted=[FIRST]) == {FIRST: NOTHING}


# -- commit: what is written


def test_one_record_for_each_partition():
    desk = Desk()
    codes = commit(desk, {FIRST: 5, ("orders", 3): 0, ("payments", 1): -5}, metadata="why")
    assert set(codes.values()) == {0}
    assert [
        (record.key.topic, record.key.partition, record.value.offset) for record in desk.log
    ] == [("orders", 0, 5), ("orders", 3, 0), ("payments", 1, -5)]
    value = desk.log[0].value
    assert (value.metadata, value.leader_epoch, value.commit_timestamp) == ("why", -1, desk.now)
    assert (value.expire_timestamp, value.topic_id) == (-1, topic_id("orders"))


def test_a_topic_without_an_id_is_committed_without_one():
    desk = Desk()
    commit(desk, {("gone", 0): 1})
    assert desk.log[0].value.topic_id == NO_TOPIC_ID
    assert fetched(desk) == {("gone", 0): (1, -1, "", 0)}


def test_a_retention_time_becomes_an_expiry():
    desk = Desk()
    commit(desk, {FIRST: 1}, 4, retention_time_ms=1000)
    assert desk.log[0].value.expire_timestamp == desk.now + 1000
    assert desk.shard.offsets.of(G)["orders"].expires == {0: desk.now + 1000}
    commit(desk, {FIRST: 2}, 4, retention_time_ms=2**63 - 1)
    assert desk.log[1].value.expire_timestamp == 2**63 - 1
    commit(desk, {FIRST: 2}, 4, retention_time_ms=-1)
    assert desk.shard.offsets.of(G)["orders"].expires == {}


@pytest.mark.parametrize(
    ("metadata", "accepted"),
    [
        pytest.param("x" * 4096, True, id="as long as allowed"),
        pytest.param("x" * 4097, False, id="one more"),
        pytest.param("é" * 4096, True, id="units, not bytes"),
        pytest.param("\U0001f600" * 2048, True, id="two units each"),
        pytest.param("\U0001f600" * 2048 + "x", False, id="two units each, one more"),
        pytest.param(None, True, id="null"),
    ],
)
def test_the_length_of_metadata(metadata, accepted):
    desk = Desk()
    request = commit_request({FIRST: 1, ("orders", 1): 2})
    request.topics[0].partitions[0].committed_metadata = metadata
    first, second = desk.told(request, 9).topics[0].partitions
    assert first.error_code == (0 if accepted else ErrorCode.OFFSET_METADATA_TOO_LARGE)
    assert second.error_code == 0
    assert len(desk.log) == 1 + accepted
    if accepted:
        assert fetched(desk)[FIRST][2] == (metadata or "")


def test_a_partition_named_twice_is_answered_twice_and_the_last_value_wins():
    desk = Desk()
    request = commit_request({FIRST: 1})
    request.topics += commit_request({FIRST: 2}).topics
    assert [one.partitions[0].error_code for one in desk.told(request, 9).topics] == [0, 0]
    assert fetched(desk)[FIRST][0] == 2


def test_no_topics():
    desk = Desk()
    assert commit(desk, {}) == {}
    assert desk.log == []


# -- fetch


def test_what_was_committed_is_read_back_also_after_a_restart():
    desk = Desk()
    request = commit_request({FIRST: 5, ("orders", 2): 7, ("payments", 0): -5}, metadata="m")
    request.topics[0].partitions[1].committed_leader_epoch = 4
    desk.told(request, 9)
    expected = {
        FIRST: (5, -1, "m", 0),
        ("orders", 2): (7, 4, "m", 0),
        ("payments", 0): (-5, -1, "m", 0),
    }
    assert fetched(desk) == expected
    desk.restart()
    assert fetched(desk) == expected
    assert desk.shard.groups.classic(G).state is GroupState.EMPTY


def test_what_was_never_committed_is_no_error():
    """K709-17."""
    desk = Desk()
    commit(desk, {("orders", 2): 7})
    wanted = [FIRST, ("orders", 2), ("orders", 99), ("orders", -1), ("unknown", 0)]
    assert fetched(desk, wanted=wanted) == {
        FIRST: NOTHING,
        ("orders", 2): (7, -1, "", 0),
        ("orders", 99): NOTHING,
        ("orders", -1): NOTHING,
        ("unknown", 0): NOTHING,
    }
    assert fetched(desk, "none", [FIRST]) == {FIRST: NOTHING}
    assert fetched(desk, "none") == {}


def test_many_groups_in_one_request():
    """K709-03, K709-13, K709-16."""
    desk = Desk()
    for number in range(3):
        commit(desk, {FIRST: number}, group_id=f"g{number}")
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g2", "none", "g0")
        ]
    )
    answer = desk.told(request, 10)
    assert [group.group_id for group in answer.groups] == ["g2", "none", "g0"]
    assert [len(group.topics) for group in answer.groups] == [1, 0, 1]
    assert answer.groups[0].topics[0].topic_id == topic_id("orders")
    assert desk.told(OffsetFetchRequest(groups=[]), 10).groups == []


def test_one_request_may_ask_for_all_of_one_group_and_for_some_of_another():
    """K709-03, K709-18: the empty id is an id."""
    desk = Desk()
    for group_id in ("", "g", "h"):
        commit(desk, {FIRST: 5, ("orders", 1): 6}, group_id=group_id)
    some = [OffsetFetchRequestTopics(name="orders", partition_indexes=[1, 3])]
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id="h", topics=None),
            OffsetFetchRequestGroup(group_id="", topics=some),
            OffsetFetchRequestGroup(group_id="g", topics=[]),
        ]
    )
    groups = desk.told(request, 10).groups
    assert [(group.group_id, group.error_code) for group in groups] == [("h", 0), ("", 0), ("g", 0)]
    assert [
        [
            (one.partition_index, one.committed_offset)
            for topic in group.topics
            for one in topic.partitions
        ]
        for group in groups
    ] == [[(0, 5), (1, 6)], [(1, 6), (3, -1)], []]


def test_members_of_classic_groups_are_not_checked():
    desk = Desk(**QUICK)
    stable(desk)
    assert fetched(desk, wanted=[FIRST], member_id="who", member_epoch=9) == {FIRST: NOTHING}


@pytest.mark.parametrize(
    ("caller", "code"),
    [
        ({}, None),
        ({"member_id": "m", "member_epoch": 2}, None),
        ({"member_id": "m", "member_epoch": 1}, ErrorCode.STALE_MEMBER_EPOCH),
        ({"member_id": "m", "member_epoch": 3}, ErrorCode.STALE_MEMBER_EPOCH),
        ({"member_id": "who", "member_epoch": 2}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "", "member_epoch": -1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": None, "member_epoch": 2}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_members_of_consumer_groups_are_checked(caller, code):
    """K848-103."""
    desk = Desk()
    beat(desk, "m", 0)
    commit(desk, {FIRST: 5}, member_id="m", generation_id_or_member_epoch=2)
    expected = {FIRST: (5, -1, "", 0)} if code is None else code
    assert fetched(desk, wanted=[FIRST], **caller) == expected


# -- delete


def delete(desk: Desk, *partitions: tuple[str, int], group_id: str = "g"):
    by_topic: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(
            OffsetDeleteRequestPartition(partition_index=partition)
        )
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(name=topic, partitions=some)
            for topic, some in by_topic.items()
        ],
    )
    answer = desk.told(request, 0)
    if answer.error_code:
        assert answer.topics == []
        return answer.error_code
    return {
        (topic.name, one.partition_index): one.error_code
        for topic in answer.topics
        for one in topic.partitions
    }


def test_offsets_are_deleted_and_those_that_are_not_there_too():
    desk = Desk()
    commit(desk, {FIRST: 5, ("orders", 1): 6})
    desk.written()
    assert delete(desk, FIRST, ("orders", 3), ("payments", 0), FIRST) == {
        FIRST: 0,
        ("orders", 3): 0,
        ("payments", 0): 0,
    }
    assert desk.written() == [Record(OffsetCommitKey(group="g", topic="orders", partition=0), None)]
    assert fetched(desk) == {("orders", 1): (6, -1, "", 0)}


def test_the_last_offset_leaves_nothing_behind():
    desk = Desk()
    commit(desk, {FIRST: 5}, metadata="m")
    delete(desk, FIRST)
    assert desk.shard.offsets.committed == {}
    assert desk.shard.groups.classic(G) is not None


@pytest.mark.parametrize("group_id", ["", "none"])
def test_a_group_to_delete_from_must_be_there(group_id):
    expected = ErrorCode.GROUP_ID_NOT_FOUND if group_id else ErrorCode.INVALID_GROUP_ID
    assert delete(Desk(), FIRST, group_id=group_id) == expected


def test_topics_that_are_read_keep_their_offsets():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    assert delete(desk, ("payments", 0), FIRST) == {
        FIRST: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("payments", 0): 0,
    }
    leave(desk, leader)
    assert delete(desk, FIRST) == {FIRST: 0}


def test_topics_that_a_consumer_group_reads_keep_their_offsets():
    desk = Desk()
    beat(desk, "m", 0)
    assert delete(desk, FIRST, ("payments", 0)) == {
        FIRST: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("payments", 0): 0,
    }
    beat(desk, "m", -1)
    assert delete(desk, FIRST) == {FIRST: 0}


def test_a_group_of_another_protocol_type_keeps_all_while_it_has_members():
    desk = Desk(**QUICK)
    member_id, _ = newcomer(desk, protocol_type="connect")
    assert delete(desk, FIRST) == ErrorCode.NON_EMPTY_GROUP
    leave(desk, member_id)
    assert delete(desk, FIRST) == {FIRST: 0}


def test_a_deleted_topic_takes_its_offsets_along():
    desk = Desk()
    for name in ("g", "h"):
        commit(desk, {FIRST: 5, ("payments", 1): 6}, group_id=name)
    desk.written()
    desk.topics_changed(topics(payments=2))
    assert {(record.key.group, record.key.topic, record.value) for record in desk.written()} == {
        ("g", "orders", None),
        ("h", "orders", None),
    }
    assert fetched(desk) == {("payments", 1): (6, -1, "", 0)}
    assert list(of_deleted_topics(desk.shard, {"orders": topic_id("orders")}, desk.now)) == []


def remade(name="orders"):
    """The topics, with one of them made anew under its name."""
    others = [
        topic for topic in topics(orders=4, payments=2).by_name.values() if topic.name != name
    ]
    return Topics([*others, Topic(TopicId(b"another".ljust(16)), name, 4)])


def commit_with_ids(desk, names):
    """What members commit since v10; the old way names no topic."""
    for name in names:
        record = Record(
            OffsetCommitKey(group="g", topic=name, partition=1),
            OffsetCommitValue(offset=5, metadata="", commit_timestamp=1, topic_id=topic_id(name)),
        )
        desk.write(record)


def test_a_topic_made_anew_while_nobody_was_here_has_no_offsets():
    desk = Desk()
    commit_with_ids(desk, ["orders", "payments", "elsewhere"])
    commit(desk, {("old", 0): 1})
    desk.written()
    desk.known = remade()
    desk.restart()
    assert [
        (record.key.topic, record.key.partition, record.value) for record in desk.written()
    ] == [("orders", 1, None)]
    assert list(fetched(desk)) == [("payments", 1), ("elsewhere", 1), ("old", 0)]
    desk.restart()
    assert desk.written() == []


def test_a_topic_that_comes_back_after_a_while_has_no_offsets():
    desk = Desk(known=topics(payments=2))
    commit_with_ids(desk, ["orders", "payments"])
    desk.topics_changed(remade())
    assert list(fetched(desk)) == [("payments", 1)]


def test_an_offset_of_a_former_topic_in_a_transaction_goes_too():
    log = Log()
    log.put(3, producer_id=1)
    log.desk.topics_changed(remade("payments"))
    assert log.unstable
    log.desk.shard.topics = topics()
    log.desk.topics_changed(remade())
    assert not log.unstable
    log.marker(1)
    assert log.committed == -1


# -- transactions, as a log of another broker tells them


def value(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=offset, metadata="", commit_timestamp=1, topic_id=topic_id("orders")
    )


def key(partition: int = 0) -> OffsetCommitKey:
    return OffsetCommitKey(group="g", topic="orders", partition=partition)


class Log:
    """Replays records one by one, as a loader does."""

    def __init__(self) -> None:
        self.desk = Desk()

    def put(self, offset: int | None, producer_id: int = -1, partition: int = 0) -> None:
        record = Record(key(partition), None if offset is None else value(offset))
        producer = None if producer_id == -1 else Producer(producer_id, 0)
        self.desk.write(record, producer=producer)

    def marker(self, producer_id: int, *, commit: bool = True) -> None:
        self.desk.end_transaction(Producer(producer_id, 0), commit=commit)

    @property
    def committed(self) -> int:
        offset: int = fetched(self.desk, wanted=[FIRST])[FIRST][0]
        return offset

    @property
    def unstable(self) -> bool:
        code: int = fetched(self.desk, wanted=[FIRST], stable_only=True)[FIRST][3]
        assert code in (0, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return code != 0


def test_an_offset_in_a_transaction_waits_for_its_end():
    """K709-12."""
    log = Log()
    log.put(5)
    log.put(9, producer_id=1)
    assert (log.committed, log.unstable) == (5, True)
    log.marker(1)
    assert (log.committed, log.unstable) == (9, False)


def test_an_aborted_transaction_never_was():
    log = Log()
    log.put(9, producer_id=1)
    assert log.unstable
    assert log.desk.shard.groups.classic(G) is not None
    log.marker(1, commit=False)
    assert (log.committed, log.unstable) == (-1, False)


def test_the_order_of_records_decides_not_that_of_markers():
    log = Log()
    log.put(1, producer_id=1)
    log.put(2, producer_id=2)
    log.marker(2)
    assert (log.committed, log.unstable) == (2, True)
    log.marker(1)
    assert (log.committed, log.unstable) == (2, False)


def test_a_later_transaction_wins_over_an_earlier_one():
    log = Log()
    log.put(1, producer_id=1)
    log.put(2, producer_id=2)
    log.marker(1)
    assert log.committed == 1
    log.marker(2)
    assert log.committed == 2


def test_a_plain_commit_overtakes_what_is_pending():
    log = Log()
    log.put(1, producer_id=1)
    log.put(5)
    assert log.unstable
    log.marker(1)
    assert log.committed == 5


def test_the_last_value_within_a_transaction_counts():
    log = Log()
    log.put(1, producer_id=1)
    log.put(2, producer_id=1)
    log.put(7, producer_id=1, partition=1)
    log.marker(1)
    assert log.committed == 2
    assert fetched(log.desk)["orders", 1][0] == 7


def test_a_tombstone_removes_what_is_pending_too():
    log = Log()
    log.put(1, producer_id=1)
    log.put(None)
    assert not log.unstable
    log.marker(1)
    assert log.committed == -1


def test_a_marker_of_nobody():
    log = Log()
    log.marker(77)
    assert log.committed == -1


def test_a_group_of_the_same_id_begins_anew():
    """K229-14: what ends later brings nothing back."""
    log = Log()
    log.put(5)
    log.put(9, producer_id=1)
    deletion = DeleteGroupsRequest(groups_names=["g"])
    assert [one.error_code for one in log.desk.told(deletion, 2).results] == [0]
    assert beat(log.desk, "m", 0).member_epoch == 2
    log.marker(1)
    assert (log.committed, log.unstable) == (-1, False)


def test_pending_offsets_are_deleted_with_the_others():
    log = Log()
    log.put(1, partition=2)
    log.put(1, producer_id=1)
    assert [record.key.partition for record in of_group_deleted(log.desk.shard, G)] == [
        2,
        0,
    ]
    assert delete(log.desk, FIRST) == {FIRST: 0}
    assert not log.unstable


# -- the log and the arrays


def test_offsets_of_the_oldest_key_are_read():
    desk = Desk()
    desk.write(
        Record(
            LegacyOffsetCommitKey(group="g", topic="orders", partition=0),
            LegacyOffsetCommitValue(offset=5, metadata="old", commit_timestamp=1),
        ),
        live=False,
    )
    desk.restart()
    assert fetched(desk) == {FIRST: (5, -1, "old", 0)}


def test_the_arrays_grow_and_remember_what_is_absent():
    table = TopicOffsets(topic_id("orders"))
    table.put(3, value(30))
    assert list(table.partitions()) == [3]
    assert [index in table for index in (-1, 0, 3, 4)] == [False, False, True, False]
    table.put(3, value(31))
    assert table.count == 1
    table.remove(0)
    table.remove(3)
    table.remove(9)
    assert (table.count, list(table.partitions())) == (0, [])


def test_an_impossible_partition_is_broken_and_takes_no_memory():
    table = TopicOffsets(topic_id("orders"))
    with pytest.raises(Broken, match="partition 2147483647"):
        table.put(2**31 - 1, value(1))
    assert len(table.offsets) == 0
