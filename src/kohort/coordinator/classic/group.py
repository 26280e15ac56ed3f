"""A classic group: its members, its state, and what the log says about both.

A state is entered by its `become_…` and in no other way. The group answers questions and keeps its
books; who rebalances when, and who is told what, is decided in `rebalance` and in the modules named
after the requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator.classic.member import ClassicMember, subscribed_topics
from kohort.errors import ApiError, Broken, ErrorCode
from kohort.terms import GroupId, GroupState, GroupType, MemberId, Millis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kohort.coordinator.shard import Shard

CONSUMER_PROTOCOL = "consumer"

_ENTERED_FROM = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (
        GroupState.EMPTY,
        GroupState.STABLE,
        GroupState.COMPLETING_REBALANCE,
    ),
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
}


class ClassicGroup:
    """A group of the classic protocol, or one that only holds offsets.

    `topics` is what its members subscribed to when the last join phase ended, None where that is
    unknown (another protocol type, or bytes that lie), so that every topic has to count as
    subscribed.
    """

    __slots__ = (
        "_supported",
        "before",
        "generation",
        "id",
        "instances",
        "joined_meanwhile",
        "leader",
        "members",
        "parked_joins",
        "pending",
        "pending_sync",
        "protocol",
        "protocol_type",
        "state",
        "state_timestamp",
        "topics",
    )

    type = GroupType.CLASSIC

    def __init__(self, id: GroupId, now: Millis) -> None:  # noqa: A002
        self.id = id
        self.state = GroupState.EMPTY
        self.before = GroupState.DEAD
        self.state_timestamp = now
        self.protocol_type = ""
        self.protocol: str | None = None
        self.generation = 0
        self.leader: MemberId | None = None
        self.members: dict[MemberId, ClassicMember] = {}
        self.instances: dict[str, MemberId] = {}
        self.topics: frozenset[str] | None = None
        # Soft: what a rebalance under way knows and a restart forgets. The two `pending` are
        # ordered sets.
        self.pending: dict[MemberId, None] = {}  # were told to come back with this id (KIP-394)
        self.pending_sync: dict[MemberId, None] = {}
        self.parked_joins = 0
        self.joined_meanwhile = False  # somebody came during the initial delay
        self._supported: dict[str, int] = {}  # by how many members each protocol is offered

    # -- questions

    @property
    def is_simple(self) -> bool:
        """Whether it holds offsets and nothing else: nobody has ever joined, nobody is about to."""
        return self.state is GroupState.EMPTY and not self.protocol_type and not self.pending

    @property
    def all_joined(self) -> bool:
        return self.parked_joins == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the slowest member may take: the largest of their timeouts."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
        """Whether a member with these protocols could be one of the group's."""
        if self.state is GroupState.EMPTY:
            return protocol_type != "" and bool(protocols)
        size = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._supported.get(name, 0) == size for name in protocols
        )

    def subscribes_to(self, topic: str) -> bool:
        """Whether members may be reading the topic, so that its offsets must be kept."""
        if self.topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL
        return topic in self.topics

    def check_identity(self, member_id: MemberId, instance_id: str | None) -> ClassicMember:
        """The member with that id, if the instance id given with it (KIP-345) does not belong to
        another.

        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        if instance_id is not None:
            owner = self.instances.get(instance_id)
            if owner is None:
                raise ApiError(
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    f"instance id {instance_id} is not known in group {self.id}",
                )
            if owner != member_id:
                raise ApiError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"instance id {instance_id} in group {self.id} belongs to {owner},"
                    f" not to {member_id}",
                )
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"member {member_id} is not a member of group {self.id}",
            )
        return member

    def check_generation(self, generation: int) -> None:
        """Raises ApiError ILLEGAL_GENERATION where the caller lives in another one."""
        if generation != self.generation:
            raise ApiError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {self.id} is in generation {self.generation},"
                f" the request says {generation}",
            )

    def check_commit(
        self,
        member_id: MemberId,
        instance_id: str | None,
        generation: int,
        *,
        transactional: bool = False,
    ) -> ClassicMember | None:
        """Whether offsets may be committed; the member that does it, None for a tool from outside.

        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
        REBALANCE_IN_PROGRESS.
        """
        empty = self.state is GroupState.EMPTY
        if generation < 0 and empty:
            return None
        member = None
        if generation >= 0 or member_id or instance_id is not None:
            member = self.check_identity(member_id, instance_id)
            self.check_generation(generation)
        elif not transactional and not empty:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"group {self.id} has members, and only they may commit its offsets",
            )
        if self.state is GroupState.COMPLETING_REBALANCE and not transactional:
            raise ApiError(
                ErrorCode.REBALANCE_IN_PROGRESS,
                f"group {self.id} waits for the assignments of generation {self.generation}",
            )
        return member

    def vote(self) -> str:
        """The protocol that most members prefer among those that all support; a tie goes to the
        first named.

        Raises Broken when they have none in common, which no join may bring about.
        """
        size = len(self.members)
        common = [name for name, count in self._supported.items() if count == size]
        if not common:
            raise Broken(f"the {size} members of group {self.id} have no protocol in common")
        votes = dict.fromkeys(common, 0)
        for member in self.members.values():
            votes[next(name for name in member.protocols if name in votes)] += 1
        return max(votes, key=votes.__getitem__)

    def metadata_of(self, member: ClassicMember) -> bytes:
        """What the member says under the protocol that was chosen; nothing before one is."""
        return b"" if self.protocol is None else member.protocols.get(self.protocol, b"")

    # -- books

    def add(self, member: ClassicMember) -> None:
        """Let a member in. The first one leads, and its protocol type is the group's from now
        on.
        """
        self.members[member.id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id
        self.pending.pop(member.id, None)
        self._count(member.protocols, 1)

    def remove(self, member_id: MemberId) -> ClassicMember | None:
        """Let a member, or one that is only expected, go. Its parked calls are the caller's to
        answer.
        """
        self.pending.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count(member.protocols, -1)
        if member.join is not None:
            self.parked_joins -= 1
        if member.instance_id is not None:
            self.instances.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def change_protocols(self, member: ClassicMember, protocols: dict[str, bytes]) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def elect(self) -> bool:
        """Make sure that the leader is somebody who has joined again. False when nobody has."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is None or leader.join is None:
            joined = next((one for one in self.members.values() if one.join is not None), None)
            if joined is None:
                return False
            self.leader = joined.id
        return True

    def _count(self, protocols: Mapping[str, bytes], change: int) -> None:
        supported = self._supported
        for name in protocols:
            count = supported.get(name, 0) + change
            if count:
                supported[name] = count
            else:
                del supported[name]

    # -- states

    def become_preparing(self, now: Millis) -> None:
        """Wait for everybody to join (again). What the members had been assigned is void."""
        if self.state is GroupState.COMPLETING_REBALANCE:
            for member in self.members.values():
                member.assignment = b""
        self._enter(GroupState.PREPARING_REBALANCE, now)

    def become_completing(self, now: Millis) -> None:
        """Begin the next generation with those who have joined, and wait for what the leader
        assigns.
        """
        self.generation += 1
        self.protocol = self.vote()
        self.topics = self.subscribed()
        self.pending_sync = dict.fromkeys(self.members)
        self._enter(GroupState.COMPLETING_REBALANCE, now)

    def become_empty(self, now: Millis) -> None:
        """Begin a generation without anybody."""
        self.generation += 1
        self.protocol = None
        self.leader = None
        self.topics = self.subscribed()
        self.pending_sync = {}
        self._enter(GroupState.EMPTY, now)

    def become_stable(self, now: Millis, assignments: Mapping[MemberId, bytes]) -> None:
        """Everybody has what the leader gave him; who was given nothing has an empty assignment."""
        for member in self.members.values():
            member.assignment = assignments.get(member.id, b"")
        self._enter(GroupState.STABLE, now)

    def _enter(self, state: GroupState, now: Millis) -> None:
        if self.state not in _ENTERED_FROM[state]:
            raise Broken(f"group {self.id} is {self.state}, from where it cannot become {state}")
        self.before, self.state, self.state_timestamp = self.state, state, now

    def subscribed(self) -> frozenset[str] | None:
        """What `topics` is to be for the members as they are now."""
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscribed = subscribed_topics(self.metadata_of(member))
            if subscribed is None:
                return None
            topics.update(subscribed)
        return frozenset(topics)


def classic_or_none(shard: Shard, group_id: GroupId) -> ClassicGroup | None:
    """The group of that id, if there is one and it is a classic one."""
    group = shard.groups.get(group_id)
    return group if isinstance(group, ClassicGroup) else None


def join_key(group_id: GroupId) -> tuple[str, GroupId]:
    """The key of the deadline for joins."""
    return ("classic join", group_id)


def sync_key(group_id: GroupId) -> tuple[str, GroupId]:
    """The key of the deadline for syncs."""
    return ("classic sync", group_id)


def session_key(group_id: GroupId, member_id: MemberId) -> tuple[str, GroupId, MemberId]:
    """The key of a member's session."""
    return ("classic session", group_id, member_id)
