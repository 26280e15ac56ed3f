# SPDX-License-Identifier: Apache-2.0
"""Partitions begin at their committed offsets, and end when the application has come back."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, cast

import pytest
from tests.client.consumer.fakes import T0, T1, FakeFetcher, record
from tests.client.scripted import asynchronous

from kohort.client import log_deduplication
from kohort.client.admin import CommittedOffset
from kohort.client.consumer.in_flight_records import InFlightRecords
from kohort.client.consumer.ownership import Ownership, RebalanceListener
from kohort.client.consumer.settings import ConsumerSettings
from kohort.client.fetcher import OffsetAndEpoch
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicId, TopicPartition

LOST = ApiError(ErrorCode.FENCED_MEMBER_EPOCH)


class FakeOffsets:
    """What is committed, and what a commit is refused with."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, CommittedOffset] = {}
        self.refusals: list[ApiError] = []
        self.has_identity = True
        self.asked_by: list[dict[TopicPartition, TopicId]] = []
        self.committed_by: dict[TopicPartition, TopicId] = {}
        self.lost_ones: set[TopicPartition] = set()

    async def fetch(
        self, partitions: Collection[TopicPartition], _deadline: float, ids: Any = None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        await asyncio.sleep(0)
        self.asked_by.append(dict(ids or {}))
        if self.refusals:
            raise self.refusals.pop(0)
        return {one: self.committed.get(one) for one in partitions}

    async def commit(self, offsets: Any, _deadline: float, topic_id: Any) -> None:
        await asyncio.sleep(0)
        if self.refusals:
            raise self.refusals.pop(0)
        given = cast("Mapping[TopicPartition, CommittedOffset]", offsets())
        self.committed.update(given)
        self.committed_by.update((one, topic_id(one)) for one in given)

    async def finished(self) -> None:
        await asyncio.sleep(0)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self.lost_ones.update(partitions)


class RecordingListener(RebalanceListener):
    """Plain functions; what is lost is told as revoked, unless somebody cares."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.events.append(("assigned", partitions))

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.events.append(("revoked", partitions))


class World:
    def __init__(self, *, auto_commit: bool = True, grouped: bool = True) -> None:
        self.fetcher = FakeFetcher()
        self.in_flight = InFlightRecords()
        self.offsets = FakeOffsets()
        self.heard = RecordingListener()
        settings = ConsumerSettings(enable_auto_commit=auto_commit)
        offsets: Any = self.offsets if grouped else None
        self.ownership = Ownership(cast("Any", self.fetcher), self.in_flight, settings, offsets)
        self.ownership.listener = self.heard


@asynchronous
async def test_a_partition_begins_where_the_group_was() -> None:
    world = World()
    world.offsets.committed[T0] = CommittedOffset(7, 2)
    await world.ownership.assigned([T0, T1])
    assert world.fetcher.places == {T0: OffsetAndEpoch(7, 2), T1: None}
    assert world.ownership.owned == {T0, T1}
    assert world.fetcher.paused == set()
    assert world.heard.events == [("assigned", (T0, T1))]


@asynchronous
async def test_without_a_group_it_begins_where_the_settings_say() -> None:
    world = World(grouped=False)
    await world.ownership.assigned([T0])
    assert world.fetcher.places == {T0: None}


@asynchronous
async def test_nothing_is_handed_out_before_the_listener_knows() -> None:
    world = World()
    may_go_on = asyncio.Event()

    class Slow(RecordingListener):
        async def on_assigned(self, partitions: Any) -> None:  # type: ignore[override]
            await may_go_on.wait()

    world.ownership.listener = Slow()
    task = asyncio.create_task(world.ownership.assigned([T0]))
    while not world.ownership.owned:  # noqa: ASYNC110  (nobody tells)
        await asyncio.sleep(0)
    assert world.fetcher.paused == {T0}
    world.ownership.pause([T0])
    may_go_on.set()
    await task
    assert world.fetcher.paused == {T0}  # for the application has paused it meanwhile
    world.ownership.resume([T0])
    assert world.fetcher.paused == set()


@asynchronous
async def test_offsets_that_cannot_be_read_are_asked_for_again() -> None:
    world = World()
    world.offsets.refusals = [ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
    await world.ownership.assigned([T0])
    assert world.ownership.owned == {T0}
    assert world.ownership.trouble is None


@asynchronous
async def test_offsets_that_nobody_may_read_are_told_of() -> None:
    world = World()
    world.offsets.refusals = [ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    await world.ownership.assigned([T0])
    assert isinstance(world.ownership.trouble, ApiError)
    assert world.fetcher.told == [("nudge",)]


@asynchronous
async def test_who_is_put_out_before_its_offsets_are_known_gets_nothing() -> None:
    world = World()
    world.offsets.refusals = [LOST]
    world.offsets.has_identity = False
    await world.ownership.assigned([T0])
    assert world.ownership.owned == frozenset()
    assert world.heard.events == []


@asynchronous
async def test_a_partition_waits_for_the_application_and_is_committed() -> None:
    world = World()
    await world.ownership.assigned([T0])
    world.fetcher.places[T0] = OffsetAndEpoch(3)
    world.in_flight.line_up({T0: [record(T0, 0), record(T0, 1), record(T0, 2)]})
    world.in_flight.take()
    task = asyncio.create_task(world.ownership.revoked([T0], lambda: True))
    await asyncio.sleep(0.01)
    assert not task.done()
    assert world.fetcher.told == [("seek", T0, OffsetAndEpoch(1, 3))]
    assert world.in_flight.take() is None  # nothing more of it; the application is back
    world.ownership.mark_processed()
    await task
    assert world.offsets.committed == {T0: CommittedOffset(1, 3)}
    assert world.heard.events[1:] == [("revoked", (T0,))]
    assert world.fetcher.places == {}
    assert world.ownership.owned == frozenset()


@pytest.mark.parametrize("hurried", [True, False])
@asynchronous
async def test_nobody_waits_for_ever(hurried: bool) -> None:  # noqa: FBT001
    """What is in work is not committed; where the coordinator has lost its patience, nothing is."""
    world = World()
    await world.ownership.assigned([T0])
    world.fetcher.places[T0] = OffsetAndEpoch(2)
    world.in_flight.line_up({T0: [record(T0, 0), record(T0, 1)]})
    world.in_flight.take()
    world.in_flight.take()
    world.ownership.hurry = hurried
    await world.ownership.revoked([T0], lambda: hurried)
    assert world.offsets.committed == ({T0: CommittedOffset(1, 3)} if hurried else {})
    assert world.ownership.owned == frozenset()


@asynchronous
async def test_what_is_lost_is_not_committed() -> None:
    world = World()
    await world.ownership.assigned([T0, T1])
    world.fetcher.places.update({T0: OffsetAndEpoch(9), T1: OffsetAndEpoch(9)})
    world.ownership.pause([T0])
    await world.ownership.lost([T0], LOST)
    assert world.offsets.committed == {}
    assert world.ownership.owned == {T1}
    assert world.ownership.paused == frozenset()
    assert world.heard.events[1:] == [("revoked", (T0,))]  # as nobody has overridden on_lost


@asynchronous
async def test_without_auto_commit_only_the_application_commits() -> None:
    world = World(auto_commit=False)
    await world.ownership.assigned([T0])
    world.fetcher.places[T0] = OffsetAndEpoch(9)
    await world.ownership.revoked([T0], lambda: True)
    assert world.offsets.committed == {}


@asynchronous
async def test_only_what_is_new_is_committed() -> None:
    world = World()
    world.offsets.committed[T0] = CommittedOffset(5)
    await world.ownership.assigned([T0, T1])
    world.fetcher.places.update({T0: OffsetAndEpoch(5), T1: None})
    world.offsets.committed.clear()
    await world.ownership.commit_processed([T0, T1], 1.0)
    assert world.offsets.committed == {}
    world.fetcher.places[T1] = OffsetAndEpoch(
        0
    )  # looked up: the group goes on from here, come what may
    await world.ownership.commit_processed([T0, T1], 1.0)
    assert world.offsets.committed == {T1: CommittedOffset(0)}


@asynchronous
async def test_what_the_application_has_committed_of_its_work_stands() -> None:
    world = World()
    await world.ownership.assigned([T0])
    world.fetcher.places[T0] = OffsetAndEpoch(4)
    world.in_flight.note({T0: [record(T0, 0), record(T0, 3)]})
    world.ownership.note({T0: CommittedOffset(4)})
    await world.ownership.commit_processed([T0], 1.0)
    assert world.offsets.committed == {}
    world.ownership.note({T0: CommittedOffset(9)})  # and then it went back
    await world.ownership.commit_processed([T0], 1.0)
    assert world.offsets.committed == {T0: CommittedOffset(0, 3)}


@asynchronous
async def test_a_commit_that_fails_is_tried_again_the_next_time() -> None:
    world = World()
    await world.ownership.assigned([T0])
    world.fetcher.places[T0] = OffsetAndEpoch(4)
    world.offsets.refusals = [LOST]
    await world.ownership.commit_processed([T0], 1.0)
    assert world.offsets.committed == {}
    await world.ownership.commit_processed([T0], 1.0)
    assert world.offsets.committed == {T0: CommittedOffset(4)}


@asynchronous
async def test_positions_and_whose_they_are() -> None:
    world = World()
    await world.ownership.assigned([T0])
    assert world.ownership.position(T0) is None
    world.fetcher.places[T0] = OffsetAndEpoch(4)
    assert world.ownership.position(T0) == OffsetAndEpoch(4)
    world.in_flight.line_up({T0: [record(T0, 2), record(T0, 3)]})
    assert world.ownership.position(T0) == OffsetAndEpoch(2, 3)
    with pytest.raises(ValueError, match="t:1 is not assigned to this consumer, which has t:0"):
        world.ownership.position(T1)
    await world.ownership.lost([T0], LOST)
    with pytest.raises(ValueError, match="which has none"):
        world.ownership.pause([T0])


@asynchronous
async def test_a_refusal_that_passes_is_only_logged() -> None:
    world = World()
    world.ownership.refused(LOST, for_good=False)
    world.ownership.raise_trouble()
    world.ownership.refused(LOST, for_good=True)
    for _ in range(2):  # each time: nothing comes any more
        with pytest.raises(ApiError):
            world.ownership.raise_trouble()


@asynchronous
async def test_another_subscription_hears_of_no_refusal_of_the_last_one() -> None:
    world = World()
    for code, for_good in (("TOPIC_AUTHORIZATION_FAILED", False), ("INVALID_REQUEST", True)):
        world.ownership.refused(ApiError(ErrorCode[code]), for_good=for_good)
        world.ownership.forget_refusals()
        world.ownership.raise_trouble()


# Topics that are made anew


FIRST, SECOND = TopicId(b"i" * 16), TopicId(b"j" * 16)


@asynchronous
async def test_what_is_committed_is_asked_for_and_committed_by_the_id_of_the_topic() -> None:
    world = World()
    world.fetcher.ids = {"t": FIRST}
    await world.ownership.assigned([T0])
    assert world.offsets.asked_by == [{T0: FIRST}]
    assert (world.fetcher.reads, world.fetcher.bound) == ({T0: FIRST}, False)
    world.fetcher.places[T0] = OffsetAndEpoch(5)
    await world.ownership.commit_processed([T0], 5)
    assert world.offsets.committed_by == {T0: FIRST}


@asynchronous
async def test_a_group_that_names_topics_by_id_means_no_other() -> None:
    world = World()
    world.fetcher.ids = {"t": SECOND}
    await world.ownership.assigned([T0], {T0: FIRST})
    assert world.offsets.asked_by == [{T0: FIRST}]
    assert (world.fetcher.reads, world.fetcher.bound) == ({T0: FIRST}, True)


@asynchronous
async def test_a_coordinator_that_does_not_know_the_topic_is_asked_by_name_in_the_end() -> None:
    world = World()
    world.fetcher.ids = {"t": FIRST}
    world.offsets.committed[T0] = CommittedOffset(7)
    world.offsets.refusals = [ApiError(ErrorCode.UNKNOWN_TOPIC_ID)] * 4
    await world.ownership.assigned([T0])
    assert world.offsets.asked_by == [{T0: FIRST}] * 4 + [{}]
    assert world.fetcher.places == {T0: OffsetAndEpoch(7)}
    assert world.fetcher.reads == {}


@asynchronous
async def test_an_assigned_topic_that_is_gone_holds_nobody_up() -> None:
    """The next answer of the coordinator takes it away, and has to be heard."""
    world = World()
    world.offsets.refusals = [ApiError(ErrorCode.UNKNOWN_TOPIC_ID)] * 4
    await world.ownership.assigned([T0], {T0: FIRST})
    assert world.offsets.asked_by == [{T0: FIRST}] * 4
    assert world.fetcher.places == {T0: None}


@asynchronous
async def test_nothing_of_a_topic_that_is_gone_is_committed() -> None:
    world = World()
    await world.ownership.assigned([T0, T1])
    world.fetcher.places = {T0: OffsetAndEpoch(9), T1: OffsetAndEpoch(4)}
    world.in_flight.line_up({T0: [record(T0, 7), record(T0, 8)]})
    assert world.in_flight.take() is not None
    world.fetcher.places[T0] = None  # it is looked up where the new one begins
    world.fetcher.on_topic_recreated(T0)
    assert world.ownership.void_in_work == {T0}
    assert world.in_flight.take() is None
    await world.ownership.commit_processed([T0, T1], 5)
    assert world.offsets.committed == {T1: CommittedOffset(4, None, "")}
    world.fetcher.places[T0] = OffsetAndEpoch(0)
    await world.ownership.commit_processed([T0, T1], 5)
    assert world.offsets.committed[T0] == CommittedOffset(0, None, "")
    world.ownership.mark_processed()
    assert world.ownership.void_in_work == frozenset()


@asynchronous
async def test_who_is_cancelled_while_it_gives_up_partitions_has_them_still() -> None:
    """They are handed out again, but for what the application has paused."""
    world = World()
    await world.ownership.assigned([T0, T1])
    world.ownership.pause([T1])
    world.in_flight.line_up({T0: [record(T0, 5)]})
    world.in_flight.take()
    task = asyncio.create_task(world.ownership.revoked([T0, T1], lambda: True))
    await asyncio.sleep(0)
    assert world.fetcher.paused == {T0, T1}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert world.ownership.owned == {T0, T1}
    assert world.fetcher.paused == {T1}


@asynchronous
async def test_who_is_cancelled_while_a_listener_is_told_has_nothing_new() -> None:
    world = World()

    class Slow(RecordingListener):
        async def on_assigned(self, partitions: Any) -> None:  # type: ignore[override]
            await asyncio.sleep(3600)

    world.ownership.listener = Slow()
    task = asyncio.create_task(world.ownership.assigned([T0]))
    while not world.ownership.owned:  # noqa: ASYNC110  (nobody tells)
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not world.ownership.owned
    assert not world.fetcher.places
    world.ownership.listener = world.heard
    await world.ownership.assigned([T0])
    assert world.fetcher.paused == set()


@asynchronous
async def test_a_commit_that_is_tried_again_hears_of_what_was_lost() -> None:
    world = World()
    await world.ownership.assigned([T0, T1])
    await world.ownership.lost([T1], LOST)
    assert world.offsets.lost_ones == {T1}
    await world.ownership.revoked([T0], lambda: False)
    assert world.offsets.lost_ones == {T0, T1}


@asynchronous
async def test_what_is_revoked_before_it_has_begun_is_waited_for_no_longer() -> None:
    """An open transaction keeps the offsets of one partition; the group wants another one back."""
    world = World()
    world.offsets.refusals = [ApiError(ErrorCode.UNSTABLE_OFFSET_COMMIT)] * 3
    task = asyncio.create_task(world.ownership.assigned([T0, T1]))
    await asyncio.sleep(0)
    world.ownership.unwanted([T0])
    await task
    assert world.ownership.owned == {T1}
    assert world.heard.events == [("assigned", (T1,))]
    world.offsets.refusals = [ApiError(ErrorCode.UNSTABLE_OFFSET_COMMIT)] * 1000
    task = asyncio.create_task(world.ownership.assigned([T0]))
    await asyncio.sleep(0)
    world.ownership.unwanted([T0])
    async with asyncio.timeout(5):
        await task
    assert world.ownership.owned == {T1}
    await world.ownership.revoked([T0], lambda: True)
    assert world.heard.events == [("assigned", (T1,))]  # and nothing of what was never assigned


# What is not handed out any more


@asynchronous
async def test_what_is_to_be_given_up_or_lost_is_not_handed_out_from_that_moment_on() -> None:
    """Even while a listener keeps the rest of it waiting, and whatever the application resumes."""
    world = World()
    await world.ownership.assigned([T0, T1])
    world.in_flight.line_up({T0: [record(T0, 3), record(T0, 4)], T1: [record(T1, 8)]})
    assert world.in_flight.take() == record(T0, 3)
    world.ownership.unwanted([T0])
    assert world.fetcher.paused == {T0}
    assert world.in_flight.take() == record(T1, 8)
    world.ownership.resume([T0])
    assert world.fetcher.paused == {T0}
    await world.ownership.lost([T0], LOST)
    await world.ownership.assigned([T0])
    assert world.fetcher.paused == set()


@asynchronous
async def test_nothing_is_handed_out_before_the_listener_knows_whatever_is_resumed() -> None:
    world = World()
    paused: list[Any] = []

    class Resumes(RebalanceListener):
        async def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
            world.ownership.resume(partitions)
            paused.append(set(world.fetcher.paused))

    world.ownership.listener = Resumes()
    await world.ownership.assigned([T0])
    assert paused == [{T0}]
    assert world.fetcher.paused == set()


@asynchronous
async def test_what_is_lost_while_the_listener_hears_of_it_does_not_begin() -> None:
    world = World()

    class Slow(RebalanceListener):
        async def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
            world.ownership.unwanted(partitions)

    world.ownership.listener = Slow()
    await world.ownership.assigned([T0])
    assert world.fetcher.paused == {T0}


@asynchronous
async def test_a_refused_commit_at_a_farewell_is_told_as_a_loss() -> None:
    world = World()
    told: list[str] = []

    class Tells(RebalanceListener):
        def on_revoked(self, _partitions: Collection[TopicPartition]) -> None:
            told.append("revoked")

        def on_lost(self, _partitions: Collection[TopicPartition]) -> None:
            told.append("lost")

    world.ownership.listener = Tells()
    await world.ownership.assigned([T0])
    world.offsets.refusals.append(ApiError(ErrorCode.UNKNOWN_MEMBER_ID))
    await world.ownership.revoked([T0], lambda: bool(world.offsets.refusals))
    assert told == ["lost"]
    assert world.offsets.lost_ones == {T0}


# Pauses over a rebalance


@asynchronous
async def test_a_paused_partition_that_returns_from_a_rebalance_is_paused() -> None:
    world = World()
    await world.ownership.assigned([T0, T1])
    world.ownership.pause([T0])
    await world.ownership.revoked([T0, T1], lambda: True)
    assert world.ownership.paused == set()  # it has nothing
    await world.ownership.assigned([T0, T1], returned=[T0, T1])
    assert world.ownership.paused == {T0}
    assert world.fetcher.paused == {T0}
    world.ownership.resume([T0])
    assert world.fetcher.paused == set()


@pytest.mark.parametrize("how", ["comes later", "was lost", "comes after others"])
@asynchronous
async def test_a_partition_that_others_may_have_had_is_not_paused(how: str) -> None:
    world = World()
    await world.ownership.assigned([T0, T1])
    world.ownership.pause([T0])
    if how == "was lost":
        await world.ownership.lost([T0], LOST)
    else:
        await world.ownership.revoked([T0], lambda: True)
    if how == "comes after others":
        await world.ownership.revoked([T1], lambda: True)
        await world.ownership.assigned([T1], returned=[T1])
        await world.ownership.assigned([T0], returned=[T0])
    else:
        await world.ownership.assigned([T0])
    assert world.ownership.paused == set()
    assert world.fetcher.paused == set()


@asynchronous
async def test_the_same_refusal_is_logged_again_once_the_group_has_taken_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As at each rollout of a static member, whose former self holds the instance id."""
    world = World()
    for _ in range(2):
        for _ in range(2):
            world.ownership.refused(ApiError(ErrorCode.UNRELEASED_INSTANCE_ID), for_good=False)
        world.ownership.accepted()
    assert len(caplog.messages) == 2


@asynchronous
async def test_a_refusal_that_lasts_is_logged_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_deduplication, "LASTS_S", 0.0)
    world = World()
    for _ in range(2):
        world.ownership.refused(ApiError(ErrorCode.UNRELEASED_INSTANCE_ID), for_good=False)
    assert len(caplog.messages) == 2


@asynchronous
async def test_the_same_refusal_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """It comes with every attempt, once a second."""
    world = World()
    for code in (111, 111, 87, 111):
        world.ownership.refused(ApiError(ErrorCode(code)), for_good=False)
    assert [line.split(": ")[1] for line in caplog.messages] == [
        "UNRELEASED_INSTANCE_ID",
        "INVALID_RECORD",
        "UNRELEASED_INSTANCE_ID",
    ]
