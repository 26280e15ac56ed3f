# SPDX-License-Identifier: Apache-2.0
"""The live state is what replaying the log gives, the log as it is and the log compacted.

This checker looks into the broker: each machine that serves, of groups or of transactions, is
compared with one that has read the log of now, which the cleaner may have rewritten, and with one
that has read of each key the last value only.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.gauges import TypeAndState
from kohort.coordinator.offsets.store import NamedPartition
from kohort.coordinator.offsets.table import TopicOffsets
from kohort.coordinator.shard import Shard
from kohort.errors import KohortError, StorageError
from kohort.runtime.driver import PartitionDriver
from kohort.runtime.loader import load
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kohort.server.cluster import Cluster
from kohort.sim.checkers import transaction_replay as transactions
from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.checkers.last_values import last_values
from kohort.terms import NO_TOPIC_ID, GroupId, GroupState

LONGEST = 160  # of a value in an alarm
AT_REST = (GroupState.EMPTY, GroupState.STABLE)
"""A classic group writes a record when it comes to rest. What is between is forgotten."""


class ReplayChecker(Checker):
    """`damaged` has the folders of logs in which a bit was flipped: nothing is expected of them."""

    name: ClassVar[str] = "replayed"

    def __init__(self, alarm: Alarm, damaged: set[str]) -> None:
        super().__init__(alarm)
        self._damaged = damaged

    def look(self, cluster: Cluster) -> None:
        """Compare every machine that serves. One whose log nobody can read now is left out."""
        for index, driver in cluster.drivers.items():
            for what, fresh in self._replayed(OFFSETS_TOPIC, index, driver):
                self.count(what, driver.machine)
                self.compare(what, driver.machine, fresh)
        for index, transactor in cluster.transaction_coordinators.items():
            for what, again in self._replayed(TRANSACTIONS_TOPIC, index, transactor):
                for text in transactions.differences(transactor.machine, again):
                    self.alarm(f"{what}: {text}")
                    break

    def _replayed(
        self, topic: str, index: int, driver: PartitionDriver[Any]
    ) -> Iterator[tuple[str, Any]]:
        """Machines that have read the log of one that serves, and what each of them is."""
        folder = f"{topic}-{index}"
        if not driver.active or folder in self._damaged:
            return
        what = f"shard {index}" if topic == OFFSETS_TOPIC else folder
        fresh, compacted = (driver._new_machine() for _ in range(2))  # noqa: SLF001
        try:
            for _ in load(driver.log, fresh):
                pass
            for record in last_values(driver.log):
                compacted.replay(
                    compacted.decode(record.key, record.value), record.offset, record.producer
                )
        except (StorageError, OSError):
            return
        except KohortError as error:
            if not isinstance(error.__cause__, OSError):  # else it is the disk that refuses
                self.alarm(f"{what} serves, and its log cannot be read: {error}")
            return
        yield what, fresh
        yield f"{what} compacted", compacted

    def count(self, what: str, live: Shard) -> None:
        """Alarm where a shard has not counted what it holds."""
        counted, held = counts(live), walked(live)
        if counted != held:
            self.alarm(f"{what} has counted {counted}, a walk finds {held}")

    def compare(self, what: str, live: Shard, replayed: Shard) -> None:
        """Alarm where two shards know different things: the first of them."""
        for text in differences(live, replayed):
            self.alarm(f"{what}: {text}")
            return


Counts = tuple[dict[TypeAndState, int], int]
"""Groups by type and state, and committed offsets."""


def counts(shard: Shard) -> Counts:
    """What a shard says that it holds."""
    groups = {kind: count for kind, count in shard.event_log.gauges.counts.items() if count}
    return groups, shard.offsets.count.number


def walked(shard: Shard) -> Counts:
    """What it holds."""
    groups = Counter((group.type, group.state) for group in shard.groups)
    tables = (table for group in shard.offsets.committed.values() for table in group.values())
    return dict(groups), sum(table.count for table in tables)


def differences(live: Shard, replayed: Shard) -> Iterator[str]:
    """What a shard would not know any more, or otherwise, after a restart."""
    if live.group_settings != replayed.group_settings:
        yield f"settings are {live.group_settings}, replayed {replayed.group_settings}"
    moving, empty = set(_moving(live)), set(_empty(live))
    now, then = shard_state(live), shard_state(replayed)
    for group in sorted(now.keys() | then.keys()):
        mine, other = now.get(group), then.get(group)
        if other is None and group in empty:
            continue
        if group in moving:
            mine, other = (group and {"offsets": group["offsets"]} for group in (mine, other))
            if other is None:
                other = {"offsets": {}}
        if mine != other:
            here, there = mine or {}, other or {}
            for name in sorted(here.keys() | there.keys()):
                if here.get(name) != there.get(name):
                    yield (
                        f"{name} of {group} is {_short(here.get(name))},"
                        f" replayed {_short(there.get(name))}"
                    )


def _moving(live: Shard) -> Iterator[str]:
    """Classic groups between two records."""
    for group in live.groups:
        if isinstance(group, ClassicGroup) and (
            group.state not in AT_REST or not (group.generation or group.is_simple)
        ):
            yield group.id


def _empty(live: Shard) -> Iterator[str]:
    """Groups that began with an offset, and it has gone with its topic. Cleaning takes away the
    record of which they were made, and upstream ends them when it looks for expired offsets.
    """
    for group in live.groups:
        if (
            isinstance(group, ClassicGroup)
            and group.is_simple
            and not any(live.offsets.partitions_of(group.id))
        ):
            yield group.id


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < LONGEST else text[:LONGEST] + "..."


def shard_state(shard: Shard) -> dict[str, dict[str, Any]]:
    """By group, all that a restart must bring back."""
    found: dict[str, dict[str, Any]] = {
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
    for group_id in shard.offsets.group_ids():
        waiting = pending(shard, group_id)
        if waiting:
            found.setdefault(group_id, {})["pending"] = waiting
    return found


def pending(shard: Shard, group_id: GroupId) -> dict[NamedPartition, Any]:
    """The offsets of a group that wait for the end of a transaction."""
    return {
        partition: {
            producer_id: (producer.value.offset, producer.value.metadata, producer.overtaken)
            for producer_id, producer in producers.items()
        }
        for partition, producers in shard.offsets.open_partitions(group_id).items()
    }


def offsets(table: TopicOffsets) -> dict[int, Any]:
    """A value with a time of expiry is written in version 1, which has no topic id: where there is
    one, the id of the topic may be forgotten.
    """
    topic_id = NO_TOPIC_ID if table.expires else table.topic_id
    return {
        partition: (
            table.offsets[partition],
            table.leader_epochs[partition],
            table.timestamps[partition],
            table.metadata.get(partition, ""),
            table.expires.get(partition, -1),
            topic_id,
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
        "assignor": group.choice,
        "made by": group.made_by,
        "settings": group.settings,
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
