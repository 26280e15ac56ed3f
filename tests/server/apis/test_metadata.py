"""Metadata and its relatives: who is there, and who leads what."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.placement import coordinator_partition
from kohort.terms import NO_TOPIC_ID
from kohort.wire.apis import APIS
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.describe_cluster import DescribeClusterRequest
from kohort.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

OFFSETS = "__consumer_offsets"


@pytest.fixture
def desk():
    return Desk()


def metadata(desk, *names, version=12, **more):
    topics = [MetadataRequestTopic(name=name) for name in names]
    return desk.ask(MetadataRequest(topics=topics, **more), version)


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


# --- DescribeTopicPartitions


def pages(desk, *names, limit, cursor=None):
    seen = []
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        answer = desk.ask(request, 0)
        seen.append(
            [(one.name, [part.partition_index for part in one.partitions]) for one in answer.topics]
        )
        cursor = answer.next_cursor
        if cursor is None:
            return seen


def test_partitions_page_by_page(desk):
    desk.create("b", partitions=3)
    desk.create("a", partitions=2)

    assert pages(desk, "b", "a", limit=100) == [[("a", [0, 1]), ("b", [0, 1, 2])]]
    assert pages(desk, "b", "a", limit=2) == [
        [("a", [0, 1])],
        [("b", [0, 1])],
        [("b", [2])],
    ]
    assert pages(desk, "b", "a", limit=3) == [[("a", [0, 1]), ("b", [0])], [("b", [1, 2])]]
    start = Cursor(topic_name="b", partition_index=1)
    assert pages(desk, "a", "b", limit=9, cursor=start) == [[("b", [1, 2])]]
    assert pages(desk, limit=100) == [[(OFFSETS, [0, 1, 2, 3]), ("a", [0, 1]), ("b", [0, 1, 2])]]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_at_least_one_partition(desk, limit):
    """Otherwise who follows the cursor would never come to an end."""
    desk.create(partitions=2)
    desk.create("a")

    assert pages(desk, "a", "orders", limit=limit) == [
        [("a", [0])],
        [("orders", [0])],
        [("orders", [1])],
    ]


@pytest.mark.parametrize("topic", ["zz", "aa", ""])
def test_a_cursor_at_a_topic_that_was_not_asked_for(desk, topic):
    desk.create()
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name="orders"), TopicRequest(name="none")],
        cursor=Cursor(topic_name=topic, partition_index=0),
    )

    answer = desk.ask(request, 0)
    assert [(one.name, one.error_code) for one in answer.topics] == [("orders", 42), ("none", 42)]


def test_the_brokers_own_limit_holds_too():
    desk = Desk(max_request_partition_size_limit="2")
    desk.create(partitions=3)

    assert pages(desk, "orders", limit=100) == [[("orders", [0, 1])], [("orders", [2])]]


def test_a_cursor_before_the_first_partition(desk):
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name="orders")],
        cursor=Cursor(topic_name="orders", partition_index=-1),
    )

    assert desk.ask(request, 0).topics[0].error_code == ErrorCode.INVALID_REQUEST


# --- DescribeCluster, FindCoordinator, ApiVersions


def test_the_cluster():
    desk = Desk(nodes=2)
    answer = desk.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), 2)

    assert [one.broker_id for one in answer.brokers] == [0, 1]
    assert answer.controller_id == 0


@pytest.mark.parametrize(
    ("kind", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_controllers_are_elsewhere(desk, kind, code):
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=kind
    )

    assert desk.ask(request, 1).error_code == code


def test_groups_are_coordinated_by_the_leader_of_their_partition():
    desk = Desk(nodes=3)
    (topic,) = metadata(desk, OFFSETS).topics
    leaders = {one.partition_index: one.leader_id for one in topic.partitions}
    names = [f"group-{number}" for number in range(20)] + ["", "größe"]
    answer = desk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=names), 4)

    for one in answer.coordinators:
        assert one.error_code == 0
        assert one.node_id == leaders[coordinator_partition(one.key, 4)]
        assert one.port == 9092 + one.node_id
    assert len({one.node_id for one in answer.coordinators}) > 1


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        (
            1,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "transactions are not supported yet",
        ),
        (2, ErrorCode.INVALID_REQUEST, "share groups"),
        (9, ErrorCode.INVALID_REQUEST, "key type is 9"),
    ],
)
def test_what_has_no_coordinator(desk, kind, code, words):
    single = desk.ask(FindCoordinatorRequest(key="k", key_type=kind), 3)
    (many,) = desk.ask(
        FindCoordinatorRequest(key_type=kind, coordinator_keys=["k"]), 6
    ).coordinators

    for one in (single, many):
        assert (one.error_code, one.node_id, one.host, one.port) == (
            code,
            -1,
            "",
            -1,
        )
        assert words in one.error_message


def test_no_error_has_the_words_of_its_version(desk):
    assert desk.ask(FindCoordinatorRequest(key="g"), 1).error_message == "NONE"
    many = desk.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    assert many.coordinators[0].error_message == ""


def versions(desk, version, name="a", number="1"):
    request = ApiVersionsRequest(client_software_name=name, client_software_version=number)
    return desk.ask(request, version)


def test_what_is_served(desk):
    """K848-031."""
    answer = versions(desk, 4)

    offered = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    assert set(offered) == set(APIS)
    assert offered[0] == (0, 13)
    assert offered[1] == (4, 18)
    assert [one.name for one in answer.finalized_features] == ["group.version"]


def test_without_the_consumer_protocol_its_feature_is_off():
    """K848-029, K848-031."""
    answer = versions(Desk(group_coordinator_rebalance_protocols="classic"), 3)

    assert answer.finalized_features == []


@pytest.mark.parametrize(("name", "number"), [("", "1"), ("a b", "1"), ("a", "1~"), ("-a", "1")])
def test_software_is_named_in_plain_letters(desk, name, number):
    answer = versions(desk, 3, name, number)

    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def test_nothing_is_its_own_topic_id():
    assert bytes(16) == NO_TOPIC_ID
