# SPDX-License-Identifier: Apache-2.0
"""CreateTopics: what is made, and what is refused."""

import pytest
from tests.server.apis.topics import create, delete, grow, named, topic
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.apis import topic_changes
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)


def test_a_topic_is_made_with_everything_it_says(desk):
    (made,) = desk.ask(
        CreateTopicsRequest(topics=[topic(partitions=3, retention_ms="7")]), 7
    ).topics

    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 3, 1)
    shown = {one.name: (one.value, one.config_source) for one in made.configs}
    assert shown["retention.ms"] == ("7", 1)
    assert shown["cleanup.policy"] == ("delete", 5)
    known = desk.cluster.catalog.by_name["orders"]
    assert known.topic_id == made.topic_id
    assert desk.produce(partition=2).error_code == 0


def test_defaults_come_from_the_broker():
    desk = Desk(num_partitions="4", log_retention_ms="9")
    (made,) = desk.ask(CreateTopicsRequest(topics=[topic(partitions=-1, replicas=-1)]), 7).topics

    assert (made.num_partitions, made.replication_factor) == (4, 1)
    shown = {one.name: (one.value, one.config_source) for one in made.configs}
    assert shown["retention.ms"] == ("9", 4)


def test_validate_only_makes_nothing(desk):
    assert create(desk, topic(), validate_only=True) == [0]
    assert "orders" not in desk.cluster.catalog.by_name


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (topic("bad name"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(partitions=0), ErrorCode.INVALID_PARTITIONS),
        (topic(partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (topic(partitions=10**9), ErrorCode.POLICY_VIOLATION),
        (topic(partitions=10_001), ErrorCode.POLICY_VIOLATION),
        (topic(replicas=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic(replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic(partitions=0, replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic(partitions=0, replicas=2), ErrorCode.INVALID_PARTITIONS),
        (topic(no_such="1"), ErrorCode.INVALID_CONFIG),
        (topic(retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (topic(retention_ms=None), ErrorCode.INVALID_CONFIG),
        (topic(assignments=[(0, [0])]), ErrorCode.INVALID_REQUEST),
        (topic(replicas=-1, assignments=[(0, [0])]), ErrorCode.INVALID_REQUEST),
        (topic("a", -1, -1, [(0, [9])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", -1, -1, [(1, [0])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", -1, -1, [(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", -1, -1, [(0, [0, 0])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_refusals_leave_nothing(desk, wanted, code):
    before = dict(desk.cluster.catalog.by_name)

    assert create(desk, wanted) == [code]
    assert desk.cluster.catalog.by_name == before


def test_of_a_setting_that_is_given_twice_the_last_one_counts(desk):
    def twice(*values):
        configs = [CreatableTopicConfig(name="retention.ms", value=value) for value in values]
        return CreatableTopic(
            name="orders", num_partitions=1, replication_factor=1, assignments=[], configs=configs
        )

    assert create(desk, twice("soon", None)) == [ErrorCode.INVALID_CONFIG]
    assert create(desk, twice("1000", "soon")) == [ErrorCode.INVALID_CONFIG]
    assert create(desk, twice("soon", "1000")) == [0]
    assert desk.cluster.catalog.by_name["orders"].configs == {"retention.ms": "1000"}


def test_many_topics_are_one_write(desk):
    """Also when they come in many requests."""
    desk.another()
    saved = []
    save = desk.cluster.catalog.save
    desk.cluster.catalog.save = lambda draft: (saved.append(draft), save(draft))
    asked = [
        desk.send(
            CreateTopicsRequest(topics=[topic(f"orders.{at}"), topic(f"{at}")]), 7, node=at % 2
        )
        for at in range(2)
    ]
    desk.settle()

    assert [one.error_code for each in asked for one in each.answer.topics] == [0] * 4
    assert len(saved) == 1


def test_a_name_is_taken_once(desk):
    assert create(desk, topic(), topic("other"), topic("other")) == [0, ErrorCode.INVALID_REQUEST]
    assert create(desk, topic()) == [ErrorCode.TOPIC_ALREADY_EXISTS]


def test_the_replication_factor_is_lowered_where_that_is_allowed():
    desk = Desk(auto_adjust_replication_factor="true")
    (made,) = desk.ask(CreateTopicsRequest(topics=[topic(replicas=3)]), 7).topics

    assert (made.error_code, made.replication_factor) == (0, 1)


def test_as_many_replicas_as_nodes_are_shown():
    desk = Desk(nodes=3)

    assert create(desk, topic(replicas=3), topic("more", replicas=4)) == [
        0,
        ErrorCode.INVALID_REPLICATION_FACTOR,
    ]
    known = desk.cluster.catalog.by_name["orders"]
    assert sorted(known.replicas(0, desk.cluster.placement.node_ids)) == [0, 1, 2]


def test_a_full_disk_refuses_and_passes():
    files = SimulatedFiles()
    desk = Desk(files=files)
    files.room_bytes = 0
    assert create(desk, topic()) == [ErrorCode.KAFKA_STORAGE_ERROR]
    files.room_bytes = None

    assert create(desk, topic()) == [0]
    files.room_bytes = 0
    assert delete(desk, named("orders")) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert grow(desk, "orders", 9) == ErrorCode.KAFKA_STORAGE_ERROR
    files.room_bytes = None
    assert desk.produce().error_code == 0


def test_the_partitions_of_all_topics_of_a_request_are_counted():
    """As upstream does, also where nothing is made: each topic has dozens of settings to tell."""
    desk = Desk(num_partitions="2", max_partitions="20000")
    by_hand = topic("c", -1, -1, [(0, [0]), (1, [0])])
    nothing = topic("d", partitions=-7)
    for last in (9997, 9996):
        wanted = [topic("a", partitions=-1), topic("b", partitions=last), by_hand, nothing]
        codes = create(desk, *wanted, validate_only=True)
        assert codes == (
            [ErrorCode.POLICY_VIOLATION] * 4
            if last == 9997
            else [0, 0, 0, ErrorCode.INVALID_PARTITIONS]
        )
    assert not {"a", "b", "c"} & set(desk.cluster.catalog.by_name)


def test_each_topic_of_a_request_tells_its_own_settings(desk):
    wanted = [topic("a"), topic("b", retention_ms="7"), topic("c")]
    made = desk.ask(CreateTopicsRequest(topics=wanted), 7).topics
    shown = [
        next(config.value for config in one.configs if config.name == "retention.ms")
        for one in made
    ]
    assert shown == ["604800000", "7", "604800000"]


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_many_topics_are_judged_as_few(monkeypatch, at_once, validate_only):
    """A part after the other; one that is named in two parts is refused in both, and the room for
    partitions is that which the parts before have left.
    """
    monkeypatch.setattr(topic_changes, "JUDGED_AT_ONCE", at_once)
    others = sum(one.partitions for one in Desk().cluster.catalog.by_name.values())
    desk = Desk(max_partitions=str(others + 10))
    names = ["one", "twice", "bad name", "two", "twice", "three", "four"]
    topics = [CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in names]
    request = CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=validate_only)
    answer = desk.ask(request, 7)
    assert [(one.name, one.error_code) for one in answer.topics] == [
        ("one", 0),
        ("twice", ErrorCode.INVALID_REQUEST),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("two", 0),
        ("three", 0),
        ("four", ErrorCode.INVALID_PARTITIONS),
    ]
    there = {"one", "two", "three"} & {*desk.cluster.catalog.by_name}
    assert there == (set() if validate_only else {"one", "two", "three"})
