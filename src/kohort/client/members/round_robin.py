# SPDX-License-Identifier: Apache-2.0
"""Round robin, as leaders of classic groups run it: all partitions, one member after the other.

A member that does not want the topic of a partition is passed over, and comes next again. The
result is that of upstream's RoundRobinAssignor for members without an instance id.
"""

from collections.abc import Mapping

from kohort.assignors import Assignment, Plan, Subscription
from kohort.terms import MemberId, TopicId


def assign(
    members: Mapping[MemberId, Subscription],
    partitions: Mapping[TopicId, int],
) -> Plan:
    """The plan; topics go by the order of their ids."""
    found: dict[MemberId, dict[TopicId, list[int]]] = {member: {} for member in members}
    in_order = sorted(members)
    wants = {member: frozenset(members[member].topics) for member in in_order}
    wanted = sorted({topic for subscription in members.values() for topic in subscription.topics})
    turn = 0
    for topic in wanted:
        for index in range(partitions.get(topic, 0)):
            while topic not in wants[in_order[turn]]:
                turn = (turn + 1) % len(in_order)
            found[in_order[turn]].setdefault(topic, []).append(index)
            turn = (turn + 1) % len(in_order)
    plan: Plan = {}
    for member, mine in found.items():
        assignment: Assignment = {topic: tuple(indexes) for topic, indexes in mine.items()}
        plan[member] = assignment
    return plan
