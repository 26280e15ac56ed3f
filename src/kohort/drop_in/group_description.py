# SPDX-License-Identifier: Apache-2.0
"""`kafka-consumer-groups --describe`: offsets and lag, members, or the state of groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kohort.drop_in.group_listing import consumer_groups
from kohort.drop_in.java import JavaError, illegal, in_future, of_code, of_error
from kohort.drop_in.options import Options
from kohort.drop_in.orders import by_name, sorted_names
from kohort.drop_in.running import ask, error_line, line, no_node
from kohort.drop_in.tables import MISSING, filled, shown, widest
from kohort.errors import ApiError, ErrorCode
from kohort.terms import CONSUMER_PROTOCOLS, GroupState, GroupType, TopicPartition

if TYPE_CHECKING:  # the client is imported when a tool asks
    from kohort.client.admin import AdminClient
    from kohort.client.admin.group_views import (
        Assignment,
        CommittedOffset,
        GroupDescription,
        MemberDescription,
    )

_LEAST = 15
_REBALANCING = (
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.ASSIGNING,
    GroupState.RECONCILING,
)
Committed = Mapping[TopicPartition, "CommittedOffset"]


class _Descriptions(NamedTuple):
    """What was asked for of groups: of each its offsets, and the ends of their partitions."""

    groups: "dict[str, GroupDescription]"
    committed: "dict[str, Committed]"
    ends: dict[TopicPartition, int | None]


def describe_groups(options: Options, timeout_ms: int) -> bool:
    """Raises JavaError."""
    with_offsets = not options.any_of("members", "state")

    async def asked(admin: "AdminClient") -> _Descriptions:
        names = options.values("group")
        if options.has("all-groups"):
            names = [group.group_id for group in await consumer_groups(admin)]
        groups = await described(admin, names)
        if not with_offsets:
            return _Descriptions(groups, {}, {})
        committed = await committed_offsets(admin, groups)
        return _Descriptions(groups, committed, await _ends(admin, groups, committed))

    found = ask(options, asked, timeout_ms=timeout_ms, unreachable=unreachable)
    verbose = options.has("verbose")
    for name in sorted_names(found.groups):
        group = found.groups[name]
        if options.has("members"):
            _print_members(group, verbose=verbose)
        elif options.has("state"):
            _print_state(group, verbose=verbose)
        else:
            _print_offsets(group, found, verbose=verbose)
    return True


async def described(admin: "AdminClient", names: Iterable[str]) -> "dict[str, GroupDescription]":
    """Groups of consumers by their ids. Raises JavaError for the first that is none."""
    outcomes = await admin.describe_groups(list(names))
    groups = {}
    errors = outcomes.failed
    for name in by_name(outcomes):
        if not name:  # our client would look for the offsets of an old consumer without a name
            raise in_future(of_code(ErrorCode.INVALID_GROUP_ID))
        if name in errors:
            raise in_future(of_error(errors[name]))
        group = outcomes[name]
        if group.protocol_type not in CONSUMER_PROTOCOLS:
            text = f"GroupId {name} is not a consumer group ({group.protocol_type})."
            raise in_future(illegal(text))
        groups[name] = group
    return groups


async def committed_offsets(admin: "AdminClient", names: Iterable[str]) -> "dict[str, Committed]":
    """The offsets of groups; partitions whose offset cannot be told have none. Raises JavaError."""
    outcomes = await admin.list_group_offsets(list(names))
    errors = outcomes.failed
    for name in by_name(errors):
        raise in_future(of_error(errors[name]))
    return {
        name: {
            partition: offset
            for partition, offset in offsets.items()
            if offset is not None and not isinstance(offset, ApiError)
        }
        for name, offsets in outcomes.succeeded.items()
    }


async def _ends(
    admin: "AdminClient",
    groups: "Mapping[str, GroupDescription]",
    committed: "dict[str, Committed]",
) -> dict[TopicPartition, int | None]:
    """The ends of all partitions that are shown. One that has none now is shown without."""
    wanted = {partition: None for offsets in committed.values() for partition in offsets}
    for group in groups.values():
        for member in group.members:
            wanted |= dict.fromkeys(_partitions(member.assignment))
    if not wanted:
        return {}
    found = await admin.end_offsets(wanted)
    return {partition: found.offset for partition, found in found.succeeded.items()}


def unreachable(why: JavaError | None) -> JavaError:
    """What the Java tools say where no broker answers when a group is described."""
    return in_future(no_node("describeConsumerGroups(api=FIND_COORDINATOR)", why))


def _has_rows(group: "GroupDescription", rows: int) -> bool:
    """Whether there is something to show. A state in which a group does not stay is told first."""
    if group.state == GroupState.DEAD:
        line(f"Error: Consumer group '{group.group_id}' does not exist.", before="\n")
    elif group.state == GroupState.EMPTY:
        error_line(f"Consumer group '{group.group_id}' has no active members.", before="\n")
    elif group.state in _REBALANCING:
        error_line(f"Warning: Consumer group '{group.group_id}' is rebalancing.", before="\n")
    return rows > 0 and group.state != GroupState.DEAD


def _print_offsets(group: "GroupDescription", found: _Descriptions, *, verbose: bool) -> None:
    rows = _offset_rows(group, found.committed.get(group.group_id, {}), found.ends)
    if not _has_rows(group, len(rows)):
        return
    heads = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET"]
    heads += ["LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    wide = {column: widest(_LEAST, {row[column] for row in rows}) for column in (0, 1, 7, 8)}
    widths = [wide[0], wide[1], 10, 15, 15, 15, 15, wide[7], wide[8]]
    if not verbose:
        del widths[3]
    for row in [heads, *rows]:
        kept = row if verbose else row[:3] + row[4:]
        line(filled(kept, widths), before="\n", end="")
    line()


def _offset_rows(
    group: "GroupDescription", committed: Committed, ends: Mapping[TopicPartition, int | None]
) -> list[list[str]]:
    """The partitions of members, those with the most first, and then what no member has."""
    owners: list[tuple[list[TopicPartition], list[str]]] = []
    assigned: set[TopicPartition] = set()
    for member in sorted(group.members, key=lambda each: -len(_partitions(each.assignment))):
        partitions = _partitions(member.assignment)
        assigned |= set(partitions)
        owners.append((partitions, [member.member_id, member.client_host, member.client_id]))
    owners.append(([each for each in committed if each not in assigned], [MISSING] * 3))
    rows = []
    for partitions, who in owners:
        for partition in sorted(partitions):
            offset, end = committed.get(partition), ends.get(partition)
            epoch, at = (None, None) if offset is None else (offset.leader_epoch, offset.offset)
            lag = None if at is None or end is None else end - at
            cells = map(shown, (partition.partition, epoch, at, end, lag))
            rows.append([group.group_id, partition.topic, *cells, *who])
    return rows


def _partitions(assignment: "Assignment | None") -> list[TopicPartition]:
    return [
        TopicPartition(topic, index)
        for topic, indexes in (assignment or {}).items()
        for index in indexes
    ]


def _print_members(group: "GroupDescription", *, verbose: bool) -> None:
    members = group.members if _has_rows(group, len(group.members)) else ()
    rows = [_member_row(group, member) for member in members]
    kinds = {member.type for member in members} if group.type is GroupType.CONSUMER else set()
    heads = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    heads += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    least = [15, 15, 17, 15, 15, 15, 15, 20, 15, 20]
    variable = (0, 1, 2, 3, 4, 7, 9)
    widths = [
        widest(width, (row[column] for row in rows)) if column in variable else width
        for column, width in enumerate(least)
    ]
    shown_columns = [0, 1, *([2] if any(row[2] for row in rows) else []), 3, 4, 5]
    more = [6, 7, 8, 9] if verbose else []
    upgraded = verbose and len(kinds) > 1

    def print_row(row: Sequence[str], last: str) -> None:
        first = filled([row[column] for column in shown_columns], _of(widths, shown_columns))
        rest = filled([row[column] for column in more], _of(widths, more))
        line(f"{first} {rest}{f' {last}' if upgraded else ''}")

    line()
    print_row(heads, "UPGRADED")
    for row, member in zip(rows, members, strict=True):
        print_row(row, str(member.type is GroupType.CONSUMER).lower())


def _of(widths: Sequence[int], columns: Sequence[int]) -> list[int]:
    return [widths[column] for column in columns]


def _member_row(group: "GroupDescription", member: "MemberDescription") -> list[str]:
    return [
        group.group_id,
        member.member_id,
        member.instance_id or "",
        member.client_host,
        member.client_id,
        str(len(_partitions(member.assignment))),
        shown(member.member_epoch),
        _assignment_text(member.assignment),
        shown(group.assignment_epoch),
        _assignment_text(member.target_assignment),
    ]


def _assignment_text(assignment: "Assignment | None") -> str:
    texts = (
        f"{topic}:{','.join(map(str, sorted(indexes)))}"
        for topic, indexes in (assignment or {}).items()
        if indexes
    )
    return ";".join(sorted_names(texts)) or MISSING


def _print_state(group: "GroupDescription", *, verbose: bool) -> None:
    if not _has_rows(group, 1):
        return
    where = f"{group.coordinator_host}:{group.coordinator_port}  ({group.coordinator_id})"
    heads = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    cells = [group.group_id, where, group.assignor or MISSING, str(group.state)]
    widths = [widest(_LEAST, [group.group_id]), widest(25, [where]), 20, 20]
    if verbose:
        heads += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells += [shown(group.group_epoch), shown(group.assignment_epoch)]
        widths += [15, 25]
    line(filled([*heads, "#MEMBERS"], widths), before="\n")
    line(filled([*cells, str(len(group.members))], widths))
