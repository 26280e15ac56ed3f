# SPDX-License-Identifier: Apache-2.0
"""Members of a group, removed by an administrator (KIP-345, KIP-800): one LeaveGroup.

Coordinators take it for members of both protocols, also for those of KIP-848. A member that is
removed and still runs comes back when it hears of it, unless it is static and away.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kohort.client.admin import arguments
from kohort.client.admin.groups import coordinator_of, describe_groups
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection import Need
from kohort.client.network.denials import explained
from kohort.errors import ApiError, ErrorCode, api_error
from kohort.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

MANY = Need(3, "the removal of members", "KIP-345, Apache Kafka 2.4")
REASONS = Need(5, "a reason", "KIP-800, Apache Kafka 3.2")
REASON_MAX = 255  # characters
REASON = "removed by an administrator"

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class MemberToRemove:
    """A member by its id, or a static one by its instance id. With both it is removed only while
    that instance has that member id.
    """

    member_id: str = ""
    instance_id: str | None = None

    def __str__(self) -> str:
        if self.instance_id is None:
            return f"member {self.member_id}"
        who = f"instance {self.instance_id}"
        return f"{who} as member {self.member_id}" if self.member_id else who


async def remove_members(
    cluster: Cluster,
    group_id: str,
    members: Mapping[Key, MemberToRemove],
    reason: str | None,
    *,
    deadline: float,
) -> Outcomes[Key, None]:
    """See `AdminClient.remove_members`. The keys are what the caller calls the members."""
    unsure: set[Key] = set()

    async def ask(node: Node, keys: Sequence[Key], deadline: float) -> dict[Key, ApiError | None]:
        connection = await cluster.connection(node.address, deadline)
        takes_reasons = connection.offers(LeaveGroupRequest, REASONS.version)
        request = LeaveGroupRequest(
            group_id=group_id,
            members=[
                MemberIdentity(
                    member_id=members[key].member_id,
                    group_instance_id=members[key].instance_id,
                    reason=(reason or REASON) if takes_reasons else None,
                )
                for key in keys
            ],
        )
        need = REASONS if reason else MANY
        answer: LeaveGroupResponse = await connection.ask(request, deadline=deadline, need=need)
        codes = _codes(answer.members)
        found: dict[Key, ApiError | None] = {}
        for key in keys:
            member = members[key]
            code = answer.error_code or codes.get(_name(member))
            if code is None:
                continue
            found[key] = _refusal(group_id, member, code, cluster.principal) if code else None
            if code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                unsure.add(key)
            elif code == ErrorCode.UNKNOWN_MEMBER_ID and key in unsure:
                found[key] = _removed_before(group_id, member)
        return found

    locate = coordinator_of(cluster, group_id)
    return Outcomes(
        await settle(cluster, members, locate, ask, deadline=deadline, repeatable=False)
    )


async def all_members(cluster: Cluster, group_id: str, deadline: float) -> list[MemberToRemove]:
    """The members that a group has now. Raises ApiError, also where there is no such group."""
    group = (await describe_groups(cluster, [group_id], deadline=deadline))[group_id]
    return [
        MemberToRemove(instance_id=member.instance_id)  # also one that has come back under it
        if member.instance_id is not None
        else MemberToRemove(member.member_id)
        for member in group.members
    ]


def named_members(what: str, given: object) -> dict[str | MemberToRemove, MemberToRemove]:
    """What a caller gives, a text as an instance id. Raises TypeError, and ValueError for what
    cannot be sent, or is there twice: answers have the instance alone, so that the outcome of one
    would be taken for that of the other.
    """
    if isinstance(given, str | MemberToRemove):
        given = [given]
    if isinstance(given, bytes | bytearray) or not isinstance(given, Iterable):
        raise TypeError(f"{what} is {given!r}, expected instance ids or MemberToRemove")
    found: dict[str | MemberToRemove, MemberToRemove] = {}
    names: dict[tuple[str, str], str | MemberToRemove] = {}
    for each in given:
        if isinstance(each, str):
            member = MemberToRemove(instance_id=each)
        elif isinstance(each, MemberToRemove):
            member = each
        else:
            raise TypeError(f"{what} has {each!r}, expected an instance id or a MemberToRemove")
        arguments.name(f"the member id in {what}", member.member_id)
        arguments.name(f"the instance id in {what}", member.instance_id or "")
        if not (member.member_id or member.instance_id):
            raise ValueError(f"{what} has {each!r}, expected an id that is not empty")
        if names.setdefault(_name(member), each) != each:
            first = names[_name(member)]
            raise ValueError(f"{what} has {first!r} and {each!r}, expected one of them")
        found[each] = member
    return found


def checked_reason(given: object) -> str | None:
    """Raises TypeError, and ValueError for one that is too long: brokers keep no more of it."""
    if given is None:
        return None
    reason = arguments.name("reason", given)
    if len(reason) > REASON_MAX:
        raise ValueError(
            f"reason has {len(reason)} characters, expected {REASON_MAX} at most (KIP-800)"
        )
    return reason


def _codes(members: Iterable[MemberResponse]) -> dict[tuple[str, str], int]:
    codes: dict[tuple[str, str], int] = {}
    for member in members:
        answered = MemberToRemove(member.member_id, member.group_instance_id)
        codes[_name(answered)] = member.error_code
    return codes


def _name(member: MemberToRemove) -> tuple[str, str]:
    """How to find a member in an answer: brokers may fill in the member id of an instance."""
    return ("", member.instance_id) if member.instance_id else (member.member_id, "")


def _removed_before(group_id: str, member: MemberToRemove) -> ApiError:
    """A coordinator answers COORDINATOR_NOT_AVAILABLE, too, when it has written the removal and too
    few replicas have followed.
    """
    return ApiError(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"group {group_id} has no {member}; it may have been removed by the attempt before, which "
        "ended with COORDINATOR_NOT_AVAILABLE",
    )


def _refusal(group_id: str, member: MemberToRemove, code: int, principal: str) -> ApiError:
    error = api_error(code)
    if error.code is ErrorCode.UNKNOWN_MEMBER_ID:
        return ApiError(error.code, f"group {group_id} has no {member}")
    if error.code is ErrorCode.FENCED_INSTANCE_ID:
        return ApiError(error.code, f"group {group_id} has another member under {member}")
    return explained(error, principal, group_id)
