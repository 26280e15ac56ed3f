"""Bugs of groups that go over to another protocol."""

from collections.abc import Collection, Iterator
from typing import Any

from kohort.coordinator.consumer.member import Member
from kohort.coordinator.migration import downgrade
from kohort.sim.plants.instead import instead


def forgotten_member() -> Iterator[None]:
    """A downgrade of several members forgets the last of them."""
    made = downgrade._classic_group_or_none  # noqa: SLF001

    def without_one(state: Any, group: Any, staying: Collection[Member], now: Any) -> Any:
        ordered = list(staying)
        return made(state, group, ordered[:-1] if len(ordered) > 1 else ordered, now)

    with instead(downgrade, "_classic_group_or_none", without_one):
        yield
