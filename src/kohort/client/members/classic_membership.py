# SPDX-License-Identifier: Apache-2.0
"""A member of a classic group as a pure machine: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Like `membership`, it has no clock, no socket, no chance and no thread, and one request is under way
at a time. Its answer may take as long as a rebalance, because the coordinator parks joins and
syncs. The consumer that owns it does what the events say, and for a leader looks up topics.

The stages of a membership:

    OUTSIDE    no member. `join` begins.
    JOINING    asks for the next generation. The first time it is given an id and asks again.
    ASSIGNING  leads the new generation, and waits until it knows the partitions of the topics.
    SYNCING    asks what it has in this generation; a leader tells what everybody has.
    MEMBER     heartbeats, until it is told to join again.
    PREPARING  is about to join again, once what is to be given up was released.
    LOST       is put out. It waits until all it had is released, then joins.
    PARTING    is about to leave: heartbeats until all it had is released.
    LEAVING    says good-bye until the coordinator has heard it.
    FAILED     was refused for good. `join` begins anew, `leave` ends it.

An eager member gives up all that it has before it joins. A cooperative one keeps it, gives up what
the new generation does not give it, and joins again for the sake of those who get it (KIP-429). A
member is cooperative when all its protocols are.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from kohort.assignors import AssignorError
from kohort.client.members.any_membership import AnyMembership
from kohort.client.members.classic_assigning import (
    PROTOCOLS,
    assign,
    assignment_of,
    partitions_by_topic,
    read_assignment,
    subscriptions,
    topics_of,
)
from kohort.client.members.events import (
    CoordinatorWanted,
    Event,
    HangUp,
    MembershipFailed,
    TopicsWanted,
)
from kohort.client.members.request_state import AT_ONCE, ELSEWHERE, InFlightRequest
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.errors import ApiError, ErrorCode, WireError, api_error
from kohort.records.consumer_protocol import ConsumerProtocolSubscription, encode
from kohort.terms import GroupId, MemberId, Millis, PartitionIndex, TopicPartition
from kohort.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kohort.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from kohort.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

NOBODY = MemberId("")
NO_GENERATION = -1
PROTOCOL_TYPE = "consumer"
VERSIONS: dict[type[Any], int] = {  # what the requests of this machine are written for
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
}

Events = list[Event[TopicPartition]]

# The generation is over, whoever says so: a commit hears the last two from a group that is gone, or
# that went over to the other protocol.
_ENDED = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


class ClassicStage(StrEnum):
    """Where a member stands between its first join and its leave."""

    OUTSIDE = "outside"
    JOINING = "joining"
    ASSIGNING = "assigning"
    SYNCING = "syncing"
    MEMBER = "member"
    PREPARING = "preparing"
    LOST = "lost"
    PARTING = "parting"
    LEAVING = "leaving"
    FAILED = "failed"


_PARKED = (ClassicStage.JOINING, ClassicStage.SYNCING)


class ClassicMemberConfig(NamedTuple):
    """What a member wants, and how patient the coordinator should be with it.

    `protocols` are names of `classic_assigning.PROTOCOLS`, the preferred one first.
    """

    topics: tuple[str, ...]
    protocols: tuple[str, ...] = ("range",)
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3000
    rack: str | None = None

    @property
    def cooperative(self) -> bool:
        return all(PROTOCOLS[name].cooperative for name in self.protocols)


class ClassicRequest(NamedTuple):
    """A request to send to the group's coordinator. Its answer comes back with the number."""

    number: int
    request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest


