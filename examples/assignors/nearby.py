# SPDX-License-Identifier: Apache-2.0
"""An assignor that saves the way between zones: who reads a partition is in the zone of a replica.

    nearby = Nearby("127.0.0.1:9092")
    consumer = Consumer("orders", group_id="billing", client_rack="eu-1a", assignors=[nearby])

The group does not tell where partitions are, so this one asks the cluster: an assignor may wait.
"""

from collections import Counter
from collections.abc import Mapping

from kohort import AdminClient, Assignor, GroupMember, GroupToAssign, TopicPartition

Zones = Mapping[TopicPartition, frozenset[str]]


class Nearby(Assignor):
    """Balanced first, then near: no member gets more than its share for being near."""

    name = "nearby"

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    async def assign(self, group: GroupToAssign) -> dict[str, list[TopicPartition]]:
        async with AdminClient(self.bootstrap_servers) as admin:
            racks = {node.id: node.rack for node in await admin.describe_cluster()}
            topics = (await admin.describe_topics(group.topics)).all()
        zones = {
            TopicPartition(name, one.partition): frozenset(
                rack for node in one.replicas if (rack := racks.get(node)) is not None
            )
            for name, topic in topics.items()
            for one in topic.partitions
        }
        return by_zone(group, zones)


def by_zone(group: GroupToAssign, zones: Zones) -> dict[str, list[TopicPartition]]:
    """First who is near and has it, then who is near, then anybody: each up to an equal share."""
    mine: dict[str, list[TopicPartition]] = {member: [] for member in group.members}
    owners = group.owners()
    for topic in sorted(group.topics):
        readers = group.readers_of(topic)
        if not readers:
            continue
        share, extra = divmod(group.topics[topic], len(readers))
        has: Counter[str] = Counter()
        left = group.partitions_of(topic)
        for suits in (_keeps, _is_near, _is_any):
            later = []
            for partition in left:
                full = share + (1 if sum(n > share for n in has.values()) < extra else 0)
                fit = [
                    one.member_id
                    for one in readers
                    if has[one.member_id] < full and suits(one, partition, zones, owners)
                ]
                if fit:
                    chosen = min(fit, key=lambda one: (has[one], len(mine[one]), one))
                    has[chosen] += 1
                    mine[chosen].append(partition)
                else:
                    later.append(partition)
            left = later
    return mine


def _is_near(
    member: GroupMember,
    partition: TopicPartition,
    zones: Zones,
    _owners: Mapping[TopicPartition, str],
) -> bool:
    return member.rack is not None and member.rack in zones.get(partition, ())


def _keeps(
    member: GroupMember,
    partition: TopicPartition,
    zones: Zones,
    owners: Mapping[TopicPartition, str],
) -> bool:
    return owners.get(partition) == member.member_id and _is_near(member, partition, zones, owners)


def _is_any(*_: object) -> bool:
    return True
