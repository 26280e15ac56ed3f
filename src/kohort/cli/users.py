# SPDX-License-Identifier: Apache-2.0
"""`kohort users`: the users who log in by SCRAM. The cluster keeps what is made of passwords."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, ClassVar

from kohort.cli.cluster_commands import AdminCommand, ChangeCommand
from kohort.cli.command import (
    ERROR_FIELDS,
    USAGE,
    Commands,
    chosen_name,
    complain,
    complain_of,
    error_fields,
    name,
    with_doubt,
)
from kohort.cli.connection import others_read, text_of
from kohort.cli.render import Output
from kohort.cli.second_look import changed_credentials
from kohort.errors import ApiError, ErrorCode
from kohort.security.names import SCRAM_SHA_512
from kohort.security.scram import (
    ITERATIONS_DEFAULT,
    ITERATIONS_LEAST,
    ITERATIONS_MOST,
    NUMBERS,
)
from kohort.user_files import SETTINGS_BYTES_MAX

if TYPE_CHECKING:
    from kohort.client.admin import (
        AdminClient,
        Outcomes,
        ScramCredential,
        ScramDeletion,
        ScramUpsertion,
    )

MECHANISMS = tuple(NUMBERS)
USUAL_MECHANISM = SCRAM_SHA_512


class ListUsers(AdminCommand):
    """`kohort users list`."""

    help: ClassVar[str] = "list users with credentials for SCRAM"
    notes: ClassVar[str] = (
        "Users of PLAIN are in the broker's sasl.jaas.config, those of OAUTHBEARER with the issuer "
        "of tokens, those of certificates with their authority: no cluster lists them."
    )
    examples: ClassVar[tuple[str, ...]] = ("kohort users list",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "users", nargs="*", metavar="USER", type=name, help="only these (default: all)"
        )

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "Outcomes[str, tuple[ScramCredential, ...]]":
        output.doing = "looking for users"
        return await admin.describe_user_scram_credentials(args.users or None)

    def show(
        self,
        answer: "Outcomes[str, tuple[ScramCredential, ...]]",
        _args: Namespace,
        output: Output,
    ) -> int:
        if not output.is_table:
            users = (
                {"user": user, **error_fields(found)}
                if isinstance(found, ApiError)
                else {"user": user, "credentials": [asdict(one) for one in found]}
                for user, found in answer.items()
            )
            columns = ("user", "mechanism", "iterations", *ERROR_FIELDS)
            output.rows("users", users, columns, nested="credentials")
        elif answer.succeeded:
            output.table(
                ("USER", "MECHANISM", "ITERATIONS"),
                (
                    (user, one.mechanism, one.iterations)
                    for user, found in answer.succeeded.items()
                    for one in found
                ),
            )
        elif not answer.failed:
            output.line("no users")
        return complain_of("user", answer)


class CreateUser(ChangeCommand):
    """`kohort users create`."""

    help: ClassVar[str] = "make a user of SCRAM, or give one another password"
    dry_run: ClassVar[str] = "say whether the user is new, and change nothing"
    asks_always: ClassVar[bool] = False  # a new user has no password to lose
    notes: ClassVar[str] = (
        "The password is read from the terminal, from a line of stdin, or from --password-file. It "
        "is salted here and not sent. Where the connection is plain text, what is sent instead is "
        "as good as the password to whoever sees it."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort users create alice",
        "kohort users create alice --password-file /run/secrets/alice --mechanism SCRAM-SHA-256",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.set_defaults(may_have_secret=True)
        parser.add_argument(
            "user", metavar="USER", type=chosen_name, help="the name to log in with"
        )
        parser.add_argument(
            "--password-file", metavar="FILE", help="a file whose first line is the password"
        )
        _add_mechanism(parser, f"may be repeated (default: {USUAL_MECHANISM})")
        parser.add_argument(
            "--iterations",
            type=_iterations,
            default=ITERATIONS_DEFAULT,
            metavar="N",
            help=f"how often a login hashes: {ITERATIONS_LEAST} to {ITERATIONS_MOST} "
            f"(default {ITERATIONS_DEFAULT})",
        )

    def main(self, args: Namespace) -> int:
        try:
            is_needed = not args.dry_run or args.password_file is not None
            args.password = _password(args) if is_needed else ""
        except ValueError as error:
            complain(f"users create: {error}")
            return USAGE
        return super().main(args)

    def question(self, _args: Namespace) -> str:
        return "Give this user another password"

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        return [f"user {args.user}: {mechanism}" for mechanism in await self._there(admin, args)]

    async def _there(self, admin: "AdminClient", args: Namespace) -> list[str]:
        """The mechanisms by which the user has a password already, of those that are meant. Raises
        ApiError where that cannot be looked up: a password is not replaced unseen.
        """
        found = await admin.describe_user_scram_credentials([args.user])
        for error in found.failed.values():
            if error.code is not ErrorCode.RESOURCE_NOT_FOUND:
                raise error
        wanted = args.mechanism or [USUAL_MECHANISM]
        there = [one.mechanism for credentials in found.succeeded.values() for one in credentials]
        return [mechanism for mechanism in there if mechanism in wanted]

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "Outcomes[str, None]":
        from kohort.client.admin import Outcomes, ScramUpsertion

        if args.dry_run:
            output.doing = "looking for the user"
            args.is_there = bool(await self._there(admin, args))
            return Outcomes({args.user: None})
        mechanisms = dict.fromkeys(args.mechanism or [USUAL_MECHANISM])
        with output.changing(f"making user {args.user}"):
            return await _changed(
                admin,
                [
                    [ScramUpsertion(args.user, args.password, mechanism, args.iterations)]
                    for mechanism in mechanisms
                ],
            )

    def show(self, answer: "Outcomes[str, None]", args: Namespace, output: Output) -> int:
        done = "replaced" if args.dry_run and args.is_there else "created"
        return _show_changed(answer, done, args, output)


class DeleteUsers(ChangeCommand):
    """`kohort users delete`."""

    help: ClassVar[str] = "take the credentials of users away"
    dry_run: ClassVar[str] = "say whose credentials would be deleted, and delete none"
    notes: ClassVar[str] = (
        "Connections of such a user stay until they have to authenticate again "
        "(connections.max.reauth.ms), and rules for the user stay, too: see kohort acls list."
    )
    examples: ClassVar[tuple[str, ...]] = ("kohort users delete alice --yes",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("users", nargs="+", metavar="USER", type=name, help="a user")
        _add_mechanism(parser, "may be repeated (default: all that the user has)")
        parser.set_defaults(found=None)  # what stood above the question

    def question(self, _args: Namespace) -> str:
        return "Delete these credentials"

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        args.found = await admin.describe_user_scram_credentials(args.users)
        return [
            f"user {user}: {one.mechanism}"
            for user, credentials in args.found.succeeded.items()
            for one in credentials
            if one.mechanism in (args.mechanism or MECHANISMS)
        ]

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "Outcomes[str, None]":
        from kohort.client.admin import Outcomes, ScramDeletion

        output.doing = "looking for users"
        found, left = args.found, {}
        if found is None:
            found = await admin.describe_user_scram_credentials(args.users)
        else:
            left = await changed_credentials(admin, found.succeeded)
        known = found.succeeded
        deletions = [
            [
                ScramDeletion(user, mechanism)
                for user, credentials in known.items()
                if user not in left
                and mechanism in (args.mechanism or [one.mechanism for one in credentials])
            ]
            for mechanism in MECHANISMS
        ]
        if args.dry_run:
            deleted = Outcomes(_could_be_deleted(found, deletions))
        else:
            with output.changing(f"deleting {len(found) - len(left)} users"):
                deleted = await _changed(admin, deletions)
        return Outcomes({**dict(deleted.items()), **_unnamed(found, args), **found.failed, **left})

    def show(self, answer: "Outcomes[str, None]", args: Namespace, output: Output) -> int:
        return _show_changed(answer, "deleted", args, output)


def _could_be_deleted(
    found: "Outcomes[str, tuple[ScramCredential, ...]]",
    deletions: "Sequence[Sequence[ScramDeletion]]",
) -> dict[str, ApiError | None]:
    """What the cluster would answer: it refuses to delete what a user does not have."""
    results: dict[str, ApiError | None] = {}
    for one in (deletion for some in deletions for deletion in some):
        has = any(credential.mechanism == one.mechanism for credential in found[one.user])
        text = f"user {one.user} has no credential of {one.mechanism}"
        error = None if has else ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
        results[one.user] = results.get(one.user) or error
    return results


def _unnamed(
    found: "Outcomes[str, tuple[ScramCredential, ...]]", args: Namespace
) -> dict[str, ApiError]:
    """A failure for each user who keeps a credential that no request of ours can name."""
    text = "a credential of a mechanism that Kohort does not know stays"
    return {
        user: ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text)
        for user, credentials in found.succeeded.items()
        if not args.mechanism and any(one.mechanism not in MECHANISMS for one in credentials)
    }


async def _changed(
    admin: "AdminClient", rounds: "Sequence[Sequence[ScramUpsertion | ScramDeletion]]"
) -> "Outcomes[str, None]":
    """The first failure of each user: a request takes one change for a user."""
    from kohort.client.admin import Outcomes

    results: dict[str, ApiError | None] = {}
    for changes in rounds:
        for user, error in (await admin.alter_user_scram_credentials(changes)).items():
            results[user] = results.get(user) or error
    return Outcomes(results)


def _show_changed(answer: "Outcomes[str, None]", word: str, args: Namespace, output: Output) -> int:
    from kohort.client.admin import Outcomes

    done, failed = (f"would be {word}", "would fail") if args.dry_run else (word, "failed")
    results = Outcomes(
        {
            user: None if error is None else error if args.dry_run else with_doubt(error, word)
            for user, error in answer.items()
        }
    )
    if not output.is_table:
        rows = (
            {"user": user, "result": done}
            if error is None
            else {"user": user, "result": failed, **error_fields(error)}
            for user, error in results.items()
        )
        columns = ("user", "result", *ERROR_FIELDS)
        output.rows("users", rows, columns, dry_run=args.dry_run)
    else:
        output.table(
            ("USER", "RESULT"),
            [(user, done if error is None else failed) for user, error in results.items()],
        )
    return complain_of("user", results)


def _add_mechanism(parser: ArgumentParser, text: str) -> None:
    parser.add_argument(
        "--mechanism", action="append", choices=MECHANISMS, help=f"for this mechanism; {text}"
    )


def _password(args: Namespace) -> str:
    """The password of a new user. Raises ValueError, which does not show it."""
    if args.password_file is not None:
        path = args.password_file
        text = text_of("--password-file", path)
        if others_read(path):
            complain(f"all users of this machine can read {path}: chmod 600")
    elif sys.stdin.isatty():
        text = _asked(args.user)
    else:
        text = sys.stdin.readline(SETTINGS_BYTES_MAX)
    password = text.partition("\n")[0].removesuffix("\r")  # splitlines() splits at more
    if not password:
        raise ValueError("the password is empty, expected one of at least a letter")
    return password


def _asked(user: str) -> str:
    """What a person types twice."""
    from getpass import getpass

    password = getpass(f"Password for {user}: ")
    if getpass("Again: ") != password:
        raise ValueError("the two passwords differ")
    return password


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit() and ITERATIONS_LEAST <= int(text) <= ITERATIONS_MOST):
        raise ArgumentTypeError(
            f"{text!r} is not a number of iterations, expected {ITERATIONS_LEAST} to "
            f"{ITERATIONS_MOST}"
        )
    return int(text)


COMMANDS: Commands = {
    "list": ListUsers(),
    "create": CreateUser(),
    "delete": DeleteUsers(),
}
