# SPDX-License-Identifier: Apache-2.0
"""A change of committed offsets: it is planned, shown, and then made as it was shown.

A person at a terminal reads the plan above the question. What a yes applies is that plan, and not
another one that is made after it.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from kohort.cli.cluster_commands import ChangeCommand
from kohort.cli.command import (
    ERROR_FIELDS,
    FAILED,
    OK,
    complain,
    error_fields,
    is_unsure,
    reason,
    topic_name,
    with_doubt,
)
from kohort.cli.lags import offset_of
from kohort.cli.render import Cell, Output, columns, name_text
from kohort.cli.second_look import TopicIds, changed_topics, committed_since, topic_ids
from kohort.errors import ApiError, ErrorCode
from kohort.figures import counted

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, OffsetReset, OffsetResetPlan
    from kohort.terms import TopicPartition

HEADERS = ("GROUP", "TOPIC", "PARTITION", "NOW", "NEW", "LAG-NOW", "LAG-NEW", "RESULT")
FIELDS = (
    *("group_id", "topic", "partition", "current_offset", "new_offset", "lag_before", "lag_after"),
    *("adjustment", "result", *ERROR_FIELDS),
)
LINES = 40  # of a plan above the question; the others are counted
Wanted = Mapping[str, "OffsetReset"]
"""What each group shall go on with, by its id."""


class AppliedPlan(NamedTuple):
    """A plan and what became of it: an error for each partition that was to be changed, or None.
    Without `outcomes` nothing was tried.
    """

    plan: "OffsetResetPlan"
    outcomes: "Mapping[TopicPartition, ApiError | None] | None"

    def result(self, partition: "TopicPartition") -> tuple[str, ApiError | None]:
        """A word, and the error behind it."""
        error = self.plan.partitions[partition].error or self.plan.refusal
        if self.outcomes is None:
            return ("would fail", error) if error else ("would be set", None)
        if error is None:
            error = self.outcomes.get(partition)
        if error is None:
            return "set", None
        return ("unknown" if is_unsure(error) else "failed"), with_doubt(error, "set")


class ChangeOffsets(ChangeCommand):
    """A command that sets committed offsets of groups. The groups must have no members."""

    dry_run: ClassVar[str] = "show the plan, and change nothing"

    def wanted(self, args: Namespace) -> Wanted:
        """What the arguments ask for. Raises ValueError for a file that makes no sense."""
        raise NotImplementedError

    def mistake(self, args: Namespace) -> str | None:
        try:
            args.wanted = self.wanted(args)
        except ValueError as error:
            return str(error)
        return None

    def question(self, _args: Namespace) -> str:
        return "Set these offsets"

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        args.plans = await _plans(admin, args)
        topics = [place.topic for plan in args.plans for place in plan.offsets]
        args.topic_ids = await topic_ids(admin, topics)
        possible = [AppliedPlan(plan, None) for plan in args.plans if plan.refusal is None]
        if not any(one.plan.offsets for one in possible):
            return ()  # what is refused anyway needs no yes
        rows = [row for one in possible for row in _rows(one)]
        lines = columns(HEADERS[:-1], [row[:-1] for row in rows[:LINES]])
        notes = [text for one in possible for text in _notes(one)][:LINES]
        notes += [_of_new(one.plan) for one in possible if _is_new(one.plan)]
        more = [f"and {len(rows) - LINES:,} more"] if len(rows) > LINES else []
        left_out = [f"not set: {reason(plan.refusal)}" for plan in args.plans if plan.refusal]
        return [*lines, *more, *notes, *left_out]

    async def ask(self, admin: "AdminClient", args: Namespace, output: Output) -> list[AppliedPlan]:
        plans = getattr(args, "plans", None)
        if plans is None:
            output.doing = "planning"
            plans = await _plans(admin, args)
        else:
            output.doing = "looking again"
            plans = await _as_shown(admin, plans, args.topic_ids)
        if args.dry_run:
            return [AppliedPlan(plan, None) for plan in plans]
        done: list[AppliedPlan] = []
        for plan in plans:
            before = f", after those of {counted(len(done), 'group')}" if done else ""
            with output.changing(f"setting offsets of group {plan.group_id}{before}"):
                done.append(AppliedPlan(plan, await _apply(admin, plan)))
        return done

    def show(self, answer: list[AppliedPlan], args: Namespace, output: Output) -> int:
        if not output.is_table:
            rows = (row for applied in answer for row in _documents(applied))
            output.rows("offsets", rows, FIELDS, dry_run=args.dry_run)
        else:
            table = [row for applied in answer for row in _rows(applied)]
            if table:
                output.table(HEADERS, table, spare=("LAG-NOW", "LAG-NEW"))
        return max((_complaints(applied, self.nothing(args)) for applied in answer), default=OK)

    def nothing(self, _args: Namespace) -> str:
        """Why a plan has no partition, and what is expected, behind the name of its group."""
        return "has no committed offset, expected --topic for those it shall get"


async def _plans(admin: "AdminClient", args: Namespace) -> "list[OffsetResetPlan]":
    return [
        await admin.plan_offset_reset(group_id, to, places_of(args))
        for group_id, to in args.wanted.items()
    ]


async def _as_shown(
    admin: "AdminClient",
    plans: "Sequence[OffsetResetPlan]",
    ids: TopicIds,
) -> "list[OffsetResetPlan]":
    """The plans, without the partitions that are not any more as a person was shown them."""
    moved = await committed_since(
        admin,
        {
            plan.group_id: {place: one.current for place, one in plan.partitions.items()}
            for plan in plans
            if plan.offsets
        },
    )
    topics = await changed_topics(admin, ids)

    def looked_at(plan: "OffsetResetPlan") -> "OffsetResetPlan":
        here = moved.get(plan.group_id, {})
        partitions = dict(plan.partitions)
        for place in plan.offsets:
            error = topics.get(place.topic) or here.get(place)
            if error is not None:
                partitions[place] = replace(
                    partitions[place], new=None, lag_after=None, adjustment=None, error=error
                )
        return replace(plan, partitions=partitions)

    return [looked_at(plan) for plan in plans]


async def _apply(
    admin: "AdminClient", plan: "OffsetResetPlan"
) -> "Mapping[TopicPartition, ApiError | None]":
    if plan.refusal is not None or not plan.offsets:
        return {}
    try:
        return dict((await admin.alter_group_offsets(plan.group_id, plan.offsets)).items())
    except ApiError as error:
        return dict.fromkeys(plan.offsets, error)


def _rows(applied: AppliedPlan) -> Iterator[tuple[Cell, ...]]:
    for partition, planned in applied.plan.partitions.items():
        yield (
            name_text(applied.plan.group_id),
            *partition,
            offset_of(planned.current),
            offset_of(planned.new),
            planned.lag_before,
            planned.lag_after,
            applied.result(partition)[0],
        )


def _documents(applied: AppliedPlan) -> Iterator[dict[str, Any]]:
    for partition, planned in applied.plan.partitions.items():
        result, error = applied.result(partition)
        yield {
            "group_id": applied.plan.group_id,
            "topic": partition.topic,
            "partition": partition.partition,
            "current_offset": offset_of(planned.current),
            "new_offset": offset_of(planned.new),
            "lag_before": planned.lag_before,
            "lag_after": planned.lag_after,
            "adjustment": planned.adjustment.name if planned.adjustment else None,
            "result": result,
            **(error_fields(error) if error else {}),
        }


def _notes(applied: AppliedPlan) -> Iterator[str]:
    """A line for each partition whose new offset is not the one that was asked for."""
    group = f"group {name_text(applied.plan.group_id)}"
    for partition, planned in applied.plan.partitions.items():
        if planned.adjustment is not None:
            yield f"{group}, {place_text(partition)}: {planned.adjustment.value}"


def _is_new(plan: "OffsetResetPlan") -> bool:
    error = plan.describe_error
    is_unknown = error is not None and error.code is ErrorCode.GROUP_ID_NOT_FOUND
    return is_unknown and all(one.current is None for one in plan.partitions.values())


def _of_new(plan: "OffsetResetPlan") -> str:
    """What is said of a group that nobody knows: its name may be misspelled."""
    return f"group {name_text(plan.group_id)} is not there yet: it will be made"


def _complaints(applied: AppliedPlan, nothing: str) -> int:
    """A line for each thing that is not as it was asked for, and the exit code. `nothing` says why
    a plan has no partition.
    """
    group = f"group {name_text(applied.plan.group_id)}"
    for note in _notes(applied):
        complain(note)
    if not applied.plan.partitions:
        complain(f"{group} {nothing}")
        return FAILED
    if applied.plan.refusal is not None:
        complain(reason(applied.plan.refusal))
        return FAILED
    code = OK
    for partition in applied.plan.partitions:
        error = applied.result(partition)[1]
        if error is not None:
            complain(f"{group}, {place_text(partition)}: {reason(error)}")
            code = FAILED
    return code


def place_text(partition: "TopicPartition") -> str:
    return f"{partition.topic}:{partition.partition}"


def add_topics(parser: ArgumentParser, text: str) -> None:
    """The argument that names topics and partitions."""
    parser.add_argument(
        "--topic",
        action="append",
        type=topic_partitions,
        metavar="TOPIC[:PARTITIONS]",
        help=f"{text}: a topic, or such of its partitions as 0-2,5; may be repeated",
    )


def places_of(args: Namespace) -> list[str | tuple[str, int]] | None:
    """The topics and partitions that the arguments name; None where they name none."""
    return [place for places in args.topic for place in places] if args.topic else None


def topic_partitions(text: str) -> list[str | tuple[str, int]]:
    """The type of an argument `orders` or `orders:0-2,5`; no topic's name has a colon."""
    topic, found, numbers = text.partition(":")
    if not topic:
        raise ArgumentTypeError(f"{text!r} names no topic, expected such as orders or orders:0-2,5")
    if not found:
        return [topic_name(topic)]
    partitions: dict[int, None] = {}
    for part in numbers.split(","):
        first, is_range, last = part.partition("-")
        ends = (first, last if is_range else first)
        if not all(end.isascii() and end.isdigit() and len(end) <= _DIGITS for end in ends):
            raise ArgumentTypeError(
                f"{part!r} in {text!r} is no partition, expected such as 5 or 0-2"
            )
        low, high = map(int, ends)
        if not low <= high < low + _MOST:
            raise ArgumentTypeError(
                f"{part!r} in {text!r} is no range of partitions, expected such as 0-2, of "
                f"{_MOST:,} at most"
            )
        partitions |= dict.fromkeys(range(low, high + 1))
    return [(topic_name(topic), index) for index in partitions]


_DIGITS = 9
_MOST = 100_000  # partitions that a range may name
