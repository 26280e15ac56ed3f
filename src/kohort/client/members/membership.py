# SPDX-License-Identifier: Apache-2.0
"""A member of a KIP-848 group as a pure machine: what to say, and what an answer means.

It has no clock, no socket, no chance and no thread. The consumer that owns it passes the time, ids
and jitter, carries requests to the group's coordinator and answers back, and does what the events
say. Times are milliseconds of any clock that does not go back.

The stages of a membership:

    OUTSIDE   no member. `join` begins.
    JOINING   asks to be taken in, at epoch 0, and owns nothing.
    MEMBER    heartbeats. It owns partitions, and may be about to give some of them up.
    LOST      the coordinator has put it out. It waits until all it had is released, then joins.
    PARTING   is about to leave: heartbeats until all it had is released.
    LEAVING   says good-bye (epoch -1) until the coordinator has heard it.
    FAILED    was refused for good. `join` begins anew, `leave` ends it.

Two rules keep a partition from having two owners:

- What the coordinator takes away stays *owned* until the consumer has released it. A heartbeat that
  does not name a partition gives it away, so a partition is left out only after its release.
- What is to be given up goes first. New partitions are taken when nothing is left to release.

One request is under way at a time. Each has a number, and an answer to any other is not heard: a
late or a repeated one says nothing. After a lost answer the next heartbeat tells everything, at the
epoch that the member knows; the coordinator forgives an epoch that is one behind (KIP-848).

A request that the member has given up should not be carried out after a later one of the same
member. While its epoch still counts, and that of a join always does, it could give away what the
member has taken since: the protocol cannot tell the two apart. A consumer closes the connection of
a request that it gives up, and the machine pauses before the next one. That makes the right order
likely and guarantees nothing: bytes that have left already are delivered all the same, and nothing
orders two connections. What is guaranteed is that the coordinator refuses a request whose epoch
counts no more, and that the member hears no answer to a request that it has given up.
"""

from enum import StrEnum
from typing import NamedTuple

from kohort.client.members.any_membership import AnyMembership
from kohort.client.members.events import (
    AssignmentMetadata,
    ComputeWanted,
    CoordinatorWanted,
    Event,
    MembershipFailed,
    RequestRefused,
    TopicIdPartition,
    in_order,
)
from kohort.client.members.heartbeat import (
    JOIN,
    HeartbeatFields,
    MemberConfig,
    MemberIds,
    assignment_in,
    farewell,
    request_of,
)
from kohort.client.members.request_state import AT_ONCE, ELSEWHERE, InFlightRequest
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.errors import ApiError, ErrorCode, api_error
from kohort.terms import GroupId, MemberId, Millis
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

DEFAULT_INTERVAL_MS = 5000  # upstream's group.consumer.heartbeat.interval.ms, until one is told
DEFAULT_SESSION_MS = 45_000  # upstream's group.consumer.session.timeout.ms, which nobody tells
_LOOKS = 5  # the broker looks for what a pattern matches beside its answer, for a moment

Events = list[Event[TopicIdPartition]]


class Stage(StrEnum):
    """Where a member stands between its first join and its leave."""

    OUTSIDE = "outside"
    JOINING = "joining"
    MEMBER = "member"
    LOST = "lost"
    PARTING = "parting"
    LEAVING = "leaving"
    FAILED = "failed"


class Heartbeat(NamedTuple):
    """A request to send to the group's coordinator. Its answer comes back with the number."""

    number: int
    request: ConsumerGroupHeartbeatRequest


_PUT_OUT = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
# Rights may be granted at any time, and another member may leave.
_PASSING = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNRELEASED_INSTANCE_ID)


