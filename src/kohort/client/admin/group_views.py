# SPDX-License-Identifier: Apache-2.0
"""What the admin client returns about a group: views for both group protocols, as in `views`."""

from collections.abc import Mapping
from dataclasses import dataclass

from kohort.errors import ApiError
from kohort.security.acls import AclOperation
from kohort.terms import GroupState, GroupType, TopicPartition

# Topic name -> its partitions, sorted.
Assignment = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ClientAssignor:
    """An assignor that a member offers (KIP-848), and the versions of metadata that it reads."""

    name: str
    minimum_version: int
    maximum_version: int
    reason: int
    metadata_version: int
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a client-side assignor has added to the partitions of a member. `assignor` has written
    the metadata; where there are none, it has failed.
    """

    error: int
    metadata_version: int
    metadata: bytes
    assignor: str = ""


@dataclass(frozen=True, slots=True)
class ClientSide:
    """Who computes the assignments of a group whose members offer assignors.

    `selected` names the assignor of the next one, and `computing_member` computes it now. The last
    one came about for `last_reason` with `last_error`. `why` says why the broker has computed it,
    or is going to; "" where members do.
    """

    selected: str
    computing_member: str | None
    last_reason: int
    last_error: int
    why: str


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group, of either protocol.

    `assignment` is what it has. `target_assignment` is what it should have (KIP-848); None for a
    classic group, where the two do not differ. `assignment` is None where its bytes belong to
    another protocol or are damaged: then `assignment_bytes` has them unchanged. What client-side
    assignors have added is None where the broker has computed.
    """

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    type: GroupType | None = None  # a group of KIP-848 may hold classic members (KIP-1099)
    member_epoch: int | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    assignment: Assignment | None = None
    target_assignment: Assignment | None = None
    subscription_bytes: bytes = b""
    assignment_bytes: bytes = b""
    client_assignors: tuple[ClientAssignor, ...] = ()  # the first preferred
    attachment: Attachment | None = None
    target_attachment: Attachment | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group and its members, of either protocol.

    `assignor` is the chosen protocol of a classic group, "" while it rebalances, and the
    assignor of a KIP-848 group. The epochs are None for a classic group, and `client_side` for any
    group whose members offer no assignors. `authorized_operations` are what this client may do with
    the group (KIP-430); None where that was not asked for.
    """

    group_id: str
    type: GroupType
    state: GroupState | str
    protocol_type: str
    assignor: str
    coordinator_id: int
    coordinator_host: str
    coordinator_port: int
    group_epoch: int | None
    assignment_epoch: int | None
    members: tuple[MemberDescription, ...]
    client_side: ClientSide | None = None
    authorized_operations: frozenset[AclOperation] | None = None

    @property
    def is_consumer(self) -> bool:
        """Whether members exchange consumers' payloads, so that partitions can be shown."""
        return self.protocol_type == "consumer"


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """How far a group has read a partition: the offset of the next record it wants.

    `leader_epoch` is None when none was committed, or the broker is too old (OffsetFetch below v5).
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


# Per partition: the offset, None where nothing is committed, or the error of this partition alone.
GroupOffsets = Mapping[TopicPartition, CommittedOffset | ApiError | None]


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """A setting of a group. `own` says that it was set for this group; else the broker's holds."""

    value: str | None
    own: bool
