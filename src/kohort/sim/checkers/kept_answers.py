# SPDX-License-Identifier: Apache-2.0
"""What a broker keeps for those who list and describe groups is what it would answer anew.

This checker looks into the broker. It comes often: a group seldom rests for long on what is stale.
"""

from typing import ClassVar

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.descriptions import ShardDescriptions
from kohort.coordinator.group import Group
from kohort.coordinator.listing import EVERYTHING, listed
from kohort.coordinator.shard import Shard
from kohort.server.cluster import Cluster
from kohort.sim.checkers.checker import Checker
from kohort.wire.messages.list_groups import ListedGroup

NEWEST_OF_CLASSIC, NEWEST_OF_CONSUMER = 6, 1  # versions of the requests that describe


class KeptAnswers(Checker):
    """Compares what each shard keeps with a walk over its groups."""

    name: ClassVar[str] = "kept"

    def look(self, cluster: Cluster) -> None:
        for index, driver in cluster.drivers.items():
            if not driver.active:
                continue
            if not lists_as_it_is(driver.machine):
                self.alarm(f"shard {index} lists groups as they were")
            if not describes_as_it_is(driver.machine):
                self.alarm(f"shard {index} describes groups as they were")


def lists_as_it_is(shard: Shard) -> bool:
    """Whether what a shard keeps for those who list its groups is what a walk finds, in the order
    of the groups. Those in one state are in any order.
    """
    found = [listed(group) for group in shard.groups]
    if shard.listings.of(shard.groups, EVERYTHING, EVERYTHING) != found:
        return False
    by_kind: dict[tuple[str, str], dict[str, ListedGroup]] = {}
    for group in found:
        kind = group.group_type.lower(), group.group_state.lower()
        by_kind.setdefault(kind, {})[group.group_id] = group
    return all(
        {
            group.group_id: group
            for group in shard.listings.of(shard.groups, frozenset({state}), frozenset({name}))
        }
        == groups
        for (name, state), groups in by_kind.items()
    )


def describes_as_it_is(shard: Shard) -> bool:
    """Whether what a shard keeps for those who describe its groups is what they are. One of which
    nobody has asked is described for the next look.
    """
    for group in shard.groups:
        fresh = ShardDescriptions(1 << 30)
        kept = shard.descriptions
        if isinstance(group, ClassicGroup):
            version = _version_of(shard, group, NEWEST_OF_CLASSIC)
            before, now = (one.of_classic(group, version) for one in (kept, fresh))
        elif isinstance(group, ConsumerGroup):
            version = _version_of(shard, group, NEWEST_OF_CONSUMER)
            before, now = (
                one.of_consumer(group, version, shard.topics, None) for one in (kept, fresh)
            )
        else:
            continue
        if (before.body, before.topics) != (now.body, now.topics):
            return False
    return True


def _version_of(shard: Shard, group: Group, newest: int) -> int:
    """The version that a group was last described in."""
    known = shard.descriptions.kept.get(group.id)
    return newest if known is None or known.version > newest else known.version
