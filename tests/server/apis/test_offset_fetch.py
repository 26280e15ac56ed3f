# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch in every version, and of groups of several nodes."""

import pytest
from tests.server.apis.offsets import commit
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.apis import offset_fetch
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
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


def large():
    """Several groups: of one all topics, of others some partitions of several topics."""

    def topics(*names):
        indexes = [*range(7)]
        return [OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name in names]

    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id="g", topics=topics("orders", "bills", "none")),
            OffsetFetchRequestGroup(group_id="all", topics=None),
            OffsetFetchRequestGroup(group_id="h", topics=[]),
            *(OffsetFetchRequestGroup(group_id=one, topics=topics("orders")) for one in "abcdef"),
            OffsetFetchRequestGroup(group_id="i", topics=topics("bills")),
            OffsetFetchRequestGroup(group_id="k", member_id="nobody", member_epoch=3, topics=[]),
        ]
    )


def with_offsets(nodes=1):
    desk = Desk(nodes=nodes)
    for name in ("orders", "bills"):
        desk.create(name, partitions=7)
    for group_id in ("g", "all", "i", *"abcdef"):
        for name in ("orders", "bills"):
            place = OffsetCommitRequestPartition(
                partition_index=3, committed_offset=5, committed_metadata="here"
            )
            topics = [OffsetCommitRequestTopic(name=name, partitions=[place])]
            for node in range(nodes):
                commits = OffsetCommitRequest(group_id=group_id, member_id="", topics=topics)
                desk.ask(commits, 9, node=node)
    return desk


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("at_once", [1, 2, 5, 8, 9, 250])
def test_a_large_request_is_answered_as_a_small_one(monkeypatch, nodes, at_once):
    desk = with_offsets(nodes)
    whole = desk.ask(large(), 9)
    assert any(group.topics for group in whole.groups)
    monkeypatch.setattr(offset_fetch, "AT_ONCE", at_once)
    assert desk.ask(large(), 9) == whole


def test_a_large_request_reaches_its_shards_a_part_at_a_time(monkeypatch):
    """What one machine answers holds up all others, so it has a bound."""
    desk = with_offsets()
    sizes = []
    fetch = offset_fetch._fetch

    def counted(node, call):
        sizes.append(offset_fetch._counted(node, call.request.groups)[1])
        fetch(node, call)

    monkeypatch.setattr(offset_fetch, "AT_ONCE", 8)
    monkeypatch.setattr(offset_fetch, "GROUP", 1)
    monkeypatch.setattr(offset_fetch, "_fetch", counted)
    desk.ask(large(), 9)
    assert len(sizes) > 4
    assert max(sizes) <= 1 + 8 + 1  # a group, its topic, and partitions
