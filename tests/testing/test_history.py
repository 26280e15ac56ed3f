# SPDX-License-Identifier: Apache-2.0
"""What the records of a group say about it."""

from dataclasses import replace

from kohort.client.admin.views import TopicPartition
from kohort.records import consumer_protocol, schemas
from kohort.records.causes import Because, headers_of
from kohort.terms import MemberId, TopicId, uuid_text
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


def gone(member):
    """What is written when a member has gone, before the epoch that comes of it."""
    return (
        current(member, None),
        (schemas.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id=member), None),
        (schemas.ConsumerGroupMemberMetadataKey(group_id="g", member_id=member), None),
    )


def test_a_departure_belongs_to_the_epoch_that_comes_of_it():
    records = numbered(epoch(1), current("a", 0), current("b", 1), *gone("a"), epoch(2))
    *_, last = ownerships(records, NAMES)
    assert (last.epoch, last.timestamp_ms, dict(last.owners)) == (2, 103, {"b": {"orders": (1,)}})


def test_a_departure_that_raises_no_epoch_is_a_moment_of_its_own():
    records = numbered(epoch(1), current("a", 0), *gone("a"), current("b", 0), epoch(2))
    moments = [(one.epoch, dict(one.owners)) for one in ownerships(records, NAMES)]
    assert moments == [(1, {"a": {"orders": (0,)}}), (1, {}), (1, {"b": {"orders": (0,)}})]


def test_a_moment_says_why_its_epoch_began():
    """From the headers of Kohort's own broker; a record of Kafka has none."""
    why = [Because("session timeout", MemberId("a"))]
    records = numbered(epoch(1), current("a", 0), current("b", 1), *gone("a"), epoch(2))
    records[-1] = replace(records[-1], headers=tuple(headers_of(why)))
    assert records[-1].causes == tuple(why)
    first, _, last = ownerships(records, NAMES)
    assert (first.causes, last.causes) == ((), tuple(why))
    assert str(last) == "epoch 2 (session timeout: a): b: orders 1"


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
