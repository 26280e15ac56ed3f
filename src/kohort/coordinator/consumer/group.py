# SPDX-License-Identifier: Apache-2.0
"""A consumer group: its epochs, its members, what each should have, and who has what.

Only `replay` changes it. What follows from the members (state, votes, who holds a partition) is
kept up to date with them, so no question needs a walk over all of them.
"""

from collections.abc import Collection, Iterable, KeysView, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from kohort.coordinator.consumer import description
from kohort.coordinator.consumer.client_side import selection
from kohort.coordinator.consumer.client_side.selection import Choice
from kohort.coordinator.consumer.member import Member, MemberState
from kohort.coordinator.consumer.records import tombstones
from kohort.coordinator.consumer.target import NOTHING, Target
from kohort.coordinator.group import Group, count_by
from kohort.coordinator.settings import ConsumerSettings
from kohort.errors import ApiError, Broken, ErrorCode
from kohort.machines.deadlines import Session
from kohort.machines.effects import Call, Client
from kohort.machines.topics import Topics
from kohort.records.codec import Record
from kohort.records.schemas import ClassicMemberMetadata, Computation
from kohort.terms import GroupId, GroupState, GroupType, MemberId, Millis, TopicId
from kohort.wire.messages import consumer_group_describe as describe
from kohort.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from kohort.wire.messages.offset_fetch import OffsetFetchRequestGroup

FIRST_EPOCH = 1  # KAFKA-20268: the target epoch of a group that has no target yet
FIRST_VERSION_OF_MEMBERS = 9  # version of OffsetCommit


class FailedPlan(NamedTuple):
    """What a plugin assignor has failed with, and when."""

    epoch: int
    at: Millis
    why: Exception


class View(NamedTuple):
    """What an expression names for one member, by its rights. `is_kept` is said of what it had
    before a restart. One that is not `is_current` is to be found out again.
    """

    expression: str
    topics: frozenset[str]
    is_kept: bool = False
    is_current: bool = True


