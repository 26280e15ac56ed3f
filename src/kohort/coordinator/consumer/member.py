# SPDX-License-Identifier: Apache-2.0
"""A member of a consumer group, as a value: replay puts another value into the group."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from kohort.assignors.subscriptions import java_sorted
from kohort.coordinator.consumer.client_side.offers import ClientAssignor
from kohort.coordinator.consumer.target import Attachment
from kohort.records.schemas import ClassicMemberMetadata
from kohort.terms import MemberId, TopicId

JOINING = 0
LEAVING = -1
AWAY = -2  # a static member that has left and will be back

Held = dict[TopicId, dict[int, int]]
"""Partitions that a member has: by topic, ascending, with the epoch at which it got each."""


class MemberState(IntEnum):
    """How far a member has come towards its target; numbers as in the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127  # written by a newer broker

    @classmethod
    def _missing_(cls, _value: object) -> "MemberState":
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class Member:
    """What it said about itself, then what it has.

    It may use `assigned`. It has been told to give up `revoking` and has not yet said that it did,
    so nobody else may have those partitions (KIP-848). `attachment` belongs to the assignment of
    its epoch. `classic` is set for a member that uses the classic protocol; its assignors are kept
    in `classic_offers` once they have been read.
    """

    id: MemberId
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_names: tuple[str, ...] = ()  # in Java's order, each once
    subscribed_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    client_assignors: tuple[ClientAssignor, ...] = ()  # the first preferred
    classic_offers: tuple[ClientAssignor, ...] | None = field(default=None, compare=False)

    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: MemberState = MemberState.STABLE
    assigned: Held = field(default_factory=dict)
    revoking: Held = field(default_factory=dict)
    attachment: Attachment | None = None

    def since(self, topic_id: TopicId, partition: int) -> int | None:
        """The epoch at which it got a partition that it still has, else None (KIP-1251)."""
        for held in (self.assigned, self.revoking):
            epoch = held.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """The names of a subscription as a member keeps them."""
    return tuple(java_sorted(dict.fromkeys(names)))
