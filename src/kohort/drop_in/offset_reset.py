"""`kafka-consumer-groups --reset-offsets`: plan new offsets for groups without members, print them,
and with `--execute` commit them.

Groups stand for themselves: where one cannot be reset the others are, and the table has what was
done.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kohort.drop_in.consumer_group_options import SCENARIOS
from kohort.drop_in.group_listing import consumer_groups, unreachable
from kohort.drop_in.java import ERRORS, JavaError, at_run_time, in_future, of_code, of_error
from kohort.drop_in.options import Options
from kohort.drop_in.orders import by_name, by_partition
from kohort.drop_in.reset_file import as_csv, offsets_in
from kohort.drop_in.running import UsageError, ask, line, print_error
from kohort.drop_in.tables import filled, widest
from kohort.drop_in.times import duration_of, millis_of
from kohort.drop_in.topic_arguments import partitions_in, split
from kohort.errors import ErrorCode
from kohort.terms import GroupState, TopicPartition

if TYPE_CHECKING:  # the client is imported when a tool asks
    from kohort.client.admin import AdminClient, OffsetReset, OffsetResetPlan
    from kohort.client.admin.views import CommittedOffset, GroupDescription, Outcomes

_LEAST = 15
_RESETTABLE = (GroupState.EMPTY, GroupState.DEAD)
_Offsets = Mapping[TopicPartition, "CommittedOffset"]


class _RefusedError(Exception):
    """A group that is not reset, or not all of it: `done` is."""

    def __init__(
        self, text: str, error: JavaError | None = None, done: _Offsets | None = None
    ) -> None:
        super().__init__(text)
        self.text = text
        self.error = error
        self.done = done or {}


def reset_offsets(options: Options, timeout_ms: int) -> bool:
    """Whether all groups are reset, or would be. Raises JavaError and UsageError."""
    for name in ("to-offset", "shift-by"):
        options.number(name)  # a text that is no number is refused before anything is asked

    async def asked(admin: "AdminClient") -> tuple[dict[str, _Offsets], bool]:
        return await _reset_all(admin, options)

    found, went_well = ask(options, asked, timeout_ms=timeout_ms, unreachable=unreachable)
    ordered = {
        group: {partition: found[group][partition] for partition in by_partition(found[group])}
        for group in by_name(found)
    }
    if options.has("export"):
        line(as_csv(ordered, with_group=len(options.values("group")) != 1))
    else:
        _print_offsets(ordered)
    return went_well


async def _reset_all(admin: "AdminClient", options: Options) -> tuple[dict[str, _Offsets], bool]:
    """The new offsets by group, and whether none was refused."""
    names = options.values("group")
    if options.has("all-groups"):
        names = [group.group_id for group in await consumer_groups(admin)]
    groups = await admin.describe_groups(names)
    found: dict[str, _Offsets] = {}
    went_well = True
    for name in by_name(groups):
        try:
            _check_state(_state(groups, name), name)
            found[name] = await _reset(admin, name, options)
        except _RefusedError as refused:
            print_error(refused.text, refused.error)
            found[name] = refused.done
            went_well = False
    return found, went_well


def _state(groups: "Outcomes[str, GroupDescription]", name: str) -> str:
    """The state of a group; Dead where there is none. Raises JavaError."""
    error = groups.failed.get(name)
    if error is None:
        return groups[name].state
    if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
        return GroupState.DEAD
    raise at_run_time(in_future(of_error(error)))


def _check_state(state: str, name: str) -> None:
    if state not in _RESETTABLE:
        raise _RefusedError(
            f"Assignments can only be reset if the group '{name}' is inactive, but the current "
            f"state is {state}."
        )


async def _reset(admin: "AdminClient", group: str, options: Options) -> _Offsets:
    """The offsets that a group gets. Raises _RefusedError where it does not get all of them."""
    partitions = await _partitions(admin, options)
    plan = await admin.plan_offset_reset(group, _scenario(options, group), partitions)
    _check_plan(plan, options)
    _warn_of_times(plan)
    if not options.has("execute") or not plan.offsets:
        return plan.offsets
    outcomes = await admin.alter_group_offsets(group, plan.offsets)
    for error in outcomes.failed.values():
        bare = of_code(error.code)
        done = {each: plan.offsets[each] for each in outcomes.succeeded}
        text = f"Executing consumer group command failed due to {bare.text}"
        raise _RefusedError(text, bare, done)
    return plan.offsets


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


def _scenario(options: Options, group: str) -> "OffsetReset":
    """Where the group goes on. Raises JavaError and UsageError."""
    from kohort.client.admin import OffsetReset

    if options.has("from-file"):
        offsets = offsets_in(options.values("from-file")[0])
        if None in offsets and len(options.values("group")) == 1:
            return OffsetReset.from_offsets(offsets[None])
        if group in offsets:
            return OffsetReset.from_offsets(offsets[group])
        raise _RefusedError(f"No reset plan for group {group} found")
    if options.has("to-offset"):
        return OffsetReset.to_offset(options.number("to-offset") or 0)
    if options.has("to-earliest"):
        return OffsetReset.earliest()
    if options.has("to-latest"):
        return OffsetReset.latest()
    if options.has("to-datetime"):
        return OffsetReset.to_time(max(0, millis_of(options.value("to-datetime") or "")))
    if options.has("by-duration"):
        return OffsetReset.by_duration(duration_of(options.value("by-duration") or ""))
    if options.has("shift-by"):
        return OffsetReset.shift_by(options.number("shift-by") or 0)
    if options.has("to-current"):
        return OffsetReset.current()
    named = ", ".join(f"[{name}]" for name in SCENARIOS)
    raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{named}]")


def _check_plan(plan: "OffsetResetPlan", options: Options) -> None:
    """Raises JavaError, or UsageError, for the first partition that cannot be reset."""
    for partition in by_partition(plan.failed):
        error = plan.failed[partition]
        where = f"{partition.topic}-{partition.partition}"
        if options.has("shift-by") and error.code is ErrorCode.RESOURCE_NOT_FOUND:
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
        raise at_run_time(in_future(why))


def _warn_of_times(plan: "OffsetResetPlan") -> None:
    from kohort.client.admin import OffsetAdjustment

    for partition in by_partition(plan.partitions):
        if plan.partitions[partition].adjustment is OffsetAdjustment.NO_RECORD:
            line(
                f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. "
                "Falling back to latest known offset."
            )


def _print_offsets(found: Mapping[str, _Offsets]) -> None:
    topics = (partition.topic for offsets in found.values() for partition in offsets)
    widths = (widest(_LEAST, found), widest(_LEAST, topics), 10)
    if found:
        line("\n" + filled(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), widths), end="")
    for group, offsets in found.items():
        for (topic, index), offset in offsets.items():
            line("\n" + filled((group, topic, index, offset.offset), widths), end="")
    line()
