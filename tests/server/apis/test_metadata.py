# SPDX-License-Identifier: Apache-2.0
"""Metadata: who is there, which topics there are, and who leads what."""

import pytest
from tests.server.apis.asking import metadata
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

OFFSETS = "__consumer_offsets"


def test_nodes_topics_and_leaders():
    desk = Desk(nodes=3, node_id="7")
    topic_id = desk.create(partitions=6)
    answer = metadata(desk, "orders")

    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [
        (7, "127.0.0.1", 9092),
        (8, "127.0.0.1", 9093),
        (9, "127.0.0.1", 9094),
    ]
    assert (len(answer.cluster_id), answer.controller_id) == (22, 7)
    (topic,) = answer.topics
    assert (topic.topic_id, topic.is_internal) == (topic_id, False)
    assert sorted(one.leader_id for one in topic.partitions) == [7, 7, 8, 8, 9, 9]
    assert all(one.replica_nodes == [one.leader_id] for one in topic.partitions)


def test_the_rack_of_each_node_is_told():
    desk = Desk(nodes=3, broker_rack="east,west")
    assert [one.rack for one in metadata(desk).brokers] == ["east", "west", "east"]
    assert [one.rack for one in metadata(Desk(nodes=2)).brokers] == [None, None]
    assert [one.rack for one in metadata(Desk(nodes=2, broker_rack="x")).brokers] == ["x", "x"]


def test_a_node_that_is_gone_is_shown_as_gone():
    desk = Desk(nodes=3, node_id="7")
    desk.create(partitions=6)

    def shown():
        answer = metadata(desk, "orders")
        parts = [
            (
                one.error_code,
                one.leader_id,
                one.replica_nodes,
                one.isr_nodes,
                one.offline_replicas,
                one.leader_epoch,
            )
            for one in answer.topics[0].partitions
        ]
        return [one.node_id for one in answer.brokers], answer.controller_id, parts

    before = shown()
    homes = [one[1] for one in before[2]]
    desk.rearrange(lambda placement: placement.leave(9))
    nodes, controller, parts = shown()
    assert (nodes, controller) == ([7, 8], 7)
    for home, (code, leader, replicas, in_sync, offline, _) in zip(homes, parts, strict=True):
        assert (code, offline) == (0, [9] if home == 9 else [])
        assert leader in (7, 8)
        assert in_sync == [leader]
        assert replicas == ([leader, 9] if home == 9 else [home])
    desk.rearrange(lambda placement: placement.join(9))
    desk.rearrange(lambda placement: placement.leave(7, replaced=False))
    nodes, controller, parts = shown()
    assert (nodes, controller) == ([8, 9], 8)
    for home, part in zip(homes, parts, strict=True):
        gone = (ErrorCode.LEADER_NOT_AVAILABLE, -1, [7], [7], [7], 1)
        epoch = 2 if home == 9 else 0  # it went to another node and came back
        assert part == (gone if home == 7 else (0, home, [home], [home], [], epoch))
    desk.rearrange(lambda placement: placement.join(7))
    nodes, controller, parts = shown()
    assert (nodes, controller) == before[:2]
    assert [part[:5] for part in parts] == [part[:5] for part in before[2]]
    assert [part[5] for part in parts] == [0 if home == 8 else 2 for home in homes]


def test_all_topics_and_none(desk):
    desk.create()

    everything = {
        topic.name: topic.is_internal for topic in desk.ask(MetadataRequest(topics=None), 12).topics
    }
    assert everything == {OFFSETS: True, "orders": False}
    assert metadata(desk).topics == []
    assert len(metadata(desk, version=0).topics) == 2


def test_topics_by_id(desk):
    topic_id = desk.create()

    def by_id(one, version):
        topics = [MetadataRequestTopic(topic_id=one, name=None)]
        (answer,) = desk.ask(MetadataRequest(topics=topics), version).topics
        return answer.error_code, answer.name

    assert by_id(topic_id, 12) == (0, "orders")
    assert by_id(b"?" * 16, 12) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    assert by_id(topic_id, 10) == (ErrorCode.INVALID_REQUEST, "")


def test_a_topic_that_is_missed_is_made_for_the_next_time():
    desk = Desk(num_partitions="4")

    assert metadata(desk, "new").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (made,) = metadata(desk, "new").topics
    assert (made.error_code, len(made.partitions)) == (0, 4)


@pytest.mark.parametrize(
    ("settings", "more"),
    [({"auto_create_topics_enable": "false"}, {}), ({}, {"allow_auto_topic_creation": False})],
)
def test_topics_are_made_only_where_broker_and_client_want_it(settings, more):
    desk = Desk(**settings)
    metadata(desk, "new", **more)

    assert "new" not in desk.cluster.catalog.by_name


def test_names_that_cannot_be(desk):
    (answer,) = metadata(desk, "bad name").topics

    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_what_may_be_done_is_told_when_asked(desk):
    desk.create()
    answer = metadata(
        desk,
        "orders",
        version=8,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )

    assert answer.cluster_authorized_operations == 8096
    assert answer.topics[0].topic_authorized_operations == 3576


def test_what_may_be_done_is_told_of_names_that_are_not_there(desk):
    asked = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": True}
    answer = metadata(desk, "nothing", "a/b", **asked)
    assert [one.topic_authorized_operations for one in answer.topics] == [3576, 3576]
    by_id = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=b"?" * 16)], **asked)
    assert desk.ask(by_id, 12).topics[0].topic_authorized_operations == -2147483648


def test_a_topic_that_is_named_twice_is_told_once(desk):
    topic_id = desk.create()
    names = metadata(desk, "orders", "none", "orders", "none", allow_auto_topic_creation=False)
    assert [one.name for one in names.topics] == ["orders", "none"]
    by_id = MetadataRequestTopic(name=None, topic_id=topic_id)
    assert len(desk.ask(MetadataRequest(topics=[by_id, by_id]), 12).topics) == 1
