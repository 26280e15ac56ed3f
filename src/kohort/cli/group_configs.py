"""`kohort groups config`: show and change the settings of groups."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, ClassVar

from kohort.cli.cluster_commands import AdminCommand
from kohort.cli.command import (
    ERROR_FIELDS,
    WrongCallError,
    complain_of,
    error_fields,
    name,
    pair,
    with_doubt,
)
from kohort.cli.render import Output
from kohort.errors import ApiError

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, GroupConfig, Outcomes


class ConfigureGroups(AdminCommand):
    """`kohort groups config`."""

    help: ClassVar[str] = "show the settings of groups, and change them"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort groups config billing",
        "kohort groups config billing --set consumer.session.timeout.ms=60000",
        "kohort groups config billing --unset consumer.session.timeout.ms",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("groups", nargs="+", metavar="GROUP", type=name, help="a group id")
        parser.add_argument(
            "--set",
            action="append",
            type=pair,
            default=[],
            metavar="NAME=VALUE",
            help="set this for the groups, in place of the broker's setting; may be repeated",
        )
        parser.add_argument(
            "--unset",
            action="append",
            type=name,
            default=[],
            metavar="NAME",
            help="let the broker's setting hold again; may be repeated",
        )

    def mistake(self, args: Namespace) -> str | None:
        keys = [key for key, _ in args.set]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            return f"groups config: {twice[0]} is in --set twice, expected once"
        both = [key for key, _ in args.set if key in args.unset]
        if both:
            return f"groups config: {both[0]} is in --set and in --unset, expected one"
        return None

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "Outcomes[str, dict[str, GroupConfig]]":
        """The settings after the changes. For a group that could not be changed it is the error."""
        from kohort.client.admin import Outcomes

        ids = list(dict.fromkeys(args.groups))
        changes = {**dict(args.set), **dict.fromkeys(args.unset)}
        refused: dict[str, ApiError] = {}
        if changes:
            await _check_names(admin, ids[0], args)
            with output.changing(f"changing the settings of {len(ids)} groups"):
                changed = await admin.alter_group_configs(dict.fromkeys(ids, changes))
            refused = {
                group_id: with_doubt(error, "changed") for group_id, error in changed.failed.items()
            }
        output.doing = f"reading the settings of {len(ids)} groups"
        left = [group_id for group_id in ids if group_id not in refused]
        found = await (_found_after(admin, left) if changes else _found(admin, left))
        return Outcomes({group_id: refused.get(group_id) or found[group_id] for group_id in ids})

    def show(
        self, answer: "Outcomes[str, dict[str, GroupConfig]]", _args: Namespace, output: Output
    ) -> int:
        if not output.is_table:
            rows = (
                {"group_id": group_id, **error_fields(outcome)}
                if isinstance(outcome, ApiError)
                else {
                    "group_id": group_id,
                    "configs": {
                        key: {"value": config.value, "own": config.own}
                        for key, config in outcome.items()
                    },
                }
                for group_id, outcome in answer.items()
            )
            output.rows("groups", rows, ("group_id", "configs", *ERROR_FIELDS))
        else:
            settings = [
                (group_id, key, config.value or "", "group" if config.own else "broker")
                for group_id, outcome in answer.items()
                if not isinstance(outcome, ApiError)
                for key, config in outcome.items()
            ]
            if settings:
                output.table(("GROUP", "SETTING", "VALUE", "SET FOR"), settings)
        return complain_of("group", answer)


async def _found(
    admin: "AdminClient", ids: list[str]
) -> "dict[str, dict[str, GroupConfig] | ApiError]":
    return dict((await admin.describe_group_configs(ids)).items()) if ids else {}


async def _found_after(
    admin: "AdminClient", ids: list[str]
) -> "dict[str, dict[str, GroupConfig] | ApiError]":
    """The settings of groups that have been changed. No error in reading them hides the change."""
    try:
        found = await _found(admin, ids)
    except ApiError as error:
        found = dict.fromkeys(ids, error)
    return {
        group_id: _unread(group_id, outcome) if isinstance(outcome, ApiError) else outcome
        for group_id, outcome in found.items()
    }


def _unread(group_id: str, error: ApiError) -> ApiError:
    why = error.message or error.code.name
    text = f"group {group_id} is changed, and its settings could not be read: {why}"
    return ApiError(error.code, text)


async def _check_names(admin: "AdminClient", group_id: str, args: Namespace) -> None:
    """Raises WrongCallError for a name that this cluster has no setting of. A cluster that cannot
    tell its settings is asked for the change all the same.
    """
    from difflib import get_close_matches

    known = (await admin.describe_group_configs(group_id)).succeeded.get(group_id)
    if known is None:
        return
    given = [("--set", key) for key, _ in args.set] + [("--unset", key) for key in args.unset]
    for option, key in given:
        if key not in known:
            near = get_close_matches(key, list(known), 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise WrongCallError(f"{option}: {key} is not a setting of groups; {hint}")
