# SPDX-License-Identifier: Apache-2.0
"""What a shard knows, and what a machine that has only read its log knows."""

from kohort.coordinator.shard import Shard
from kohort.runtime.loader import load
from kohort.server.cluster import Cluster
from kohort.sim.checkers.replay import differences, shard_state


def compare_with_replay(cluster: Cluster) -> int:
    """Fail when a shard would be another one after a restart; the number of groups compared."""
    groups = 0
    for index, driver in sorted(cluster.drivers.items()):
        replayed = Shard(cluster.config, cluster.new_uuid, cluster.topics)
        for _ in load(driver.log, replayed):
            pass
        different = list(differences(driver.machine, replayed))
        assert not different, f"shard {index}: {different[0]}"
        groups += len(shard_state(driver.machine))
    return groups
