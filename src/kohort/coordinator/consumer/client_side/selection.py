# SPDX-License-Identifier: Apache-2.0
"""Which assignor a group uses: one of the broker, or one that all members offer (KIP-848).

A member that names an assignor of the broker decides for the whole group. Else each member votes
for the first of its assignors that everybody offers, in versions of metadata that everybody reads.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kohort.coordinator.consumer import embedded
from kohort.coordinator.consumer.client_side.offers import ClientAssignor, of_classic
from kohort.coordinator.consumer.member import Member
from kohort.errors import ApiError, ErrorCode, WireError
from kohort.records.schemas import ClassicMemberMetadata

OFF = "client-side assignors are switched off"
NAMED = "a member names an assignor of the broker"
NOT_COMMON = "no assignor is offered by all members"


class Choice(NamedTuple):
    """The assignor of a group.

    `version` is the highest version of metadata that every member reads, None for an assignor of
    the broker. `why` says why it is one of the broker although members offer others.
    """

    name: str
    version: int | None = None
    why: str = ""


def offered_by(member: Member) -> dict[str, ClientAssignor]:
    """The assignors of a member by name, the first preferred. Those of a classic member are read
    here where the member does not have them yet.
    """
    offers = member.client_assignors
    if member.classic is not None:
        known = member.classic_offers
        offers = classic_offers(member.classic) if known is None else known
    return {assignor.name: assignor for assignor in offers}


def classic_offers(classic: ClassicMemberMetadata) -> tuple[ClientAssignor, ...]:
    """Each protocol of a classic member is an assignor, unless its bytes cannot be read. They may
    name very many topics, so a member that is in a group keeps the result.
    """
    offers = []
    for protocol in classic.supported_protocols:
        try:
            said = embedded.subscription({protocol.name: protocol.metadata})
        except WireError:
            continue
        offers.append(of_classic(protocol.name, said.user_data or b""))
    return tuple(offers)


def select_assignor(members: Iterable[Member], default: str) -> Choice:
    """The choice of members, none of whom names an assignor of the broker; `default` is the one
    that the broker takes where they have none in common.
    """
    offers = [offered_by(member) for member in members]
    common = dict.fromkeys(offers[0]) if offers else {}
    for offer in offers:
        common = {name: None for name in common if name in offer}
    if not common:
        return Choice(default, why=NOT_COMMON)
    ranges = {name: _range(offers, name) for name in common}
    fitting = {name: high for name, (low, high) in ranges.items() if low <= high}
    if not fitting:
        text = "the members read no version of metadata in common, of any assignor that all offer"
        return Choice(default, why=text)
    votes = dict.fromkeys(fitting, 0)
    for offer in offers:
        votes[next(name for name in offer if name in fitting)] += 1
    name = min(votes, key=lambda name: (-votes[name], name))
    return Choice(name, fitting[name])


def check_range(others: Iterable[Member], member: Member) -> None:
    """Raise ApiError UNSUPPORTED_ASSIGNOR for a member that offers what the others have chosen, and
    reads no version of it that they have in common.
    """
    others = list(others)
    choice = select_assignor(others, "")
    offer = offered_by(member).get(choice.name)
    if choice.version is None or offer is None:
        return
    low, high = _range([offered_by(other) for other in others], choice.name)
    if max(low, offer.minimum) > min(high, offer.maximum):
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"client assignor {choice.name} of member {member.id} reads metadata of versions "
            f"{offer.minimum} to {offer.maximum}, the others read {low} to {high} in common.",
        )


def _range(offers: Iterable[dict[str, ClientAssignor]], name: str) -> tuple[int, int]:
    own = [offer[name] for offer in offers]
    return max(offer.minimum for offer in own), min(offer.maximum for offer in own)
