# SPDX-License-Identifier: Apache-2.0
"""Bugs in what expires when, and in what the cleaner leaves."""

from collections.abc import Iterator
from typing import Any

from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.offsets import expiry
from kohort.machines.effects import Effects
from kohort.records.transactions import Record
from kohort.sim.injected_bugs.replace_attribute import replace_attribute
from kohort.storage import compaction
from kohort.storage.segments import SegmentLog
from kohort.terms import Millis
from kohort.transactions import machine, state


def living_group() -> Iterator[None]:
    """The offsets of a group expire though its members read the topic."""
    with replace_attribute(ConsumerGroup, "subscribes_to", lambda _self, _topic: False):
        yield


def half_lifetime() -> Iterator[None]:
    """Offsets expire when half of their time is over."""
    look = expiry._pass  # noqa: SLF001

    def sooner(about: Any, now: Millis, **more: Any) -> Any:
        half = about.expiry_settings.retention_ms // 2
        return look(about, Millis(now + half), **more)

    with replace_attribute(expiry, "_pass", sooner):
        yield


def no_expiry() -> Iterator[None]:
    """After a start nobody looks for offsets that have expired."""
    with replace_attribute(expiry, "await_next", lambda _state, _now: None):
        yield


def young_records() -> Iterator[None]:
    """Retention takes records when three quarters of their time are over."""
    begins = SegmentLog.retention_start

    def sooner(self: SegmentLog, now: Millis, retention_ms: int, *more: int) -> Any:
        return begins(self, now, retention_ms * 3 // 4, *more)

    with replace_attribute(SegmentLog, "retention_start", sooner):
        yield


class _Blind(dict[int, Any]):
    """Open transactions that nobody sees when they are looked through."""

    def values(self) -> Any:
        return ()


def clean_open() -> Iterator[None]:
    """The cleaner takes a transaction that is open for one that was aborted."""
    survey = compaction._Survey  # noqa: SLF001
    with replace_attribute(compaction, "_Survey", lambda: survey(open_since=_Blind())):
        yield


def id_in_use() -> Iterator[None]:
    """A transactional id expires though it has an open transaction."""

    def schedule_timeout(self: state.State, transactional_id: str, ends_at: Millis) -> None:
        self.deadlines.set((state.TIMEOUT, transactional_id), ends_at)

    def expired(_state: Any, _now: Millis, transactional_id: str) -> Effects:
        return Effects([Record(transactional_id, None)])

    before = machine.DEADLINES[state.EXPIRY]
    machine.DEADLINES[state.EXPIRY] = expired
    try:
        with replace_attribute(state.State, "schedule_timeout", schedule_timeout):
            yield
    finally:
        machine.DEADLINES[state.EXPIRY] = before