class ConsumerGroup(Group):
    """A group of the KIP-848 protocol.

    Its epochs: `group_epoch` counts the changes that ask for a new target; `target_epoch` is the
    one that `targets` was computed for, at `target_time` (0 in logs of brokers that did not write
    the time); `made_by` says how they came about in a group whose members offer assignors, of whom
    there are `offering`. `metadata_stale` says that the group's topics may have changed since
    `metadata_hash`.

    `resolved` holds the topics of regular expressions, found among those of `looked_at` since
    `has_asked`, when a member has asked for it; both begin anew after a restart.
    `expressions_stale` says that there may be more to find. With rules of access, `heard` holds who
    has sent the heartbeats of members with expressions, and `views` what these members may know of;
    `planned_blindly` says that a target was made while nobody had been heard of for one of them.

    `number` is another one for a group that is made anew under the same id; 0 until it is made.
    """

    __slots__ = (
        "_at_epoch",
        "_expressions",
        "_names",
        "_protocols",
        "_votes",
        "asks_rights",
        "classic_members",
        "expressions_stale",
        "failed_plan",
        "group_epoch",
        "has_asked",
        "heard",
        "held",
        "id",
        "instances",
        "looked_at",
        "made_by",
        "members",
        "metadata_hash",
        "metadata_stale",
        "number",
        "offering",
        "planned_blindly",
        "resolved",
        "settings",
        "target_epoch",
        "target_time",
        "targets",
        "views",
    )

    type = GroupType.CONSUMER
    protocol_type = "consumer"

    def __init__(self, group_id: GroupId, settings: ConsumerSettings) -> None:
        super().__init__()
        self.id = group_id
        self.settings = settings
        self.number = 0
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.metadata_stale = False
        self.target_epoch = FIRST_EPOCH
        self.target_time = Millis(0)
        self.made_by: Computation | None = None
        self.targets: dict[MemberId, Target] = {}
        self.members: dict[MemberId, Member] = {}
        self.instances: dict[str, MemberId] = {}
        self.resolved: dict[str, tuple[str, ...]] = {}
        self.looked_at: Topics | None = None
        self.asks_rights = False  # an outcome waits until it is known what its members may see
        self.has_asked = False
        self.heard: dict[MemberId, Client] = {}
        self.views: dict[MemberId, View] = {}
        self.planned_blindly = False
        self.expressions_stale = False
        self.failed_plan: FailedPlan | None = None
        self.held: dict[TopicId, dict[int, MemberId]] = {}  # assigned or being revoked
        self._names: dict[str, int] = {}  # members by subscribed name
        self._expressions: dict[str, int] = {}  # members by subscribed expression
        self._votes: dict[str, int] = {}  # members by assignor
        self._at_epoch: dict[int, int] = {}  # members by epoch, those in state STABLE
        self.offering = 0  # how many members offer client-side assignors
        self.classic_members = 0  # how many members use the classic protocol
        self._protocols: dict[str, int] = {}  # these, by the assignors that they offer

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.group_epoch > self.target_epoch:
            return GroupState.ASSIGNING
        if self._at_epoch.get(self.target_epoch, 0) < len(self.members):
            return GroupState.RECONCILING
        return GroupState.STABLE

    @property
    def assignor(self) -> str:
        """The name of the assignor that the next target is computed by."""
        return self.choice.name

    @property
    def choice(self) -> Choice:
        """The assignor that the next target is computed by."""
        return self.choice_with((), ())

    def choice_with(self, leaving: Collection[Member], joining: Collection[Member]) -> Choice:
        """The choice if these members were replaced by those. It walks over all members where any
        offers a client-side assignor.
        """
        name, voted = self._vote_with(leaving, joining)
        offering = self.offering + sum(bool(member.client_assignors) for member in joining)
        offering -= sum(bool(member.client_assignors) for member in leaving)
        if not offering:
            return Choice(name)
        if not self.settings.client_assignors:
            return Choice(name, why=selection.OFF)
        if voted:
            return Choice(name, why=selection.NAMED)
        members = dict(self.members)
        for member in leaving:
            members.pop(member.id, None)
        members.update((member.id, member) for member in joining)
        return selection.select_assignor(members.values(), name)

    def _vote_with(self, leaving: Iterable[Member], joining: Iterable[Member]) -> tuple[str, bool]:
        """The broker's assignor with most votes, and whether there is any vote. A tie, or no vote
        at all, goes to the first in the broker's list.
        """
        votes = self._votes
        changed = [(member.server_assignor, -1) for member in leaving if member.server_assignor]
        changed += [(member.server_assignor, 1) for member in joining if member.server_assignor]
        if changed:
            votes = dict(votes)
            for name, by in changed:
                votes[name] = votes.get(name, 0) + by
        name = max(self.settings.assignors, key=lambda name: votes.get(name, 0))
        return name, any(votes.values())

    def at_rest(self, member: Member) -> bool:
        """Whether a member has nothing to do: the target is up to date and reached."""
        epoch = self.target_epoch
        return (
            member.epoch == epoch
            and epoch == self.group_epoch
            and member.state is MemberState.STABLE
            and not self.metadata_stale
            and not self.expressions_stale
            and member.classic is None
        )

    def subscribes_to(self, topic: str) -> bool:
        return topic in self._names or any(
            topic in self.resolved.get(expression, ()) for expression in self._expressions
        )

    @property
    def lets_offsets_expire(self) -> bool:
        return True

    def reads_any(self, topics: AbstractSet[str]) -> bool:
        """Whether any member reads any of these topics."""
        return not topics.isdisjoint(self._names) or any(
            not topics.isdisjoint(self.resolved.get(expression, ()))
            for expression in self._expressions
        )

    def topic_names(
        self,
        leaving: Iterable[Member],
        joining: Iterable[Member],
        resolved: Mapping[str, tuple[str, ...]] | None = None,
    ) -> KeysView[str]:
        """All topics that would be subscribed to if these members were replaced by those, and if
        expressions were `resolved` so. One that has not been resolved yet names none.
        """
        resolved = self.resolved if resolved is None else resolved
        names, expressions = dict(self._names), dict(self._expressions)
        for members, by in ((leaving, -1), (joining, 1)):
            for member in members:
                count_by(names, member.subscribed_names, by)
                if member.subscribed_regex:
                    count_by(expressions, (member.subscribed_regex,), by)
        for expression in expressions:
            names.update(dict.fromkeys(resolved.get(expression, ()), 1))
        return names.keys()

    @property
    def expressions(self) -> Collection[str]:
        """The regular expressions that members subscribe by."""
        return self._expressions.keys()

    def subscribers_of(self, expression: str) -> int:
        """How many members subscribe by this expression."""
        return self._expressions.get(expression, 0)

    def claimed(self, member_id: MemberId, instance_id: str | None) -> Member:
        """The member with that id. An instance id given with it (KIP-345) must be the member's own.

        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        if instance_id is not None:
            owner = self.instances.get(instance_id)
            if owner is None:
                raise ApiError(
                    ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown."
                )
            if owner != member_id:
                raise ApiError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {instance_id} was fenced by "
                    f"member {owner}.",
                )
        return self._known(member_id)

    def holder(self, instance_id: str | None) -> Member | None:
        """The static member with this instance id. Whoever comes with it now is that member: it
        takes no place beside it.
        """
        owner = None if instance_id is None else self.instances.get(instance_id)
        return None if owner is None else self.members[owner]

    def check_room(self, member_id: str, instance_id: str | None) -> None:
        """Raises ApiError GROUP_MAX_SIZE_REACHED for a member that would be one too many."""
        limit = self.settings.max_size
        if (
            len(self.members) >= limit
            and member_id not in self.members
            and self.holder(instance_id) is None
        ):
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {limit} members.",
            )

    def supports(self, protocols: Iterable[str], holder: Member | None) -> bool:
        """Whether a member that offers these could assign together with all classic members, in the
        place of the `holder` of its instance id. What that has offered before does not count.
        """
        former = {} if holder is None or holder.classic is None else protocols_of(holder.classic)
        others = self.classic_members - (holder is not None and holder.classic is not None)
        return any(self._protocols.get(name, 0) - (name in former) == others for name in protocols)

    def check_commit(self, call: Call[OffsetCommitRequest], topics: Topics) -> Session | None:
        """Without members, anybody may commit.

        An older epoch is enough for partitions that the member has had since then (KIP-1251): its
        commit was under way while the epoch moved on.
        """
        request = call.request
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and not self.members:
            return None
        member = self.claimed(MemberId(request.member_id), request.group_instance_id)
        if member.classic is None and call.version < FIRST_VERSION_OF_MEMBERS:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"OffsetCommit v{call.version} has no member epochs, "
                f"version {FIRST_VERSION_OF_MEMBERS} or newer is needed in group {self.id}",
            )
        if epoch > member.epoch or (
            epoch < member.epoch and not _had_since(member, epoch, request.topics, topics)
        ):
            raise _stale(member, epoch)
        return None

    def check_transactional_commit(self, call: Call[OffsetCommitRequest], topics: Topics) -> None:
        """A producer that names a member is fenced by the member's epoch, under the code that
        producers know (KIP-447).
        """
        request = call.request
        named = request.member_id or request.group_instance_id is not None
        if request.generation_id_or_member_epoch < 0 and not named:
            return
        try:
            self.check_commit(call, topics)
        except ApiError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise ApiError(ErrorCode.ILLEGAL_GENERATION, error.message) from error
            raise

    def check_fetch(self, wanted: OffsetFetchRequestGroup) -> None:
        """A caller that says it is a member may be a zombie of an older epoch."""
        if wanted.member_id is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"an epoch ({wanted.member_epoch}) is given for group {self.id}, but no member",
            )
        member = self._known(MemberId(wanted.member_id))
        if wanted.member_epoch != member.epoch:
            raise _stale(member, wanted.member_epoch)

    def check_offset_delete(self) -> None:
        """Each topic can be judged by itself, since it is known what each member reads."""

    def tombstones(self) -> list[Record]:
        return tombstones(self.id, self.members, self.resolved)

    def described_consumer(self, topics: Topics) -> describe.DescribedGroup:
        """What every member has, and what it is going to have."""
        choice = self.choice
        return describe.DescribedGroup(
            group_id=self.id,
            group_state=self.state,
            group_epoch=self.group_epoch,
            assignment_epoch=self.target_epoch,
            assignor_name=choice.name,
            members=[
                description.of_member(member, self.targets.get(member.id, NOTHING), topics)
                for member in self.members.values()
            ],
            client_side=description.of_client_side(choice, self.made_by),
        )

    def _known(self, member_id: MemberId) -> Member:
        member = self.members.get(member_id)
        if member is None:
            raise unknown_member(self.id, member_id)
        return member

    def put(self, member: Member, *, tolerant: bool = False) -> None:
        """Take in a new member, or the new value of a known one. Raises Broken when another member
        holds one of its partitions, unless `tolerant`: while loading, compaction may hide that the
        other gave it up.
        """
        self.changed()
        before = self.members.get(member.id)
        if before is not None:
            self._forget(before, member)
        self.members[member.id] = member
        if before is None or before.subscribed_names != member.subscribed_names:
            count_by(self._names, member.subscribed_names, 1)
        if member.subscribed_regex:
            count_by(self._expressions, (member.subscribed_regex,), 1)
            if member.subscribed_regex not in self.resolved:
                self.expressions_stale = True
        if member.server_assignor:
            count_by(self._votes, (member.server_assignor,), 1)
        if member.client_assignors:
            self.offering += 1
        if member.classic is not None:
            self.classic_members += 1
            count_by(self._protocols, protocols_of(member.classic), 1)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        if member.state is MemberState.STABLE:
            self._at_epoch[member.epoch] = self._at_epoch.get(member.epoch, 0) + 1
        if before is None or _partitions_differ(before, member):
            self._hold(member, tolerant=tolerant)

    def drop(self, member_id: MemberId) -> None:
        """Forget a member."""
        self.heard.pop(member_id, None)
        self.views.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None:
            self.changed()
            self._forget(member, None)

    def _forget(self, before: Member, after: Member | None) -> None:
        """Take back what followed from a member, except what its successor keeps."""
        if after is None or before.subscribed_names != after.subscribed_names:
            count_by(self._names, before.subscribed_names, -1)
        if before.subscribed_regex:
            count_by(self._expressions, (before.subscribed_regex,), -1)
        if before.server_assignor:
            count_by(self._votes, (before.server_assignor,), -1)
        if before.client_assignors:
            self.offering -= 1
        if before.classic is not None:
            self.classic_members -= 1
            count_by(self._protocols, protocols_of(before.classic), -1)
        if before.instance_id is not None and self.instances.get(before.instance_id) == before.id:
            del self.instances[before.instance_id]
        if before.state is MemberState.STABLE:
            left = self._at_epoch[before.epoch] - 1
            if left:
                self._at_epoch[before.epoch] = left
            else:
                del self._at_epoch[before.epoch]
        if after is None or _partitions_differ(before, after):
            self._release(before)

    def _hold(self, member: Member, *, tolerant: bool) -> None:
        for part in (member.assigned, member.revoking):
            for topic, partitions in part.items():
                holders = self.held.setdefault(topic, {})
                for partition in partitions:
                    holder = holders.get(partition, member.id)
                    if holder != member.id and not tolerant:
                        raise Broken(
                            f"group {self.id}: partition {partition} of topic {topic.hex()} "
                            f"is given to member {member.id} and is held by {holder}",
                        )
                    holders[partition] = member.id

    def _release(self, member: Member) -> None:
        for part in (member.assigned, member.revoking):
            for topic, partitions in part.items():
                holders = self.held.get(topic, {})
                for partition in partitions:
                    if holders.get(partition) == member.id:
                        del holders[partition]
                if not holders:
                    self.held.pop(topic, None)


def protocols_of(classic: ClassicMemberMetadata) -> dict[str, bytes]:
    """What a member offers in the classic protocol: the bytes of each assignor, the first that it
    would like first.
    """
    return {protocol.name: protocol.metadata for protocol in classic.supported_protocols}


def unknown_member(group_id: GroupId, member_id: str) -> ApiError:
    """The refusal of a member that the group does not have."""
    return ApiError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
    )


def _stale(member: Member, epoch: int) -> ApiError:
    code = ErrorCode.STALE_MEMBER_EPOCH
    if member.classic is not None:
        code = ErrorCode.ILLEGAL_GENERATION
    return ApiError(code, f"member {member.id} is at epoch {member.epoch}, request says {epoch}")


def _had_since(
    member: Member, epoch: int, topics: Iterable[OffsetCommitRequestTopic], known: Topics
) -> bool:
    """Whether the member has had all of the partitions since that epoch or longer."""
    for topic in topics:
        found = known.by_name.get(topic.name)
        if found is None:
            return False
        for partition in topic.partitions:
            since = member.since(found.id, partition.partition_index)
            if since is None or since > epoch:
                return False
    return True


def _partitions_differ(before: Member, after: Member) -> bool:
    return before.assigned is not after.assigned or before.revoking is not after.revoking
