# SPDX-License-Identifier: Apache-2.0
"""What is named again and again in one request is answered once: a few kilobytes would otherwise
have an answer of any size.
"""

import pytest
from tests.server.apis.reads import READS, asked_desk

from kohort.wire.codec import encode
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

TIMES = 50


@pytest.fixture(scope="module")
def desk():
    return asked_desk()


@pytest.mark.parametrize("what", READS)
def test_a_name_is_answered_once(desk, what):
    version, asked = READS[what]
    once = encode(desk.ask(asked(1), version), version)
    again = encode(desk.ask(asked(TIMES), version), version)
    assert len(once) > 10
    assert len(again) <= len(once) + 40, "a refusal may say why"


def test_all_that_is_asked_of_a_group_is_answered(desk):
    """What is named again may ask for more."""
    desk.create("more", partitions=3)
    groups = [
        OffsetFetchRequestGroup(
            group_id="g",
            topics=[
                OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in topics
            ],
        )
        for topics in ([("orders", [0]), ("more", [2])], [("more", [1, 2, 0]), ("orders", [0])])
    ]
    (group,) = desk.ask(OffsetFetchRequest(groups=groups), 9).groups
    found = {
        topic.name: [one.partition_index for one in topic.partitions] for topic in group.topics
    }
    assert found == {"orders": [0], "more": [2, 1, 0]}


@pytest.mark.parametrize("version", [8, 9, 10])
@pytest.mark.parametrize("named_first", [True, False])
def test_a_partition_that_is_named_is_answered_beside_all_that_a_group_has(
    desk, version, named_first
):
    """Who asks for all of a group hears of no partition without an offset. Who names one does."""
    named = OffsetFetchRequestTopics(partition_indexes=[0, 0])
    if version < 10:
        named.name = "orders"
    else:
        named.topic_id = desk.cluster.topics.by_name["orders"].id
    groups = [
        OffsetFetchRequestGroup(group_id="without offsets", topics=topics)
        for topics in ([named], None, [named], None)
    ]
    request = OffsetFetchRequest(groups=groups if named_first else groups[1:])
    answers = desk.ask(request, version).groups
    assert [group.error_code for group in answers] == [0, 0]
    found = [
        (one.partition_index, one.committed_offset)
        for group in answers
        for topic in group.topics
        for one in topic.partitions
    ]
    assert found == [(0, -1)]
