# SPDX-License-Identifier: Apache-2.0
"""From a consumer group to a classic group, when the last member of the consumer protocol has gone
and those of the classic protocol stay.

The group epoch becomes the generation. Where everybody has its target already, the group is at
rest, and targets become assignments. Else it rebalances at once: the partitions of a member that
has gone need another one. A record without a leader says that this rebalance is still to come, so
that a crash does not forget it.

The assignments are then what members have. Upstream writes the targets here as well, and an upgrade
that comes before the rebalance is over gives away what a member is still reading.
"""

from collections.abc import Collection, Iterable, Iterator

from kohort.assignors import Assignment
from kohort.coordinator.classic import rebalance
from kohort.coordinator.classic.group import CONSUMER_PROTOCOL, ClassicGroup
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.classic.records import size_of
from kohort.coordinator.consumer import embedded
from kohort.coordinator.consumer.client_side.offers import classic_data
from kohort.coordinator.consumer.group import ConsumerGroup, protocols_of
from kohort.coordinator.consumer.member import Member, MemberState
from kohort.coordinator.consumer.target import NOTHING
from kohort.coordinator.state import State
from kohort.machines.effects import Client, Continuation, Effects, GroupEvent
from kohort.records.causes import Cause
from kohort.terms import GroupState, MemberId, Millis, TopicId
from kohort.wire import batch


def without(
    state: State, group: ConsumerGroup, leaving: Collection[Member], now: Millis
) -> Effects | None:
    """The step in which these members go and the others become a classic group. None where the
    group stays a consumer group.
    """
    if not _leaves_classic_only(group, leaving) or not _may_fit(state, group):
        return None
    gone = {member.id for member in leaving}
    staying = [member for member in group.members.values() if member.id not in gone]
    made = _classic_group_or_none(state, group, staying, now)
    return None if made is None else _step_or_none(state, group, made, {}, now, at_rest=False)


def by_join(
    state: State, group: ConsumerGroup, former: Member | None, joining: Member, now: Millis
) -> tuple[ClassicGroup, Effects] | None:
    """The classic group that a group becomes by a join, and the step that makes it so: a member
    joins by the classic protocol, in the place of `former` or as one that the group knows, and no
    member of the consumer protocol is left. None where the group stays a consumer group.
    """
    before = group.members.get((former or joining).id)
    leaving = () if before is None else (before,)
    if not _leaves_classic_only(group, leaving) or not _may_fit(state, group):
        return None
    members = {**group.members, (former or joining).id: joining}
    made = _classic_group_or_none(state, group, list(members.values()), now)
    if made is None:
        return None
    at_rest = (
        before is not None
        and before.subscribed_names == joining.subscribed_names
        and not before.subscribed_regex
        and group.group_epoch == group.target_epoch
        and not group.metadata_stale
        and all(
            member.epoch == group.target_epoch and member.state is MemberState.STABLE
            for member in members.values()
            if member is not joining
        )
    )
    places = {} if before is None else {joining.id: before.id}
    step = _step_or_none(state, group, made, places, now, at_rest=at_rest)
    return None if step is None else (made, step)


def start(state: State, now: Millis) -> Iterator[Effects]:
    """After loading: the rebalances that downgrades have left to do."""
    for group in state.groups.all_classic():
        if group.state is GroupState.STABLE and group.leader is None:
            yield _begin_again(state, group, now)


def _leaves_classic_only(group: ConsumerGroup, leaving: Iterable[Member]) -> bool:
    """Whether nobody but these members uses the consumer protocol."""
    others = len(group.members) - group.classic_members
    return others == sum(1 for member in leaving if member.classic is None)


def _may_fit(state: State, group: ConsumerGroup) -> bool:
    """Whether one batch may have room for the end of the group, before a classic one is made. Of a
    group that is too large, every member that comes or goes would have that made in vain.
    """
    tombstone = batch.HEADER_SIZE + batch.RECORD_SIZE + len(group.id)
    least = 3 * (len(group.members) * tombstone + sum(map(len, group.members)))
    return least <= state.record_limit()


def _classic_group_or_none(
    state: State, group: ConsumerGroup, staying: Collection[Member], now: Millis
) -> ClassicGroup | None:
    """The classic group of these members, if there may be one. A record does not tell all that it
    knows of them: they may offer several assignors.
    """
    if not state.migration.downgrades or not 0 < len(staying) <= state.classic_settings.max_size:
        return None
    classic = ClassicGroup(group.id, now)
    classic.protocol_type = CONSUMER_PROTOCOL
    classic.generation = group.group_epoch
    for member in staying:
        assert member.classic is not None
        classic.add(
            ClassicMember(
                member.id,
                member.instance_id,
                Client(member.client_id, member.client_host),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.classic.session_timeout_ms,
                protocols=protocols_of(member.classic),
            )
        )
    if not classic.agrees:
        return None
    classic.protocol = classic.vote()
    return classic


def _step_or_none(
    state: State,
    group: ConsumerGroup,
    made: ClassicGroup,
    places: dict[MemberId, MemberId],
    now: Millis,
    *,
    at_rest: bool,
) -> Effects | None:
    """The records, and what follows from them; None where no batch has room for the records.
    `places` tells whose place a member takes.
    """
    assignments = {}
    for member in made.members.values():
        place = places.get(member.id, member.id)
        target = group.targets.get(place, NOTHING)
        given = target.partitions if at_rest else _has(group, place)
        data = classic_data(target.attachment, group.made_by, made.protocol or "")
        assignments[member.id] = embedded.assignment(
            given, made.metadata_of(member), state.topics, data if at_rest else None
        )
    if not at_rest:
        made.leader = None
    records = [*group.tombstones(), made.outcome(assignments, now)]
    if sum(size_of(record) for record in records) > state.record_limit():
        return None
    text = f"epoch {group.group_epoch} goes on as a classic group"
    return Effects(
        records,
        events=[GroupEvent(group.id, text, Cause.MIGRATION)],
        continuation=Continuation(then=lambda: _go_on(state, made, now, rebalances=not at_rest)),
    )


def _has(group: ConsumerGroup, member_id: MemberId) -> Assignment:
    """All that a member may still be reading."""
    member = group.members.get(member_id)
    if member is None:
        return {}
    has: dict[TopicId, list[int]] = {}
    for part in (member.assigned, member.revoking):
        for topic, partitions in part.items():
            has.setdefault(topic, []).extend(partitions)
    return {topic: tuple(sorted(partitions)) for topic, partitions in has.items()}


def _go_on(state: State, made: ClassicGroup, now: Millis, *, rebalances: bool) -> Effects:
    """The members' sessions begin anew, and so does a generation where one is needed."""
    group = state.groups.classic(made.id)
    assert group is not None
    for member in group.members.values():
        group.change_protocols(member, made.members[member.id].protocols)
        rebalance.renew(state, group, member, now)
    return _begin_again(state, group, now) if rebalances else Effects()


def _begin_again(state: State, group: ClassicGroup, now: Millis) -> Effects:
    effects = rebalance.prepare(state, group, now)
    text = "its members are to assign by themselves"
    effects.events.append(GroupEvent(group.id, text, Cause.MIGRATION))
    return effects
