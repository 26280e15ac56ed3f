# SPDX-License-Identifier: Apache-2.0
"""Where a group shall go on reading: the ways to say it, and what each means for a partition.

Nothing here asks a broker. A reset is planned as a value first, which can be shown, kept and
applied. What happens at the ends of a log is what kafka-consumer-groups of Apache Kafka 4.3.1 does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, Self

from kohort.client.admin import arguments
from kohort.client.admin.group_views import CommittedOffset, GroupOffsets
from kohort.client.admin.offsets_csv import offsets_csv, read_offsets
from kohort.client.admin.views import Coverage, Outcomes
from kohort.client.topic_partitions import ByPartition
from kohort.errors import ApiError, ErrorCode
from kohort.terms import WITHOUT_MEMBERS, GroupState, TopicPartition, millis_of

_MILLISECOND = timedelta(milliseconds=1)


class Scenario(StrEnum):
    """The ways to say where a group goes on, by upstream's options; CLONE is ours."""

    EARLIEST = "to-earliest"
    LATEST = "to-latest"
    CURRENT = "to-current"
    OFFSET = "to-offset"
    SHIFT = "shift-by"
    DATETIME = "to-datetime"
    DURATION = "by-duration"
    FILE = "from-file"
    CLONE = "clone"


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """Where a group shall go on. Make one by `earliest()`, `to_time(...)` and the like.

    `value` is what the scenario needs: an offset, a number of records, milliseconds, offsets by
    partition, or the id of a group.
    """

    scenario: Scenario
    value: int | str | Mapping[TopicPartition, CommittedOffset] | None = field(default=None)

    @classmethod
    def earliest(cls) -> Self:
        """The first record that is there."""
        return cls(Scenario.EARLIEST)

    @classmethod
    def latest(cls) -> Self:
        """Behind the last record."""
        return cls(Scenario.LATEST)

    @classmethod
    def current(cls) -> Self:
        """What is committed now; behind the last record where nothing is."""
        return cls(Scenario.CURRENT)

    @classmethod
    def to_offset(cls, offset: int) -> Self:
        """The same offset in each partition, within what the partition has."""
        return cls(Scenario.OFFSET, arguments.whole("offset", offset))

    @classmethod
    def shift_by(cls, records: int) -> Self:
        """So many records further than what is committed, or back where `records` is negative."""
        return cls(Scenario.SHIFT, arguments.whole("records", records))

    @classmethod
    def to_time(cls, moment: int | datetime) -> Self:
        """The first record at or after a time: milliseconds since 1970, or a datetime with a zone.

        Behind the last record where no record is that new.
        """
        millis = millis_of(moment) if isinstance(moment, datetime) else moment
        return cls(Scenario.DATETIME, arguments.natural("moment", millis))

    @classmethod
    def by_duration(cls, duration: timedelta) -> Self:
        """As `to_time`, so long before the time of planning."""
        if not isinstance(duration, timedelta):
            raise TypeError(f"duration is {duration!r}, expected a timedelta")
        if duration < timedelta(0):
            raise ValueError(f"duration is {duration}, expected 0 at least: it goes back in time")
        return cls(Scenario.DURATION, duration // _MILLISECOND)

    @classmethod
    def from_offsets(cls, offsets: ByPartition[int | CommittedOffset]) -> Self:
        """An offset for each partition, within what the partition has, as from a file."""
        return cls(Scenario.FILE, arguments.offsets("offsets", offsets))

    @classmethod
    def from_csv(cls, text: str, group_id: str | None = None) -> Self:
        """As `from_offsets`, from the lines of a file: `topic,partition,offset` for any group, or
        `group,topic,partition,offset`, where those of `group_id` count. Raises ValueError.
        """
        if not isinstance(text, str):
            raise TypeError(f"text is {text!r}, expected the lines of a file")
        found = read_offsets(text)
        if None not in found and group_id not in found:
            whose = "no group is named" if group_id is None else f"none are of group {group_id}"
            raise ValueError(f"the file has offsets of {len(found)} groups, and {whose}")
        return cls(Scenario.FILE, found[None if None in found else group_id])

    @classmethod
    def clone(cls, group_id: str) -> Self:
        """What another group has committed, with its metadata."""
        return cls(Scenario.CLONE, arguments.name("group_id", group_id))


class OffsetAdjustment(StrEnum):
    """Why the new offset is not the one that was asked for; the values are for people."""

    BEFORE_START = "the log begins after that, at the offset that is taken"
    AFTER_END = "the log ends before that, at the offset that is taken"
    NO_RECORD = "no record is that new, so the end of the log is taken"
    NO_OFFSET = "nothing is committed, so the end of the log is taken"


@dataclass(frozen=True, slots=True)
class PlannedOffset:
    """What a reset does to one partition.

    Lags are numbers of records, and negative for an offset behind the end of the log. `current` and
    `lag_before` are None where nothing is committed. Where the partition cannot be reset, `error`
    says why, and `new` and `lag_after` are None. `wanted` is the offset that was asked for, where
    the log does not reach it.
    """

    current: CommittedOffset | None
    new: CommittedOffset | None
    lag_before: int | None = None
    lag_after: int | None = None
    adjustment: OffsetAdjustment | None = None
    error: ApiError | None = None
    wanted: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetResetPlan(Coverage):
    """What a reset would do to a group now. Nothing is changed until somebody applies it:

        await admin.alter_group_offsets(plan.group_id, plan.offsets)

    `state` is that of the group. It is Dead for a group that the coordinator does not describe, and
    `describe_error` has its answer then: there is no such group, or it is of another type, such as
    a share group. A coordinator takes offsets only for a group without members: `refusal` says so
    while there are some.
    """

    group_id: str
    state: GroupState | str
    partitions: Mapping[TopicPartition, PlannedOffset]
    describe_error: ApiError | None = None

    @property
    def offsets(self) -> dict[TopicPartition, CommittedOffset]:
        """The new offsets, without the partitions that cannot be reset."""
        return {
            partition: planned.new
            for partition, planned in self.partitions.items()
            if planned.new is not None
        }

    @property
    def failed(self) -> dict[TopicPartition, ApiError]:
        """The partitions that cannot be reset, each with the reason."""
        return {
            partition: planned.error
            for partition, planned in self.partitions.items()
            if planned.error is not None
        }

    @property
    def missing(self) -> dict[TopicPartition, ApiError]:
        """As `failed`."""
        return self.failed

    def to_csv(self, *, with_group: bool = False) -> str:
        """The new offsets as lines for `OffsetReset.from_csv` and kafka-consumer-groups."""
        return offsets_csv({self.group_id if with_group else None: self.offsets})

    @property
    def refusal(self) -> ApiError | None:
        """Why the coordinator would refuse this plan now; None where it would not."""
        if self.state in WITHOUT_MEMBERS:
            return None
        return ApiError(
            ErrorCode.NON_EMPTY_GROUP,
            f"group {self.group_id} is {self.state}, expected a group without members: "
            "stop its consumers first",
        )


class LogOffsets(NamedTuple):
    """Where a log starts and ends, and its first record at or after a time: None where a time was
    not asked for, or no record is that new.
    """

    start: int
    end: int
    at_time: int | None


class PlanInputs(NamedTuple):
    """What a plan is made of. `source` has the offsets that are taken over."""

    current: GroupOffsets
    logs: Outcomes[TopicPartition, LogOffsets]
    source: GroupOffsets


def planned_offset(
    reset: OffsetReset, partition: TopicPartition, inputs: PlanInputs
) -> PlannedOffset:
    """What a reset does to a partition."""
    current = inputs.current.get(partition)
    if isinstance(current, ApiError):
        return PlannedOffset(None, None, error=current)
    try:
        log = inputs.logs[partition]
    except ApiError as error:
        return PlannedOffset(current, None, error=error.without_frames())
    lag_before = None if current is None else log.end - current.offset
    try:
        aim = _aim(reset, partition, current, log, inputs.source)
    except ApiError as error:
        return PlannedOffset(current, None, lag_before, error=error.without_frames())
    lag_after = log.end - aim.new.offset
    return PlannedOffset(current, aim.new, lag_before, lag_after, aim.adjustment, wanted=aim.wanted)


class _Aim(NamedTuple):
    new: CommittedOffset
    adjustment: OffsetAdjustment | None = None
    wanted: int | None = None


def _aim(
    reset: OffsetReset,
    partition: TopicPartition,
    current: CommittedOffset | None,
    log: LogOffsets,
    source: GroupOffsets,
) -> _Aim:
    """The new offset. Raises ApiError where there is none."""
    value = reset.value
    match reset.scenario:
        case Scenario.EARLIEST:
            return _Aim(CommittedOffset(log.start))
        case Scenario.LATEST:
            return _Aim(CommittedOffset(log.end))
        case Scenario.CURRENT:
            if current is None:
                return _Aim(CommittedOffset(log.end), OffsetAdjustment.NO_OFFSET)
            return _Aim(current)  # as upstream, also where it lies outside of the log
        case Scenario.OFFSET:
            assert isinstance(value, int)
            return _within(CommittedOffset(value), log)
        case Scenario.SHIFT:
            assert isinstance(value, int)
            if current is None:
                text = f"partition {partition} has no committed offset to shift"
                raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
            return _within(CommittedOffset(current.offset + value), log)
        case Scenario.DATETIME | Scenario.DURATION:
            if log.at_time is None:
                return _Aim(CommittedOffset(log.end), OffsetAdjustment.NO_RECORD)
            return _Aim(CommittedOffset(log.at_time))
        case Scenario.FILE:
            return _within(_taken_over(source, partition, "the given offsets"), log)
        case Scenario.CLONE:
            return _Aim(_taken_over(source, partition, f"group {value}"))


def _taken_over(source: GroupOffsets, partition: TopicPartition, whose: str) -> CommittedOffset:
    found = source.get(partition)
    if isinstance(found, ApiError):
        raise found
    if found is None:
        text = f"partition {partition} has no offset in {whose}"
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return found


def _within(wanted: CommittedOffset, log: LogOffsets) -> _Aim:
    if wanted.offset > log.end:
        return _Aim(CommittedOffset(log.end), OffsetAdjustment.AFTER_END, wanted.offset)
    if wanted.offset < log.start:
        return _Aim(CommittedOffset(log.start), OffsetAdjustment.BEFORE_START, wanted.offset)
    return _Aim(wanted)
