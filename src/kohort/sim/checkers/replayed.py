"""The live state is what replaying the log gives, the log as it is and the log compacted.

This checker looks into the broker: each shard that serves is compared with one that has read the
log of now, which the cleaner may have rewritten, and with one that has read of each key the last
value only.
"""

from typing import Any, ClassVar

from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.shard import Shard
from kohort.errors import KohortError
from kohort.runtime.loader import load
from kohort.server.cluster import Cluster
from kohort.sim.checkers.checker import Checker
from kohort.wire import batch as batches

LONGEST = 160  # of a value in an alarm


class Replayed(Checker):
    name: ClassVar[str] = "replayed"

    def look(self, cluster: Cluster) -> None:
        """Compare every shard that serves. A log that cannot be read now is passed over."""
        for index, driver in cluster.drivers.items():
            if driver.active:
                fresh, compacted = (driver._new_machine() for _ in range(2))  # noqa: SLF001
                try:
                    for _ in load(driver.log, fresh):
                        pass
                    _replay_last_values(driver.log, compacted)
                except (KohortError, OSError):
                    continue
                self.compare(f"shard {index}", driver.machine, fresh)
                self.compare(f"shard {index} compacted", driver.machine, compacted)

    def compare(self, what: str, live: Shard, replayed: Shard) -> None:
        """Alarm where two shards know different things."""
        one, other = digest(live), digest(replayed)
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                self.alarm(
                    f"{what}: {name} is {_short(one.get(name))}, replayed {_short(other.get(name))}"
                )
                return


def _replay_last_values(log: Any, shard: Shard) -> None:
    """Replay what a cleaner without any patience would leave of a log without transactions."""
    last: dict[bytes, tuple[int, bytes | None]] = {}
    for data in log.read(log.start, 1 << 62):
        if not batches.header_at(data).is_control:
            for offset, _, key, value in batches.entries(data):
                if key is not None:
                    last.pop(key, None)
                    last[key] = offset, value
    for key, (offset, value) in last.items():
        if value is not None:
            shard.replay(shard.decode(key, value), offset, None)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < LONGEST else text[:LONGEST] + "..."


def digest(shard: Shard) -> dict[str, Any]:
    """What the log must bring back, by the name of a group."""
    found: dict[str, Any] = {}
    for group in shard.groups:
        if isinstance(group, ConsumerGroup):
            about = f"consumer group {group.id}"
            found[f"{about}, epochs"] = group.group_epoch, group.target_epoch, group.target_time
            found[f"{about}, hash"] = group.metadata_hash
            for member_id, member in group.members.items():
                found[f"{about}, member {member_id}"] = member
            for member_id, target in group.targets.items():
                found[f"{about}, target of {member_id}"] = target
            for topic_id, holders in group.held.items():
                for index, member_id in holders.items():
                    found[f"{about}, holder of {topic_id.hex()[:8]}-{index}"] = member_id
    for group_id, topics in shard.offsets.committed.items():
        for topic, table in topics.items():
            for index in table.partitions():
                found[f"offset of {group_id} for {topic}-{index}"] = (
                    table.offsets[index],
                    table.metadata.get(index, ""),
                    table.topic_id,
                )
    return found
