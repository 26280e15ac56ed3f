# SPDX-License-Identifier: Apache-2.0
"""Whom a group of KIP-848 waits for: members that have to give up partitions, or are behind."""

from typing import TYPE_CHECKING, Any, NamedTuple

from kohort.cli.render import partitions_text
from kohort.terms import GroupState

if TYPE_CHECKING:
    from kohort.client.admin import GroupDescription, MemberDescription


class BlockingMember(NamedTuple):
    """A member that others wait for. `gives_up` are the partitions that it has and should not have
    any more; where there are none, it has not heard of the newest target yet.
    """

    member: "MemberDescription"
    gives_up: dict[str, tuple[int, ...]]

    def text(self, epoch: int | None) -> str:
        """`app-1 (Zv9jThE5T4iF72PIm/JceQ) gives up orders:3-5`."""
        member = self.member
        who = f"{member.client_id} ({member.member_id})"
        if self.gives_up:
            return f"{who} gives up {partitions_text(self.gives_up)}"
        return f"{who} is at epoch {member.member_epoch}, and comes to {epoch}"

    @property
    def fields(self) -> dict[str, Any]:
        """The same in JSON."""
        return {"member_id": self.member.member_id, "gives_up": self.gives_up}


def blocking_members(group: "GroupDescription") -> list[BlockingMember]:
    """The members that a group which is Reconciling waits for; none in any other state, and where
    the broker does not say what members should have.
    """
    if group.state != GroupState.RECONCILING:
        return []
    found = []
    for member in group.members:
        if member.assignment is None or member.target_assignment is None:
            continue
        gives_up = {
            topic: left
            for topic, indexes in member.assignment.items()
            if (left := tuple(sorted({*indexes} - {*member.target_assignment.get(topic, ())})))
        }
        is_behind = (
            member.member_epoch is not None
            and group.assignment_epoch is not None
            and 0 <= member.member_epoch < group.assignment_epoch
        )
        if gives_up or is_behind:
            found.append(BlockingMember(member, gives_up))
    return found
