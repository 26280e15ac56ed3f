"""ConsumerGroupHeartbeat: join, stay, acknowledge, leave (KIP-848).

Has the member changed? Then the group may need a new epoch. Is the target older than the group?
Then compute it. How far may this member go towards it? Each question yields records, in this order,
and the answer tells the member the result.
"""

from collections.abc import Sequence
from dataclasses import replace

from kohort.assignors.subscriptions import java_sorted
from kohort.coordinator.consumer import fencing, metadata, planning, reconcile, static, timers
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import AWAY, JOINING, Member
from kohort.coordinator.consumer.quiet import quiet_answer, quiet_member
from kohort.coordinator.consumer.reconcile import Owned
from kohort.coordinator.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    regex_tombstone,
)
from kohort.coordinator.consumer.requests import check
from kohort.coordinator.consumer.target import NOTHING
from kohort.coordinator.effects import Call, Client, Effects, Note, Reply
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.records.codec import Record
from kohort.terms import GroupId, GroupState, GroupType, MemberId, Millis, TopicId, uuid_text
from kohort.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def heartbeat(state: State, call: Call[ConsumerGroupHeartbeatRequest], now: Millis) -> Effects:
    """One heartbeat of one member. Nearly all of them change nothing, and are answered here."""
    request = call.request
    group = state.groups.get(GroupId(request.group_id))
    if type(group) is ConsumerGroup:
        member = quiet_member(group, request, call.client)
        if member is not None:
            timers.renew(state, group, member, now)
            return Effects([], [Reply(call.token, quiet_answer(group, member))])
    check(request, call.version, state.assignors)
    if request.member_epoch < JOINING:
        return fencing.leave(state, call, now)
    return _join_or_stay(state, call, now)


def _join_or_stay(state: State, call: Call[ConsumerGroupHeartbeatRequest], now: Millis) -> Effects:
    request = call.request
    group, records = _group_of(state, request)
    _check_room(group, request.member_id)
    request.member_id = request.member_id or uuid_text(state.new_uuid())
    succession = _succession(state, group, request, now)
    if succession is not None:
        return succession
    owned = _owned(request)
    before = _member_of(group, request, owned)
    known = group.members.get(before.id)
    member = _described(before, request, call.client)

    if known is None or member != before:
        records.append(member_record(group.id, member))
    records += _dropped_expression(group, before, member)
    epoch, metadata_hash = _epoch(state, group, known, before, member)
    if epoch > group.group_epoch:
        records.append(epoch_record(group.id, epoch, metadata_hash))

    planned = planning.plan(state, group, member, epoch, now)
    if planned is None:
        target_epoch, target = group.target_epoch, group.targets.get(member.id, NOTHING)
    else:
        target_epoch, target = planned.epoch, planned.of_member
        records += planned.records

    subscribed = planning.topic_ids(group.names_of(member), state.topics)
    goal = reconcile.Goal(target_epoch, target.partitions, subscribed)
    resubscribed = _subscription(before) != _subscription(member)
    moved = reconcile.step(member, goal, owned=owned, held=group.held, resubscribed=resubscribed)
    if moved is not member:
        records.append(current_record(group.id, moved))

    # From here on nothing refuses, so what a reload forgets may be touched.
    if epoch == group.group_epoch:  # else the record of the epoch ends it, once it is written
        group.metadata_stale = False
    timers.renew(state, group, moved, now)
    if moved is not member:
        timers.watch_revocation(state, group, moved, now)
    notes = [Note(group.id, f"member {moved.id} joins")] if known is None else []
    return Effects(records, [Reply(call.token, _answer(group, request, before, moved))], notes)


def _group_of(
    state: State, request: ConsumerGroupHeartbeatRequest
) -> tuple[ConsumerGroup, list[Record]]:
    """The group, and the records that must be written before all others. A new group is made by its
    first records; an empty classic group makes room for it.
    """
    group_id = GroupId(request.group_id)
    known = state.groups.get(group_id)
    if isinstance(known, ConsumerGroup):
        return known, []
    joins = request.member_epoch == JOINING
    if known is None and joins:
        return ConsumerGroup(group_id, state.consumer_settings), []
    if known is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if joins and known.type is GroupType.CLASSIC and known.state is GroupState.EMPTY:
        return ConsumerGroup(group_id, state.consumer_settings), known.tombstones()
    raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def _check_room(group: ConsumerGroup, member_id: str) -> None:
    limit = group.settings.max_size
    if len(group.members) >= limit and member_id not in group.members:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )


