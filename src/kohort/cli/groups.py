"""`kohort groups`: list, describe, configure and delete consumer groups of any cluster."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from kohort.cli.cluster_commands import AdminCommand, add_yes
from kohort.cli.command import (
    ERROR_FIELDS,
    FAILED,
    OK,
    Commands,
    complain,
    complain_about,
    complain_of_missing,
    error_fields,
    is_unsure,
    missing_groups,
    name,
    reason,
    with_doubt,
    words,
)
from kohort.cli.consequences import of_groups, which
from kohort.cli.describe import DescribeGroups
from kohort.cli.group_configs import ConfigureGroups
from kohort.cli.members import COMMANDS as MEMBERS
from kohort.cli.render import Output, name_text
from kohort.errors import ApiError, ErrorCode
from kohort.figures import counted
from kohort.terms import GroupState, GroupType

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, Listings


class ListGroups(AdminCommand):
    """`kohort groups list`."""

    help: ClassVar[str] = "list groups, all or by state and type"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort groups list --state empty",
        "kohort groups list --type consumer --format json",
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

    async def ask(self, admin: "AdminClient", args: Namespace, _output: Output) -> "Listings":
        return await admin.list_groups(states=args.state, types=args.type)

    def show(self, answer: "Listings", _args: Namespace, output: Output) -> int:
        if not output.is_table:
            columns = ("group_id", "type", "state", "protocol_type")
            rows = ({name: getattr(listing, name) for name in columns} for listing in answer)
            output.rows("groups", rows, columns, errors=missing_groups(answer))
        else:
            output.table(
                ("GROUP", "TYPE", "STATE", "PROTOCOL"),
                (
                    (
                        name_text(listing.group_id),
                        listing.type,
                        listing.state,
                        listing.protocol_type,
                    )
                    for listing in answer
                ),
                spare=("PROTOCOL", "TYPE"),
            )
        return complain_of_missing(answer)


class Fate(NamedTuple):
    """The outcome for a group that was to be deleted. `error` is the protocol's, `why` our own."""

    result: str
    error: ApiError | None = None
    why: str | None = None
    is_failure: bool = False

    @property
    def fields(self) -> dict[str, str]:
        fields = {"result": self.result}
        if self.error is not None:
            fields |= error_fields(self.error)
        return fields if self.why is None else {**fields, "reason": self.why}


class DeleteGroups(AdminCommand):
    """`kohort groups delete`."""

    help: ClassVar[str] = "delete groups without members, and their committed offsets"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort groups delete reports audit --dry-run",
        "kohort groups delete --from old.json --yes",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("groups", nargs="*", metavar="GROUP", type=name, help="a group id")
        parser.add_argument(
            "--from",
            dest="file",
            metavar="FILE",
            help="delete the groups that a file names: the output of `kohort pipeline show "
            "deletable --format json` or of `kohort groups list --format json`, or a group id in "
            "each line; - for stdin. Each group is looked at again first: it must be empty, and "
            "must not have committed since",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would be deleted, delete nothing"
        )
        add_yes(parser)

    def mistake(self, args: Namespace) -> str | None:
        if args.groups and args.file is not None:
            return f"groups delete: {args.groups[0]!r} and --from are given, expected one of them"
        if not args.groups and args.file is None:
            return "groups delete: nothing says which groups, expected group ids or --from"
        return None

    def question(self, args: Namespace) -> str | None:
        if args.dry_run or args.yes:
            return None
        if args.file is not None:
            return f"Delete the groups of {args.file}, and their committed offsets,"
        ids = list(dict.fromkeys(args.groups))
        whose = "its" if len(ids) == 1 else "their"
        return f"Delete {which(ids, 'group')} and {whose} committed offsets"

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        from kohort.cli.candidates import read_candidates

        ids = args.groups
        if args.file is not None:
            ids = [one.group_id for one in read_candidates(args.file) if one.against is None]
        return await of_groups(admin, list(dict.fromkeys(ids)))

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> Mapping[str, Fate]:
        done = "would be deleted" if args.dry_run else "deleted"
        if args.file is not None:
            return await _delete_from(admin, args, done, output)
        ids = list(dict.fromkeys(args.groups))
        if args.dry_run:
            output.doing = f"looking at {len(ids)} groups"
            reasons = await _reasons_against(admin, ids)
        else:
            with output.changing(f"deleting {len(ids)} groups"):
                reasons = dict((await admin.delete_groups(ids)).items())
        failed = "would fail" if args.dry_run else "failed"
        return {
            group_id: Fate(done)
            if error is None
            else Fate(failed, error, is_failure=True)
            if args.dry_run
            else _not_deleted(error)
            for group_id, error in reasons.items()
        }

    def show(self, answer: Mapping[str, Fate], args: Namespace, output: Output) -> int:
        if not output.is_table:
            rows = ({"group_id": group_id, **fate.fields} for group_id, fate in answer.items())
            columns = ("group_id", "result", *ERROR_FIELDS, "reason")
            output.rows("groups", rows, columns, dry_run=args.dry_run)
        else:
            output.table(
                ("GROUP", "RESULT"),
                ((name_text(group_id), fate.result) for group_id, fate in answer.items()),
            )
        for group_id, fate in answer.items():
            if fate.error is not None:
                complain_about("group", group_id, fate.error)
            elif fate.why is not None:
                complain(f"group {group_id}: {fate.why}")
        return FAILED if any(fate.is_failure for fate in answer.values()) else OK


