"""What a member of either protocol has: one request at a time, partitions, and a way out.

A subclass knows the stages between the first join and the good-bye, and what is said at each.
"""

from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from kohort.client.members.asking import ELSEWHERE, Asking
from kohort.client.members.events import CoordinatorWanted, Event, Left, Partition
from kohort.client.members.holding import Holding
from kohort.client.members.pauses import Pauses
from kohort.errors import ApiError
from kohort.terms import GroupId, Millis


class Patience(Protocol):
    """A profile says how long the coordinator is to wait for a release."""

    @property
    def rebalance_timeout_ms(self) -> int: ...


SomeProfile = TypeVar("SomeProfile", bound=Patience)
SomeStage = TypeVar("SomeStage", bound=StrEnum)


class AnyMembership(Generic[Partition, SomeProfile, SomeStage]):
    """`stage` is where the member stands: at first `outside`, and `leaving` at the good-bye.

    A member with an `instance_id` is static (KIP-345): it leaves for a while, unless it is told to
    leave for good, and takes its place again when it comes back in time.
    """

    def __init__(
        self,
        group_id: GroupId,
        profile: SomeProfile,
        pauses: Pauses | None,
        *,
        outside: SomeStage,
        leaving: SomeStage,
        instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.instance_id = instance_id
        self.profile = profile
        self.stage = outside
        self._outside = outside
        self._leaving = leaving
        self._asking = Asking(pauses or Pauses())
        self._holding: Holding[Partition] = Holding()
        self._assigned: frozenset[Partition] = frozenset()  # as last told
        self._departs = False
        self._for_good = instance_id is None  # how it departs

    # What can be seen

    @property
    def owned(self) -> frozenset[Partition]:
        """All partitions that the member has not let go of yet."""
        return self._holding.owned

    @property
    def consumable(self) -> frozenset[Partition]:
        """The partitions that may be consumed now."""
        return self._holding.kept

    @property
    def release_by(self) -> Millis | None:
        """When the coordinator may put the member out unless it has released all that it is to give
        up; None while there is no such thing.
        """
        return self._holding.release_by

    @property
    def waits_for_answer(self) -> bool:
        """Whether a request is under way."""
        return self._asking.under_way is not None

    # What the network brings

    def coordinator_found(self) -> None:
        """The group's coordinator is known, and can be asked."""
        self._asking.has_coordinator = True

    def connection_lost(self, now: Millis) -> list[Event[Partition]]:
        """No answer will come: the connection broke, or took too long and was closed."""
        self._failed(now)
        return self._look(wanted=self._asking.lose_coordinator())

    # What a subclass knows

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

    def _failed(self, now: Millis) -> None:
        """No answer, or one that says "later": the next request comes after a pause."""
        self._asking.failed(now)
        self._ask_anew()

    def _moved(self, now: Millis) -> list[Event[Partition]]:
        """The coordinator is another one."""
        self._ask_anew()
        return self._look(wanted=self._asking.moved(now))

    def _look(self, *, wanted: bool) -> list[Event[Partition]]:
        return [CoordinatorWanted()] if wanted and self.stage is not self._outside else []

    def _patience(self, now: Millis) -> Millis:
        return Millis(now + self.profile.rebalance_timeout_ms)

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
        return [Left()]
