"""What a shard knows, and what a machine that has only read its log knows."""

from typing import Any

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.offsets.table import TopicOffsets
from kohort.coordinator.shard import Shard
from kohort.runtime.loader import load
from kohort.server.cluster import Cluster
from kohort.terms import GroupState

AT_REST = (GroupState.EMPTY, GroupState.STABLE)
"""A classic group writes a record when it comes to rest. What is between is forgotten."""


def compare_with_replay(cluster: Cluster) -> int:
    """Fail when a shard would be another one after a restart; the number of groups compared."""
    groups = 0
    for index, driver in sorted(cluster.drivers.items()):
        replayed = Shard(cluster.config, cluster.new_uuid, cluster.topics)
        for _ in load(driver.log, replayed):
            pass
        live = driver.machine
        moving = {
            group.id
            for group in live.groups
            if isinstance(group, ClassicGroup)
            and (group.state not in AT_REST or not (group.generation or group.is_simple))
        }
        # It began with an offset, and that has gone with its topic. Cleaning takes away the record
        # of which it was made, and upstream ends such a group when it looks for expired offsets.
        empty = {
            group.id
            for group in live.groups
            if isinstance(group, ClassicGroup)
            and group.is_simple
            and not any(live.offsets.partitions_of(group.id))
        }
        now, then = known(live), known(replayed)
        for group in sorted(now.keys() | then.keys()):
            mine, other = now.get(group), then.get(group)
            if other is None and group in empty:
                continue
            if group in moving:
                mine, other = (one and {"offsets": one["offsets"]} for one in (mine, other))
                if other is None:
                    other = {"offsets": {}}
            assert mine == other, f"shard {index}, {group}: live {mine}, replayed {other}"
        groups += len(now)
    return groups


def known(shard: Shard) -> dict[str, dict[str, Any]]:
    """By group, all that a restart must bring back."""
    return {
        group.id: {
            "offsets": {
                name: offsets(table)
                for name, table in shard.offsets.of(group.id).items()
                if table.count
            },
            **(consumer(group) if isinstance(group, ConsumerGroup) else {}),
            **(classic(group) if isinstance(group, ClassicGroup) else {}),
        }
        for group in shard.groups
    }


def offsets(table: TopicOffsets) -> dict[int, Any]:
    return {
        partition: (
            table.offsets[partition],
            table.leader_epochs[partition],
            table.timestamps[partition],
            table.metadata.get(partition, ""),
            table.expires.get(partition, -1),
        )
        for partition in table.partitions()
    }


def consumer(group: ConsumerGroup) -> dict[str, Any]:
    return {
        "epochs": (group.group_epoch, group.target_epoch, group.target_time),
        "hash": group.metadata_hash,
        "targets": group.targets,
        "members": group.members,
        "held": group.held,
        "state": group.state,
        "assignor": group.assignor,
        "names": sorted(group.topic_names((), ())),
    }


def classic(group: ClassicGroup) -> dict[str, Any]:
    return {
        "state": group.state,
        "type": group.protocol_type,
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "members": {
            member.id: (
                member.instance_id,
                member.client.id,
                member.client.host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.protocols.get(group.protocol or ""),
                member.assignment,
            )
            for member in group.members.values()
        },
    }
