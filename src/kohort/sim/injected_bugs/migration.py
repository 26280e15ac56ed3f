# SPDX-License-Identifier: Apache-2.0
"""Bugs of groups that go over to another protocol."""

from collections.abc import Collection, Iterator
from typing import Any

from kohort.coordinator.consumer.member import Member
from kohort.coordinator.migration import downgrade, upgrade
from kohort.coordinator.offsets.records import tombstone
from kohort.sim.injected_bugs.replace_attribute import replace_attribute


def forgotten_member() -> Iterator[None]:
    """A downgrade of several members forgets the last of them."""
    made = downgrade._classic_group_or_none  # noqa: SLF001

    def without_one(state: Any, group: Any, staying: Collection[Member], now: Any) -> Any:
        ordered = list(staying)
        return made(state, group, ordered[:-1] if len(ordered) > 1 else ordered, now)

    with replace_attribute(downgrade, "_classic_group_or_none", without_one):
        yield


def lost_offsets() -> Iterator[None]:
    """A classic group that becomes a consumer group loses the offsets of its first topic."""
    convert = upgrade.to_consumer

    def without_offsets(state: Any, classic: Any, *more: Any) -> Any:
        group, effects = convert(state, classic, *more)
        for topic, table in state.offsets.of(classic.id).items():
            effects.records += [
                tombstone(classic.id, topic, partition) for partition in table.partitions()
            ]
        return group, effects

    with replace_attribute(upgrade, "to_consumer", without_offsets):
        yield
