# SPDX-License-Identifier: Apache-2.0
"""What is committed of what was handed out, given, lost or made anew."""

from typing import Any, cast

import pytest
from tests.client.consumer.fakes import T0, T1, FakeFetcher, record
from tests.client.scripted import asynchronous

from kohort.client.admin import CommittedOffset
from kohort.client.consumer.committing import check_offset, offsets_to_commit
from kohort.client.consumer.group_offsets import OffsetsToCommit
from kohort.client.consumer.in_flight_records import InFlightRecords
from kohort.client.consumer.ownership import Ownership
from kohort.client.consumer.settings import ConsumerSettings
from kohort.client.fetcher import OffsetAndEpoch
from kohort.errors import ErrorCode


class World:
    """T0 and T1 are owned; 5 of T0 is in work, and the position of T1 is 9."""

    def __init__(self) -> None:
        self.fetcher = FakeFetcher()
        self.in_flight = InFlightRecords()
        fetcher: Any = cast("Any", self.fetcher)
        self.ownership = Ownership(fetcher, self.in_flight, ConsumerSettings(), None)
        self.ownership.owned = frozenset({T0, T1})
        self.fetcher.places = {T0: OffsetAndEpoch(6, 3), T1: OffsetAndEpoch(9)}
        self.in_flight.line_up({T0: [record(T0, 5)]})
        self.in_flight.take()

    def told(self, offsets: Any = None, *, handed: bool = True) -> OffsetsToCommit:
        return offsets_to_commit(cast("Any", self.fetcher), self.ownership, offsets, handed=handed)


def test_all_that_was_handed_out_or_all_that_is_processed() -> None:
    world = World()
    for handed, offset in ((True, 6), (False, 5)):
        what = world.told(handed=handed)
        assert what.offsets == {T0: CommittedOffset(offset, 3), T1: CommittedOffset(9)}
        assert what.refusal is None


def test_what_is_given_stands() -> None:
    assert World().told({("t", 1): 7}).offsets == {T1: CommittedOffset(7)}


@asynchronous
async def test_what_was_lost_in_work_is_told_with_what_can_be_committed() -> None:
    world = World()
    world.ownership.hurry = True
    await world.ownership.revoked([T0], lambda: True)
    what = world.told()
    assert what.offsets == {T1: CommittedOffset(9)}
    assert what.refusal is not None
    assert what.refusal.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.told({T1: 9}).refusal is None


@asynchronous
async def test_what_was_lost_is_not_committed_by_its_offset_either() -> None:
    """Others may have it, and go on from what it was given: until this one has it again."""
    world = World()
    world.ownership.hurry = True
    await world.ownership.revoked([T0], lambda: True)
    for _ in range(2):
        what = world.told({T0: 4, T1: 9})
        assert what.offsets == {T1: CommittedOffset(9)}
        assert what.refusal is not None
        assert what.refusal.code is ErrorCode.UNKNOWN_MEMBER_ID
        world.ownership.mark_processed()  # which a program does that hands its records to workers
    world.ownership.gone -= {T0}
    assert world.told({T0: 4}).refusal is None


def test_what_was_in_work_of_a_topic_that_is_gone_is_refused() -> None:
    world = World()
    world.fetcher.on_topic_recreated(T0)
    what = world.told()
    assert what.offsets == {T1: CommittedOffset(9)}
    assert what.refusal is not None
    assert what.refusal.code is ErrorCode.UNKNOWN_TOPIC_ID


def test_what_is_no_offset() -> None:
    for offset, error in ((-1, ValueError), (1 << 63, ValueError), ("7", TypeError)):
        with pytest.raises(error, match="expected"):
            check_offset(T0, offset)
