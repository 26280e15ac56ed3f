"""The state machine behind one partition of __consumer_offsets.

Requests come in by call(), records by replay(), time by tick(), the cluster's topics by
topics_changed(). Nothing here reads a clock, draws a random number, or touches a file or a socket.

What a log can bring back changes by replay alone, live and while loading: a handler reads the state
and describes what should be written, and what it describes is replayed before the next call is
looked at. What no record tells is soft, and changed by the handlers themselves: deadlines, and of
classic groups whatever belongs to a rebalance under way, a group that nobody has finished joining
included. A reload forgets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kohort.assignors import ASSIGNORS
from kohort.coordinator import offsets, queries
from kohort.coordinator.classic import heartbeat as classic_heartbeat
from kohort.coordinator.classic import join as classic_join
from kohort.coordinator.classic import leave as classic_leave
from kohort.coordinator.classic import replay as classic_replay
from kohort.coordinator.classic import sync as classic_sync
from kohort.coordinator.consumer import fencing, metadata
from kohort.coordinator.consumer import heartbeat as consumer_heartbeat
from kohort.coordinator.consumer import replay as consumer_replay
from kohort.coordinator.deadlines import Deadlines
from kohort.coordinator.effects import Call, Effects, Reply
from kohort.coordinator.groups import Groups, OtherGroup
from kohort.coordinator.offsets import Offsets
from kohort.coordinator.topics import Topics
from kohort.errors import ApiError
from kohort.records import schemas
from kohort.records.codec import Record, Unknown, foreign_group_or_none
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.offset_commit import OffsetCommitRequest
from kohort.wire.messages.offset_delete import OffsetDeleteRequest
from kohort.wire.messages.offset_fetch import OffsetFetchRequest
from kohort.wire.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kohort.assignors import Assign
    from kohort.config import BrokerConfig
    from kohort.terms import Millis

NO_TOPICS = Topics()


class Shard:
    """The groups of one partition and their offsets.

    Handlers validate before they touch a deadline, so a refusal changes nothing. `loading` is true
    until start(): what compaction may have taken out of a log is then missed without complaint.
    """

    def __init__(
        self,
        config: BrokerConfig,
        new_uuid: Callable[[], bytes],
        topics: Topics = NO_TOPICS,
        assignors: Mapping[str, Assign] = ASSIGNORS,
    ) -> None:
        self.config = config
        self.new_uuid = new_uuid
        self.topics = topics
        self.assignors = {name: assignors[name] for name in config.group_consumer_assignors}
        self.groups = Groups()
        self.offsets = Offsets()
        self.deadlines = Deadlines()
        self.loading = True

    def call(self, call: Call[Any], now: Millis) -> Effects:
        """Answer a request, or park it. A refusal is an answer like any other."""
        try:
            effects = CALLS[type(call.request)](self, call, now)
        except ApiError as error:
            return Effects([], [Reply(call.token, call.request.refused(error))])
        if effects.records:
            self._absorb(effects)
        return effects

    def tick(self, now: Millis) -> Effects:
        """Do everything that is due."""
        effects = Effects()
        while (due := self.deadlines.pop_due(now)) is not None:
            action, arguments = due
            step: Effects = action(self, now, *arguments)
            step.groups.append(arguments[0])  # every deadline is about a group
            effects.extend(self._absorb(step))
        return effects

    def wake_at(self) -> Millis | None:
        """When tick() has something to do; it may be asked too early, never too late."""
        return self.deadlines.wake_at()

    def topics_changed(self, topics: Topics, now: Millis) -> Effects:  # noqa: ARG002
        """Take the next image of the cluster's topics.

        Offsets of deleted topics go at once; groups look at their topics anew at their next
        heartbeat. A topic made anew under the same name is another topic.
        """
        before, self.topics = self.topics, topics
        changed, deleted = metadata.changes(before, topics)
        metadata.touch(self, changed)
        effects = self._absorb(Effects(offsets.topics_deleted(self, deleted) if deleted else []))
        effects.extend(self._absorb(Effects(offsets.of_former_topics(self, changed))))
        return effects

    def start(self, now: Millis) -> Effects:
        """The log has been read: from here on time counts.

        What the end of a topic should have written while nobody was here is written now.
        """
        self.loading = False
        effects = self._absorb(classic_heartbeat.start(self, now))
        effects.extend(self._absorb(Effects(offsets.of_former_topics(self, self.topics.by_name))))
        fencing.start(self, now)
        return effects

    def replay(self, record: Record | Unknown, *, producer_id: int = -1, offset: int = -1) -> None:
        """Make true what a record says. The only way in which anything a record tells changes.

        `producer_id` and `offset` are those of a record inside a transaction.
        """
        if isinstance(record, Unknown):
            self._replay_unknown(record)
        elif producer_id == -1:
            REPLAYS[type(record.key)](self, record.key, record.value)
        else:
            REPLAYS[type(record.key)](self, record.key, record.value, producer_id, offset)

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """The end of a transaction, as a control batch tells it."""
        offsets.replay_marker(self, producer_id, commit=commit)

    def _absorb(self, effects: Effects) -> Effects:
        for record in effects.records:
            REPLAYS[type(record.key)](self, record.key, record.value)
        return effects

    def _replay_unknown(self, record: Unknown) -> None:
        """What another broker wrote stays in the log; here only its groups are noted."""
        foreign = foreign_group_or_none(record)
        if foreign is None:
            return
        if not foreign.deleted:
            self.groups.add(OtherGroup(foreign.id, foreign.type))
        elif isinstance(self.groups.get(foreign.id), OtherGroup):
            self.groups.remove(foreign.id)


CALLS: dict[type, Callable[[Shard, Any, Millis], Effects]] = {
    ConsumerGroupHeartbeatRequest: consumer_heartbeat.heartbeat,
    HeartbeatRequest: classic_heartbeat.heartbeat,
    OffsetCommitRequest: offsets.commit,
    OffsetFetchRequest: offsets.fetch,
    JoinGroupRequest: classic_join.join,
    SyncGroupRequest: classic_sync.sync,
    LeaveGroupRequest: classic_leave.leave,
    OffsetDeleteRequest: offsets.delete,
    ListGroupsRequest: queries.list_groups,
    DescribeGroupsRequest: queries.describe_groups,
    ConsumerGroupDescribeRequest: queries.describe_consumer_groups,
    DeleteGroupsRequest: queries.delete_groups,
}

REPLAYS: dict[type, Callable[..., None]] = {
    schemas.LegacyOffsetCommitKey: offsets.replay,
    schemas.OffsetCommitKey: offsets.replay,
    schemas.GroupMetadataKey: classic_replay.replay,
    schemas.ConsumerGroupMetadataKey: consumer_replay.epoch,
    schemas.ConsumerGroupPartitionMetadataKey: consumer_replay.partition_metadata,
    schemas.ConsumerGroupMemberMetadataKey: consumer_replay.member,
    schemas.ConsumerGroupTargetAssignmentMetadataKey: consumer_replay.target_epoch,
    schemas.ConsumerGroupTargetAssignmentMemberKey: consumer_replay.target,
    schemas.ConsumerGroupCurrentMemberAssignmentKey: consumer_replay.current,
    schemas.ConsumerGroupRegularExpressionKey: consumer_replay.regular_expression,
}
