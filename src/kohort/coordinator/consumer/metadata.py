# SPDX-License-Identifier: Apache-2.0
"""What groups see of the cluster's topics: a hash that says whether they have changed (KIP-848).

A change of a topic only marks the groups that read it. The next heartbeat of any of their members
looks.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache

from kohort.coordinator.state import State
from kohort.machines.topics import Topic, Topics
from kohort.records.topic_hash import hash_of_group, hash_of_topic


@lru_cache(maxsize=1 << 16)
def _hash(topic: Topic) -> int:
    return hash_of_topic(topic.id, topic.name, topic.partitions, dict(enumerate(topic.racks)))


def hash_of(names: Iterable[str], topics: Topics) -> int:
    """The hash over those of the topics that exist, in any order. Members may name very many that
    do not: of two views, `&` goes through the shorter one.
    """
    by_name = topics.by_name
    return hash_of_group((name, _hash(by_name[name])) for name in by_name.keys() & names)


def changes(before: Topics, after: Topics) -> tuple[list[str], list[str]]:
    """Two lists of names: topics that are new, changed or gone; and, of these, those that are gone
    or were made anew under another id.
    """
    changed = [name for name, topic in after.by_name.items() if before.by_name.get(name) != topic]
    deleted = [name for name, topic in before.by_name.items() if topic.id not in after.by_id]
    changed += [name for name in deleted if name not in after.by_name]
    return changed, deleted


def touch(state: State, changed: AbstractSet[str]) -> None:
    """Mark the groups that read any of these topics."""
    if not changed:
        return
    for group in state.groups.all_consumer():
        if group.reads_any(changed):
            group.metadata_stale = True
