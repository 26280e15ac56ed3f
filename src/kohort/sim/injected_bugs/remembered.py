# SPDX-License-Identifier: Apache-2.0
"""Bugs of answers that are kept, and given again when they are not true any more."""

from collections.abc import Iterator
from typing import Any

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.no_op_heartbeats import ClassicNoOpHeartbeat
from kohort.coordinator.descriptions import Description, ShardDescriptions
from kohort.coordinator.group import Group
from kohort.coordinator.state import State
from kohort.machines.deadlines import Deadlines
from kohort.server.network.heartbeat_cache import HeartbeatCache
from kohort.sim.injected_bugs.replace_attribute import replace_attribute
from kohort.terms import GroupState, Millis


def heartbeat_of_before() -> Iterator[None]:
    """A heartbeat in a classic group is answered as the last one was, whatever has become of the
    group and of the member.
    """
    with replace_attribute(ClassicNoOpHeartbeat, "holds", lambda _self, _state: True):
        yield


def heartbeat_of_the_group() -> Iterator[None]:
    """It is answered so while the group is Stable, in whichever generation."""

    def holds(self: ClassicNoOpHeartbeat, state: State) -> bool:
        group = state.groups.classic(self._group.id)
        return group is not None and group.state is GroupState.STABLE

    with replace_attribute(ClassicNoOpHeartbeat, "holds", holds):
        yield


def unrenewed_session() -> Iterator[None]:
    """A heartbeat that is answered from the cache does not begin the session of its member anew."""
    answer = HeartbeatCache.answer

    def unrenewed(cache: HeartbeatCache, *arguments: Any) -> bool:
        with replace_attribute(Deadlines, "renew", lambda *_: None):
            return answer(cache, *arguments)

    with replace_attribute(HeartbeatCache, "answer", unrenewed):
        yield


def description_of_before() -> Iterator[None]:
    """A group is described as it was first described, whatever has become of it."""
    with replace_attribute(Description, "holds", lambda _self: True):
        yield


def old_topic_name() -> Iterator[None]:
    """A group is described with the names of topics that are gone, until it changes."""
    with replace_attribute(ShardDescriptions, "topics_changed", lambda *_: None):
        yield


def unnoted_generation() -> Iterator[None]:
    """A classic group begins a generation, of which no record tells yet, and does not note it: it
    is listed and described as before.
    """
    begin = ClassicGroup.become_completing

    def unnoted(self: ClassicGroup, now: Millis) -> None:
        with replace_attribute(Group, "changed", lambda _self: None):
            begin(self, now)

    with replace_attribute(ClassicGroup, "become_completing", unnoted):
        yield
