# SPDX-License-Identifier: Apache-2.0
"""Bugs of the coordinator of groups."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from kohort import expressions
from kohort.coordinator import shard
from kohort.coordinator.classic import leave, sync
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import ClassicMember
from kohort.coordinator.consumer import fencing, reconcile
from kohort.coordinator.consumer.member import Member, MemberState
from kohort.coordinator.groups import Groups
from kohort.coordinator.listing import ShardListings
from kohort.coordinator.offsets import expiry
from kohort.errors import ErrorCode
from kohort.machines.deadlines import Deadlines, Session
from kohort.machines.effects import Call, Effects
from kohort.records.schemas import GroupSettingsKey, OffsetCommitKey
from kohort.sim.injected_bugs.replace_attribute import replace_attribute
from kohort.terms import GroupId, MemberId, Millis
from kohort.wire.messages.offset_commit import OffsetCommitRequest


def skip_revocation() -> Iterator[None]:
    """A member goes on without having said that it has let go."""
    with replace_attribute(reconcile, "_names_any", lambda _owned, _partitions: False):
        yield


def forget_timer() -> Iterator[None]:
    """After a reload nobody looks whether the members are still alive."""
    with replace_attribute(fencing, "start", lambda _state, _now: None):
        yield


def listing_of_before() -> Iterator[None]:
    """What lists groups gets what was listed first, whatever has become of them."""
    catch_up = ShardListings._catch_up  # noqa: SLF001

    def keep(self: ShardListings, groups: Groups) -> None:
        if self._listed:
            groups.changes.clear()
        else:
            catch_up(self, groups)

    with replace_attribute(ShardListings, "_catch_up", keep):
        yield


def session_once() -> Iterator[None]:
    """A session that has begun is not begun anew by the next heartbeat."""
    renew = Deadlines.renew

    def once(self: Deadlines, session: Session, now: Millis) -> None:
        if session.key not in self:
            renew(self, session, now)

    with replace_attribute(Deadlines, "renew", once):
        yield


def epoch_before() -> Iterator[None]:
    """A member that is told to give something up is told the epoch before its own, too."""
    advance = reconcile._advance  # noqa: SLF001

    def back(member: Member, epoch: int, *more: Any) -> Member:
        stable = member.state is MemberState.STABLE
        return advance(member, member.previous_epoch if stable else epoch, *more)

    with replace_attribute(reconcile, "_advance", back):
        yield


def answer_leader() -> Iterator[None]:
    """Of the members that wait for the assignments of their leader only the leader is answered."""
    hand_out = sync._hand_out  # noqa: SLF001

    def to_the_leader(state: Any, group: Any, leader: Any, call: Call[Any], now: Any) -> Effects:
        effects = hand_out(state, group, leader, call, now)
        effects.replies[:] = [reply for reply in effects.replies if reply.token is call.token]
        return effects

    with replace_attribute(sync, "_hand_out", to_the_leader):
        yield


def instance_is_enough() -> Iterator[None]:
    """Who names an instance id is served as its member, also one that has lost it."""
    check_identity = ClassicGroup.check_identity

    def lenient(self: ClassicGroup, member_id: MemberId, instance_id: str | None) -> ClassicMember:
        owner = None if instance_id is None else self.instances.get(instance_id)
        return check_identity(self, owner or member_id, instance_id)

    with replace_attribute(ClassicGroup, "check_identity", lenient):
        yield


def raising_handler() -> Iterator[None]:
    """Every fifth commit of offsets divides by zero."""
    commit = shard.CALLS[OffsetCommitRequest]
    numbers = count(1)

    def raising(*arguments: Any) -> Any:
        if not next(numbers) % 5:
            raise ZeroDivisionError
        return commit(*arguments)

    shard.CALLS[OffsetCommitRequest] = raising
    try:
        yield
    finally:
        shard.CALLS[OffsetCommitRequest] = commit


def expire_unwritten() -> Iterator[None]:
    """Offsets that have expired are forgotten, and nothing of that is written."""
    look = expiry._pass  # noqa: SLF001

    def forgetting(state: Any, now: Millis, **more: Any) -> Iterator[Effects]:
        for effects in look(state, now, **more):
            for record in effects.records:
                if isinstance(record.key, OffsetCommitKey):
                    key = record.key
                    state.offsets.remove(key.group, key.topic, key.partition)
            effects.records.clear()
            yield effects

    with replace_attribute(expiry, "_pass", forgetting):
        yield


def part_of_name() -> Iterator[None]:
    """An expression need only match a part of the name of a topic."""
    resolve = expressions.resolve

    def anywhere(wanted: Mapping[str, Iterable[str]]) -> Any:
        found = yield from resolve(
            {f".*({expression}).*": names for expression, names in wanted.items()}
        )
        return dict(zip(wanted, found.values(), strict=True))

    with replace_attribute(expressions, "resolve", anywhere):
        yield


def unheard_setting() -> Iterator[None]:
    """A group that runs goes on with the settings that it had when it began."""
    replay = shard.REPLAYS[GroupSettingsKey]

    def unheard(state: Any, key: GroupSettingsKey, *more: Any) -> None:
        group = state.groups.consumer(GroupId(key.group_id))
        settings = None if group is None else group.settings
        replay(state, key, *more)
        if group is not None:
            group.settings = settings

    shard.REPLAYS[GroupSettingsKey] = unheard
    try:
        yield
    finally:
        shard.REPLAYS[GroupSettingsKey] = replay


def leave_unheard() -> Iterator[None]:
    """A member of a classic group that leaves is answered, and stays until its session ends."""
    with replace_attribute(leave, "_take_out", lambda *_: ErrorCode.NONE):
        yield


def hasty_rebalance() -> Iterator[None]:
    """A classic group waits half a second for its members to join again, whatever they have said
    that they need.
    """
    with replace_attribute(ClassicGroup, "rebalance_timeout_ms", property(lambda _: 500)):
        yield
