# SPDX-License-Identifier: Apache-2.0
"""DescribeTopicPartitions: page by page, and where a page may begin."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)

OFFSETS = "__consumer_offsets"


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
