# SPDX-License-Identifier: Apache-2.0
"""Commands that ask a cluster: how they reach it, their time limit, and asking apart from showing.

An answer is shown only after the event loop has ended: printing a long table never waits, so the
loop would hold back an interrupt until the last line.
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from kohort.cli.command import (
    USAGE,
    Command,
    WrongCallError,
    add_format,
    complain,
    decimal_or_none,
    is_unwritable,
    print_result,
    result_of,
    show_lost,
)
from kohort.cli.connection import (
    SHORT_VARIABLE,
    VARIABLE,
    Connection,
    Server,
    add_connection,
    connection_of,
)
from kohort.cli.render import Output, erase_progress, printable
from kohort.errors import ApiError, KohortError

if TYPE_CHECKING:  # the client is imported when a command runs: `--help` must not wait for it
    from kohort.client.admin import AdminClient
    from kohort.client.network.cluster import Cluster

T = TypeVar("T")

DEFAULT_TIMEOUT_S = 10.0
CLIENT_ID = "kohort-cli"


class ClusterCommand(Command):
    """A command that needs the address of a cluster."""

    asks_a_cluster: ClassVar[bool] = True

    def configure(self, parser: ArgumentParser) -> None:
        self.arguments(parser)
        add_connection(parser)
        parser.add_argument(
            "--timeout",
            metavar="SECONDS",
            type=_seconds,
            default=DEFAULT_TIMEOUT_S,
            help=f"how long one step may take (default {DEFAULT_TIMEOUT_S:g})",
        )

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare what this command takes besides the arguments of all."""


@contextmanager
def telling_origin(server: Server) -> Iterator[None]:
    """Adds to the error of a failed connection where the address was given, unless the command
    shows it.
    """
    try:
        yield
    except ApiError as error:
        if server.origin in (VARIABLE, SHORT_VARIABLE) and error.message.startswith(
            "cannot connect"
        ):
            error.message += f" ({server.origin} is {server.text})"
        raise


def connection_or_none(args: Namespace) -> Connection | None:
    """How the arguments reach the cluster; None, with a complaint, where they make no sense."""
    from kohort.client.settings import addresses_of

    try:
        connection = connection_of(args)
    except ValueError as error:
        complain(str(error))
        return None
    try:
        addresses_of(connection.server.text)
    except ValueError as error:
        complain(f"{connection.server.origin}: {error}")
        return None
    return connection


def cluster_of(connection: Connection) -> "Cluster":
    """The cluster, for the caller to close. It belongs to no event loop yet."""
    from kohort.client.network.cluster import Cluster
    from kohort.client.settings import addresses_of

    return Cluster(
        addresses_of(connection.server.text), client_id=CLIENT_ID, security=connection.security
    )


def admin_client(connection: Connection, args: Namespace) -> "AdminClient":
    """The admin client of a command. It serves one event loop. Raises ValueError."""
    from kohort.client.admin import AdminClient

    return AdminClient(
        connection.server.text,
        client_id=CLIENT_ID,
        timeout=args.timeout,
        security=connection.security,
    )


class AdminCommand(ClusterCommand):
    """A command that asks a cluster through the admin client, and then shows the answer."""

    def configure(self, parser: ArgumentParser) -> None:
        super().configure(parser)
        add_format(parser)

    def mistake(self, _args: Namespace) -> str | None:
        """What is wrong with arguments that are fine one by one; None if nothing is."""
        return None

    def is_allowed(self, _args: Namespace, _output: Output, _connection: Connection) -> bool:
        """Whether it may go on: what changes nothing always may."""
        return True

    async def ask(self, admin: "AdminClient", args: Namespace, output: Output) -> Any:
        """Ask the cluster; `show` gets the answer."""
        raise NotImplementedError

    def show(self, answer: Any, args: Namespace, output: Output) -> int:
        """Show what `ask` has found out; returns the exit code. Asks the cluster nothing."""
        raise NotImplementedError

    def main(self, args: Namespace) -> int:
        mistake = self.mistake(args)
        if mistake is not None:
            complain(mistake)
            return USAGE
        connection = connection_or_none(args)
        if connection is None:
            return USAGE
        server = connection.server

        try:
            admin_client(connection, args)
        except ValueError as error:
            complain(str(error))
            return USAGE

        def asked_and_shown(output: Output) -> int:
            with telling_origin(server):
                if not self.is_allowed(args, output, connection):
                    raise KohortError("nothing is changed: the answer was not yes")

                async def ask(admin: "AdminClient", args: Namespace) -> Any:
                    return await self.ask(admin, args, output)

                answer = result_of(_with(admin_client(connection, args), output, ask, args))
            try:
                return self.show(answer, args, output)
            except OSError as error:
                if not (output.has_changed and is_unwritable(error)):
                    raise
                return show_lost(lambda: self.show(answer, args, output), error, output)

        return print_result(asked_and_shown, args.format)


