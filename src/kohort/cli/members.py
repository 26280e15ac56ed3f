# SPDX-License-Identifier: Apache-2.0
"""`kohort groups members`: members of a group, removed by an operator."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.cluster_commands import ChangeCommand
from kohort.cli.command import (
    ERROR_FIELDS,
    FAILED,
    OK,
    Commands,
    complain_about,
    error_fields,
    is_unsure,
    name,
    with_doubt,
)
from kohort.cli.render import Output, columns, name_text, partitions_text
from kohort.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, MemberDescription, MemberToRemove

    Fates = Mapping[MemberToRemove, ApiError | None]


class RemoveMembers(ChangeCommand):
    """`kohort groups members remove`."""

    help: ClassVar[str] = "remove members from a group, so that others get their partitions"
    dry_run: ClassVar[str] = "say which members would be removed, and remove none"
    notes: ClassVar[str] = (
        "A consumer that still runs joins again. This is for those that are gone, and whose place "
        "is kept: static members, and sessions that are long."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort groups members remove billing --instance-id host-7 --dry-run",
        "kohort groups members remove billing --member-id app-1-3f0c --reason 'host-7 is gone'",
        "kohort groups members remove billing --all --yes",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("group", metavar="GROUP", type=name, help="a group id")
        for option, what in (("--instance-id", "a static member"), ("--member-id", "a member")):
            parser.add_argument(
                option,
                action="append",
                type=name,
                default=[],
                metavar="ID",
                help=f"{what}; may be repeated",
            )
        parser.add_argument("--all", action="store_true", help="all members that it has now")
        parser.add_argument("--reason", metavar="TEXT", help="what the broker's log says")
        parser.set_defaults(found=None)

    def mistake(self, args: Namespace) -> str | None:
        if bool(args.instance_id or args.member_id) == args.all:
            return "groups members remove: expected --instance-id, --member-id or --all"
        if "" in (*args.instance_id, *args.member_id):
            return "groups members remove: an id is empty, expected one of a member"
        from kohort.client.admin.member_removal import checked_reason

        try:
            checked_reason(args.reason)
        except ValueError as error:
            return f"groups members remove: {error}"
        return None

    def question(self, args: Namespace) -> str:
        return f"Remove these members from group {name_text(args.group)}"

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        args.found = found = await _meant(admin, args)
        if not found:
            return ()
        return columns(
            ("MEMBER", "INSTANCE", "CLIENT", "HOST", "OWNS"),
            [
                (
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host.removeprefix("/"),
                    partitions_text(member.assignment),
                )
                for member in found
            ],
        )

    async def ask(self, admin: "AdminClient", args: Namespace, output: Output) -> "Fates":
        from kohort.client.admin import MemberToRemove

        named = [
            *(MemberToRemove(instance_id=instance) for instance in args.instance_id),
            *(MemberToRemove(member) for member in args.member_id),
        ]
        wanted = None if args.all else list(dict.fromkeys(named))
        missing: dict[MemberToRemove, ApiError | None] = {}
        if args.dry_run:
            args.found = await _meant(admin, args)
        if args.found is not None:  # a yes is for those that stood above the question
            shown = [MemberToRemove(one.member_id, one.instance_id) for one in args.found]
            if wanted is None:
                wanted = shown
            missing = {one: _unknown(one) for one in wanted if not _is_among(one, shown)}
            wanted = [one for one in wanted if one not in missing]
        if wanted == []:
            return missing
        if args.dry_run:
            return dict.fromkeys(wanted or ()) | missing
        with output.changing(f"removing members of group {args.group}"):
            removed = await admin.remove_members(args.group, wanted, reason=args.reason)
        fates = {
            member: None if error is None else with_doubt(error, "removed")
            for member, error in removed.items()
            if isinstance(member, MemberToRemove)
        }
        return fates | missing

    def show(self, answer: "Fates", args: Namespace, output: Output) -> int:
        rows = [_fields(args, member, error) for member, error in answer.items()]
        if not output.is_table:
            columns = ("group_id", "member_id", "instance_id", "result", *ERROR_FIELDS)
            output.rows("members", rows, columns, dry_run=args.dry_run)
        elif rows:
            output.table(
                ("MEMBER", "INSTANCE", "RESULT"),
                [(row["member_id"], row["instance_id"], row["result"]) for row in rows],
            )
        else:
            output.line("no members")
        failed = {member: error for member, error in answer.items() if error is not None}
        for member, error in failed.items():
            complain_about(f"group {name_text(args.group)},", member, error)
        return FAILED if failed else OK


async def _meant(admin: "AdminClient", args: Namespace) -> "list[MemberDescription]":
    """The members of the group that the arguments name. Raises ApiError."""
    group = (await admin.describe_groups(args.group))[args.group]
    return [member for member in group.members if _is_meant(member, args)]


def _is_among(member: "MemberToRemove", shown: "Sequence[MemberToRemove]") -> bool:
    return any(
        member == one
        or (not member.member_id and member.instance_id == one.instance_id)
        or (member.instance_id is None and member.member_id == one.member_id)
        for one in shown
    )


def _unknown(member: "MemberToRemove") -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member} is not in the group")


def _is_meant(member: "MemberDescription", args: Namespace) -> bool:
    known = member.instance_id in args.instance_id or member.member_id in args.member_id
    return args.all or known


def _fields(args: Namespace, member: "MemberToRemove", error: ApiError | None) -> dict[str, Any]:
    unsure = "unknown" if is_unsure(error) else "failed"
    done, failed = ("would be removed", "would fail") if args.dry_run else ("removed", unsure)
    return {
        "group_id": args.group,
        "member_id": member.member_id or None,
        "instance_id": member.instance_id,
        "result": done if error is None else failed,
        **({} if error is None else error_fields(error)),
    }


COMMANDS: Commands = {"remove": RemoveMembers()}
