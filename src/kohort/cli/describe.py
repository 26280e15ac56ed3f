# SPDX-License-Identifier: Apache-2.0
"""`kohort groups describe`: members, what they own, committed offsets and lag.

A cluster has thousands of groups and as many partitions. What all groups have in common is looked
up once, and each group takes its part.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from kohort.cli.cluster_commands import AdminCommand
from kohort.cli.command import (
    ERROR_FIELDS,
    FAILED,
    OK,
    complain,
    complain_of,
    complain_of_missing,
    error_fields,
    missing_groups,
    name,
    reason,
)
from kohort.cli.lags import (
    TIME_FIELDS,
    TimeLags,
    failed_times,
    group_lag,
    group_time_lag,
    offset_of,
    owned_by,
    time_fields,
    time_lag,
    time_lags_of,
    time_text,
)
from kohort.cli.reconciliation import blocking_members
from kohort.cli.render import Cell, Output, name_text, partitions_text
from kohort.errors import ApiError
from kohort.figures import counted
from kohort.terms import GroupType

if TYPE_CHECKING:
    from kohort.client.admin import (
        AdminClient,
        ClientSide,
        GroupDescription,
        GroupListing,
        GroupOffsets,
        Listings,
        MemberDescription,
        Outcomes,
    )

T = TypeVar("T")

DESCRIBABLE = (None, GroupType.CLASSIC, GroupType.CONSUMER)
GROUP_HEADERS = ("GROUP", "TYPE", "STATE", "ASSIGNOR", "EPOCH", "TARGET-EPOCH", "COORDINATOR")
MEMBER_HEADERS = ("MEMBER", "CLIENT", "HOST", "EPOCH", "OWNS", "TARGET")
INSTANCE = "INSTANCE"  # a column behind the first one, of a group with static members
STATE, MEMBERS, OFFSETS = "state", "members", "offsets"
_VIEWS = {
    STATE: "the group itself, and whom it waits for",
    MEMBERS: "members and what they own",
    OFFSETS: "committed offsets and lag",
}
GROUP_FIELDS = ("assignor", "group_epoch", "assignment_epoch")
MEMBER_FIELDS = (
    *("member_id", "instance_id", "client_id", "client_host", "member_epoch", "assignment"),
    "target_assignment",
)
OFFSET_FIELDS = (
    *("topic", "partition", "committed_offset", "leader_epoch", "metadata", "end_offset", "lag"),
    "member_id",
)
OFFSET_HEADERS = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER")
LAG_TIME = "LAG-TIME"  # a column before the last one, on request


class _ClusterAnswer(NamedTuple):
    """What the cluster says. `listings` is None unless all groups were asked for."""

    listings: "Listings | None"
    skipped: "list[GroupListing]"
    described: "Outcomes[str, GroupDescription]"
    offsets: "Outcomes[str, GroupOffsets]"
    ends: Mapping[Any, Any]
    times: TimeLags | None = None  # None unless they were asked for


class DescribeGroups(AdminCommand):
    """`kohort groups describe`."""

    help: ClassVar[str] = "show members, what they own, committed offsets and lag"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort groups describe billing",
        "kohort groups describe --all --format json",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("groups", nargs="*", metavar="GROUP", type=name, help="a group id")
        parser.add_argument("--all", action="store_true", help="describe every group")
        for view, what in _VIEWS.items():
            parser.add_argument(f"--{view}", action="store_true", help=f"only {what} (and others)")
        parser.add_argument(
            "--totals", action="store_true", help="the lag of each topic, and of the group"
        )
        add_lag_seconds(parser)

    def mistake(self, args: Namespace) -> str | None:
        if args.groups and args.all:
            return f"groups describe: {args.groups[0]!r} and --all are given, expected one of them"
        if not (args.groups or args.all):
            return "groups describe: nothing says which groups, expected group ids or --all"
        return None

    async def ask(self, admin: "AdminClient", args: Namespace, output: Output) -> _ClusterAnswer:
        from kohort.client.admin import Outcomes

        listings, ids = None, list(dict.fromkeys(args.groups))
        skipped: list[GroupListing] = []
        if args.all:
            listings = await admin.list_groups()
            ids = [listing.group_id for listing in listings if listing.type in DESCRIBABLE]
            skipped = [listing for listing in listings if listing.type not in DESCRIBABLE]
        output.doing = f"describing {counted(len(ids), 'group')}"
        described = await admin.describe_groups(ids)
        if OFFSETS not in _views(args):
            return _ClusterAnswer(listings, skipped, described, Outcomes({}), {})
        output.doing = f"fetching the committed offsets of {counted(len(ids), 'group')}"
        offsets = await admin.list_group_offsets(list(described.succeeded))
        partitions = _partitions(described, offsets)
        output.doing = f"looking up the ends of {counted(len(partitions), 'partition')}"
        ends = await admin.end_offsets(partitions)
        found = dict(ends.items())
        times = None
        if args.lag_seconds:
            output.doing = f"reading a record of {counted(len(partitions), 'partition')}"
            times = await time_lags_of(admin, offsets, found)
        return _ClusterAnswer(listings, skipped, described, offsets, found, times)

    def show(self, answer: _ClusterAnswer, args: Namespace, output: Output) -> int:
        views = _views(args)
        listings, skipped, described, offsets, ends, times = answer
        code = OK if listings is None else complain_of_missing(listings)
        code = max(code, complain_of("group", described), complain_of("offsets of group", offsets))
        for listing in skipped:
            complain(f"group {listing.group_id} is a {listing.type} group, which is listed only")
        committed = offsets.succeeded
        shown = [
            _GroupView(group, committed.get(group.group_id, {}), ends, views, times)
            for group in described.succeeded.values()
        ]
        code = max(code, complain_of_times(times or {}))
        for group in shown:
            code = max(code, group.complain())
        if not output.is_table:
            errors = [
                {"group_id": name, **error_fields(error)}
                for outcomes in (described, offsets)
                for name, error in outcomes.failed.items()
            ]
            nested, columns = _nested(views, with_times=times is not None)
            output.rows(
                "groups",
                (group.fields() for group in shown),
                ("group_id", "type", "state", *columns),
                nested=nested,
                errors=[*([] if listings is None else missing_groups(listings)), *errors],
                skipped=[
                    {"group_id": listing.group_id, "type": listing.type} for listing in skipped
                ],
            )
        else:
            for index, group in enumerate(shown):
                if index:
                    output.line()
                group.show(output)
                if args.totals:
                    group.show_totals(output)
        return code


def _views(args: Namespace) -> frozenset[str]:
    """The views that are asked for; all of them where none is."""
    views = {view for view in _VIEWS if getattr(args, view)} or {*_VIEWS}
    return frozenset(views | {OFFSETS} if args.totals or args.lag_seconds else views)


def add_lag_seconds(parser: ArgumentParser) -> None:
    """The argument that adds the lag in seconds, which takes a record of each partition."""
    parser.add_argument(
        "--lag-seconds",
        action="store_true",
        help="also for how long the next record to read has been there, by its own timestamp",
    )


def complain_of_times(times: TimeLags) -> int:
    """A line for each partition whose record could not be read, and the exit code."""
    code = OK
    for place, error in failed_times(times):
        complain(f"{place[0]}:{place[1]}: lag in seconds: {reason(error)}")
        code = FAILED
    return code


def _nested(
    views: frozenset[str], *, with_times: bool = False
) -> tuple[str | None, tuple[str, ...]]:
    """What has a line of its own in CSV, under which name, and its columns."""
    if OFFSETS in views:
        return OFFSETS, (*OFFSET_FIELDS, *(TIME_FIELDS if with_times else ()), *ERROR_FIELDS)
    return (MEMBERS, MEMBER_FIELDS) if MEMBERS in views else (None, GROUP_FIELDS)


def _partitions(
    described: "Outcomes[str, GroupDescription]", offsets: "Outcomes[str, GroupOffsets]"
) -> "list[tuple[str, int]]":
    """Every partition that has an offset or an owner, once."""
    owned = (place for group in described.succeeded.values() for place in owned_by(group))
    committed = (partition for group in offsets.succeeded.values() for partition in group)
    return sorted({*owned, *committed})


class _GroupView:
    """A described group with its offsets, in the two formats. `ends` is of all partitions."""

    def __init__(
        self,
        group: "GroupDescription",
        committed: Mapping[Any, Any],
        ends: Mapping[Any, Any],
        views: frozenset[str],
        times: TimeLags | None = None,
    ) -> None:
        self._group = group
        self._times = times
        self._views = views
        self._blocking = blocking_members(group)
        self._committed = committed
        self._ends = ends
        self._owners = {
            (topic, index): member.member_id
            for member in group.members
            for topic, indexes in (member.assignment or {}).items()
            for index in indexes
        }
        self._partitions: list[tuple[str, int]] = (
            sorted({*self._committed, *self._owners}) if OFFSETS in views else []
        )
        self._rows: list[tuple[Any, Any, Any]] = [
            (partition, committed.get(partition), ends.get(partition))
            for partition in self._partitions
        ]

    def complain(self) -> int:
        """A line for each partition whose offset or end could not be found out."""
        failed = [
            (partition, what, found)
            for partition, committed, end in self._rows
            if isinstance(committed, ApiError) or isinstance(end, ApiError)
            for what, found in (("committed offset", committed), ("end offset", end))
            if isinstance(found, ApiError)
        ]
        for partition, what, found in failed:
            name = f"group {self._group.group_id}, {partition[0]}:{partition[1]}"
            complain(f"{name}: {what}: {reason(found)}")
        return FAILED if failed else OK

    def show(self, output: Output) -> None:
        group = self._group
        output.table(
            GROUP_HEADERS,
            [
                (
                    name_text(group.group_id),
                    group.type,
                    group.state,
                    group.assignor,
                    group.group_epoch,
                    group.assignment_epoch,
                    f"{group.coordinator_id} ({group.coordinator_host}:{group.coordinator_port})",
                )
            ],
            spare=("TARGET-EPOCH", "COORDINATOR", "EPOCH", "ASSIGNOR", "TYPE"),
        )
        if group.client_side is not None:
            output.line(_client_side_text(group.client_side))
        for one in self._blocking:
            output.line(f"waits: {one.text(group.assignment_epoch)}")
        if group.members and MEMBERS in self._views:
            output.line()
            headers: tuple[str, ...] = MEMBER_HEADERS
            rows = [_member_row(member) for member in group.members]
            if any(member.instance_id is not None for member in group.members):
                headers = _with_second(headers, INSTANCE)
                rows = [
                    _with_second(row, member.instance_id)
                    for row, member in zip(rows, group.members, strict=True)
                ]
            output.table(headers, rows, spare=("HOST", "TARGET", "EPOCH", "CLIENT"))
        if self._partitions:
            output.line()
            output.table(
                OFFSET_HEADERS
                if self._times is None
                else (*OFFSET_HEADERS[:-1], LAG_TIME, OFFSET_HEADERS[-1]),
                [self._offset_row(*row) for row in self._rows],
                spare=("MEMBER", "END", "COMMITTED"),
            )

    def show_totals(self, output: Output) -> None:
        """The lag of each topic, and of all together."""
        topics: dict[str, dict[Any, Any]] = {}
        for partition in self._partitions:
            topics.setdefault(partition[0], {})[partition] = self._committed.get(partition)
        output.line()
        for topic, offsets in topics.items():
            owned = [place for place in self._owners if place[0] == topic]
            lag = group_lag(offsets, self._ends, owned)
            output.line(f"{topic}: {counted(len(offsets), 'partition')}, {lag.sentence}")
        lag = group_lag(self._committed, self._ends, self._owners)
        times = ""
        if self._times is not None:
            text = time_text(group_time_lag(self._committed, self._ends, self._times))
            times = "" if text is None else f", in time {text}"
        output.line(f"group {name_text(self._group.group_id)}: {lag.sentence}{times}")

    def _offset_row(self, partition: Any, committed: Any, end: Any) -> tuple[Cell, ...]:
        at, last = offset_of(committed), offset_of(end)
        lag = None if at is None or last is None else last - at
        times: tuple[Cell, ...] = ()
        if self._times is not None:
            times = (time_text(time_lag(partition, committed, end, self._times)),)
        return (*partition, at, last, lag, *times, self._owners.get(partition))

    def fields(self) -> dict[str, Any]:
        group = self._group
        return {
            "group_id": group.group_id,
            "type": group.type,
            "state": group.state,
            "protocol_type": group.protocol_type,
            "assignor": group.assignor,
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            "coordinator": {
                "node": group.coordinator_id,
                "host": group.coordinator_host,
                "port": group.coordinator_port,
            },
            **({"client_side": _plain(group.client_side)} if group.client_side else {}),
            **({"waits_for": [one.fields for one in self._blocking]} if self._blocking else {}),
            "members": [_member_fields(member) for member in group.members],
            **(
                {
                    "offsets": [self._offset_fields(*row) for row in self._rows],
                    "uncommitted_partitions": group_lag(
                        self._committed, self._ends, self._owners
                    ).uncommitted,
                }
                if OFFSETS in self._views
                else {}
            ),
        }

    def _offset_fields(self, partition: Any, committed: Any, end: Any) -> dict[str, Any]:
        at, last = offset_of(committed), offset_of(end)
        known = None if at is None else committed
        fields = {
            "topic": partition[0],
            "partition": partition[1],
            "committed_offset": at,
            "leader_epoch": known.leader_epoch if known else None,
            "metadata": known.metadata if known else None,
            "end_offset": last,
            "lag": None if at is None or last is None else last - at,
        }
        if self._times is not None:
            fields |= time_fields(time_lag(partition, committed, end, self._times))
        fields["member_id"] = self._owners.get(partition)
        for outcome in (committed, end):
            if isinstance(outcome, ApiError):
                return fields | error_fields(outcome)
        return fields


def _member_row(member: "MemberDescription") -> tuple[Cell, ...]:
    return (
        member.member_id,
        member.client_id,
        member.client_host.removeprefix("/"),
        member.member_epoch,
        partitions_text(member.assignment),
        partitions_text(member.target_assignment),
    )


def _with_second(row: tuple[T, ...], cell: T) -> tuple[T, ...]:
    return (row[0], cell, *row[1:])


def _member_fields(member: "MemberDescription") -> dict[str, Any]:
    """The fields of a member. A payload that is not a consumer's is shown in hexadecimal."""
    unreadable = member.assignment is None and member.assignment_bytes
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "type": member.type,
        "member_epoch": member.member_epoch,
        "subscribed_topics": member.subscribed_topics,
        "subscribed_regex": member.subscribed_regex,
        "assignment": member.assignment,
        "target_assignment": member.target_assignment,
        **({"assignment_bytes": member.assignment_bytes.hex()} if unreadable else {}),
        **_client_side_fields(member),
    }


def _client_side_text(side: "ClientSide") -> str:
    """A line on who computes, and how that went."""
    parts = [f"the broker computes, since {side.why}"] if side.why else ["members compute"]
    if side.computing_member is not None:
        parts = [f"member {side.computing_member} computes by {side.selected}"]
    if side.last_reason:
        parts.append(f"last reason {side.last_reason}")
    if side.last_error:
        parts.append(
            f"whose assignor has failed last (error {side.last_error}): all keep what they had"
        )
    return ", ".join(parts)


def _client_side_fields(member: "MemberDescription") -> dict[str, Any]:
    """What a member that offers assignors has more than others."""
    found = {
        "client_assignors": [_plain(assignor) for assignor in member.client_assignors] or None,
        "attachment": _plain(member.attachment),
        "target_attachment": _plain(member.target_attachment),
    }
    return {name: value for name, value in found.items() if value is not None}


def _plain(view: Any) -> dict[str, Any] | None:
    """The fields of a view, bytes in hexadecimal."""
    if view is None:
        return None
    return {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in asdict(view).items()
    }
