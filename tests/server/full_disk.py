# SPDX-License-Identifier: Apache-2.0
"""What tests of a disk that refuses writes have in common."""

from typing import Any

from tests.server.desk import Desk

from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)


def commit(desk: Desk, group_id: str, topic: str = "t", *, node: int = 0) -> int:
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[place])]
    (answer,) = desk.ask(OffsetCommitRequest(group_id=group_id, topics=topics), 8, node=node).topics
    code: int = answer.partitions[0].error_code
    return code


def groups(desk: Desk) -> tuple[int, set[Any]]:
    answer = desk.ask(ListGroupsRequest(), 4)
    return answer.error_code, {one.group_id for one in answer.groups}
