# SPDX-License-Identifier: Apache-2.0
"""One computation of an assignment by a member: who is asked, and what the answer is held against.

It is soft: no record tells of it, a restart forgets it, and somebody else is asked.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kohort.coordinator.consumer.client_side.offers import CLASSIC_VERSION
from kohort.coordinator.consumer.client_side.selection import offered_by
from kohort.coordinator.consumer.member import Member
from kohort.terms import MemberId, Millis, TopicId


@dataclass(frozen=True, slots=True)
class Basis:
    """What a member was told at the group's `epoch`, as far as its answer is held against it.

    `reads` has the versions of metadata that each member reads, the lowest and the highest.
    """

    epoch: int
    subscribed: Mapping[MemberId, Collection[TopicId]]
    partitions: Mapping[TopicId, int]
    names: Mapping[TopicId, str]
    instances: Mapping[MemberId, str]
    reads: Mapping[MemberId, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Computation:
    """A group needs an assignment by `assignor`, and `member_id` is the member that computes it.

    `number` is that of the group. `epoch` is the group's epoch at which this was last looked at;
    everything that decides about it raises the epoch. `late` are the members that have let their
    time pass at that epoch. `asked_at` is when the member was told, None until then.

    Without a member the broker has to compute, for the reason `why`.
    """

    number: int
    epoch: int
    assignor: str
    version: int
    member_id: MemberId | None
    late: tuple[MemberId, ...] = ()
    asked_at: Millis | None = None
    reason: int = 0
    basis: Basis | None = None
    why: str = ""

    def ends_with(self, target_epoch: int) -> bool:
        """Whether a target of this epoch is what was asked for, or newer. A group that has just
        been converted has an older one, of the step in which a member was asked.
        """
        prepared = self.basis is not None and self.basis.epoch == target_epoch
        return prepared or target_epoch >= self.epoch


def fit(members: Iterable[Member], assignor: str, late: Collection[MemberId]) -> list[MemberId]:
    """The members that may be asked, by id: of the consumer protocol, there, not late, and able to
    read the metadata of everybody.
    """
    known = list(members)
    offers = {member.id: offered_by(member).get(assignor) for member in known}
    versions = [
        offer.version
        for offer in offers.values()
        if offer is not None and (offer.metadata or offer.version != CLASSIC_VERSION)
    ]
    lowest, highest = min(versions, default=0), max(versions, default=0)
    found = []
    for member in known:
        offer = offers[member.id]
        if (
            member.classic is None
            and member.epoch > 0
            and member.id not in late
            and offer is not None
            and (not versions or offer.reads(lowest, highest))
        ):
            found.append(member.id)
    return sorted(found)
