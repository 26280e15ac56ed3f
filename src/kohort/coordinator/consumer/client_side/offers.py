# SPDX-License-Identifier: Apache-2.0
"""The assignors that a member offers, in its heartbeats or as a member of the classic protocol."""

from collections.abc import Iterable
from typing import NamedTuple

from kohort.coordinator.consumer.target import Attachment
from kohort.errors import ApiError, ErrorCode
from kohort.records.schemas import Computation
from kohort.wire.messages import consumer_group_heartbeat as heartbeat

CLASSIC_VERSION = -1  # of what a classic assignor has written: its version is within the bytes


class ClientAssignor(NamedTuple):
    """An assignor that a member has. It reads metadata of the versions `minimum` to `maximum`.

    A new `reason`, or other metadata, asks for a new assignment; neither is looked into.
    """

    name: str
    minimum: int = 0
    maximum: int = 0
    reason: int = 0
    version: int = 0  # of `metadata`
    metadata: bytes = b""

    def reads(self, lowest: int, highest: int) -> bool:
        """Whether it reads metadata of all these versions."""
        return self.minimum <= lowest and highest <= self.maximum


def of_classic(name: str, user_data: bytes) -> ClientAssignor:
    """An assignor of a classic member. One that writes no data of its own does not care about the
    version of anybody's.
    """
    if user_data:
        version = CLASSIC_VERSION
        return ClientAssignor(name, version, version, 0, version, user_data)
    return ClientAssignor(name, -(1 << 15), (1 << 15) - 1, 0, CLASSIC_VERSION)


def classic_data(
    attachment: Attachment | None, computed: Computation | None, protocol: str
) -> bytes | None:
    """The data of its own that a classic member's assignor gets with an assignment: what another
    member has computed for that assignor, and written as the classic one does.
    """
    if attachment is None or computed is None or computed.assignor != protocol:
        return None
    return (attachment.metadata or None) if attachment.version == CLASSIC_VERSION else None


def of_heartbeat(offered: Iterable[heartbeat.ClientAssignor]) -> tuple[ClientAssignor, ...]:
    """What a heartbeat lists, the first preferred."""
    return tuple(
        ClientAssignor(
            offer.name,
            offer.minimum_version,
            offer.maximum_version,
            offer.reason,
            offer.metadata_version,
            offer.metadata_bytes,
        )
        for offer in offered
    )


def check(offered: Iterable[heartbeat.ClientAssignor] | None) -> None:
    """Raise ApiError INVALID_REQUEST for a list that makes no sense."""
    names = set()
    for offer in offered or ():
        if not offer.name.strip():
            raise _invalid("a client assignor has no name")
        if offer.name in names:
            raise _invalid(f"client assignor {offer.name} is listed twice")
        names.add(offer.name)
        low, high = offer.minimum_version, offer.maximum_version
        if low > high:
            raise _invalid(
                f"client assignor {offer.name} reads {low} to {high}, expected the lower first"
            )
        if not low <= offer.metadata_version <= high:
            raise _invalid(
                f"client assignor {offer.name} has metadata of version {offer.metadata_version}, "
                f"which it does not read itself: expected {low} to {high}"
            )


def check_size(offered: Iterable[ClientAssignor], record_limit: int) -> None:
    """Raise ApiError INVALID_REQUEST for metadata that a member's record has no room for."""
    size = sum(len(offer.metadata) for offer in offered)
    if size > record_limit // 2:
        raise _invalid(
            f"the metadata of the client assignors takes {size} bytes, expected at most "
            f"{record_limit // 2}"
        )


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
