# SPDX-License-Identifier: Apache-2.0
"""From a classic group to a consumer group: its first member of the new protocol converts it.

Every classic member stays, at the epoch that its generation was, with what the leader has assigned
to it last; where a rebalance has voided that, with what it says that it owns. So commits and
heartbeats of the generation go on. Members whose calls were parked are told to join again. A group
that was rebalancing gets a new epoch, also where its members read what they read before: upstream
leaves what has no owner then without one.

A cooperative member may be about to give up what its generation has taken from it (KIP-429): it
had that when it joined, and says so no more when it joins again. Until then nobody else may have
it. Upstream gives it away at once, while the member may still read it.
"""

from collections.abc import Iterable
from dataclasses import replace

from kohort.coordinator.classic.group import CONSUMER_PROTOCOL, ClassicGroup
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.consumer import embedded, metadata, timers
from kohort.coordinator.consumer.client_side.offers import CLASSIC_VERSION, ClientAssignor
from kohort.coordinator.consumer.group import FIRST_EPOCH, ConsumerGroup
from kohort.coordinator.consumer.member import Held, Member, MemberState, in_order
from kohort.coordinator.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from kohort.coordinator.consumer.target import Attachment, Target
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode, WireError
from kohort.machines.effects import Continuation, Effects, GroupEvent, Reply
from kohort.records.causes import Cause
from kohort.records.codec import Record
from kohort.records.consumer_protocol import decode_assignment
from kohort.records.schemas import ClassicMemberMetadata, ClassicProtocol, Computation
from kohort.terms import GroupId, GroupState, Millis, TopicId

_NEVER = Millis(0)  # no target was computed yet, so the first one does not wait for the interval
_HANDS_BACK = ("sticky", "cooperative-sticky")
"""Assignors that need no user data in assignments. The leader of librdkafka hands back to each
member what that has said, which upstream takes for an assignor of somebody's own.
"""
_MALFORMED = "the embedded consumer protocol is malformed."
_CUSTOM = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
    "default assignor before re-attempting the upgrade."
)
_OVERTAKEN = ApiError(
    ErrorCode.REBALANCE_IN_PROGRESS, "the group goes over to the consumer protocol"
)


def to_consumer(
    state: State, classic: ClassicGroup, offers: Iterable[ClientAssignor], now: Millis
) -> tuple[ConsumerGroup, Effects]:
    """The consumer group that a classic group becomes, and the step that makes it so; what the
    joining member adds belongs to the same step. What the group's assignor has written for itself
    stays where the joining member `offers` the same assignor. Raises ApiError GROUP_ID_NOT_FOUND,
    UNSUPPORTED_ASSIGNOR.
    """
    _check(state, classic)
    group = ConsumerGroup(classic.id, state.settings_of(classic.id))
    group.group_epoch = group.target_epoch = max(classic.generation, FIRST_EPOCH)
    group.target_time = _NEVER
    offer = next((offer for offer in offers if offer.name == classic.protocol), None)
    for old in classic.members.values():
        member = _converted(state, group, classic, old, offer)
        group.put(member)
        group.targets[member.id] = Target(
            {topic: tuple(held) for topic, held in member.assigned.items()}, member.attachment
        )
        if member.attachment is not None:
            group.made_by = _made_by(classic)
    for old in classic.members.values():
        _keep_what_is_given_up(state, group, old)
    group.metadata_hash = metadata.hash_of(group.topic_names((), ()), state.topics)
    if classic.state is not GroupState.STABLE:  # what nobody has now still waits for an owner
        group.metadata_hash = ~group.metadata_hash
        group.metadata_stale = True
    text = f"generation {classic.generation} goes on as a consumer group"
    event = GroupEvent(classic.id, text, Cause.MIGRATION)
    records = [*classic.tombstones(), *_records(group)]
    return group, Effects(
        records, events=[event], continuation=Continuation(then=lambda: _go_on(state, classic, now))
    )


def _check(state: State, classic: ClassicGroup) -> None:
    limit = state.settings_of(classic.id).max_size
    if not state.migration.upgrades:
        raise _refusal(classic.id, "online upgrade is disabled.")
    if classic.protocol_type != CONSUMER_PROTOCOL:
        raise _refusal(classic.id, "the group does not use the consumer embedded protocol.")
    if len(classic.members) > limit:
        raise _refusal(classic.id, "the group size exceeds the consumer group maximum size.")


