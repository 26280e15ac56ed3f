"""Commands that ask a cluster: its address, their time limit, and asking apart from showing.

The address may be given after the command, before it, or in the environment; the nearest wins. An
answer is shown only after the event loop has ended: printing a long table never waits, so the loop
would hold back an interrupt until the last line.
"""

import os
import sys
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from kohort.cli.command import USAGE, Command, complain, print_result
from kohort.cli.render import Output, erase_progress, printable
from kohort.errors import ApiError, KohortError

if TYPE_CHECKING:  # the client is imported when a command runs: `--help` must not wait for it
    from kohort.client.admin import AdminClient
    from kohort.client.network.cluster import Cluster

T = TypeVar("T")

DEFAULT_SERVER = "127.0.0.1:9092"
DEFAULT_TIMEOUT_S = 10.0
CLIENT_ID = "kohort-cli"
OPTION = "--bootstrap-server"
VARIABLE = "KOHORT_BOOTSTRAP_SERVER"
_BEHIND, _IN_FRONT = "bootstrap_server", "bootstrap_server_in_front"


class Server(NamedTuple):
    """The addresses of a cluster as given, and where they were given."""

    text: str
    origin: str


def add_server(parser: ArgumentParser, *, in_front: bool = False) -> None:
    """Accept the address here: after a command, or before it."""
    parser.add_argument(
        OPTION,
        dest=_IN_FRONT if in_front else _BEHIND,
        metavar="HOST:PORT",
        default=SUPPRESS,  # so that an inner parser keeps what an outer one has found
        help="a broker of the cluster, or several separated by commas "
        f"(default: {VARIABLE}, else {DEFAULT_SERVER})",
    )


def is_in_front(args: Namespace) -> bool:
    """Whether an address is given before the command."""
    return hasattr(args, _IN_FRONT)


def server_of(args: Namespace) -> Server:
    """The cluster in the arguments, else in the environment, else the usual one."""
    given = getattr(args, _BEHIND, getattr(args, _IN_FRONT, None))
    if given is not None:
        return Server(given, OPTION)
    text = os.environ.get(VARIABLE, "").strip()
    return Server(text, VARIABLE) if text else Server(DEFAULT_SERVER, OPTION)


class ClusterCommand(Command):
    """A command that needs the address of a cluster."""

    asks_a_cluster: ClassVar[bool] = True

    def configure(self, parser: ArgumentParser) -> None:
        self.arguments(parser)
        add_server(parser)
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
def telling_origin(args: Namespace) -> Iterator[None]:
    """Adds to the error of a failed connection where the address was given, unless the command
    shows it.
    """
    try:
        yield
    except ApiError as error:
        server = server_of(args)
        if server.origin == VARIABLE and error.message.startswith("cannot connect"):
            error.message += f" ({VARIABLE} is {server.text})"
        raise


def cluster_of(args: Namespace) -> "Cluster | None":
    """The cluster in the arguments, for the caller to close; None, with a complaint, if none."""
    from kohort.client.network.cluster import Cluster
    from kohort.client.settings import addresses_of

    server = server_of(args)
    try:
        return Cluster(addresses_of(server.text), client_id=CLIENT_ID)
    except ValueError as error:
        complain(f"{server.origin}: {error}")
        return None


class AdminCommand(ClusterCommand):
    """A command that asks a cluster through the admin client, and then shows the answer."""

    def configure(self, parser: ArgumentParser) -> None:
        super().configure(parser)
        parser.add_argument(
            "--format",
            choices=("table", "json"),
            default="table",
            help="table for people (default), json for programs",
        )

    def mistake(self, _args: Namespace) -> str | None:
        """What is wrong with arguments that are fine one by one; None if nothing is."""
        return None

    def question(self, _args: Namespace) -> str | None:
        """The question that a destructive command asks a person at a terminal before it acts."""
        return None

    async def consequences(self, _admin: "AdminClient", _args: Namespace) -> Sequence[str]:
        """What a yes to the question destroys: lines that stand above it. Where there is nothing to
        destroy there are none, and nobody is asked.
        """
        return ()

    async def ask(self, admin: "AdminClient", args: Namespace, output: Output) -> Any:
        """Ask the cluster; `show` gets the answer."""
        raise NotImplementedError

    def show(self, answer: Any, args: Namespace, output: Output) -> int:
        """Show what `ask` has found out; returns the exit code. Asks the cluster nothing."""
        raise NotImplementedError

    def main(self, args: Namespace) -> int:
        import asyncio

        from kohort.client.admin import AdminClient

        mistake = self.mistake(args)
        if mistake is not None:
            complain(mistake)
            return USAGE
        server = server_of(args)

        def client() -> "AdminClient":  # one serves one event loop
            return AdminClient(server.text, client_id=CLIENT_ID, timeout=args.timeout)

        try:
            client()
        except ValueError as error:
            complain(f"{server.origin}: {error}")
            return USAGE

        def asked_and_shown(output: Output) -> int:
            question = self.question(args)
            with telling_origin(args):
                if question is not None and is_person():
                    output.doing = "looking at what would be deleted"
                    lines = asyncio.run(_with(client(), output, self.consequences, args))
                    if lines and not confirm(f"{question} at {server.text}?", lines):
                        raise KohortError("nothing is changed: the answer was not yes")

                async def ask(admin: "AdminClient", args: Namespace) -> Any:
                    return await self.ask(admin, args, output)

                answer = asyncio.run(_with(client(), output, ask, args))
            return self.show(answer, args, output)

        return print_result(asked_and_shown, as_json=args.format == "json")


async def _with(
    admin: "AdminClient",
    output: Output,
    ask: "Callable[[AdminClient, Namespace], Awaitable[T]]",
    args: Namespace,
) -> T:
    from kohort.cli.progress import Progress

    async with Progress(output), admin:
        return await ask(admin, args)


def add_yes(parser: ArgumentParser) -> None:
    """The argument that keeps `confirm` from asking."""
    parser.add_argument(
        "--yes",
        "-y",
        action="store_true",
        help="do not ask first (only a person at a terminal is asked)",
    )


def is_person() -> bool:
    """Whether somebody is at a terminal; a script simply goes on."""
    return sys.stdin.isatty() and sys.stdout.isatty()


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
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not text.isascii() or not 0 < seconds < 86_400:
        raise ArgumentTypeError(f"{text!r} is not a timeout, expected seconds above 0")
    return seconds
