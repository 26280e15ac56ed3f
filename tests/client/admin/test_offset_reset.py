# SPDX-License-Identifier: Apache-2.0
"""Where a group goes on: what each way to say it means for a partition, without a broker."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kohort.client.admin import (
    CommittedOffset,
    OffsetAdjustment,
    OffsetReset,
    OffsetResetPlan,
    Outcomes,
    PlannedOffset,
    TopicPartition,
)
from kohort.client.admin.offset_reset import LogOffsets, PlanInputs, planned_offset
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupState

PARTITION = TopicPartition("t", 0)
LOG = LogOffsets(10, 20, None)
COMMITTED = CommittedOffset(15, 3, "note")
TIME = OffsetReset.to_time(1_700_000_000_000)


def planned(reset, *, current=COMMITTED, log=LOG, source=None):
    inputs = PlanInputs({PARTITION: current}, Outcomes({PARTITION: log}), source or {})
    return planned_offset(reset, PARTITION, inputs)


@pytest.mark.parametrize(
    ("reset", "new", "adjustment"),
    [
        (OffsetReset.earliest(), 10, None),
        (OffsetReset.latest(), 20, None),
        (OffsetReset.to_offset(9), 10, OffsetAdjustment.BEFORE_START),
        (OffsetReset.to_offset(10), 10, None),
        (OffsetReset.to_offset(20), 20, None),
        (OffsetReset.to_offset(21), 20, OffsetAdjustment.AFTER_END),
        (OffsetReset.shift_by(-5), 10, None),
        (OffsetReset.shift_by(-6), 10, OffsetAdjustment.BEFORE_START),
        (OffsetReset.shift_by(5), 20, None),
        (OffsetReset.shift_by(6), 20, OffsetAdjustment.AFTER_END),
        (OffsetReset.shift_by(2**63 - 1), 20, OffsetAdjustment.AFTER_END),
        (TIME, 20, OffsetAdjustment.NO_RECORD),
    ],
)
def test_an_offset_lies_within_the_log(reset, new, adjustment):
    """K848-200."""
    found = planned(reset)
    expected = PlannedOffset(COMMITTED, CommittedOffset(new), 5, 20 - new, adjustment)
    assert replace(found, wanted=None) == expected
    out_of_log = (OffsetAdjustment.BEFORE_START, OffsetAdjustment.AFTER_END)
    assert (found.wanted is not None) == (adjustment in out_of_log)


def test_the_offset_that_was_asked_for_is_told():
    """Where the log does not reach it."""
    assert planned(OffsetReset.to_offset(9)).wanted == 9
    assert planned(OffsetReset.shift_by(6)).wanted == 21
    given = OffsetReset.from_offsets({PARTITION: 1000})
    assert planned(given, source=given.value).wanted == 1000


def test_a_time_is_the_first_record_from_then_on():
    assert planned(TIME, log=LogOffsets(10, 20, 12)).new == CommittedOffset(12)


def test_what_is_committed_stays_as_it_is():
    """Also with its metadata, and where it lies outside of the log, as upstream's does."""
    beyond = CommittedOffset(1000, None, "x")
    assert planned(OffsetReset.current()).new == COMMITTED
    assert planned(OffsetReset.current(), current=beyond) == PlannedOffset(
        beyond, beyond, -980, -980
    )
    nothing = planned(OffsetReset.current(), current=None)
    assert nothing == PlannedOffset(None, CommittedOffset(20), None, 0, OffsetAdjustment.NO_OFFSET)


def test_offsets_of_others_are_taken_over():
    source = {PARTITION: CommittedOffset(1000, 1, "theirs")}
    assert planned(OffsetReset.clone("other"), source=source).new == source[PARTITION]
    given = OffsetReset.from_offsets({PARTITION: 1000})
    assert planned(given, source=given.value).adjustment is OffsetAdjustment.AFTER_END
    lacks = planned(OffsetReset.clone("other")).error
    assert lacks.message == "partition t:0 has no offset in group other"
    denied = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert planned(OffsetReset.clone("other"), source={PARTITION: denied}).error is denied


