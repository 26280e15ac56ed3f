# SPDX-License-Identifier: Apache-2.0
"""The state machine behind one partition of __consumer_offsets.

Requests come in by call(), records by replay(), time by tick(), the cluster's topics by
topics_changed(). Nothing here reads a clock, draws a random number, or touches a file or a socket.

A handler reads the state and describes what should be written. The driver replays this description
before it asks the machine anything else, live as well as after a restart.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any

from kohort.config import BrokerConfig
from kohort.coordinator import classic_protocol, group_settings, queries, share_and_streams
from kohort.coordinator.classic import heartbeat as classic_heartbeat
from kohort.coordinator.classic import rebalance, timers
from kohort.coordinator.classic import replay as classic_replay
from kohort.coordinator.consumer import expressions, fencing, metadata, no_op_heartbeats, planning
from kohort.coordinator.consumer import heartbeat as consumer_heartbeat
from kohort.coordinator.consumer import replay as consumer_replay
from kohort.coordinator.consumer import timers as consumer_timers
from kohort.coordinator.consumer.client_side import choosing, install, prepare
from kohort.coordinator.migration import downgrade
from kohort.coordinator.offsets import cleanup, commit, delete, expiry, fetch, transactional
from kohort.coordinator.offsets import records as offset_records
from kohort.coordinator.state import State
from kohort.errors import ApiError, Broken
from kohort.machines.deadlines import DeadlineMixin
from kohort.machines.effects import BackgroundTask, Call, Effects, Producer, Reply
from kohort.machines.topics import Topics
from kohort.records import codec, schemas
from kohort.records.causes import Headers
from kohort.records.codec import Record, Unknown
from kohort.terms import GroupId, Millis
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)
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
from kohort.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


class Shard(DeadlineMixin, State):
    """The groups of one partition, as a machine that a driver runs.

    Handlers validate before they touch a deadline, so a refusal changes nothing.
    """

    def call(self, call: Call[Any], now: Millis) -> Effects:
        """Answer a request, or park it. A refusal is an answer like any other."""
        try:
            return CALLS[type(call.request)](self, call, now)
        except expressions.ExpressionRefusedError as error:
            events = expressions.refused(self, call, error)
            return Effects([], [Reply(call.token, call.request.refused(error))], events)
        except ApiError as error:
            return Effects([], [Reply(call.token, call.request.refused(error))])

    def reads(self, call: Call[Any]) -> bool:
        """Whether this call changes nothing: it only asks, or repeats what its member has said."""
        request = call.request
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            return no_op_heartbeats.no_op_heartbeat_or_none(self, request, call.client) is not None
        if isinstance(request, HeartbeatRequest):
            return self.groups.consumer(GroupId(request.group_id)) is None
        return type(request) in READS

    def meet(self, kind: str, now: Millis, *about: Any) -> Effects:
        """Do what one deadline asks for."""
        return DEADLINES[kind](self, now, *about)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Settings of the broker have changed that groups follow."""
        group_settings.reconfigure(self, config)

    def expire_offsets(self, now: Millis) -> None:
        """Look for expired offsets in the next turn, and not only after the check interval."""
        expiry.begin_now(self, now)

    def topics_changed(self, topics: Topics, now: Millis) -> Iterator[Effects]:
        """Take the next image of the cluster's topics; its consequences come in slices.

        Groups look at their topics at their next heartbeat, and those with regular expressions at
        new ones at once. Offsets of deleted topics go; a topic made anew under the same name is
        another topic.
        """
        before, self.topics = self.topics, topics
        self.descriptions.topics_changed(before, topics)
        changed, deleted = metadata.changes(before, topics)
        metadata.touch(self, frozenset(changed))
        return self._after_change(changed, deleted, before, now)

    def _after_change(
        self, changed: list[str], deleted: list[str], before: Topics, now: Millis
    ) -> Iterator[Effects]:
        yield from expressions.topics_changed(self, before, changed, now)
        ids = {name: before.by_name[name].id for name in deleted}
        yield from cleanup.of_deleted_topics(self, ids, now)
        yield from cleanup.of_former_topics(self, changed)

    def finished(self, task: BackgroundTask, outcome: Any, now: Millis) -> Effects:
        """Take the outcome of what was done beside this shard."""
        (kind, *_) = task.key
        return TASK_OUTCOMES[kind](self, task, outcome, now)

    def start(self, now: Millis) -> Iterator[Effects]:
        """The log has been read: from here on time counts. Its consequences come in slices.

        Tombstones for topics that were deleted while no broker was running are written now.
        """
        self.loading = False
        self.event_log.begin(self.groups)
        fencing.start(self, now)
        expiry.await_next(self, now)
        yield from group_settings.start(self)
        yield from classic_heartbeat.start(self, now)
        yield from downgrade.start(self, now)
        yield from cleanup.of_former_topics(self, self.topics.by_name)

    def replay(self, record: Record | Unknown, offset: int, producer: Producer | None) -> None:
        """Make true what the record at `offset` says. Nothing else changes what a log can bring
        back. `producer` is the one whose transaction the record belongs to.
        """
        key = record.key
        REPLAYS[type(key)](self, key, record.value, offset, producer)

    def replay_marker(self, producer: Producer, *, commit: bool) -> None:
        """The end of a transaction, as a control batch tells it."""
        self.offsets.end_transaction(producer.id, commit=commit)

    def headers(self, step: Effects) -> dict[int, Headers]:
        """Why each record of a step is written."""
        return self.causes.headers(self.groups, step)

    encode = staticmethod(codec.encode)
    decode = staticmethod(codec.decode)

    def log_lines(self, calls: Iterable[Call[Any]], steps: Iterable[Effects]) -> Iterable[str]:
        """What to tell about a turn, a line for each thing that has happened. It is counted."""
        return self.event_log.lines(self.groups, calls, steps)


