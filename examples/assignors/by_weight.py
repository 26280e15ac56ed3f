# SPDX-License-Identifier: Apache-2.0
"""An assignor for members of different strength: each says what it can do, and gets its share.

Consumer("orders", group_id="billing", assignors=[ByWeight(os.cpu_count())])
"""

from kohort import Assignor, GroupMember, GroupToAssign, Share, TopicPartition


class ByWeight(Assignor):
    """`weight` is any number above 0: cores, or the records per second that were measured."""

    name = "by-weight"

    def __init__(self, weight: float) -> None:
        if not weight > 0:
            raise ValueError(f"weight is {weight}, expected more than 0")
        self.weight = weight

    def metadata(self) -> bytes:
        return str(self.weight).encode()

    def assign(self, group: GroupToAssign) -> dict[str, Share]:
        mine: dict[str, list[TopicPartition]] = {member: [] for member in group.members}
        owners = group.owners()
        for topic in sorted(group.topics):
            weights = {one.member_id: _weight(one) for one in group.readers_of(topic)}
            if not weights:
                continue
            quotas = _quotas(group.topics[topic], weights, mine)
            rest = []
            for partition in group.partitions_of(topic):
                owner = owners.get(partition, "")
                if quotas.get(owner, 0):  # who has it keeps it, as far as its share goes
                    quotas[owner] -= 1
                    mine[owner].append(partition)
                else:
                    rest.append(partition)
            free = [member for member, left in quotas.items() for _ in range(left)]
            for partition, member in zip(rest, free, strict=True):
                mine[member].append(partition)
        return {
            member: Share(tuple(partitions), f"{len(partitions)} partitions".encode())
            for member, partitions in mine.items()
        }


def _weight(member: GroupMember) -> float:
    """A member of the classic protocol says nothing, or something else: it counts as one."""
    try:
        weight = float(member.metadata)
    except ValueError:
        return 1.0
    return weight if 0 < weight < float("inf") else 1.0


def _quotas(
    count: int, weights: dict[str, float], so_far: dict[str, list[TopicPartition]]
) -> dict[str, int]:
    """How many partitions each gets. What is left over goes to who has least for its weight."""
    total = sum(weights.values())
    quotas = {member: int(count * weight / total) for member, weight in weights.items()}
    while sum(quotas.values()) < count:
        poorest = min(
            quotas, key=lambda one: ((len(so_far[one]) + quotas[one] + 1) / weights[one], one)
        )
        quotas[poorest] += 1
    return quotas
