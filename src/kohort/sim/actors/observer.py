# SPDX-License-Identifier: Apache-2.0
"""Looks who is in the groups of others, as tools do."""

from typing import ClassVar

from kohort.sim.actors.actor import Actor
from kohort.sim.lasting_facts import (
    MembersSeen,
)
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest

CONSUMER_GROUPS = ("consumers-0", "consumers-1")
CLASSIC_GROUPS = ("classics-0", "classics-1")


class Observer(Actor):
    """Asks for one group at a time."""

    kind: ClassVar[str] = "observer"

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.randrange(50, 4000))
            sent = self.stage.loop.now
            group = random.choice([*CONSUMER_GROUPS, *CLASSIC_GROUPS])
            if group in CONSUMER_GROUPS:
                request = ConsumerGroupDescribeRequest(
                    group_ids=[group], include_authorized_operations=False
                )
                answer = await self.ask_coordinator(group, request, 1)
            else:
                answer = await self.ask_coordinator(group, DescribeGroupsRequest(groups=[group]), 5)
            if answer is None:
                continue
            found = answer.groups[0]
            self.coordinator_moved(group, found.error_code)
            if not found.error_code:
                members = tuple(member.member_id for member in found.members)
                self.tell(MembersSeen(group, members, sent))
        self.caller.hang_up()
