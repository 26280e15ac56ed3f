# SPDX-License-Identifier: Apache-2.0
"""A classic group: its members, its state, and what the log says about both.

Only the `become_…` functions change the state. The group answers questions and keeps its books;
`rebalance` and the modules named after the requests decide who rebalances when, and who is told
what.
"""

from collections import Counter
from collections.abc import Mapping

from kohort.coordinator.classic import timers
from kohort.coordinator.classic.member import ClassicMember, longest, subscribed_topics
from kohort.coordinator.classic.records import tombstone
from kohort.coordinator.group import Group, count_by
from kohort.errors import ApiError, Broken, ErrorCode
from kohort.java import hash_order, text_hash
from kohort.machines.deadlines import Session
from kohort.machines.effects import Call
from kohort.machines.topics import Topics
from kohort.records.codec import Record
from kohort.records.schemas import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kohort.terms import GroupId, GroupState, GroupType, MemberId, Millis
from kohort.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from kohort.wire.messages.offset_commit import OffsetCommitRequest

CONSUMER_PROTOCOL = "consumer"
_RENEW_BY_COMMIT = (GroupState.STABLE, GroupState.PREPARING_REBALANCE)

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


class ClassicGroup(Group):
    """A group of the classic protocol, or one that only holds offsets.

    `topics` is what its members subscribed to when the last join phase ended. It is None where that
    is unknown (another protocol type, or bytes that cannot be read); then every topic counts as
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
        "said",
        "state",
        "state_timestamp",
        "topics",
    )

    type = GroupType.CLASSIC
    state: GroupState

    def __init__(self, id: GroupId, now: Millis) -> None:  # noqa: A002
        super().__init__()
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
        self.pending: dict[MemberId, None] = {}  # told to come back with this id (KIP-394)
        self.pending_sync: dict[MemberId, None] = {}
        self.parked_joins = 0
        self.joined_meanwhile = False  # somebody came during the initial delay
        self._supported: dict[str, int] = {}  # by how many members each protocol is offered
        self.said = 0  # bytes of metadata that the log may have to hold

    @property
    def is_simple(self) -> bool:
        """Whether it only holds offsets: nobody has ever joined, and nobody is about to."""
        return self.state is GroupState.EMPTY and not self.protocol_type and not self.pending

    @property
    def all_joined(self) -> bool:
        return self.parked_joins == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the slowest member may take: the largest of their timeouts."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def holder(self, instance_id: str | None) -> ClassicMember | None:
        """The static member with this instance id (KIP-345). Whoever comes with it now is that
        member: it takes no place beside it.
        """
        owner = None if instance_id is None else self.instances.get(instance_id)
        return None if owner is None else self.members[owner]

    def supports(
        self,
        protocol_type: str,
        protocols: Mapping[str, bytes],
        holder: ClassicMember | None = None,
    ) -> bool:
        """Whether a member with these protocols could be one of the group's, in the place of the
        `holder` of its instance id. What that has offered before does not count.
        """
        if self.state is GroupState.EMPTY:
            return protocol_type != "" and bool(protocols)
        former = () if holder is None else holder.protocols
        others = len(self.members) - (holder is not None)
        return protocol_type == self.protocol_type and any(
            self._supported.get(name, 0) - (name in former) == others for name in protocols
        )

    def subscribes_to(self, topic: str) -> bool:
        if self.topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL
        return topic in self.topics

    @property
    def lets_offsets_expire(self) -> bool:
        """Not while members may be reading, unless it is known what."""
        if self.state is GroupState.EMPTY:
            return True
        return self.state is GroupState.STABLE and self.topics is not None

    @property
    def idle_since(self) -> Millis | None:
        if self.state is not GroupState.EMPTY or not self.protocol_type:
            return None
        return self.state_timestamp if self.state_timestamp >= 0 else None

    def check_identity(self, member_id: MemberId, instance_id: str | None) -> ClassicMember:
        """The member with that id. An instance id given with it (KIP-345) must be the member's own.

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
        """Raises ApiError ILLEGAL_GENERATION where the caller is in another generation."""
        if generation != self.generation:
            raise ApiError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {self.id} is in generation {self.generation},"
                f" the request says {generation}",
            )

    def committer(
        self,
        member_id: MemberId,
        instance_id: str | None,
        generation: int,
        *,
        transactional: bool = False,
    ) -> ClassicMember | None:
        """The member that may commit offsets in this way, or None for a tool from outside.

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

    @property
    def agrees(self) -> bool:
        """Whether its members have a protocol in common."""
        return len(self.members) in self._supported.values()

    def vote(self) -> str:
        """The protocol that most members prefer among those that all support. A tie goes to the
        first in the order of upstream's hash table, whoever joined first.

        Raises Broken when they have none in common; no join lets that happen.
        """
        size = len(self.members)
        common = {name for name, count in self._supported.items() if count == size}
        if not common:
            raise Broken(f"the {size} members of group {self.id} have no protocol in common")
        votes = Counter(
            next(name for name in member.protocols if name in common)
            for member in self.members.values()
        )
        return max(hash_order(votes, text_hash), key=votes.__getitem__)

    def metadata_of(self, member: ClassicMember) -> bytes:
        """What the member says under the protocol that was chosen; nothing before one is chosen."""
        return b"" if self.protocol is None else member.protocols.get(self.protocol, b"")

    def check_commit(self, call: Call[OffsetCommitRequest], _topics: Topics) -> Session | None:
        """A commit by a member of a group at rest, or waiting for joins, is a sign of life."""
        request = call.request
        member = self.committer(
            MemberId(request.member_id),
            request.group_instance_id,
            request.generation_id_or_member_epoch,
        )
        if member is None or self.state not in _RENEW_BY_COMMIT:
            return None
        return Session(timers.session_key(self.id, member.id), member.session_timeout_ms)

    def check_transactional_commit(self, call: Call[OffsetCommitRequest], _topics: Topics) -> None:
        request = call.request
        self.committer(
            MemberId(request.member_id),
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            transactional=True,
        )

    def check_offset_delete(self) -> None:
        if self.members and self.protocol_type != CONSUMER_PROTOCOL:
            raise ApiError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {self.id} has members of protocol type {self.protocol_type!r},"
                " whose topics are not known",
            )

    def tombstones(self) -> list[Record]:
        return [tombstone(self.id)]

    def described_classic(self) -> DescribedGroup:
        """Members' metadata and the protocol are shown only while the group is stable."""
        stable = self.state is GroupState.STABLE
        return DescribedGroup(
            group_id=self.id,
            group_state=self.state,
            protocol_type=self.protocol_type,
            protocol_data=(self.protocol or "") if stable else "",
            members=[
                DescribedGroupMember(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client.id,
                    client_host=member.client.host,
                    member_metadata=self.metadata_of(member) if stable else b"",
                    member_assignment=member.assignment,
                )
                for member in self.members.values()
            ],
        )

    def outcome(self, assignments: Mapping[MemberId, bytes], now: Millis) -> Record:
        """The outcome of a rebalance for the log: who is in the group, and who has what."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=now,
            members=[
                MemberMetadata(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client.id,
                    client_host=member.client.host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=self.metadata_of(member),
                    assignment=assignments.get(member.id, b""),
                )
                for member in self.members.values()
            ],
        )
        return Record(GroupMetadataKey(group=self.id), value)

    def emptied(self, now: Millis) -> Record:
        """The record of a next generation without members. Replaying it makes the group Empty."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation + 1,
            protocol=None,
            leader=None,
            current_state_timestamp=now,
            members=[],
        )
        return Record(GroupMetadataKey(group=self.id), value)

    def add(self, member: ClassicMember) -> None:
        """Let a member in. The first one leads."""
        self.members[member.id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id
        self.pending.pop(member.id, None)
        self._count(member.protocols, 1)
        self.changed()

    def remove(self, member_id: MemberId) -> ClassicMember | None:
        """Let a member go, or one that is only expected. The caller answers its parked calls."""
        self.pending.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self.changed()
        self._count(member.protocols, -1)
        if member.join is not None:
            self.parked_joins -= 1
        if member.instance_id is not None and self.instances[member.instance_id] == member_id:
            del self.instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, successor: ClassicMember) -> ClassicMember:
        """Give the place of a static member to its successor: what it has, and whether it leads or
        is awaited. The caller answers the parked calls of the one that is returned.
        """
        assert successor.instance_id is not None
        former = self.members.pop(self.instances[successor.instance_id])
        self._count(former.protocols, -1)
        if former.join is not None:
            self.parked_joins -= 1
        successor.assignment = former.assignment
        if former.id in self.pending_sync:
            del self.pending_sync[former.id]
            self.pending_sync[successor.id] = None
        if self.leader == former.id:
            self.leader = successor.id
        self.add(successor)
        return former

    def change_protocols(self, member: ClassicMember, protocols: dict[str, bytes]) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)
        self.changed()

    def elect(self) -> bool:
        """Keep the leader if it has joined again, else elect one who has. False: nobody has."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is None or leader.join is None:
            joined = next(
                (member for member in self.members.values() if member.join is not None), None
            )
            if joined is None:
                return False
            self.leader = joined.id
        return True

    def _count(self, protocols: Mapping[str, bytes], change: int) -> None:
        self.said += change * longest(protocols)
        count_by(self._supported, protocols, change)

    def become_preparing(self, now: Millis) -> None:
        """Wait for everybody to join (again). An unfinished generation loses its assignments."""
        if self.state is GroupState.COMPLETING_REBALANCE:
            for member in self.members.values():
                member.assignment = b""
        self._enter(GroupState.PREPARING_REBALANCE, now)

    def become_completing(self, now: Millis) -> None:
        """Begin the next generation with those who have joined; its leader has to assign."""
        self.generation += 1
        self.protocol = self.vote()
        self.topics = self.subscribed()
        self.pending_sync = dict.fromkeys(self.members)
        self._enter(GroupState.COMPLETING_REBALANCE, now)

    def become_empty(self, now: Millis, generation: int) -> None:
        """Begin a generation without anybody."""
        self.generation = generation
        self.protocol = None
        self.leader = None
        self.topics = self.subscribed()
        self.pending_sync = {}
        self._enter(GroupState.EMPTY, now)

    def become_stable(self, now: Millis, assignments: Mapping[MemberId, bytes]) -> None:
        """Everybody has what the leader assigned; a member that the leader left out has nothing."""
        for member in self.members.values():
            member.assignment = assignments.get(member.id, b"")
        self._enter(GroupState.STABLE, now)

    def _enter(self, state: GroupState, now: Millis) -> None:
        if self.state not in _ENTERED_FROM[state]:
            raise Broken(f"group {self.id} is {self.state}, from where it cannot become {state}")
        self.before, self.state, self.state_timestamp = self.state, state, now
        self.changed()

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