Replay = Callable[[State, Any, Any, int, Producer | None], None]


def _without_offset(
    replay: Callable[[State, Any, Any], None], group_id_of: Callable[[Any], GroupId] | None
) -> Replay:
    """A record that may not be in a transaction and does not need its offset. It has changed its
    group: with `group_id_of` None, `replay` notes that itself.
    """

    def outside(state: State, key: Any, value: Any, offset: int, producer: Producer | None) -> None:
        if producer is not None:
            raise Broken(
                f"{type(key).__name__} at offset {offset} is in a transaction of {producer}, "
                "expected committed offsets alone"
            )
        replay(state, key, value)
        if group_id_of is not None:
            group = state.groups.get(group_id_of(key))
            if group is not None:
                group.changed()

    return outside


def _of_consumer_group(replay: Callable[[State, Any, Any], None]) -> Replay:
    return _without_offset(replay, attrgetter("group_id"))


CALLS: dict[type, Callable[[State, Any, Millis], Effects]] = {
    ConsumerGroupHeartbeatRequest: consumer_heartbeat.heartbeat,
    ConsumerGroupPrepareAssignmentRequest: prepare.prepare,
    ConsumerGroupInstallAssignmentRequest: install.install,
    HeartbeatRequest: classic_protocol.heartbeat,
    OffsetCommitRequest: commit.commit,
    OffsetFetchRequest: fetch.fetch,
    JoinGroupRequest: classic_protocol.join,
    SyncGroupRequest: classic_protocol.sync,
    LeaveGroupRequest: classic_protocol.leave,
    OffsetDeleteRequest: delete.delete,
    TxnOffsetCommitRequest: transactional.commit,
    transactional.EndOffsets: transactional.end_offsets,
    ListGroupsRequest: queries.list_groups,
    DescribeGroupsRequest: queries.describe_groups,
    ConsumerGroupDescribeRequest: queries.describe_consumer_groups,
    DeleteGroupsRequest: queries.delete_groups,
    group_settings.DescribeGroupSettings: group_settings.describe,
    group_settings.AlterGroupSettings: group_settings.alter,
    group_settings.ListConfiguredGroups: group_settings.list_configured,
}

READS = frozenset(
    {
        OffsetFetchRequest,
        ListGroupsRequest,
        DescribeGroupsRequest,
        ConsumerGroupDescribeRequest,
        group_settings.DescribeGroupSettings,
        group_settings.ListConfiguredGroups,
    }
)

REPLAYS: dict[type, Replay] = {
    bytes: _without_offset(
        share_and_streams.replay, None
    ),  # the key of a record type that is not ours
    schemas.LegacyOffsetCommitKey: offset_records.replay,
    schemas.OffsetCommitKey: offset_records.replay,
    schemas.GroupMetadataKey: _without_offset(classic_replay.replay, attrgetter("group")),
    schemas.ConsumerGroupMetadataKey: _of_consumer_group(consumer_replay.epoch),
    schemas.ConsumerGroupPartitionMetadataKey: _of_consumer_group(
        consumer_replay.partition_metadata
    ),
    schemas.ConsumerGroupMemberMetadataKey: _of_consumer_group(consumer_replay.member),
    schemas.ConsumerGroupTargetAssignmentMetadataKey: _of_consumer_group(
        consumer_replay.target_epoch
    ),
    schemas.ConsumerGroupTargetAssignmentMemberKey: _of_consumer_group(consumer_replay.target),
    schemas.ConsumerGroupCurrentMemberAssignmentKey: _of_consumer_group(consumer_replay.current),
    schemas.ConsumerGroupRegularExpressionKey: _of_consumer_group(
        consumer_replay.regular_expression
    ),
    schemas.GroupSettingsKey: _of_consumer_group(group_settings.replay),
}

DEADLINES: dict[str, Callable[..., Effects]] = {
    consumer_timers.SESSION: fencing.session_over,
    consumer_timers.REVOCATION: fencing.revocation_overdue,
    consumer_timers.JOIN: fencing.join_overdue,
    consumer_timers.SYNC: fencing.sync_overdue,
    consumer_timers.COMPUTATION: choosing.overdue,
    expressions.REFRESH: expressions.refresh,
    timers.SESSION: rebalance.session_over,
    timers.START: rebalance.start_delay_over,
    timers.JOIN: rebalance.joins_overdue,
    timers.SYNC: rebalance.syncs_overdue,
    expiry.EXPIRY: expiry.begin,
}

TASK_OUTCOMES: dict[str, Callable[..., Effects]] = {
    expressions.REFRESH: expressions.finished,
    planning.PLAN: planning.finished,
}
