# SPDX-License-Identifier: Apache-2.0
"""The questions that every kind of group answers: classic, consumer, and those of other brokers."""

from collections.abc import Iterable

from kohort.errors import ApiError, ErrorCode
from kohort.machines.deadlines import Session
from kohort.machines.effects import Call
from kohort.machines.topics import Topics
from kohort.records.codec import Record
from kohort.terms import GroupId, GroupState, GroupType, Millis
from kohort.wire.messages import consumer_group_describe
from kohort.wire.messages import describe_groups as classic_describe
from kohort.wire.messages.offset_commit import OffsetCommitRequest
from kohort.wire.messages.offset_fetch import OffsetFetchRequestGroup


class Group:
    """A group of some kind. Questions that a kind does not answer are refused, as here.

    Whoever changes a group calls `changed`, whether a record tells of the change or not: answers
    about it are kept until then. `revision` is another one after each change, and the id is noted
    in `changes`, which are those of the shard once the group is in one.
    """

    __slots__ = ("changes", "revision")

    id: GroupId
    type: GroupType
    protocol_type: str

    def __init__(self) -> None:
        self.changes: dict[GroupId, bool] | None = None
        self.revision = 0

    def changed(self) -> None:
        """Answers about the group may be other ones from now on."""
        self.revision += 1
        if self.changes is not None:
            self.changes.setdefault(self.id, False)

    @property
    def state(self) -> GroupState:
        raise NotImplementedError

    def check_commit(self, _call: Call[OffsetCommitRequest], _topics: Topics) -> Session | None:
        """The session that a commit renews, if any. Raises ApiError for a refused commit."""
        raise self._without_offsets()

    def check_transactional_commit(self, _call: Call[OffsetCommitRequest], _topics: Topics) -> None:
        """The same for a commit in a transaction, which need not name a member, and which waits for
        no rebalance. Raises ApiError.
        """
        raise self._without_offsets()

    def check_fetch(self, _wanted: OffsetFetchRequestGroup) -> None:
        """Raise ApiError where the caller says that it is a member and may not read offsets."""

    def check_offset_delete(self) -> None:
        """Raise ApiError where single offsets of the group may not be deleted."""
        raise self._without_offsets()

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member may be reading the topic, so that its offsets must stay."""
        raise NotImplementedError

    @property
    def lets_offsets_expire(self) -> bool:
        """Whether offsets may expire while the group is as it is now (KIP-211). Those of topics
        that it subscribes to never do.
        """
        return False

    @property
    def idle_since(self) -> Millis | None:
        """Since when there has been no member, where the retention of all offsets counts from that.
        None where it counts from each commit.
        """
        return None

    def check_delete(self) -> None:
        """Raise ApiError where the group may not be deleted."""
        if self.state is not GroupState.EMPTY:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"group {self.id} is {self.state}")

    def tombstones(self) -> list[Record]:
        """The end of the group, but for its offsets, in the order in which replay wants it."""
        raise NotImplementedError

    def described_classic(self) -> classic_describe.DescribedGroup:
        """As DescribeGroups tells it. Raises ApiError for a group of another kind (KIP-1043)."""
        raise _not_a(GroupType.CLASSIC, self.id)

    def described_consumer(self, _topics: Topics) -> consumer_group_describe.DescribedGroup:
        """As ConsumerGroupDescribe tells it. Raises ApiError for a group of another kind."""
        raise _not_a(GroupType.CONSUMER, self.id)

    def _without_offsets(self) -> ApiError:
        return ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"group {self.id} is a {self.type} group, which has no committed offsets",
        )


def _not_a(kind: GroupType, group_id: GroupId) -> ApiError:
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {kind} group.")


def count_by(counts: dict[str, int], keys: Iterable[str], by: int) -> None:
    """Count up or down. A key whose count is zero is removed."""
    for key in keys:
        count = counts.get(key, 0) + by
        if count:
            counts[key] = count
        else:
            del counts[key]
