# SPDX-License-Identifier: Apache-2.0
"""`kohort groups list`: the groups of a cluster, and on request their members and lag.

A listing alone is one request to each broker. Members and lag are looked up only where a column, a
filter or an order needs them, for all groups together.
"""

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from kohort.cli.arguments import duration
from kohort.cli.cluster_commands import AdminCommand
from kohort.cli.command import (
    FAILED,
    complain,
    complain_of,
    complain_of_missing,
    error_fields,
    missing_groups,
    name,
    reason,
    words,
)
from kohort.cli.describe import DESCRIBABLE, LAG_TIME, add_lag_seconds, complain_of_times
from kohort.cli.lags import (
    TIME_FIELDS,
    GroupLag,
    TimeLags,
    ends_of,
    group_lag,
    group_time_lag,
    owned_by,
    time_fields,
    time_lags_of,
    time_text,
    uncommitted_text,
)
from kohort.cli.render import Cell, Output, name_text
from kohort.figures import Bound, Figure, counted
from kohort.terms import CONSUMER_PROTOCOL, NO_PROTOCOL, GroupState, GroupType

if TYPE_CHECKING:
    from kohort.client.admin import (
        AdminClient,
        GroupDescription,
        GroupListing,
        Listings,
        Outcomes,
    )

COLUMNS = ("group_id", "type", "state", "protocol_type")
UNCOMMITTED = "UNCOMMITTED"  # a column behind the lag, where a group has such partitions
_LAG_FIELDS = ("lag", "lag_unknown_partitions", "lag_uncommitted_partitions")
_COMMITS = "commits of group"
ORDERS = ("group", "state", "members", "lag", "lag-seconds")


class _ListedGroup(NamedTuple):
    """A group with what was asked for beside it; None where it was not, or cannot be known."""

    listing: "GroupListing"
    members: int | None
    lag: GroupLag | None
    time_lag: Figure | None = None


class _Answer(NamedTuple):
    listings: "Listings"
    groups: list[_ListedGroup]
    failures: "Sequence[tuple[str, Outcomes[str, Any]]]"
    times: TimeLags