class Membership(AnyMembership[TopicIdPartition, MemberConfig, Stage]):
    """One member of one group. `member_id` is the client's own choice, for good (KIP-1082).

    A static member whose instance id still belongs to another one gets `RequestRefused`, and asks
    until that one has left or is silent for its session. One whose instance id was taken gets
    `MembershipFailed`.

    The consumer calls `next` whenever `wake_at` says so and after each other call, and hands every
    answer to `received`. `epoch` is the member epoch, 0 outside.
    """

    def __init__(
        self,
        group_id: GroupId,
        member_id: MemberId,
        config: MemberConfig,
        backoff: RetryBackoff | None = None,
        *,
        instance_id: str | None = None,
        session_ms: int = DEFAULT_SESSION_MS,
    ) -> None:
        super().__init__(
            group_id,
            config,
            backoff,
            outside=Stage.OUTSIDE,
            leaving=Stage.LEAVING,
            instance_id=instance_id,
        )
        self.member_id = member_id
        self._name = MemberIds(group_id, member_id, instance_id)
        self.epoch = JOIN
        self.interval_ms = DEFAULT_INTERVAL_MS
        self._saying: HeartbeatFields | None = None  # in the request under way; None in a good-bye
        self._known: HeartbeatFields | None = None  # what the coordinator has surely heard
        self._beat_at = AT_ONCE
        self._may_be_known = False  # a join went out, and no good-bye has been answered since
        self._session_ms = session_ms
        self._looks = 0  # early heartbeats that are left, for what a pattern matches
        self._held_since: Millis | None = None  # our instance id, by another member

    # What can be seen

    @property
    def commits_as(self) -> tuple[MemberId, int] | None:
        """The member id and the epoch to commit with (OffsetCommit version 9 or newer).

        None while a commit would be refused. A partition that is being given up can be committed
        until it is released.
        """
        if self.stage in (Stage.MEMBER, Stage.PARTING):
            return self.member_id, self.epoch
        return None

    def _due(self) -> Millis | None:
        if not self._request_state.possible:
            return None
        match self.stage:
            case Stage.OUTSIDE | Stage.LOST | Stage.FAILED:
                return None
            case Stage.JOINING | Stage.LEAVING:
                return self._request_state.not_before
            case Stage.MEMBER | Stage.PARTING:
                beat_at = self._beat_at if self._soon is None else min(self._beat_at, self._soon)
                due = AT_ONCE if self._has_news() else beat_at
                return max(due, self._request_state.not_before)

    def _silence_ms(self) -> int:
        """The session is the broker's, and no answer tells it. It is longer than an interval."""
        return max(self._session_ms, 2 * self.interval_ms)

    # What the consumer wants

    def join(self) -> Events:
        """Begin. Raises ValueError for one that has begun already."""
        if self.stage not in (Stage.OUTSIDE, Stage.FAILED) or self.owned:
            raise ValueError(f"member {self.member_id} is {self.stage}, expected outside or failed")
        self._start_over()
        self._departs = False
        self._held_since = None
        self.stage = Stage.JOINING
        return [] if self._request_state.has_coordinator else [CoordinatorWanted()]

    def want(self, config: MemberConfig) -> None:
        """Want something else from now on. A member says so at once."""
        self.config = config

    def leave(self, now: Millis, *, for_good: bool = False) -> Events:
        """Leave as soon as all that the member has is released. `GroupLeft` comes at the end.

        A static member leaves for a while, unless it is `for_good`; until its session ends nobody
        else gets what it has.
        """
        if self._departs:
            return []
        self._departs = True
        self._for_good = for_good or self.instance_id is None
        if self.stage is not Stage.MEMBER:
            return self._depart()
        self.stage = Stage.PARTING
        return [*self._owned_partitions.revoke(self.owned, self._patience(now)), *self._depart()]

    def released(self, partitions: frozenset[TopicIdPartition]) -> Events:
        """The consumer has let go of partitions of `PartitionsRevoked` or `PartitionsLost`.

        Others are passed over: the member has let go of them already, or may keep them.
        """
        self._owned_partitions.release(partitions)
        if self._departs:
            return self._depart()
        if self.stage is Stage.MEMBER:
            return [*self._owned_partitions.take(self._assigned)]
        self._come_back()
        return []

    # What the network brings

    def next(self, now: Millis) -> Heartbeat | None:
        """The request to send now, if any."""
        due = self._due()
        if due is None or due > now:
            return None
        number = self._request_state.ask(now)
        self._beats(now)
        if self.stage is Stage.LEAVING:
            self._saying = None
            return Heartbeat(number, farewell(self._name, for_good=self._for_good))
        self._saying = self._heartbeat_fields()
        self._may_be_known = True
        self._beat_at = Millis(now + self.interval_ms)
        request = request_of(self._name, self.epoch, self._saying, self._known)
        return Heartbeat(number, request)

    def received(self, number: int, answer: ConsumerGroupHeartbeatResponse, now: Millis) -> Events:
        """What follows from the answer to the request of that number."""
        asked = self._request_state.answered(number)
        if asked is None:
            return []
        error = None
        asked_to_compute = answer.error_code == ErrorCode.COMPUTE_ASSIGNMENT
        if answer.error_code and not asked_to_compute:  # that one is filled in as for success
            error = api_error(answer.error_code, answer.error_message)
        if self.stage is Stage.LEAVING:
            if self._saying is not None:  # the last heartbeat before the good-bye
                return []
            return self._heard_good_bye(error, now)
        if error is not None:
            return self._refused(error, now)
        if answer.member_epoch <= JOIN:  # no epoch of a member: to take it over would be to leave
            self._failed(now)
            return []
        events = self._taken_in(asked, answer, now)
        if asked_to_compute and self.stage is Stage.MEMBER:
            events.append(ComputeWanted())
        return events

    # What an answer means

    def _taken_in(
        self, asked: InFlightRequest, answer: ConsumerGroupHeartbeatResponse, now: Millis
    ) -> Events:
        self._request_state.succeeded()
        self._heard_at = asked.at
        self._held_since = None
        self._look_for_pattern(answer, now)
        self._known = self._saying
        self.epoch = answer.member_epoch
        if answer.heartbeat_interval_ms > 0:  # zero would mean without a pause
            self.interval_ms = answer.heartbeat_interval_ms
        self._beat_at = Millis(asked.at + self.interval_ms)
        assigned = assignment_in(answer)
        if assigned is not None:
            self._assigned = assigned
        if self.stage is Stage.JOINING:
            self.stage = Stage.MEMBER
        # The coordinator counts from when it was asked, which was later than this.
        until = self._patience(asked.at)
        # Who parts gives up all that it has, so it takes nothing.
        revoked = self._owned_partitions.revoke(self.owned - self._assigned, until)
        return [*revoked, *self._owned_partitions.take(self._assigned), *self._attached(answer)]

    def _look_for_pattern(self, answer: ConsumerGroupHeartbeatResponse, now: Millis) -> None:
        """The broker finds out what a new pattern matches after its answer, which brings nothing.

        It takes moments; without asking again they would last an interval.
        """
        told = self._saying.config if self._saying is not None else self.config
        is_new = self._known is None or self._known.config.regex != told.regex
        if answer.assignment is not None or answer.member_epoch != self.epoch:
            self._has_news_of_us()
            self._looks = 0
        if told.regex and is_new:
            self._looks = _LOOKS
        if self._looks and not (answer.assignment and answer.assignment.topic_partitions):
            self._soon = Millis(now + self._backoff.after(_LOOKS + 1 - self._looks))
            self._looks -= 1

    def _attached(self, answer: ConsumerGroupHeartbeatResponse) -> Events:
        added = None if answer.assignment is None else answer.assignment.attachment
        if added is None:
            return []
        return [
            AssignmentMetadata(
                in_order(self._assigned),
                added.metadata_version,
                added.metadata_bytes,
                added.error,
                added.assignor_name,
            )
        ]

    def _refused(self, error: ApiError, now: Millis) -> Events:
        code = error.code
        inside = self.epoch != JOIN
        if inside and (code in _PUT_OUT or code is ErrorCode.GROUP_ID_NOT_FOUND):
            return self._put_out(error)
        if code in ELSEWHERE:
            return self._moved(now)
        if code.retriable or code in _PUT_OUT:
            self._failed(now)
            return []
        if code is ErrorCode.UNRELEASED_INSTANCE_ID and self._is_held_too_long(now):
            text = (
                f"{error.message or code.name}: still so after {2 * self._silence_ms()} ms, two "
                f"sessions. Another member has the group_instance_id {self.instance_id}"
            )
            return self._fail(ApiError(code, text))
        if code in _PASSING:
            self._failed(now)
            return [RequestRefused(error)]
        return self._fail(error)

    def _is_held_too_long(self, now: Millis) -> bool:
        """One that was killed holds its instance id until its session is over. That may begin anew
        once: a coordinator that has read its log gives each member a whole session.
        """
        if self._held_since is None:
            self._held_since = now
        return now - self._held_since >= 2 * self._silence_ms()

    def _denied(self, error: ApiError, now: Millis) -> Events:
        """A stale epoch may be one that the answer under way will bring, so the coordinator is
        asked; the other codes leave no doubt.
        """
        if error.code in _PUT_OUT or error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return self._put_out(error)
        if error.code is ErrorCode.FENCED_INSTANCE_ID:
            return self._fail(error)
        self.ask_soon(now)
        return []

    def _fail(self, error: ApiError) -> Events:
        if error.code is ErrorCode.FENCED_INSTANCE_ID:
            self._may_be_known = False  # another member has its place
        self.stage = Stage.FAILED
        events = [*self._lose(error), MembershipFailed(error)]
        return events + self._depart() if self._departs else events

    def _put_out(self, error: ApiError) -> Events:
        """The epoch is worth nothing any more. No pause: the release takes its time already."""
        self.stage = Stage.LOST
        lost = self._lose(error)
        if self._departs:
            return lost + self._depart()
        self._come_back()
        return lost

    def _lose(self, error: ApiError) -> Events:
        self._start_over()
        return [*self._owned_partitions.lose(error)]

    def _come_back(self) -> None:
        if self.stage is Stage.LOST and not self.owned:
            self.stage = Stage.JOINING

    def _has_to_say_good_bye(self) -> bool:
        return self._may_be_known

    def _out(self) -> Events:
        self._may_be_known = False
        return super()._out()

    # What is to be said, and when

    def _heartbeat_fields(self) -> HeartbeatFields:
        return HeartbeatFields(self.config, in_order(self.owned))

    def _has_news(self) -> bool:
        """Something that the coordinator waits for. A release counts when it is complete."""
        if self._known is None or self._known.config != self.config:
            return True
        return not self._owned_partitions.revoking and self._known.owned != in_order(self.owned)

    def _start_over(self) -> None:
        self.epoch = JOIN
        self._assigned = frozenset()
        self._known = None
        self._looks = 0
        self._request_state.forget()
        self._forget_time()

    def _ask_anew(self) -> None:
        """The next heartbeat is a full one."""
        self._known = None