def _succession(
    state: State, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, now: Millis
) -> Effects | None:
    """The steps before that of a member that joins in the place of another (KIP-345), if it does.
    The call is taken once more after each. A place of its own it gives up first.
    """
    if request.member_epoch != JOINING:
        return None
    member_id = MemberId(request.member_id)
    former = static.former_self(group, member_id, request.instance_id)
    if former is None:
        return None
    own = group.members.get(member_id)
    if own is not None:
        return Effects(fencing.remove(state, group, [own]), again=True)
    return static.replaced(state, group, former, member_id, now)


def _member_of(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, owned: Owned | None
) -> Member:
    """The member as the group has it, or a new one. Raises ApiError for one that is fenced."""
    member_id = MemberId(request.member_id)
    if request.member_epoch != JOINING:
        member = static.claimed(group, member_id, request.instance_id)
        _check_epoch(member, request.member_epoch, owned)
        return member
    known = group.members.get(member_id)
    if known is not None and known.epoch == AWAY:
        return replace(known, epoch=JOINING, previous_epoch=JOINING)
    return known or Member(member_id)


def _check_epoch(member: Member, epoch: int, owned: Owned | None) -> None:
    """A member that is not at its epoch has missed something, unless it only missed our last
    answer: then it is at the epoch before, with nothing that it may not have.
    """
    if epoch == member.epoch:
        return
    lost_answer = epoch < member.epoch and epoch == member.previous_epoch and owned is not None
    if lost_answer and _is_assigned(member, owned or {}):
        return
    than = "greater" if epoch > member.epoch else "smaller"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {than} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )


def _is_assigned(member: Member, owned: Owned) -> bool:
    return all(
        index in member.assigned.get(topic, ())
        for topic, indices in owned.items()
        for index in indices
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    owned: dict[TopicId, set[int]] = {}
    for one in request.topic_partitions:
        owned.setdefault(TopicId(one.topic_id), set()).update(one.partitions)
    return owned


def _described(member: Member, request: ConsumerGroupHeartbeatRequest, client: Client) -> Member:
    """The member with what it says about itself; what it leaves out stays as it was. A member that
    uses this protocol is no longer a classic one.
    """
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.id,
        client_host=client.host,
        subscribed_names=member.subscribed_names if names is None else _names(names),
        subscribed_regex=member.subscribed_regex if regex is None else regex,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms
            if request.rebalance_timeout_ms == -1
            else request.rebalance_timeout_ms
        ),
        server_assignor=(
            member.server_assignor if request.server_assignor is None else request.server_assignor
        ),
        classic=None,
    )


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(java_sorted(dict.fromkeys(names)))


def _subscription(member: Member) -> tuple[tuple[str, ...], str]:
    return member.subscribed_names, member.subscribed_regex


def _dropped_expression(group: ConsumerGroup, before: Member, member: Member) -> list[Record]:
    """Forget the topics of an expression that has lost its last subscriber."""
    expression = before.subscribed_regex
    if (
        not expression
        or expression == member.subscribed_regex
        or expression not in group.resolved
        or group.subscribers_of(expression) > 1
    ):
        return []
    return [regex_tombstone(group.id, expression)]


def _epoch(
    state: State, group: ConsumerGroup, known: Member | None, before: Member, member: Member
) -> tuple[int, int]:
    """The group's epoch after this heartbeat, and the hash over the topics that it then reads.

    A new epoch is due when a subscription has changed, when a vote has made another assignor win
    (KAFKA-20434), or when the topics themselves have changed.
    """
    leaving = () if known is None else (known,)
    changed = _reads_other_topics(group, before, member)
    if group.members and before.server_assignor != member.server_assignor:
        changed = changed or group.assignor != group.assignor_with(leaving, (member,))
    if not changed and not group.metadata_stale:
        return group.group_epoch, group.metadata_hash
    names = group.topic_names(leaving, (member,))
    metadata_hash = metadata.hash_of(names, state.topics)
    if not changed and metadata_hash == group.metadata_hash:
        return group.group_epoch, metadata_hash
    return group.group_epoch + 1, metadata_hash


def _reads_other_topics(group: ConsumerGroup, before: Member, member: Member) -> bool:
    """An expression counts once it is resolved, or once it is taken back."""
    if before.subscribed_names != member.subscribed_names:
        return True
    expression = member.subscribed_regex
    return before.subscribed_regex != expression and (
        not expression or expression in group.resolved
    )


def _answer(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, before: Member, after: Member
) -> ConsumerGroupHeartbeatResponse:
    """The answer carries the whole assignment when the member joins, when it tells everything about
    itself, and when the assignment has changed. Without it, the assignment is as before.
    """
    tells_all = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names, request.subscribed_topic_regex) != (None, None)
        and request.topic_partitions is not None
    )
    assignment = None
    if request.member_epoch == JOINING or tells_all or before.assigned != after.assigned:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic, partitions=list(partitions))
                for topic, partitions in after.assigned.items()
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=after.id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=group.settings.heartbeat_interval_ms,
        assignment=assignment,
    )
