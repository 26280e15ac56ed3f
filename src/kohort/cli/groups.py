"""`kohort groups`: list, describe and delete consumer groups of any cluster."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.command import (
    FAILED,
    OK,
    USAGE,
    AdminCommand,
    Command,
    complain,
    complain_about,
    complain_of,
    error_fields,
    name,
    reason,
    words,
)
from kohort.cli.render import Cell, Output, partitions_text
from kohort.errors import ApiError
from kohort.terms import GroupState, GroupType

if TYPE_CHECKING:
    from kohort.client.admin import (
        AdminClient,
        FoundOffset,
        GroupDescription,
        GroupOffsets,
        Listings,
        MemberDescription,
        Outcomes,
        TopicPartition,
    )

DESCRIBABLE = (None, GroupType.CLASSIC, GroupType.CONSUMER)
OFFSET_HEADERS = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER")


class ListGroups(AdminCommand):
    """`kohort groups list`."""

    help: ClassVar[str] = "list groups, all or by state and type"

    def arguments(self, parser: ArgumentParser) -> None:
        states, types = [one.value for one in GroupState], [one.value for one in GroupType]
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

    async def run(self, admin: "AdminClient", args: Namespace, output: Output) -> int:
        listings = await admin.list_groups(states=args.state, types=args.type)
        if output.as_json:
            groups = [
                {
                    "group_id": one.group_id,
                    "type": one.type,
                    "state": one.state,
                    "protocol_type": one.protocol_type,
                }
                for one in listings
            ]
            output.json({"groups": groups, "errors": _node_errors(listings)})
        else:
            output.table(
                ("GROUP", "TYPE", "STATE", "PROTOCOL"),
                ((one.group_id, one.type, one.state, one.protocol_type) for one in listings),
            )
        return _complain_of_nodes(listings)


def _node_errors(listings: "Listings") -> list[dict[str, Any]]:
    return [{"node": node, **error_fields(error)} for node, error in listings.errors.items()]


def _complain_of_nodes(listings: "Listings") -> int:
    for node, error in listings.errors.items():
        complain(f"the groups of node {node} are missing: {reason(error)}")
    return FAILED if listings.errors else OK


class DescribeGroups(AdminCommand):
    """`kohort groups describe`."""

    help: ClassVar[str] = "show members, what they own, committed offsets and lag"

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("groups", nargs="*", metavar="GROUP", type=name, help="a group id")
        parser.add_argument("--all", action="store_true", help="describe every group")

    async def run(self, admin: "AdminClient", args: Namespace, output: Output) -> int:
        if bool(args.groups) == args.all:
            complain("groups describe: expected group ids or --all, one of the two")
            return USAGE
        code, ids, skipped = OK, list(dict.fromkeys(args.groups)), []
        node_errors: list[dict[str, Any]] = []
        if args.all:
            listings = await admin.list_groups()
            code, node_errors = _complain_of_nodes(listings), _node_errors(listings)
            ids = [one.group_id for one in listings if one.type in DESCRIBABLE]
            skipped = [one for one in listings if one.type not in DESCRIBABLE]
        output.doing = f"describing {len(ids)} groups"
        described = await admin.describe_groups(ids)
        output.doing = f"fetching the committed offsets of {len(ids)} groups"
        offsets = await admin.list_group_offsets(dict.fromkeys(described.succeeded))
        partitions = _partitions(described, offsets)
        output.doing = f"looking up the ends of {len(partitions)} partitions"
        ends = await admin.end_offsets(partitions)

        code = max(code, complain_of("group", described), complain_of("offsets of group", offsets))
        for one in skipped:
            complain(f"group {one.group_id} is a {one.type} group, which is listed only")
        shown = [_Shown(group, offsets, ends) for group in described.succeeded.values()]
        for group in shown:
            code = max(code, group.complain())
        if output.as_json:
            errors = [
                {"group_id": name, **error_fields(error)}
                for outcomes in (described, offsets)
                for name, error in outcomes.failed.items()
            ]
            output.json(
                {
                    "groups": [group.fields() for group in shown],
                    "errors": [*node_errors, *errors],
                    "skipped": [{"group_id": one.group_id, "type": one.type} for one in skipped],
                }
            )
        else:
            for index, group in enumerate(shown):
                if index:
                    output.line()
                group.show(output)
        return code


def _partitions(
    described: "Outcomes[str, GroupDescription]", offsets: "Outcomes[str, GroupOffsets]"
) -> "list[tuple[str, int]]":
    """Every partition that has an offset or an owner, once."""
    owned = (
        (topic, index)
        for group in described.succeeded.values()
        for member in group.members
        for topic, indexes in (member.assignment or {}).items()
        for index in indexes
    )
    committed = (one for group in offsets.succeeded.values() for one in group)
    return sorted({*owned, *committed})


class _Shown:
    """A described group with its offsets, in the two formats."""

    def __init__(
        self,
        group: "GroupDescription",
        offsets: "Outcomes[str, GroupOffsets]",
        ends: "Outcomes[TopicPartition, FoundOffset]",
    ) -> None:
        self._group = group
        self._committed: Mapping[Any, Any] = offsets.succeeded.get(group.group_id, {})
        self._owners = {
            (topic, index): member.member_id
            for member in group.members
            for topic, indexes in (member.assignment or {}).items()
            for index in indexes
        }
        self._ends: Mapping[Any, Any] = dict(ends.items())
        self._partitions: list[tuple[str, int]] = sorted({*self._committed, *self._owners})

    def complain(self) -> int:
        """A line for each partition of which something could not be found out."""
        code = OK
        for partition, committed, end in self._rows():
            name = f"group {self._group.group_id}, {partition[0]}:{partition[1]}"
            for what, found in (("committed offset", committed), ("end offset", end)):
                if isinstance(found, ApiError):
                    complain(f"{name}: {what}: {reason(found)}")
                    code = FAILED
        return code

    def _rows(self) -> list[tuple[Any, Any, Any]]:
        return [(one, self._committed.get(one), self._ends.get(one)) for one in self._partitions]

    def show(self, output: Output) -> None:
        group = self._group
        output.table(
            ("GROUP", "TYPE", "STATE", "ASSIGNOR", "EPOCH", "TARGET-EPOCH", "COORDINATOR"),
            [
                (
                    group.group_id,
                    group.type,
                    group.state,
                    group.assignor,
                    group.group_epoch,
                    group.assignment_epoch,
                    f"{group.coordinator_id} ({group.coordinator_host}:{group.coordinator_port})",
                )
            ],
        )
        if group.members:
            output.line()
            output.table(
                ("MEMBER", "CLIENT", "HOST", "EPOCH", "OWNS", "TARGET"),
                [_member_row(member) for member in group.members],
            )
        if self._partitions:
            output.line()
            output.table(OFFSET_HEADERS, [self._offset_row(*row) for row in self._rows()])

    def _offset_row(self, partition: Any, committed: Any, end: Any) -> tuple[Cell, ...]:
        return (
            *partition,
            _offset_of(committed),
            _offset_of(end),
            _lag(committed, end),
            self._owners.get(partition),
        )

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
            "members": [_member_fields(member) for member in group.members],
            "offsets": [self._offset_fields(*row) for row in self._rows()],
        }

    def _offset_fields(self, partition: Any, committed: Any, end: Any) -> dict[str, Any]:
        errors = [one for one in (committed, end) if isinstance(one, ApiError)]
        known = committed if not isinstance(committed, ApiError) else None
        return {
            "topic": partition[0],
            "partition": partition[1],
            "committed_offset": _offset_of(committed),
            "leader_epoch": known.leader_epoch if known else None,
            "metadata": known.metadata if known else None,
            "end_offset": _offset_of(end),
            "lag": _lag(committed, end),
            "member_id": self._owners.get(partition),
            **(error_fields(errors[0]) if errors else {}),
        }


def _offset_of(found: Any) -> int | None:
    if found is None or isinstance(found, ApiError):
        return None
    offset: int | None = found.offset
    return offset


def _lag(committed: Any, end: Any) -> int | None:
    """Records that the group has not read; below zero when it committed beyond the end."""
    at, last = _offset_of(committed), _offset_of(end)
    return None if at is None or last is None else last - at


def _member_row(member: "MemberDescription") -> tuple[Cell, ...]:
    return (
        member.member_id,
        member.client_id,
        member.client_host.removeprefix("/"),
        member.member_epoch,
        partitions_text(member.assignment),
        partitions_text(member.target_assignment),
    )


def _member_fields(member: "MemberDescription") -> dict[str, Any]:
    """What is not a consumer's payload is given as it came, in hexadecimal."""
    foreign = member.assignment is None and member.assignment_bytes
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
        **({"assignment_bytes": member.assignment_bytes.hex()} if foreign else {}),
    }


