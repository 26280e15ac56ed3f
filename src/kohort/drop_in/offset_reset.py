# SPDX-License-Identifier: Apache-2.0
"""`kafka-consumer-groups --reset-offsets`: plan new offsets for groups without members, print them,
and with `--execute` commit them.

All groups are planned before the first one is committed, so that a wrong call changes nothing.
After that groups stand for themselves: where one cannot be reset the others are, and the table has
what was done.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from kohort.cli.command import is_unsure, with_doubt
from kohort.drop_in.consumer_group_options import SCENARIOS
from kohort.drop_in.group_listing import consumer_groups, unreachable
from kohort.drop_in.java import (
    ERRORS,
    JavaError,
    at_run_time,
    failed_command,
    in_future,
    of_code,
    of_error,
)
from kohort.drop_in.options import Options
from kohort.drop_in.orders import by_name, by_partition
from kohort.drop_in.reset_file import as_csv, offsets_in
from kohort.drop_in.running import UsageError, ask, error_line, line, print_csv, print_error
from kohort.drop_in.tables import filled, widest
from kohort.drop_in.times import duration_of, millis_of
from kohort.drop_in.topic_arguments import partitions_in, split
from kohort.errors import ApiError, AuthenticationError, ErrorCode, KohortError
from kohort.terms import TopicPartition

if TYPE_CHECKING:  # the client is imported when a tool asks
    from kohort.client.admin import AdminClient, OffsetReset, OffsetResetPlan
    from kohort.client.admin.group_views import CommittedOffset
    from kohort.client.admin.offsets_csv import OffsetsByGroup

_LEAST = 15
_Offsets = Mapping[TopicPartition, "CommittedOffset"]


class _RefusedError(Exception):
    """A group that is not reset, or not all of it: `done` is. The table leaves the group out where
    that is None.
    """

    def __init__(
        self, text: str, error: JavaError | None = None, done: _Offsets | None = None
    ) -> None:
        super().__init__(text)
        self.text = text
        self.error = error
        self.done = done


class _Resets:
    """The new offsets by group, and whether no group was refused."""

    def __init__(self) -> None:
        self.offsets: dict[str, _Offsets] = {}
        self.went_well = True

    async def add(self, group: str, step: Awaitable[_Offsets]) -> None:
        """Take over what a step makes of a group. A refusal is printed, and ends no other group."""
        try:
            self.offsets[group] = await step
        except _RefusedError as refused:
            print_error(refused.text, refused.error)
            self.went_well = False
            self.offsets.pop(group, None)
            if refused.done is not None:
                self.offsets[group] = refused.done


def reset_offsets(options: Options, timeout_ms: int) -> bool:
    """Whether all groups are reset, or would be. Raises JavaError and UsageError."""
    for name in ("to-offset", "shift-by"):
        options.number(name)  # a text that is no number is refused before anything is asked

    async def asked(admin: "AdminClient") -> _Resets:
        return await _reset_all(admin, options)

    resets = ask(options, asked, timeout_ms=timeout_ms, unreachable=unreachable)
    found = resets.offsets
    if not found and not resets.went_well:
        return False
    ordered = {
        group: {partition: found[group][partition] for partition in by_partition(found[group])}
        for group in by_name(found)
    }
    if options.has("export"):
        print_csv(as_csv(ordered, with_group=len(options.values("group")) != 1))
    else:
        _print_offsets(ordered)
    return resets.went_well


async def _reset_all(admin: "AdminClient", options: Options) -> _Resets:
    """Plan all groups, and then commit them: where this raises JavaError, UsageError or
    KohortError, nothing is changed.
    """
    names = options.values("group")
    if options.has("all-groups"):
        names = [group.group_id for group in await consumer_groups(admin)]
    partitions = await _partitions(admin, options)
    scenario = _scenario(options)
    resets = _Resets()
    for name in by_name(dict.fromkeys(names)):
        await resets.add(name, _plan(admin, scenario, name, partitions))
    if options.has("execute"):
        for name, offsets in list(resets.offsets.items()):
            await resets.add(name, _commit(admin, name, offsets))
    return resets


async def _plan(
    admin: "AdminClient",
    scenario: Callable[[str], "OffsetReset"],
    group: str,
    partitions: list[TopicPartition] | None,
) -> _Offsets:
    """The offsets that a group would get. Raises _RefusedError where it gets none, UsageError, and
    KohortError where no broker answers.
    """
    from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError

    reset = scenario(group)
    try:
        plan = await admin.plan_offset_reset(group, reset, partitions)
    except (ConnectionFailedError, RequestTimeoutError, AuthenticationError):
        raise
    except ApiError as error:
        raise _failed(at_run_time(in_future(of_error(error)))) from None
    if plan.refusal is not None:
        raise _RefusedError(
            f"Assignments can only be reset if the group '{group}' is inactive, but the current "
            f"state is {plan.state}.",
            done={},
        )
    _check_plan(plan, reset)
    _warn(plan)
    return plan.offsets


async def _commit(admin: "AdminClient", group: str, offsets: _Offsets) -> _Offsets:
    """The offsets that are committed. Raises _RefusedError where these are not all."""
    if not offsets:
        return offsets
    try:
        outcomes = await admin.alter_group_offsets(group, offsets)
    except KohortError as error:
        raise _failed(in_future(of_error(error))) from None
    if not outcomes.failed:
        return offsets
    first = next(iter(outcomes.failed.values()))
    # A bare code does not say that nobody has answered.
    why = of_error(with_doubt(first, "set")) if is_unsure(first) else of_code(first.code)
    raise _failed(why, {each: offsets[each] for each in outcomes.succeeded} or None)


def _failed(error: JavaError, done: _Offsets | None = None) -> _RefusedError:
    return _RefusedError(failed_command(error), error, done)


async def _partitions(admin: "AdminClient", options: Options) -> list[TopicPartition] | None:
    """The partitions that the options name; None where the group, or a file, says which. Raises
    JavaError and UsageError.
    """
    if options.has("from-file") or options.has("all-topics"):
        return None
    if not options.has("topic"):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
    named, topics = split(options.values("topic"))
    wanted = [partition for text in named for partition in partitions_in(text)]
    whole = dict.fromkeys(topics)
    described = await admin.describe_topics([*whole, *{each.topic for each in wanted}])
    for error in described.failed.values():
        raise of_code(error.code)
    there = {
        TopicPartition(topic, partition.partition)
        for topic, found in described.succeeded.items()
        for partition in found.partitions
    }
    missing = [each for each in wanted if each not in there]
    if missing:
        shown = ",".join(f"{each.topic}-{each.partition}" for each in missing)
        name = f"{ERRORS}.UnknownTopicOrPartitionException"
        raise JavaError(name, f'The partitions "{shown}" do not exist')
    return list(dict.fromkeys([*wanted, *sorted(each for each in there if each.topic in whole)]))


def _scenario(options: Options) -> Callable[[str], "OffsetReset"]:
    """Where a group goes on, by its id. Raises JavaError and UsageError; what it returns raises
    _RefusedError for a group that a file does not have.
    """
    if options.has("from-file"):
        is_alone = len(options.values("group")) == 1
        return partial(_from_file, offsets_in(options.values("from-file")[0]), is_alone=is_alone)
    reset = _reset_of(options)
    return lambda _group: reset


def _from_file(offsets: "OffsetsByGroup", group: str, *, is_alone: bool) -> "OffsetReset":
    from kohort.client.admin import OffsetReset

    key = None if is_alone and None in offsets else group
    if key in offsets:
        return OffsetReset.from_offsets(offsets[key])
    raise _RefusedError(f"No reset plan for group {group} found", done={})


def _reset_of(options: Options) -> "OffsetReset":
    """Where every group goes on. Raises JavaError and UsageError."""
    from kohort.client.admin import OffsetReset
    from kohort.client.admin.offset_reset import Scenario

    if options.has("to-offset"):
        return OffsetReset.to_offset(options.number("to-offset") or 0)
    if options.has("to-earliest"):
        return OffsetReset.earliest()
    if options.has("to-latest"):
        return OffsetReset.latest()
    if options.has("to-datetime"):
        return OffsetReset.to_time(max(0, millis_of(options.value("to-datetime") or "")))
    if options.has("by-duration"):
        duration = duration_of(options.value("by-duration") or "")
        # `by_duration` refuses a time to come, and the Java tool takes it.
        return OffsetReset(Scenario.DURATION, duration // timedelta(milliseconds=1))
    if options.has("shift-by"):
        return OffsetReset.shift_by(options.number("shift-by") or 0)
    if options.has("to-current"):
        return OffsetReset.current()
    named = ", ".join(f"[{name}]" for name in SCENARIOS)
    raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{named}]")


def _check_plan(plan: "OffsetResetPlan", reset: "OffsetReset") -> None:
    """Raises _RefusedError, or UsageError, for the first partition that cannot be reset."""
    errors = plan.failed
    for partition in by_partition(errors):
        error = errors[partition]
        where = f"{partition.topic}-{partition.partition}"
        if reset.scenario == "shift-by" and error.code is ErrorCode.RESOURCE_NOT_FOUND:
            raise UsageError(
                f"Cannot shift offset for partition {where} since there is no current committed "
                "offset"
            )
        why = of_error(error)
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            why.text = (
                f"Failed to fetch metadata for partition {where} because metadata for topic "
                f"`{partition.topic}` could not be found"
            )
        raise _failed(at_run_time(in_future(why)))


def _warn(plan: "OffsetResetPlan") -> None:
    """Say where the log does not reach what was asked for. Java's tools log an offset that they
    change, and print a time without a record.
    """
    from kohort.client.admin import OffsetAdjustment

    for partition in by_partition(plan.partitions):
        planned = plan.partitions[partition]
        if planned.adjustment is OffsetAdjustment.NO_RECORD:
            line(
                f"Warn: Partition {partition.partition} from topic {partition.topic} is empty. "
                "Falling back to latest known offset.",
                before="\n",
            )
        if planned.wanted is not None and planned.new is not None:
            is_after = planned.adjustment is OffsetAdjustment.AFTER_END
            where = "higher than latest" if is_after else "lower than earliest"
            error_line(
                f"WARN New offset ({planned.wanted}) is {where} offset for topic partition "
                f"{partition.topic}-{partition.partition}. Value will be set to "
                f"{planned.new.offset}"
            )


def _print_offsets(found: Mapping[str, _Offsets]) -> None:
    topics = (partition.topic for offsets in found.values() for partition in offsets)
    widths = (widest(_LEAST, found), widest(_LEAST, topics), 10)
    if found:
        line(filled(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), widths), before="\n", end="")
    for group, offsets in found.items():
        for (topic, index), offset in offsets.items():
            line(filled((group, topic, index, offset.offset), widths), before="\n", end="")
    line()
