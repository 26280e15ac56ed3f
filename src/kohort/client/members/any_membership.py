# SPDX-License-Identifier: Apache-2.0
"""What a member of either protocol has: one request at a time, partitions, and a way out.

A subclass knows the stages between the first join and the good-bye, and what is said at each.

A member believes that it owns its partitions while the coordinator says so. It stops to believe it
at the first refusal of its present epoch, whoever was refused (`refused_as`), and when nothing was
heard for as long as a session (`expire`): then others may have the partitions.
"""

from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from kohort.client.members.events import CoordinatorWanted, Event, GroupLeft, HangUp, Partition
from kohort.client.members.owned_partitions import OwnedPartitions
from kohort.client.members.request_state import ELSEWHERE, RequestState
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, MemberId, Millis


class RebalanceTimeout(Protocol):
    """A member config says how long the coordinator is to wait for a release."""

    @property
    def rebalance_timeout_ms(self) -> int: ...


SomeMemberConfig = TypeVar("SomeMemberConfig", bound=RebalanceTimeout)
SomeStage = TypeVar("SomeStage", bound=StrEnum)


class AnyMembership(Generic[Partition, SomeMemberConfig, SomeStage]):
    """`stage` is where the member stands: at first `outside`, and `leaving` at the good-bye.

    A member with an `instance_id` is static (KIP-345): it leaves for a while, unless it is told to
    leave for good, and takes its place again when it comes back in time.
    """

    def __init__(
        self,
        group_id: GroupId,
        config: SomeMemberConfig,
        backoff: RetryBackoff | None,
        *,
        outside: SomeStage,
        leaving: SomeStage,
        instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.instance_id = instance_id
        self.config = config
        self.stage = outside
        self._outside = outside
        self._leaving = leaving
        self._backoff = backoff or RetryBackoff()
        self._request_state = RequestState(self._backoff)
        self._owned_partitions: OwnedPartitions[Partition] = OwnedPartitions()
        self._assigned: frozenset[Partition] = frozenset()  # as last told
        self._departs = False
        self._for_good = instance_id is None  # how it departs
        self._heard_at: Millis | None = None  # when the member was last known to the coordinator
        self._soon: Millis | None = None  # a heartbeat that does not wait for its interval
        self._hurried = 0  # such heartbeats in a row that brought nothing new

    # What can be seen

    @property
    def commits_as(self) -> tuple[MemberId, int] | None:
        """The member id and the epoch, or the generation, to commit with; None while there is
        none.
        """
        raise NotImplementedError

    @property
    def owned(self) -> frozenset[Partition]:
        """All partitions that the member has not let go of yet."""
        return self._owned_partitions.owned

    @property
    def consumable(self) -> frozenset[Partition]:
        """The partitions that may be consumed now."""
        return self._owned_partitions.not_revoking

    @property
    def release_by(self) -> Millis | None:
        """When the coordinator may put the member out unless it has released all that it is to give
        up; None while there is no such thing.
        """
        return self._owned_partitions.release_by

    @property
    def waits_for_answer(self) -> bool:
        """Whether a request is under way."""
        return self._request_state.under_way is not None

    def wake_at(self) -> Millis | None:
        """When `next` or `expire` has something to do; None when only another call can bring that
        about.
        """
        return min((at for at in (self._due(), self.silent_at()) if at is not None), default=None)

    def silent_at(self) -> Millis | None:
        """When the coordinator has said nothing for as long as a session: from then on others may
        have what the member owns. None while it owns nothing.
        """
        if self._heard_at is None or not self.owned:
            return None
        return Millis(self._heard_at + self._silence_ms())

    # What the consumer tells

    def ask_soon(self, now: Millis) -> None:
        """Have a member say something at once: what it was told last is not true any more, perhaps.

        Heartbeats that bring nothing new come with growing pauses, whoever wants them.
        """
        pause_ms = self._backoff.after(self._hurried) if self._hurried else 0
        at = Millis(now + pause_ms)
        self._soon = at if self._soon is None else min(self._soon, at)

    def refused_as(
        self, member_id: MemberId, epoch: int, error: ApiError, now: Millis
    ) -> list[Event[Partition]]:
        """Something else that was asked in the name of this member, at this epoch or in this
        generation, was refused: a commit, for instance.

        What concerns a former epoch says nothing of the present one; the coordinator is asked.
        """
        who = self.commits_as
        if who is None or who[0] != member_id or self.stage is self._leaving:
            return []
        if who[1] != epoch:
            self.ask_soon(now)
            return []
        waited = self.waits_for_answer
        events = self._denied(error, now)
        return [HangUp(), *events] if waited and not self.waits_for_answer else events

    def expire(self, now: Millis) -> list[Event[Partition]]:
        """What follows when the coordinator was silent for as long as a session."""
        silent_at = self.silent_at()
        if silent_at is None or now < silent_at:
            return []
        text = f"the coordinator has said nothing for {self._silence_ms()} ms, which is a session"
        error = ApiError(ErrorCode.REQUEST_TIMED_OUT, text)
        hang_up: list[Event[Partition]] = [HangUp()] if self.waits_for_answer else []
        wanted = self._request_state.lose_coordinator()
        return [*hang_up, *self._put_out(error), *self._look(wanted=wanted)]

    def refuse(self, error: ApiError) -> list[Event[Partition]]:
        """The member cannot go on for a reason that it does not see itself: `MembershipFailed`."""
        return self._fail(error)

    # What the network brings

    def coordinator_found(self) -> None:
        """The group's coordinator is known, and can be asked."""
        self._request_state.has_coordinator = True

    def connection_lost(self, now: Millis) -> list[Event[Partition]]:
        """No answer will come: the connection broke, or took too long and was closed."""
        self._failed(now)
        return self._look(wanted=self._request_state.lose_coordinator())

    # What a subclass knows

    def _due(self) -> Millis | None:
        """When `next` has something to send."""
        raise NotImplementedError

    def _silence_ms(self) -> int:
        """For how long the coordinator may say nothing."""
        raise NotImplementedError

    def _denied(self, error: ApiError, now: Millis) -> list[Event[Partition]]:
        """The coordinator has refused the present epoch, or says so."""
        raise NotImplementedError

    def _put_out(self, error: ApiError) -> list[Event[Partition]]:
        """The epoch is worth nothing any more: all is lost, and the member joins anew."""
        raise NotImplementedError

    def _fail(self, error: ApiError) -> list[Event[Partition]]:
        """All is lost, for good."""
        raise NotImplementedError

    def _ask_anew(self) -> None:
        """Nobody knows what became of the last request."""
        raise NotImplementedError

    def _start_over(self) -> None:
        """Forget all that the coordinator has said."""
        raise NotImplementedError

    def _has_to_say_good_bye(self) -> bool:
        """Whether the coordinator may know the member."""
        raise NotImplementedError

    # Asking and leaving

    def _beats(self, now: Millis) -> None:
        """A heartbeat leaves."""
        if self._soon is not None and self._soon <= now:
            self._hurried += 1
        self._soon = None

    def _has_news_of_us(self) -> None:
        """The coordinator has said something new: the next question may come at once."""
        self._hurried = 0

    def _forget_time(self) -> None:
        self._heard_at = self._soon = None
        self._hurried = 0

    def _failed(self, now: Millis) -> None:
        """No answer, or one that says "later": the next request comes after a pause."""
        self._request_state.failed(now)
        self._ask_anew()

    def _moved(self, now: Millis) -> list[Event[Partition]]:
        """The coordinator is another one."""
        self._ask_anew()
        return self._look(wanted=self._request_state.moved(now))

    def _look(self, *, wanted: bool) -> list[Event[Partition]]:
        return [CoordinatorWanted()] if wanted and self.stage is not self._outside else []

    def _patience(self, now: Millis) -> Millis:
        return Millis(now + self.config.rebalance_timeout_ms)

    def _depart(self) -> list[Event[Partition]]:
        """Go on with leaving, as far as what is not released yet allows."""
        if self.owned:
            return []
        if not self._has_to_say_good_bye():
            return self._out()
        self.stage = self._leaving
        return []

    def _heard_good_bye(self, error: ApiError | None, now: Millis) -> list[Event[Partition]]:
        """A refusal that will not change means that the member is out already."""
        if error is not None and error.code in ELSEWHERE:
            return self._moved(now)
        if error is not None and error.code.retriable:
            self._failed(now)
            return []
        return self._out()

    def _out(self) -> list[Event[Partition]]:
        self._start_over()
        self._departs = False
        self.stage = self._outside
        return [GroupLeft()]