class DeleteGroups(AdminCommand):
    """`kohort groups delete`."""

    help: ClassVar[str] = "delete groups without members, and their committed offsets"

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("groups", nargs="*", metavar="GROUP", type=name, help="a group id")
        parser.add_argument(
            "--from",
            dest="file",
            metavar="FILE",
            help="the groups of a file that nothing speaks against: the output of `kohort pipeline "
            "show deletable --format json`, or a group id in each line; - for stdin. Each is "
            "looked at again: it must be empty, and must not have committed since",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would be deleted, delete nothing"
        )

    async def run(self, admin: "AdminClient", args: Namespace, output: Output) -> int:
        if bool(args.groups) == (args.file is not None):
            complain("groups delete: expected group ids or --from, one of the two")
            return USAGE
        if args.file is not None:
            return await _delete_from(admin, args, output)
        ids = list(dict.fromkeys(args.groups))
        output.doing = (
            f"looking at {len(ids)} groups" if args.dry_run else f"deleting {len(ids)} groups"
        )
        if args.dry_run:
            reasons = await _reasons_against(admin, ids)
        else:
            outcomes = await admin.delete_groups(ids)
            reasons = {
                group_id: error if isinstance(error, ApiError) else None
                for group_id, error in outcomes.items()
            }
        done = "would be deleted" if args.dry_run else "deleted"
        failed = "would fail" if args.dry_run else "failed"
        if output.as_json:
            results = [
                {
                    "group_id": group_id,
                    "result": failed if error else done,
                    **(error_fields(error) if error else {}),
                }
                for group_id, error in reasons.items()
            ]
            output.json({"dry_run": args.dry_run, "groups": results})
        else:
            output.table(
                ("GROUP", "RESULT"),
                ((group_id, failed if error else done) for group_id, error in reasons.items()),
            )
        for group_id, error in reasons.items():
            if error:
                complain_about("group", group_id, error)
        return FAILED if any(reasons.values()) else OK


