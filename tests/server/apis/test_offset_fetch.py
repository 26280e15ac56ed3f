"""OffsetFetch in every version, and of groups of several nodes."""

import pytest
from tests.server.apis.offsets import commit
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)


def fetched(desk, version, group_id="g", node=0, topics=("orders",)):
    """The group's code, and offset and code by partition; None asks for all."""
    if version >= 8:
        asked = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1]) for topic in topics
            ]
        )
        group = OffsetFetchRequestGroup(group_id=group_id, topics=asked)
        (answer,) = desk.ask(OffsetFetchRequest(groups=[group]), version, node=node).groups
    else:
        asked = (
            None
            if topics is None
            else [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1]) for topic in topics]
        )
        request = OffsetFetchRequest(group_id=group_id, topics=asked)
        answer = desk.ask(request, version, node=node)
    return answer.error_code, {
        (topic.name, one.partition_index): (one.committed_offset, one.error_code)
        for topic in answer.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 10))
def test_every_version_reads_the_same(desk, version):
    """K709-11, K709-15: from v2 on all partitions can be asked for."""
    desk.create(partitions=2)
    commit(desk, [("orders", [1])])

    assert fetched(desk, version) == (0, {("orders", 0): (-1, 0), ("orders", 1): (1, 0)})
    if version >= 2:
        assert fetched(desk, version, topics=None) == (0, {("orders", 1): (1, 0)})


@pytest.mark.parametrize("version", range(1, 10))
def test_the_wrong_node_says_so_where_the_version_has_room_for_it(version):
    """K709-09, K709-11: v1 says it of every partition."""
    desk = Desk(nodes=3)
    wrong = (desk.cluster.placement.coordinator_of("g") + 1) % 3
    code = ErrorCode.NOT_COORDINATOR

    expected = {("orders", 0): (-1, code), ("orders", 1): (-1, code)}
    assert fetched(desk, version, node=wrong) == ((0, expected) if version == 1 else (code, {}))


def test_one_group_of_another_node_leaves_the_others_whole():
    """K709-14, K709-16."""
    desk = Desk(nodes=3)
    ids = [f"group-{number}" for number in range(6)]
    own = [one for one in ids if desk.cluster.placement.coordinator_of(one) == 0]
    assert 0 < len(own) < len(ids)
    groups = [OffsetFetchRequestGroup(group_id=one, topics=None) for one in ids]
    answer = desk.ask(OffsetFetchRequest(groups=groups), 9).groups

    assert [(one.group_id, one.error_code) for one in answer] == [
        (one, 0 if one in own else ErrorCode.NOT_COORDINATOR) for one in ids
    ]
