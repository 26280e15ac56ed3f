# SPDX-License-Identifier: Apache-2.0
"""Committed offsets, asked for and deleted in a line."""

from tests.coordinator.desk import Desk, topic_id

from kohort.errors import ErrorCode
from kohort.machines.effects import Producer
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue
from kohort.terms import GroupId
from kohort.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

G = GroupId("g")
FIRST = ("orders", 0)
NOTHING = (-1, -1, "", 0)  # what is answered of a partition without an offset


def fetched(desk: Desk, group_id: str = "g", wanted=None, *, stable_only: bool = False, **fields):
    """(offset, leader epoch, metadata, error) by partition."""
    names = None
    if wanted is not None:
        names = [
            OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
            for topic, partition in wanted
        ]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=names, **fields)],
        require_stable=stable_only,
    )
    (group,) = desk.told(request, 10).groups
    assert group.group_id == group_id
    if group.error_code:
        assert group.topics == []
        return group.error_code
    return {
        (topic.name, one.partition_index): (
            one.committed_offset,
            one.committed_leader_epoch,
            one.metadata,
            one.error_code,
        )
        for topic in group.topics
        for one in topic.partitions
    }


def delete(desk: Desk, *partitions: tuple[str, int], group_id: str = "g"):
    by_topic: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(
            OffsetDeleteRequestPartition(partition_index=partition)
        )
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(name=topic, partitions=some)
            for topic, some in by_topic.items()
        ],
    )
    answer = desk.told(request, 0)
    if answer.error_code:
        assert answer.topics == []
        return answer.error_code
    return {
        (topic.name, one.partition_index): one.error_code
        for topic in answer.topics
        for one in topic.partitions
    }


def value(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=offset, metadata="", commit_timestamp=1, topic_id=topic_id("orders")
    )


def key(partition: int = 0) -> OffsetCommitKey:
    return OffsetCommitKey(group="g", topic="orders", partition=partition)


class Log:
    """Replays records one by one, as a loader does."""

    def __init__(self) -> None:
        self.desk = Desk()

    def put(self, offset: int | None, producer_id: int = -1, partition: int = 0) -> None:
        record = Record(key(partition), None if offset is None else value(offset))
        producer = None if producer_id == -1 else Producer(producer_id, 0)
        self.desk.write(record, producer=producer)

    def marker(self, producer_id: int, *, commit: bool = True) -> None:
        self.desk.end_transaction(Producer(producer_id, 0), commit=commit)

    @property
    def committed(self) -> int:
        offset: int = fetched(self.desk, wanted=[FIRST])[FIRST][0]
        return offset

    @property
    def unstable(self) -> bool:
        code: int = fetched(self.desk, wanted=[FIRST], stable_only=True)[FIRST][3]
        assert code in (0, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return code != 0