async def _delete_from(admin: "AdminClient", args: Namespace, output: Output) -> int:
    """Look again at the groups of a file, and delete those which are as the file knows them."""
    from kohort.cli.candidates import Kept, kept, read_candidates  # noqa: PLC0415  (start-up time)

    candidates = read_candidates(args.file)
    output.doing = f"looking at {len(candidates)} groups"
    results: dict[str, Kept | None] = await kept(admin, candidates)
    ids = [group_id for group_id, found in results.items() if found is None]
    if not args.dry_run:
        output.doing = f"deleting {len(ids)} groups"
        for group_id, error in (await admin.delete_groups(ids)).failed.items():
            results[group_id] = Kept("failed", reason(error), is_failure=True)
    done = "would be deleted" if args.dry_run else "deleted"
    if output.as_json:
        rows = [
            {"group_id": group_id, "result": done}
            if found is None
            else {"group_id": group_id, "result": found.result, "reason": found.why}
            for group_id, found in results.items()
        ]
        output.json({"dry_run": args.dry_run, "groups": rows})
    else:
        output.table(
            ("GROUP", "RESULT"),
            (
                (group_id, done if found is None else found.result)
                for group_id, found in results.items()
            ),
        )
    failures = [one for one in results.items() if one[1] is not None and one[1].is_failure]
    for group_id, found in results.items():
        if found is not None:
            complain(f"group {group_id}: {found.why}")
    return FAILED if failures else OK


async def _reasons_against(admin: "AdminClient", ids: list[str]) -> "dict[str, ApiError | None]":
    """Why each group could not be deleted now, None where it could (KIP-229: only when Empty)."""
    from kohort.errors import ErrorCode  # noqa: PLC0415

    described = await admin.describe_groups(ids)
    reasons: dict[str, ApiError | None] = {}
    for group_id, outcome in described.items():
        if isinstance(outcome, ApiError):
            reasons[group_id] = outcome
        elif outcome.state == GroupState.EMPTY:
            reasons[group_id] = None
        else:
            reasons[group_id] = ApiError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {group_id} is {outcome.state} with {len(outcome.members)} members, "
                "expected Empty",
            )
    return reasons


COMMANDS: dict[str, Command] = {
    "list": ListGroups(),
    "describe": DescribeGroups(),
    "delete": DeleteGroups(),
}