async def _delete_from(
    admin: "AdminClient", args: Namespace, done: str, output: Output
) -> dict[str, Fate]:
    """Look again at the groups of a file, and delete those that are still as in the file."""
    from kohort.cli.candidates import read_candidates, reasons_to_skip

    candidates = read_candidates(args.file)
    output.doing = f"looking at {len(candidates)} groups"
    fates = {
        group_id: Fate(done)
        if found is None
        else Fate(found.result, why=found.why, is_failure=found.is_failure)
        for group_id, found in (await reasons_to_skip(admin, candidates)).items()
    }
    if not args.dry_run:
        ids = [group_id for group_id, fate in fates.items() if fate.why is None]
        with output.changing(f"deleting {len(ids)} groups"):
            deleted = await admin.delete_groups(ids)
        for group_id, error in deleted.failed.items():
            fate = _not_deleted(error)
            fates[group_id] = Fate(fate.result, why=reason(fate.error or error), is_failure=True)
    return fates


def _not_deleted(error: ApiError) -> Fate:
    """What became of a group whose deletion is not confirmed."""
    result = "unknown" if is_unsure(error) else "failed"
    return Fate(result, with_doubt(error, "deleted"), is_failure=True)


async def _reasons_against(admin: "AdminClient", ids: Iterable[str]) -> dict[str, ApiError | None]:
    """Why each group could not be deleted now, None where it could (KIP-229: only when Empty)."""
    from kohort.cli.candidates import of_other_types

    described = dict((await admin.describe_groups(ids)).items())
    others = await of_other_types(admin, described)
    reasons: dict[str, ApiError | None] = {}
    for group_id, outcome in described.items():
        other = others.get(group_id)
        if isinstance(other, ApiError):
            reasons[group_id] = other
        elif other is not None:
            reasons[group_id] = _busy(group_id, other.state, "")
        elif isinstance(outcome, ApiError):
            reasons[group_id] = outcome
        else:
            members = f" with {counted(len(outcome.members), 'member')}"
            reasons[group_id] = _busy(group_id, outcome.state, members)
    return reasons


def _busy(group_id: str, state: str | None, members: str) -> ApiError | None:
    if state == GroupState.EMPTY:
        return None
    text = f"group {group_id} is {state}{members}, expected Empty"
    return ApiError(ErrorCode.NON_EMPTY_GROUP, text)


COMMANDS: Commands = {
    "list": ListGroups(),
    "describe": DescribeGroups(),
    "delete": DeleteGroups(),
    "config": ConfigureGroups(),
    "members": MEMBERS,
}