class ListGroups(AdminCommand):
    """`kohort groups list`."""

    help: ClassVar[str] = "list groups, all or by state, type, name and lag"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort groups list --state empty",
        "kohort groups list --type consumer --format json",
        "kohort groups list --only-lagging --sort lag --members",
        "kohort groups list --state empty --idle 30d",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        states, types = [state.value for state in GroupState], [type_.value for type_ in GroupType]
        parser.add_argument(
            "--state",
            action="extend",
            type=words("group state", states),
            metavar="STATE[,STATE]",
            help=f"only groups in this state: {', '.join(states)}, in any case (KIP-518)",
        )
        parser.add_argument(
            "--type",
            action="extend",
            type=words("group type", types),
            metavar="TYPE[,TYPE]",
            help=f"only groups of this type: {', '.join(types)} (KIP-848)",
        )
        parser.add_argument(
            "--protocol",
            action="append",
            type=name,
            metavar="PROTOCOL",
            help="only groups of this protocol type, as connect; consumer has those with offsets "
            "alone, too; may be repeated",
        )
        add_match(parser)
        parser.add_argument(
            "--idle",
            type=duration,
            metavar="DURATION",
            help="only groups without a commit for so long, as 7d, by what the log of groups has",
        )
        parser.add_argument("--members", action="store_true", help="how many members each has")
        parser.add_argument(
            "--lag", action="store_true", help="how many records each has not read, of all topics"
        )
        add_lag_seconds(parser)
        parser.add_argument(
            "--only-lagging", action="store_true", help="only groups with such records"
        )
        parser.add_argument(
            "--sort",
            choices=ORDERS,
            default=ORDERS[0],
            help="by name (default), state, or the most members, lag, or lag in seconds first",
        )
        parser.add_argument(
            "--totals", action="store_true", help="a last line with the sums of all rows"
        )

    def mistake(self, args: Namespace) -> None:
        """None; an order by the lag in seconds asks for it."""
        args.lag_seconds |= args.sort == "lag-seconds"

    async def ask(self, admin: "AdminClient", args: Namespace, output: Output) -> _Answer:
        protocols = args.protocol and [*args.protocol]
        if protocols and CONSUMER_PROTOCOL in protocols:
            protocols.append(NO_PROTOCOL)
        listings = await admin.list_groups(states=args.state, types=args.type, protocols=protocols)
        found = [one for one in listings if is_match(args, one.group_id)]
        ids = [one.group_id for one in found if one.type in DESCRIBABLE]
        failures: list[tuple[str, Outcomes[str, Any]]] = []
        if args.idle is not None:
            output.doing = f"reading the commits of {counted(len(ids), 'group')}"
            commits = await _commits_since(admin, ids, args.idle)
            failures.append((_COMMITS, commits))
            ids = [one for one, at_ms in commits.succeeded.items() if at_ms is None]
            idle = frozenset(ids)
            found = [one for one in found if one.group_id in idle]
        described = await _described(admin, args, found, output)
        failures.append(("group", described))
        members = {one: len(group.members) for one, group in described.succeeded.items()}
        lags: dict[str, GroupLag] = {}
        times: TimeLags = {}
        time_lags: dict[str, Figure] = {}
        if _asks_lag(args):
            output.doing = f"looking up the lag of {counted(len(ids), 'group')}"
            offsets = await admin.list_group_offsets(ids)
            failures.append(("offsets of group", offsets))
            ends = await ends_of(admin, offsets)
            committed = offsets.succeeded
            owned = {one: owned_by(group) for one, group in described.succeeded.items()}
            owned |= {one.group_id: [] for one in found if one.state == GroupState.EMPTY}
            lags = {one: group_lag(some, ends, owned.get(one)) for one, some in committed.items()}
            if args.lag_seconds:
                output.doing = f"reading a record of {counted(len(ends), 'partition')}"
                times = await time_lags_of(admin, offsets, ends)
                time_lags = {
                    one: group_time_lag(some, ends, times) for one, some in committed.items()
                }
        groups = [
            _ListedGroup(
                one,
                members.get(one.group_id),
                lags.get(one.group_id),
                time_lags.get(one.group_id),
            )
            for one in found
        ]
        if args.only_lagging:
            groups = [one for one in groups if _may_lag(one)]
        return _Answer(listings, sorted(groups, key=_ORDERS[args.sort]), failures, times)

    def show(self, answer: _Answer, args: Namespace, output: Output) -> int:
        with_members = args.members or args.sort == "members"
        with_lag = _asks_lag(args)
        if not output.is_table:
            columns = [*COLUMNS]
            columns += ["members"] if with_members else []
            columns += _LAG_FIELDS if with_lag else []
            columns += TIME_FIELDS if args.lag_seconds else []
            documents = (_fields(one, columns) for one in answer.groups)
            errors = [
                {"group_id": group_id, **error_fields(error)}
                for _, found in answer.failures
                for group_id, error in found.failed.items()
            ]
            errors = [*missing_groups(answer.listings), *errors]
            output.rows("groups", documents, columns, errors=errors)
        else:
            headers = ["GROUP", "TYPE", "STATE", "PROTOCOL"]
            headers += ["MEMBERS"] if with_members else []
            headers += ["LAG"] if with_lag else []
            rows = [
                _row(one, with_members=with_members, with_lag=with_lag) for one in answer.groups
            ]
            if any(one.lag is not None and one.lag.uncommitted for one in answer.groups):
                headers.append(UNCOMMITTED)
                for row, one in zip(rows, answer.groups, strict=True):
                    row.append(None if one.lag is None else one.lag.uncommitted)
            if args.lag_seconds:
                headers.append(LAG_TIME)
                for row, one in zip(rows, answer.groups, strict=True):
                    row.append(None if one.time_lag is None else time_text(one.time_lag))
            output.table(
                headers,
                rows,
                spare=("PROTOCOL", "TYPE", UNCOMMITTED),
            )
            if args.totals:
                output.line(_totals(answer.groups, with_members=with_members, with_lag=with_lag))
        code = max(complain_of_missing(answer.listings), complain_of_times(answer.times))
        return max([code, *(_complain_of(what, found) for what, found in answer.failures)])


async def _described(
    admin: "AdminClient", args: Namespace, found: "Sequence[GroupListing]", output: Output
) -> "Outcomes[str, GroupDescription]":
    """The groups whose members are asked for, or what these own: a group that is Empty has none."""
    from kohort.client.admin import Outcomes

    asks_members = args.members or args.sort == "members"
    ids = [
        one.group_id
        for one in found
        if one.type in DESCRIBABLE
        and (asks_members or (_asks_lag(args) and one.state != GroupState.EMPTY))
    ]
    if not ids:
        return Outcomes({})
    output.doing = f"describing {counted(len(ids), 'group')}"
    return await admin.describe_groups(ids)


