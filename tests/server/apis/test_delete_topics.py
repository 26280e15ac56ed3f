# SPDX-License-Identifier: Apache-2.0
"""DeleteTopics: a topic goes with its records, or says why not."""

import pytest
from tests.server.apis.topics import create, delete, grow, named, topic
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def test_a_topic_goes_with_its_records_and_may_come_again(desk):
    first = desk.create()
    desk.produce(records=5)
    assert delete(desk, named("orders")) == [0]
    assert desk.produce().error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    assert desk.create() != first
    assert desk.produce().base_offset == 0
    assert not desk.cluster.catalog.deleting


def test_deletion_by_id_answers_with_the_name(desk):
    topic_id = desk.create()
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=1
    )
    (answer,) = desk.ask(request, 6).responses

    assert (answer.error_code, answer.name) == (0, "orders")


def test_deletions_that_are_refused(desk):
    desk.create()
    both = DeleteTopicState(name="orders", topic_id=b"1" * 16)

    assert delete(
        desk,
        named("nothing"),
        named("__consumer_offsets"),
        both,
        DeleteTopicState(name=None),
        DeleteTopicState(name=None, topic_id=b"?" * 16),
    ) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,  # what names nothing is answered last
    ]
    assert delete(desk, named("orders"), named("orders")) == [ErrorCode.INVALID_REQUEST]
    assert "orders" in desk.cluster.catalog.by_name


def test_a_topic_that_is_named_by_name_and_by_id_is_deleted_by_neither(desk):
    topic_id = desk.create("twice")
    desk.create()
    by_id = DeleteTopicState(name=None, topic_id=topic_id)
    for both in ([named("twice"), by_id], [by_id, named("twice")]):
        request = DeleteTopicsRequest(topics=[*both, named("none")], timeout_ms=1)
        answers = {one.name: one for one in desk.ask(request, 6).responses}
        assert (answers["twice"].error_code, answers["twice"].topic_id) == (42, topic_id)
        assert answers["none"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert len(answers) == 2
    assert "twice" in desk.cluster.catalog.by_name
    assert sorted(delete(desk, by_id, named("twice"), named("orders"))) == [0, 42]
    assert "twice" in desk.cluster.catalog.by_name
    assert "orders" not in desk.cluster.catalog.by_name


def test_a_name_given_twice_does_not_keep_its_id_from_counting(desk):
    by_id = DeleteTopicState(name=None, topic_id=desk.create())
    assert sorted(delete(desk, by_id, named("orders"), named("orders"))) == [0, 42]
    nothing = DeleteTopicState(name=None)
    assert delete(desk, nothing, nothing) == [42, 42]


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_who_does_not_wait_gets_nothing(desk, timeout_ms):
    """Upstream's controller has no time left for it, and does nothing at all."""
    desk.create()
    late = [ErrorCode.REQUEST_TIMED_OUT] * 2
    assert create(desk, topic("a"), topic("orders"), timeout_ms=timeout_ms) == late
    assert create(desk, topic("a"), topic("b"), timeout_ms=timeout_ms, validate_only=True) == late
    # What is named twice never comes to the controller.
    assert create(desk, topic("a"), topic("a"), timeout_ms=timeout_ms) == [42]
    assert create(desk, topic("a"), topic("a"), topic("b"), timeout_ms=timeout_ms) == [7, 7, 7]
    assert grow(desk, "orders", 3, timeout_ms=timeout_ms) == late[0]
    assert grow(desk, "none", 3, timeout_ms=timeout_ms) == late[0]
    request = DeleteTopicsRequest(topics=[named("orders"), named("none")], timeout_ms=timeout_ms)
    assert [one.error_code for one in desk.ask(request, 6).responses] == late
    assert list(desk.cluster.catalog.by_name) == ["__consumer_offsets", "orders"]
    assert desk.cluster.catalog.by_name["orders"].partitions == 1


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_deletion_can_be_switched_off(version, code):
    desk = Desk(delete_topic_enable="false")
    desk.create()
    request = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1)

    assert desk.ask(request, version).responses[0].error_code == code