class ClassicMembership(AnyMembership[TopicPartition, ClassicMemberConfig, ClassicStage]):
    """One member of one classic group. The coordinator gives it its id.

    A static one says no good-bye, unless it leaves for good: its place waits until its session is
    over. One whose instance id was taken gets `MembershipFailed`. A cooperative one that ends
    between the two rebalances of a move leaves partitions without an owner until the group
    rebalances for another reason: the protocol replaces it in a group at rest, and only it knew
    (KIP-345 with KIP-429).

    The consumer calls `next` whenever `wake_at` says so and after each other call, and hands every
    answer to `received`. `generation` is -1 outside.
    """

    def __init__(
        self,
        group_id: GroupId,
        config: ClassicMemberConfig,
        backoff: RetryBackoff | None = None,
        *,
        instance_id: str | None = None,
    ) -> None:
        super().__init__(
            group_id,
            config,
            backoff,
            outside=ClassicStage.OUTSIDE,
            leaving=ClassicStage.LEAVING,
            instance_id=instance_id,
        )
        self.member_id = NOBODY
        self.generation = NO_GENERATION
        self.leads = False
        self._owned_since = NO_GENERATION  # the generation that gave what it owns
        self._protocol = ""
        self._wanted: dict[MemberId, ConsumerProtocolSubscription] = {}
        self._to_be_covered: frozenset[TopicPartition] = frozenset()
        self._hands_out: list[SyncGroupRequestAssignment] = []
        self._joined_as: ClassicMemberConfig | None = None
        self._again = False
        self._beat_at = AT_ONCE

    # What can be seen

    @property
    def commits_as(self) -> tuple[MemberId, int] | None:
        """The member id and the generation to commit with; None while there is none.

        Between the end of a join and that of a sync the coordinator answers REBALANCE_IN_PROGRESS.
        """
        return None if self.generation == NO_GENERATION else (self.member_id, self.generation)

    def _due(self) -> Millis | None:
        if not self._request_state.possible:
            return None
        match self.stage:
            case ClassicStage.JOINING | ClassicStage.SYNCING | ClassicStage.LEAVING:
                return self._request_state.not_before
            case ClassicStage.MEMBER | ClassicStage.PREPARING | ClassicStage.PARTING:
                if self.generation == NO_GENERATION:
                    return None
                beat_at = self._beat_at if self._soon is None else min(self._beat_at, self._soon)
                return max(beat_at, self._request_state.not_before)
            case _:
                return None

    def silent_at(self) -> Millis | None:
        """A coordinator may park a join, or a sync, for as long as a rebalance takes."""
        asked, rebalance_ms = self._request_state.under_way, self.config.rebalance_timeout_ms
        if asked is not None and self.owned and self.stage in _PARKED:
            return Millis(asked.at + max(self._silence_ms(), rebalance_ms))
        return super().silent_at()

    def _silence_ms(self) -> int:
        return self.config.session_timeout_ms

    # What the consumer wants

    def join(self) -> Events:
        """Begin. Raises ValueError for one that has begun already."""
        if self.stage not in (ClassicStage.OUTSIDE, ClassicStage.FAILED) or self.owned:
            raise ValueError(f"the member is {self.stage}, expected outside or failed")
        self._departs = False
        self._start_over()
        self.stage = ClassicStage.JOINING
        return [] if self._request_state.has_coordinator else [CoordinatorWanted()]

    def want(self, config: ClassicMemberConfig, now: Millis) -> Events:
        """Want something else from now on: a member joins again for it."""
        changed = config != self.config
        self.config = config
        return self.join_again(now) if changed else []

    def join_again(self, now: Millis) -> Events:
        """Have the group rebalance: a leader does so when topics have changed."""
        if self.stage is ClassicStage.MEMBER:
            return self._prepare(now)
        self._again = self.stage in (ClassicStage.ASSIGNING, ClassicStage.SYNCING)
        return []

    def topics_known(self, partitions: Mapping[str, int]) -> Events:
        """The number of partitions of each topic that `TopicsWanted` named; others do not exist.

        One that leads again need not assign (KIP-814), and nobody knows what its former self had
        counted. If it is the only member, all of them are to be its own.
        """
        if self.stage is not ClassicStage.ASSIGNING:
            if self.leads and set(self._wanted) == {self.member_id}:
                self._to_be_covered = frozenset(
                    TopicPartition(topic, PartitionIndex(index))
                    for topic, count in partitions.items()
                    for index in range(count)
                )
            return []
        try:
            plan = assign(PROTOCOLS[self._protocol], self._wanted, partitions)
        except AssignorError as error:
            return self._fail(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))
        self._hands_out = [
            SyncGroupRequestAssignment(member_id=member, assignment=assignment_of(mine))
            for member, mine in plan.items()
        ]
        self.stage = ClassicStage.SYNCING
        return []

    def leave(self, now: Millis, *, for_good: bool = False) -> Events:
        """Leave as soon as all that the member has is released. `GroupLeft` comes at the end. A
        static member keeps its place in the group for a while, unless it leaves `for_good`.

        The answer to a join or a sync could take as long as a rebalance: `HangUp` comes first when
        one is under way. Should the broker read it after the good-bye, it knows the id no more.
        """
        if self._departs:
            return []
        self._departs = True
        self._for_good = for_good or self.instance_id is None
        if self.stage in (ClassicStage.LOST, ClassicStage.FAILED):
            return self._depart()
        events: Events = []
        if self.stage not in (ClassicStage.MEMBER, ClassicStage.PREPARING):
            if self.waits_for_answer:
                events.append(HangUp())
            self._request_state.forget()
        self.stage = ClassicStage.PARTING
        events += self._owned_partitions.revoke(self.owned, self._patience(now))
        return events + self._depart()

    def released(self, partitions: frozenset[TopicPartition], now: Millis) -> Events:
        """The consumer has let go of partitions of `PartitionsRevoked` or `PartitionsLost`.

        Others are passed over: the member has let go of them already, or may keep them.
        """
        self._owned_partitions.release(partitions)
        if self._departs:
            return self._depart()
        match self.stage:
            case ClassicStage.MEMBER:
                return self._settle(now)
            case ClassicStage.PREPARING | ClassicStage.LOST if not self._owned_partitions.revoking:
                self.stage = ClassicStage.JOINING
        return []

    # What the network brings

    def next(self, now: Millis) -> ClassicRequest | None:
        """The request to send now, if any."""
        due = self._due()
        if due is None or due > now:
            return None
        number = self._request_state.ask(now)
        self._beats(now)
        match self.stage:
            case ClassicStage.JOINING:
                self._joined_as = self.config
                return ClassicRequest(number, self._join_request())
            case ClassicStage.SYNCING:
                return ClassicRequest(number, self._sync_request())
            case ClassicStage.LEAVING:
                return ClassicRequest(number, self._leave_request())
            case _:
                self._beat_at = Millis(now + self.config.heartbeat_interval_ms)
                return ClassicRequest(number, self._heartbeat_request())

    def received(
        self,
        number: int,
        answer: JoinGroupResponse | SyncGroupResponse | HeartbeatResponse | LeaveGroupResponse,
        now: Millis,
    ) -> Events:
        """What follows from the answer to the request of that number."""
        asked = self._request_state.answered(number)
        if asked is None:
            return []
        match answer:
            case LeaveGroupResponse():
                return self._heard_good_bye(_error(answer.error_code), now)
            case _ if self.stage is ClassicStage.LEAVING:
                return []  # the last heartbeat before the good-bye
            case JoinGroupResponse():
                return self._joined(answer, now)
            case SyncGroupResponse():
                return self._synced(answer, now)
            case HeartbeatResponse():
                return self._beaten(answer, asked, now)

    # What an answer means

    def _joined(self, answer: JoinGroupResponse, now: Millis) -> Events:
        error = _error(answer.error_code)
        if error is not None and error.code is ErrorCode.MEMBER_ID_REQUIRED and answer.member_id:
            self.member_id = MemberId(answer.member_id)  # KIP-394: it comes back with this id
            return []
        if error is not None:
            return self._refused(error, now)
        if answer.generation_id < 0 or answer.protocol_name not in PROTOCOLS:
            text = f"generation {answer.generation_id} by {answer.protocol_name} is none of ours"
            return self._fail(ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text))
        self._request_state.succeeded()
        self._heard_at = now  # it may have been parked for long
        self.member_id = MemberId(answer.member_id)
        self.generation = answer.generation_id
        self._protocol = answer.protocol_name
        self._again = False
        self._hands_out = []
        self.leads = answer.leader == answer.member_id
        self.stage = ClassicStage.SYNCING
        self._to_be_covered = frozenset()
        if not self.leads:
            return []
        self._wanted = subscriptions(answer.members)
        if not answer.skip_assignment:
            self.stage = ClassicStage.ASSIGNING
        return [TopicsWanted(topics_of(self._wanted))]  # it watches them in any case

    def _synced(self, answer: SyncGroupResponse, now: Millis) -> Events:
        error = _error(answer.error_code)
        if error is not None:
            return self._refused(error, now)
        try:
            self._assigned = read_assignment(answer.assignment)
        except WireError as unreadable:
            return self._fail(ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(unreadable)))
        self._request_state.succeeded()
        self._heard_at = now
        self._has_news_of_us()
        self._owned_since = self.generation
        self._beat_at = Millis(now + self.config.heartbeat_interval_ms)
        self.stage = ClassicStage.MEMBER
        revoked = self._owned_partitions.revoke(self.owned - self._assigned, self._patience(now))
        # Others wait for what is given up, and for another wish there has to be another generation.
        self._again = self._again or bool(revoked) or self._joined_as != self.config
        return [*revoked, *self._settle(now)]

    def _settle(self, now: Millis) -> Events:
        """Take what is new, once nothing is left to release; join again where that is needed."""
        if self._owned_partitions.revoking:
            return []
        if self._again and not self.config.cooperative:
            return self._prepare(now)  # it would have to give up at once what it takes
        taken: Events = [*self._owned_partitions.take(self._assigned)]
        return taken + self._prepare(now) if self._again else taken

    def _beaten(self, answer: HeartbeatResponse, asked: InFlightRequest, now: Millis) -> Events:
        error = _error(answer.error_code)
        if error is not None and error.code is not ErrorCode.REBALANCE_IN_PROGRESS:
            return self._refused(error, now)
        self._request_state.succeeded()
        self._heard_at = asked.at
        covered, self._to_be_covered = self._to_be_covered <= self._assigned, frozenset()
        if (error is None and covered) or self.stage is not ClassicStage.MEMBER:
            return []
        return self._prepare(asked.at)  # the coordinator may have waited since then

    def _prepare(self, now: Millis) -> Events:
        """Join again, once what is to be given up is released. An eager member gives up all."""
        self._again = False
        self.stage = ClassicStage.PREPARING
        events: Events = []
        if not self.config.cooperative:
            events += self._owned_partitions.lend(self._patience(now))
        if not self._owned_partitions.revoking:
            self.stage = ClassicStage.JOINING
        return events

    def _refused(self, error: ApiError, now: Millis) -> Events:
        code = error.code
        known = self.member_id != NOBODY
        if known and code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            return self._put_out(error)
        if code in ELSEWHERE:
            return self._moved(now)
        if code.retriable or code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID):
            if code is not ErrorCode.REBALANCE_IN_PROGRESS:  # that one is no failure
                self._request_state.failed(now)
            self._ask_anew()
            return []
        return self._fail(error)

    def _denied(self, error: ApiError, now: Millis) -> Events:
        """A join under way may have ended the generation already: then its answer decides."""
        code = error.code
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            return self._put_out(error)
        if code in _ENDED:
            joins = self.stage is ClassicStage.JOINING and self.waits_for_answer
            return [] if joins else self._put_out(error)
        if code is ErrorCode.FENCED_INSTANCE_ID:
            return self._fail(error)
        if code is ErrorCode.REBALANCE_IN_PROGRESS and self.stage is ClassicStage.MEMBER:
            return self._prepare(now)
        return []

    def _put_out(self, error: ApiError) -> Events:
        """The generation is worth nothing any more; the id is, unless nobody knows it."""
        member_id = NOBODY if error.code is ErrorCode.UNKNOWN_MEMBER_ID else self.member_id
        lost: Events = [*self._owned_partitions.lose(error)]
        self._start_over()
        self.member_id = member_id
        self.stage = ClassicStage.LOST
        if self._departs:
            return lost + self._depart()
        if not self.owned:
            self.stage = ClassicStage.JOINING
        return lost

    def _ask_anew(self) -> None:
        """A heartbeat is repeated without waiting for the next one. A sync is not repeated: whoever
        does not know how it ended joins again.
        """
        self._beat_at = AT_ONCE
        if self.stage in (ClassicStage.SYNCING, ClassicStage.ASSIGNING):
            self.stage = ClassicStage.JOINING

    def _fail(self, error: ApiError) -> Events:
        events: Events = [*self._owned_partitions.lose(error), MembershipFailed(error)]
        self._request_state.forget()
        self.generation = NO_GENERATION
        self.stage = ClassicStage.FAILED
        return events + self._depart() if self._departs else events

    def _has_to_say_good_bye(self) -> bool:
        return self.member_id != NOBODY and self._for_good

    def _start_over(self) -> None:
        self._request_state.forget()
        self.member_id = NOBODY
        self.generation = self._owned_since = NO_GENERATION
        self._forget_time()
        self._owned_partitions.lent = frozenset()
        self.leads = self._again = False
        self._assigned = frozenset()

    # What is said

    def _join_request(self) -> JoinGroupRequest:
        """The first protocol is the preferred one. An eager member owns nothing here."""
        metadata = encode(
            ConsumerProtocolSubscription(
                topics=list(self.config.topics),
                owned_partitions=partitions_by_topic(self.owned),
                generation_id=self._owned_since,
                rack_id=self.config.rack,
            )
        )
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.config.session_timeout_ms,
            rebalance_timeout_ms=self.config.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name in self.config.protocols
            ],
        )

    def _sync_request(self) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=self._hands_out,
        )

    def _heartbeat_request(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )

    def _leave_request(self) -> LeaveGroupRequest:
        member = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        return LeaveGroupRequest(group_id=self.group_id, members=[member])


def _error(code: int) -> ApiError | None:
    return api_error(code) if code else None
