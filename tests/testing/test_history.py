"""What the records of a group say about it."""

from kohort.client.admin.views import TopicPartition
from kohort.records import consumer_protocol, schemas
from kohort.terms import TopicId, uuid_text
from kohort.testing.history import (
    Commit,
    GroupRecord,
    assignment_text,
    commits,
    group_of,
    ownerships,
)

ORDERS, GONE = TopicId(b"o" * 16), TopicId(b"g" * 16)
NAMES = {ORDERS: "orders"}


def numbered(*pairs):
    return [GroupRecord(at, 100 + at, key, value) for at, (key, value) in enumerate(pairs)]


def epoch(number):
    return (
        schemas.ConsumerGroupMetadataKey(group_id="g"),
        schemas.ConsumerGroupMetadataValue(epoch=number),
    )


def current(member, *partitions, topic=ORDERS):
    key = schemas.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member)
    if partitions == (None,):
        return key, None
    owned = [schemas.TopicPartitions(topic_id=topic, partitions=list(partitions))]
    value = schemas.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=1,
        previous_member_epoch=0,
        state=0,
        assigned_partitions=owned if partitions else [],
        partitions_pending_revocation=[],
    )
    return key, value


def test_each_change_of_owners_is_a_moment():
    records = numbered(
        epoch(1),
        current("a", 1, 0),
        epoch(2),
        current("b"),
        current("a", 0),
        current("a", 0),
        current("b", 1),
        current("a", None),
    )
    moments = list(ownerships(records, NAMES))
    assert [(one.epoch, one.timestamp_ms) for one in moments] == [
        (1, 101),
        (2, 103),
        (2, 104),
        (2, 106),
        (2, 107),
    ]
    assert [dict(one.owners) for one in moments] == [
        {"a": {"orders": (0, 1)}},
        {"a": {"orders": (0, 1)}, "b": {}},
        {"a": {"orders": (0,)}, "b": {}},
        {"a": {"orders": (0,)}, "b": {"orders": (1,)}},
        {"b": {"orders": (1,)}},
    ]
    assert str(moments[2]) == "epoch 2: a: orders 0, b: nothing"


def test_a_topic_that_is_gone_has_its_id():
    (moment,) = ownerships(numbered(current("a", 3, topic=GONE)), NAMES)
    assert moment.owners == {"a": {uuid_text(GONE): (3,)}}


def test_a_classic_group_has_generations():
    assigned = consumer_protocol.TopicPartition(topic="orders", partitions=[1, 0])
    assignment = consumer_protocol.encode(
        consumer_protocol.ConsumerProtocolAssignment(assigned_partitions=[assigned])
    )
    member = schemas.MemberMetadata(
        member_id="a",
        client_id="c",
        client_host="/h",
        session_timeout=1,
        subscription=b"",
        assignment=assignment,
    )
    key = schemas.GroupMetadataKey(group="g")

    def generation(number, *members):
        return key, schemas.GroupMetadataValue(
            protocol_type="consumer",
            generation=number,
            protocol="range",
            leader="a",
            members=list(members),
        )

    damaged = schemas.MemberMetadata(
        member_id="b",
        client_id="c",
        client_host="/h",
        session_timeout=1,
        subscription=b"",
        assignment=b"\x00",
    )
    records = numbered(generation(1, member), generation(2, member, damaged), (key, None))
    moments = list(ownerships(records, NAMES))
    assert [(one.epoch, dict(one.owners)) for one in moments] == [
        (1, {"a": {"orders": (0, 1)}}),
        (2, {"a": {"orders": (0, 1)}, "b": {}}),
        (2, {}),
    ]
    assert str(moments[-1]) == "epoch 2: nobody"


def test_commits_come_in_order():
    key = schemas.OffsetCommitKey(group="g", topic="orders", partition=1)
    value = schemas.OffsetCommitValue(
        offset=7, metadata="m", commit_timestamp=1, leader_epoch=0, topic_id=ORDERS
    )
    place = TopicPartition("orders", 1)
    assert list(commits(numbered((key, value), epoch(1), (key, None)))) == [
        Commit(place, 7, "m", 100),
        Commit(place, None, "", 102),
    ]


def test_the_group_of_a_record():
    assert group_of(schemas.GroupMetadataKey(group="a")) == "a"
    assert group_of(schemas.ConsumerGroupMetadataKey(group_id="b")) == "b"
    assert group_of(b"another broker's") is None


def test_what_somebody_owns_in_words():
    assert assignment_text({"a": (0, 1), "b": (2,)}) == "a 0 1, b 2"
    assert assignment_text({}) == assignment_text(None) == "nothing"
