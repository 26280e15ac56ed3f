# SPDX-License-Identifier: Apache-2.0
"""`kohort groups`: list, describe, configure and delete consumer groups of any cluster."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from kohort.cli.cluster_commands import ChangeCommand
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
    name,
    reason,
    with_doubt,
)
from kohort.cli.consequences import of_groups, which
from kohort.cli.describe import DescribeGroups
from kohort.cli.group_configs import ConfigureGroups
from kohort.cli.list_groups import ListGroups, add_match, is_match
from kohort.cli.members import COMMANDS as MEMBERS
from kohort.cli.offset_plans import place_text
from kohort.cli.render import Output, name_text
from kohort.cli.second_look import committed_since
from kohort.cli.watch import WatchGroups
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.figures import counted
from kohort.terms import GroupState

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient


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


class DeleteGroups(ChangeCommand):
    """`kohort groups delete`."""

    help: ClassVar[str] = "delete groups without members, and their committed offsets"
    dry_run: ClassVar[str] = "say what would be deleted, delete nothing"
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
        parser.add_argument("--all", action="store_true", help="every group that is Empty")
        add_match(parser, "every Empty group")
        parser.set_defaults(chosen=None, refused={}, offsets={})  # what stood above the question

    def mistake(self, args: Namespace) -> str | None:
        given = {
            repr(args.groups[0]) if args.groups else "": bool(args.groups),
            "--from": args.file is not None,
            "--all": args.all,
            "--match": args.match is not None,
        }
        chosen = [name for name, is_given in given.items() if is_given]
        if not chosen:
            return (
                "groups delete: nothing says which groups, expected group ids, --from, --match or "
                "--all"
            )
        if len(chosen) > 1:
            return f"groups delete: {' and '.join(chosen)} are given, expected one of them"
        return None

    def question(self, args: Namespace) -> str | None:
        if args.file is not None:
            return f"Delete the groups of {args.file}, and their committed offsets,"
        if args.all or args.match is not None:
            return "Delete these groups and their committed offsets"
        ids = list(dict.fromkeys(args.groups))
        whose = "its" if len(ids) == 1 else "their"
        return f"Delete {which(ids, 'group')} and {whose} committed offsets"

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        from kohort.cli.candidates import read_candidates

        if args.file is not None:
            ids = [one.group_id for one in read_candidates(args.file) if one.against is None]
            return await of_groups(admin, list(dict.fromkeys(ids)))
        reasons = await _reasons_against(admin, await _chosen(admin, args))
        args.refused = {group: error for group, error in reasons.items() if error is not None}
        args.chosen = [group_id for group_id in reasons if group_id not in args.refused]
        if args.chosen:
            args.offsets = (await admin.list_group_offsets(args.chosen)).succeeded
        lines = await of_groups(admin, args.chosen)
        if lines and args.refused:
            lines += [f"{which(args.refused, 'group')} cannot be deleted, and will be named"]
        return lines

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> Mapping[str, Fate]:
        done = "would be deleted" if args.dry_run else "deleted"
        if args.file is not None:
            return await _delete_from(admin, args, done, output)
        ids = await _chosen(admin, args) if args.chosen is None else args.chosen
        if args.dry_run:
            output.doing = f"looking at {counted(len(ids), 'group')}"
            reasons = await _reasons_against(admin, ids)
        else:
            left = await _changed_since(admin, args)
            ids = [group_id for group_id in ids if group_id not in left]
            with output.changing(f"deleting {counted(len(ids), 'group')}"):
                deleted = dict((await admin.delete_groups(ids)).items())
            reasons = {**deleted, **left, **args.refused}
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


async def _chosen(admin: "AdminClient", args: Namespace) -> list[str]:
    """The groups that the arguments name, or all of those that are Empty. Raises KohortError where
    a part of the cluster does not say which it has.
    """
    if args.groups:
        return list(dict.fromkeys(args.groups))
    listings = await admin.list_groups()
    if complain_of_missing(listings):
        raise KohortError("nothing is deleted: it is not known which groups there are")
    found = [one for one in listings if is_match(args, one.group_id)]
    empty = [one.group_id for one in found if one.state in (None, GroupState.EMPTY)]
    if len(empty) < len(found):
        complain(f"{counted(len(found) - len(empty), 'group')} with members left as they are")
    return empty


async def _changed_since(admin: "AdminClient", args: Namespace) -> dict[str, ApiError]:
    """The groups that have committed since a person was shown them, each with one of its places."""
    if not args.offsets:
        return {}
    found = await committed_since(admin, args.offsets, elsewhere=True)
    return {
        group_id: ApiError(error.code, f"{place_text(place)}: {error.message}")
        for group_id, moved in found.items()
        for place, error in [next(iter(moved.items()))]
    }


async def _delete_from(
    admin: "AdminClient", args: Namespace, done: str, output: Output
) -> dict[str, Fate]:
    """Look again at the groups of a file, and delete those that are still as in the file."""
    from kohort.cli.candidates import read_candidates, reasons_to_skip

    candidates = read_candidates(args.file)
    output.doing = f"looking at {counted(len(candidates), 'group')}"
    fates = {
        group_id: Fate(done)
        if found is None
        else Fate(found.result, why=found.why, is_failure=found.is_failure)
        for group_id, found in (await reasons_to_skip(admin, candidates)).items()
    }
    if not args.dry_run:
        ids = [group_id for group_id, fate in fates.items() if fate.why is None]
        with output.changing(f"deleting {counted(len(ids), 'group')}"):
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
    "watch": WatchGroups(),
    "delete": DeleteGroups(),
    "config": ConfigureGroups(),
    "members": MEMBERS,
}
