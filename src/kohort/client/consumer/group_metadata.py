# SPDX-License-Identifier: Apache-2.0
"""Who commits, as a consumer tells it to a producer whose transaction has the offsets (KIP-447).

A coordinator that refuses the offsets says so to the producer. The consumer has to hear of it: its
partitions may be another's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

from kohort.client.consumer.group_offsets import NOT_THE_MEMBER, Identity
from kohort.errors import ApiError


class GroupMetadata(NamedTuple):
    """Who commits, as a transaction of a producer has to tell it (KIP-447)."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None

    def refused(self, error: ApiError) -> None:
        """The coordinator of the group has refused offsets of this member."""


class ConsumerGroupMetadata(GroupMetadata):
    """`report` tells the consumer that it is of. It may be called in any thread.

    What an application makes of it with another identity has no `report`, as in another process:
    a refusal of that says nothing of the consumer's member.
    """

    report: Callable[[ApiError], None] | None = None

    def refused(self, error: ApiError) -> None:
        if self.report is not None and error.code in NOT_THE_MEMBER:
            self.report(error)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _copied: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[type[GroupMetadata], tuple[object, ...]]:
        """In another process there is no consumer to tell."""
        return GroupMetadata, tuple(self)


def group_metadata(
    group_id: str, who: Identity, on_refusal: Callable[[Identity, ApiError], None]
) -> GroupMetadata:
    """Who a consumer is at this moment. `on_refusal` hears of it when that is not so any more."""
    found = ConsumerGroupMetadata(group_id, who.epoch, who.member_id, who.instance_id)
    found.report = lambda error: on_refusal(who, error)
    return found