def _made_by(classic: ClassicGroup) -> Computation:
    """The leader has computed the assignments."""
    return Computation(
        assignor=classic.protocol or "",
        member_id=classic.leader,
        reason=0,
        error=0,
        took_ms=0,
        why="",
    )


def _kept(
    group: ConsumerGroup, classic: ClassicGroup, data: bytes, offer: ClientAssignor | None
) -> Attachment | None:
    """What the assignor has written for a member, where the joining member has it too."""
    if not data:
        return None
    if offer is None:
        if classic.protocol in _HANDS_BACK:
            return None
        raise _refusal(group.id, _CUSTOM)
    if not offer.reads(CLASSIC_VERSION, CLASSIC_VERSION):
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"assignor {offer.name} reads metadata of versions {offer.minimum} to {offer.maximum}, "
            f"the classic members of group {group.id} use data of version {CLASSIC_VERSION}",
        )
    return Attachment(0, CLASSIC_VERSION, data, classic.protocol or "")


def _converted(
    state: State,
    group: ConsumerGroup,
    classic: ClassicGroup,
    member: ClassicMember,
    offer: ClientAssignor | None,
) -> Member:
    """A member of the classic group as one of the consumer group."""
    try:
        subscription = embedded.subscription(member.protocols)
        assigned = decode_assignment(member.assignment) if member.assignment else None
    except WireError as error:
        raise _refusal(group.id, _MALFORMED) from error
    named = []
    attachment = None
    if assigned is not None:
        attachment = _kept(group, classic, assigned.user_data or b"", offer)
        named = assigned.assigned_partitions
    elif classic.state is not GroupState.STABLE:
        named = subscription.owned_partitions
    held: Held = {}
    for topic, indices in embedded.partitions(named, state.topics).items():
        free = _free(group, topic, indices)
        if free:
            held[topic] = dict.fromkeys(free, group.group_epoch)
    return Member(
        member.id,
        member.instance_id,
        subscription.rack_id,
        member.client.id,
        member.client.host,
        in_order(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=said) for name, said in member.protocols.items()
            ],
        ),
        epoch=group.group_epoch,
        previous_epoch=group.group_epoch,
        assigned=held,
        attachment=attachment,
    )


def _keep_what_is_given_up(state: State, group: ConsumerGroup, old: ClassicMember) -> None:
    """What the member had when it joined, and nobody was given since, is its own until it says
    that it is not.
    """
    member = group.members[old.id]
    owned = embedded.partitions(embedded.subscription(old.protocols).owned_partitions, state.topics)
    revoking: Held = {}
    for topic, indices in owned.items():
        free = _free(group, topic, indices)
        if free:
            revoking[topic] = dict.fromkeys(free, group.group_epoch)
    if revoking:
        group.put(replace(member, state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking))


def _free(group: ConsumerGroup, topic: TopicId, indices: tuple[int, ...]) -> list[int]:
    """What no other member has: a leader may have given one partition to two of them."""
    holders = group.held.get(topic, {})
    return [index for index in indices if index not in holders]


def _records(group: ConsumerGroup) -> list[Record]:
    members = group.members.values()
    return [
        *(member_record(group.id, member) for member in members),
        epoch_record(group.id, group.group_epoch, group.metadata_hash),
        *(
            target_record(group.id, member_id, target)
            for member_id, target in group.targets.items()
        ),
        target_epoch_record(group.id, group.target_epoch, group.target_time, group.made_by),
        *(current_record(group.id, member) for member in members),
    ]


def _go_on(state: State, classic: ClassicGroup, now: Millis) -> Effects:
    """The members' sessions begin anew, and nobody waits for the classic group any more."""
    group = state.groups.consumer(classic.id)
    assert group is not None
    group.metadata_stale = classic.state is not GroupState.STABLE
    for member in group.members.values():
        if member.classic is not None:
            timers.renew(state, group, member, now)
    replies = []
    for old in classic.members.values():
        if old.join is not None:
            refusal = old.join.request.refused(_OVERTAKEN)
            refusal.member_id = old.id  # a static member that joined without one is in the group
            replies.append(Reply(old.join.token, refusal))
        if old.sync is not None:
            replies.append(Reply(old.sync.token, old.sync.request.refused(_OVERTAKEN)))
    return Effects([], replies)


def _refusal(group_id: GroupId, why: str) -> ApiError:
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because {why}",
    )
