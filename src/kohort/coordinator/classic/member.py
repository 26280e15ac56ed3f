# SPDX-License-Identifier: Apache-2.0
"""A member of a classic group, and what its subscription tells."""

from collections.abc import Mapping

from kohort.errors import WireError
from kohort.machines.effects import Call, Client
from kohort.records.consumer_protocol import ConsumerProtocolSubscription
from kohort.terms import MemberId
from kohort.wire.codec import decode
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.sync_group import SyncGroupRequest


class ClassicMember:
    """One member. `join` and `sync` are its parked calls, answered by a later step."""

    __slots__ = (
        "assignment",
        "client",
        "id",
        "instance_id",
        "is_new",
        "join",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync",
    )

    def __init__(
        self,
        id: MemberId,  # noqa: A002  (a member's id is its id)
        instance_id: str | None,
        client: Client,
        *,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: dict[str, bytes],
        assignment: bytes = b"",
    ) -> None:
        self.id = id
        self.instance_id = instance_id
        self.client = client
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.join: Call[JoinGroupRequest] | None = None
        self.sync: Call[SyncGroupRequest] | None = None

    def offers(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether these are its protocols: the same names in the same order with the same bytes."""
        return list(self.protocols.items()) == list(protocols.items())


def longest(protocols: Mapping[str, bytes]) -> int:
    """How many bytes of metadata the log may have to hold, whichever protocol is chosen."""
    return max(map(len, protocols.values()), default=0)


def subscribed_topics(metadata: bytes) -> list[str] | None:
    """The topics in a member's subscription, None where its bytes are no subscription.

    Only the part that every version has is read: a version unknown here may add anything behind it.
    """
    if len(metadata) < 2 or metadata[0] & 0x80:  # no version, or a negative one
        return None
    try:
        return decode(ConsumerProtocolSubscription, 0, metadata, 2).topics
    except WireError:
        return None
