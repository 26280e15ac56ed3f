# SPDX-License-Identifier: Apache-2.0
"""JoinGroup in a consumer group: a member of the classic protocol enters, or comes back.

Its subscription is read here, since no leader does. What it says that it owns acknowledges what it
has given up; an eager client owns nothing when it joins. The answer is not parked: it names nobody
as the leader, so that no client assigns.
"""

from dataclasses import replace

from kohort.coordinator.classic.group import CONSUMER_PROTOCOL
from kohort.coordinator.consumer import embedded, progress, static, timers
from kohort.coordinator.consumer.client_side.selection import classic_offers
from kohort.coordinator.consumer.group import ConsumerGroup, protocols_of
from kohort.coordinator.consumer.member import AWAY, JOINING, Member, in_order
from kohort.coordinator.migration import downgrade
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode, WireError
from kohort.machines.effects import Call, Effects, GroupEvent, Reply, answered
from kohort.records.causes import Cause
from kohort.records.consumer_protocol import ConsumerProtocolSubscription
from kohort.records.schemas import ClassicMemberMetadata, ClassicProtocol
from kohort.terms import MemberId, Millis, uuid_text
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

_COMES_BACK = 4  # the first version in which a new member does so with the id it was given


def join(state: State, group: ConsumerGroup, call: Call[JoinGroupRequest], now: Millis) -> Effects:
    """A refusal names no member, unless it gives one an id (KIP-394)."""
    request = call.request
    try:
        return _join(state, group, call, now)
    except ApiError as error:
        refusal = request.refused(error)
        refusal.member_id = ""  # upstream names members of classic groups only
        return answered(call, refusal)


def _join(state: State, group: ConsumerGroup, call: Call[JoinGroupRequest], now: Millis) -> Effects:
    request = call.request
    classic = ClassicMemberMetadata(
        session_timeout_ms=request.session_timeout_ms,
        supported_protocols=_offered(request),
    )
    _check(state, group, request, classic)
    member_id = MemberId(request.member_id or uuid_text(state.new_uuid()))
    if not request.member_id and request.group_instance_id is None and call.version >= _COMES_BACK:
        text = "join again with this member id"
        refusal = request.refused(ApiError(ErrorCode.MEMBER_ID_REQUIRED, text))
        refusal.member_id = member_id
        return answered(call, refusal)
    former, before = _before(group, request, member_id)
    subscription = _subscription(classic)
    _check_owner(group, former, before, request, subscription)
    member = _described(before, call, classic, subscription)

    converted = downgrade.by_join(state, group, former, member, now)
    if converted is not None:
        made, step = converted
        answer = _answer(member_id, made.generation, made.protocol or "")
        step.replies.append(Reply(call.token, answer))
        return step
    if former is not None:
        progress.checked_member_record(
            state, group, member
        )  # or it would be refused in the place of the other
        request.member_id = member_id  # it comes again as the member that it now is
        return static.replaced(state, group, former, member_id, now)
    effects, moved, _ = progress.step(
        state,
        group,
        before,
        member,
        owned=embedded.partitions(subscription.owned_partitions, state.topics),
        client=call.client,
        now=now,
        joins=True,
    )
    if before.classic is None and before.id in group.members:
        text = f"member {member_id} goes over to the classic protocol"
        effects.events.append(GroupEvent(group.id, text, Cause.MIGRATION, member_id))
    timers.await_sync(state, group, moved, now)
    first = classic.supported_protocols[0].name
    effects.replies.append(Reply(call.token, _answer(member_id, moved.epoch, first)))
    return effects


def _offered(request: JoinGroupRequest) -> list[ClassicProtocol]:
    """The assignors of a request, each once."""
    offered: dict[str, bytes] = {}
    for protocol in request.protocols:
        offered.setdefault(protocol.name, protocol.metadata)
    return [ClassicProtocol(name=name, metadata=said) for name, said in offered.items()]


def _check(
    state: State,
    group: ConsumerGroup,
    request: JoinGroupRequest,
    classic: ClassicMemberMetadata,
) -> None:
    if not state.migration.mixes:
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"group {group.id} is a {group.type} group, not a classic one",
        )
    group.check_room(request.member_id, request.group_instance_id)
    protocols = protocols_of(classic)
    if request.protocol_type != CONSUMER_PROTOCOL or not group.supports(
        protocols, group.holder(request.group_instance_id)
    ):
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"the classic members of group {group.id} have no protocol in common with"
            f" {', '.join(protocols) or 'none'} of type {request.protocol_type!r}",
        )
    _check_size(state, protocols)


def _check_size(state: State, protocols: dict[str, bytes]) -> None:
    """Bytes that no record has room for are not read: that could take very long."""
    size = sum(map(len, protocols.values()))
    limit = state.record_limit()
    if size > limit:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the member says {size} bytes, expected at most {limit}"
            " (max.message.bytes of the topic of groups)",
        )


def _check_owner(
    group: ConsumerGroup,
    former: Member | None,
    before: Member,
    request: JoinGroupRequest,
    subscription: ConsumerProtocolSubscription,
) -> None:
    """Whoever was thrown out does not own what it says. It would go on reading that for a moment,
    while somebody else may have it already; a member that is unknown gives up everything at once.
    An id that was just given out (KIP-394) is unknown here as well, but comes without partitions.
    """
    known = former is not None or before.id in group.members
    if not known and request.member_id and subscription.owned_partitions:
        raise ApiError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"member {before.id} is not in group {group.id}, and says that it has partitions of it",
        )


def _subscription(classic: ClassicMemberMetadata) -> ConsumerProtocolSubscription:
    try:
        return embedded.subscription(protocols_of(classic))
    except WireError as error:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the member's subscription cannot be read: {error}"
        ) from error


def _before(
    group: ConsumerGroup, request: JoinGroupRequest, member_id: MemberId
) -> tuple[Member | None, Member]:
    """The member whose place the joining one takes (KIP-345), if it does, and the joining one as it
    was before. A static member takes the place of one that is active, too.
    """
    instance_id = request.group_instance_id
    if instance_id is not None and request.member_id:
        known: Member | None = group.claimed(member_id, instance_id)
    else:
        owner = None if instance_id is None else group.instances.get(instance_id)
        if owner is not None:
            former = group.members[owner]
            return former, replace(former, id=member_id, epoch=JOINING, previous_epoch=JOINING)
        known = group.members.get(member_id)
    if known is not None and known.epoch == AWAY:
        known = replace(known, epoch=JOINING, previous_epoch=JOINING)
    return None, known or Member(member_id)


def _described(
    before: Member,
    call: Call[JoinGroupRequest],
    classic: ClassicMemberMetadata,
    subscription: ConsumerProtocolSubscription,
) -> Member:
    """The member with what it says about itself. The classic protocol has no patterns and no votes
    for an assignor of the broker.
    """
    request = call.request
    timeout_ms = request.rebalance_timeout_ms
    if call.version == 0 or timeout_ms == -1:  # as in a classic group, which this may become
        timeout_ms = request.session_timeout_ms
    return replace(
        before,
        instance_id=request.group_instance_id or before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        client_id=call.client.id,
        client_host=call.client.host,
        subscribed_names=in_order(subscription.topics),
        subscribed_regex="",
        rebalance_timeout_ms=timeout_ms,
        server_assignor=None,
        client_assignors=(),
        classic=classic,
        classic_offers=classic_offers(classic),
    )


def _answer(member_id: MemberId, generation: int, protocol: str) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=protocol,
        leader="",
        member_id=member_id,
        members=[],
    )