async def _commits_since(
    admin: "AdminClient", ids: Sequence[str], idle_ms: int
) -> "Outcomes[str, int | None]":
    """The last commit of each group in the last so many milliseconds; None where there is none."""
    import time

    from kohort.client.admin import Outcomes

    if not ids:
        return Outcomes({})
    since = max(0, time.time_ns() // 1_000_000 - idle_ms)
    return await admin.commit_times(ids, since=since)


def _complain_of(what: str, found: "Outcomes[str, Any]") -> int:
    """A line for each failure; only one for commits, which are read for all groups together."""
    if what != _COMMITS or not found.failed:
        return complain_of(what, found)
    why = reason(next(iter(found.failed.values())))
    complain(f"whether {counted(len(found.failed), 'group')} may be idle is not known: {why}")
    return FAILED


def _asks_lag(args: Namespace) -> bool:
    return bool(args.lag or args.lag_seconds or args.only_lagging or args.sort == "lag")


def add_match(parser: ArgumentParser, which: str = "only groups") -> None:
    """The argument that chooses groups by their names."""
    parser.add_argument(
        "--match",
        type=_expression,
        metavar="REGEX",
        help=f"{which} in whose name this expression is found",
    )


def _expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(name(text))
    except (re.error, OverflowError, RecursionError) as error:
        raise ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None


def is_match(args: Namespace, group_id: str) -> bool:
    """Whether the name of a group is one that the arguments choose."""
    return args.match is None or args.match.search(group_id) is not None


def _may_lag(group: _ListedGroup) -> bool:
    """Whether a group has records to read, or may have: where nobody knows, it is shown."""
    if group.lag is None:
        return group.listing.type in DESCRIBABLE
    return bool(group.lag.records or group.lag.unknown or group.lag.uncommitted)


def _fields(group: _ListedGroup, columns: Sequence[str]) -> dict[str, Any]:
    lag = group.lag
    more = {
        "members": group.members,
        "lag": None if lag is None else lag.value,
        "lag_unknown_partitions": None if lag is None else lag.unknown,
        "lag_uncommitted_partitions": None if lag is None else lag.uncommitted,
        **time_fields(group.time_lag or Figure(None, Bound.UNKNOWN)),
    }
    return {
        column: more[column] if column in more else getattr(group.listing, column)
        for column in columns
    }


def _row(group: _ListedGroup, *, with_members: bool, with_lag: bool) -> list[Cell]:
    listing, lag = group.listing, group.lag
    row: list[Cell] = [
        name_text(listing.group_id),
        *(listing.type, listing.state, listing.protocol_type),
    ]
    if with_members:
        row.append(group.members)
    if with_lag:  # a number stands at the right, where no row has a word
        row.append(None if lag is None else lag.text if lag.unknown else lag.value)
    return row


def _seconds(group: _ListedGroup) -> float:
    return (group.time_lag.value if group.time_lag else None) or 0.0


def _totals(groups: Sequence[_ListedGroup], *, with_members: bool, with_lag: bool) -> str:
    """`3 groups: 2 Stable, 1 Empty; 7 members; at least 1,200 records behind`."""
    states = Counter(str(group.listing.state or "of unknown state") for group in groups)
    parts = [counted(len(groups), "group")]
    if states:
        parts[0] += ": " + ", ".join(f"{count:,} {state}" for state, count in states.most_common())
    if with_members:
        known = [group.members for group in groups if group.members is not None]
        bound = "" if len(known) == len(groups) else "at least "
        parts.append(bound + counted(sum(known), "member"))
    if with_lag:
        lags = [group.lag for group in groups if group.lag is not None]
        unknown = len(groups) - len(lags) + sum(lag.unknown > 0 for lag in lags)
        behind = counted(sum(lag.records for lag in lags), "record") + " behind"
        if unknown:
            behind = f"at least {behind}, {counted(unknown, 'group')} not all known"
        parts.append(behind + uncommitted_text(sum(lag.uncommitted or 0 for lag in lags)))
    return "; ".join(parts)


_ORDERS: Mapping[str, Callable[[_ListedGroup], Any]] = {
    "group": lambda group: group.listing.group_id,
    "state": lambda group: (group.listing.state or "", group.listing.group_id),
    "members": lambda group: (-(group.members or 0), group.listing.group_id),
    "lag": lambda group: (-(group.lag.records if group.lag else 0), group.listing.group_id),
    "lag-seconds": lambda group: (-_seconds(group), group.listing.group_id),
}