async def _with(
    admin: "AdminClient",
    output: Output,
    ask: "Callable[[AdminClient, Namespace], Awaitable[T]]",
    args: Namespace,
) -> T:
    from kohort.cli.progress import Progress

    async with Progress(output), admin:
        return await ask(admin, args)


class ChangeCommand(AdminCommand):
    """A command that changes the cluster. A person at a terminal is asked first; where nobody can
    be asked, what a person would be asked about needs `--yes`. `--dry-run` changes nothing, and
    needs no yes.
    """

    dry_run: ClassVar[str] = "say what would be changed, and change nothing"  # help of --dry-run
    asks_always: ClassVar[bool] = True
    """Whether each call without `--yes` has a question. Else the cluster is looked at first, and
    one that finds nothing to lose goes on unasked, also without a terminal.
    """

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help=self.dry_run)
        parser.add_argument(
            "--yes",
            "-y",
            action="store_true",
            help="do not ask first; without a terminal nothing is changed that would be asked "
            "about, unless this is given",
        )
        super().configure(parser)

    def question(self, _args: Namespace) -> str | None:
        """The question that a person is asked before it acts; None where these arguments change
        nothing that anybody could lose.
        """
        raise NotImplementedError

    async def consequences(self, _admin: "AdminClient", _args: Namespace) -> Sequence[str]:
        """What a yes to the question destroys: lines that stand above it. Where there is nothing to
        destroy there are none, and nobody is asked.
        """
        raise NotImplementedError

    def is_allowed(self, args: Namespace, output: Output, connection: Connection) -> bool:
        """Whether it need not be asked, or a person says yes. Raises WrongCallError where nobody is
        there who could.
        """
        question = None if args.dry_run or args.yes else self.question(args)
        if question is None:
            return True
        question = f"{question} at {connection.server.text}?"
        if self.asks_always and not is_person():
            raise _unasked(args, question)
        output.doing = "looking at what would be changed"
        admin = admin_client(connection, args)
        lines = result_of(_with(admin, output, self.consequences, args))
        if not lines:
            return True
        if not is_person():
            raise _unasked(args, question)
        return confirm(question, lines)


def _unasked(args: Namespace, question: str) -> WrongCallError:
    return WrongCallError(
        f'{args.prog.removeprefix("kohort ")}: nobody is at a terminal to be asked "{question}", '
        "expected --yes, or --dry-run"
    )


def is_person() -> bool:
    """Whether somebody is at a terminal, wherever stdout goes: the question is on stderr."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, before: Sequence[str] = ()) -> bool:
    """Whether a person who has read the lines before the question says yes. What was typed before
    that is no answer.
    """
    erase_progress()
    for line in before:
        sys.stderr.write(f"{printable(line)}\n")
    _forget_typed_ahead()
    sys.stderr.write(f"{printable(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _forget_typed_ahead() -> None:
    try:
        import termios
    except ImportError:  # Windows
        return
    with suppress(OSError, ValueError, termios.error):  # no terminal
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _seconds(text: str) -> float:
    seconds = decimal_or_none(text)
    if seconds is None or not 0 < seconds < 86_400:
        raise ArgumentTypeError(
            f"{text!r} is not a timeout, expected seconds above 0 and below 86400"
        )
    return seconds
