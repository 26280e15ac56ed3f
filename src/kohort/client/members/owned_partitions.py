# SPDX-License-Identifier: Apache-2.0
"""The partitions that a member has: what it took, what it is to give up, and what it let go of.

What is taken away stays the member's own until its consumer has released it, and new partitions are
taken when nothing is left to release.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Generic

from kohort.client.members.events import (
    Partition,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    in_order,
)
from kohort.errors import ApiError
from kohort.terms import Millis


class OwnedPartitions(Generic[Partition]):
    """`owned` is all that the member has, `revoking` the part that it is to give up.

    `release_by` is when the coordinator's patience ends, None while nothing is to be given up.
    """

    def __init__(self) -> None:
        self.owned: frozenset[Partition] = frozenset()
        self.revoking: frozenset[Partition] = frozenset()
        self.release_by: Millis | None = None
        self.lent: frozenset[Partition] = frozenset()  # given up for a rebalance, perhaps to return

    @property
    def not_revoking(self) -> frozenset[Partition]:
        """What the member has and may keep."""
        return self.owned - self.revoking

    def take(self, assigned: AbstractSet[Partition]) -> list[PartitionsAssigned[Partition]]:
        """Take what is new in this assignment, unless something is still to be released."""
        new = assigned - self.owned
        if self.revoking:
            return []
        returned, self.lent = new & self.lent, frozenset()
        if not new:
            return []
        self.owned |= new
        return [PartitionsAssigned(in_order(new), in_order(returned))]

    def lend(self, until: Millis) -> list[PartitionsRevoked[Partition]]:
        """Have all of it given up, as every member does for an eager rebalance."""
        self.lent = self.not_revoking or self.lent
        return self.revoke(self.owned, until)

    def revoke(
        self, partitions: Iterable[Partition], until: Millis
    ) -> list[PartitionsRevoked[Partition]]:
        """Have these given up, until then unless others had to be given up earlier."""
        new = self.owned.intersection(partitions) - self.revoking
        if not new:
            return []
        if self.release_by is None:
            self.release_by = until
        self.revoking |= new
        return [PartitionsRevoked(in_order(new))]

    def lose(self, error: ApiError) -> list[PartitionsLost[Partition]]:
        """All is lost; there is no hurry to release it. What is being given up is not named again:
        its release is on the way.
        """
        not_revoking = self.not_revoking
        self.lent = frozenset()
        self.release_by = None
        self.revoking = self.owned
        return [PartitionsLost(in_order(not_revoking), error)] if not_revoking else []

    def release(self, partitions: frozenset[Partition]) -> None:
        """Let go of these. What is not to be given up is passed over, and stays the member's own:
        a release that is repeated after the partition was taken again gives nothing away.
        """
        gone = partitions & self.revoking
        self.owned -= gone
        self.revoking -= gone
        if not self.revoking:
            self.release_by = None