def test_what_is_not_known_is_an_error_of_the_partition():
    denied = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert planned(OffsetReset.latest(), current=denied) == PlannedOffset(None, None, error=denied)
    leaderless = ApiError(ErrorCode.LEADER_NOT_AVAILABLE)
    assert planned(OffsetReset.latest(), log=leaderless) == PlannedOffset(
        COMMITTED, None, error=leaderless
    )
    nothing = planned(OffsetReset.shift_by(1), current=None)
    assert nothing.error.message == "partition t:0 has no committed offset to shift"
    plan = OffsetResetPlan("g", GroupState.EMPTY, {PARTITION: nothing})
    assert (plan.offsets, plan.failed) == ({}, {PARTITION: nothing.error})


@pytest.mark.parametrize(
    ("state", "refused"), [("Empty", False), ("Dead", False), ("Stable", True), ("new one", True)]
)
def test_only_a_group_without_members_is_reset(state, refused):
    plan = OffsetResetPlan("g", state, {})
    assert (plan.refusal is not None) == refused
    if refused:
        assert plan.refusal.code is ErrorCode.NON_EMPTY_GROUP


def test_a_plan_becomes_a_file_and_a_file_a_plan():
    """K848-200: what upstream calls --export and --from-file."""
    partitions = {PARTITION: planned(OffsetReset.latest())}
    plan = OffsetResetPlan("g", GroupState.EMPTY, partitions)
    assert plan.to_csv() == "t,0,20\n"
    assert plan.to_csv(with_group=True) == "g,t,0,20\n"
    expected = OffsetReset.from_offsets({PARTITION: 20})
    assert OffsetReset.from_csv(plan.to_csv()) == expected
    assert OffsetReset.from_csv(plan.to_csv(with_group=True), "g") == expected
    with pytest.raises(ValueError, match="has offsets of 1 groups, and none are of group h"):
        OffsetReset.from_csv(plan.to_csv(with_group=True), "h")
    with pytest.raises(ValueError, match="has offsets of 1 groups, and no group is named"):
        OffsetReset.from_csv(plan.to_csv(with_group=True))


@pytest.mark.parametrize(
    ("call", "kind", "why"),
    [
        (lambda: OffsetReset.to_offset("5"), TypeError, "offset is '5', expected a number"),
        (lambda: OffsetReset.to_offset(2**63), ValueError, "offset is 9223372036854775808, ex"),
        (lambda: OffsetReset.shift_by(1.5), TypeError, "records is 1.5, expected a number"),
        (lambda: OffsetReset.to_time("today"), TypeError, "moment is 'today', expected a number"),
        (lambda: OffsetReset.to_time(-1), ValueError, "moment is -1, expected 0 at least"),
        (
            lambda: OffsetReset.to_time(datetime(2024, 1, 1)),  # noqa: DTZ001
            ValueError,
            "2024-01-01T00:00:00 has no time zone, expected one",
        ),
        (lambda: OffsetReset.by_duration(5), TypeError, "duration is 5, expected a timedelta"),
        (
            lambda: OffsetReset.by_duration(timedelta(days=-1)),
            ValueError,
            "duration is -1 day, 0:00:00, expected 0 at least: it goes back in time",
        ),
        (lambda: OffsetReset.from_offsets({"t": 1}), TypeError, "offsets has 't', expected (to"),
        (lambda: OffsetReset.from_csv(5), TypeError, "text is 5, expected the lines of a file"),
        (lambda: OffsetReset.clone(5), TypeError, "group_id is 5, expected a text"),
    ],
)
def test_what_makes_no_sense_is_named(call, kind, why):
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value).startswith(why)


def test_times_are_milliseconds():
    assert OffsetReset.to_time(datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)) == TIME
    assert OffsetReset.by_duration(timedelta(seconds=1.5)).value == 1500
