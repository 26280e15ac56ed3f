"""What a command is: a name, a line of help, its arguments, and what it does with a cluster.

A command is one class with a row in its noun's COMMANDS. Its exit code is 0 when all went well, 1
when something failed, 2 when it was called wrongly; failures are one line each on stderr.
"""

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.render import Output, erase_progress, printable
from kohort.errors import ApiError, ErrorCode, KohortError

if TYPE_CHECKING:  # the client is imported when a command runs: `--help` must not wait for it
    from kohort.client.admin import AdminClient, Outcomes

DEFAULT_SERVER = "127.0.0.1:9092"
DEFAULT_TIMEOUT_S = 10.0

OK, FAILED, USAGE = 0, 1, 2


class Command:
    """One command."""

    help: ClassVar[str]

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        raise NotImplementedError

    def main(self, args: Namespace) -> int:
        """Do it, and return the exit code."""
        raise NotImplementedError


class AdminCommand(Command):
    """A command that asks a cluster, through the admin client alone."""

    def configure(self, parser: ArgumentParser) -> None:
        self.arguments(parser)
        parser.add_argument(
            "--bootstrap-server",
            metavar="HOST:PORT",
            default=DEFAULT_SERVER,
            help=f"a broker of the cluster, or several with commas (default {DEFAULT_SERVER})",
        )
        parser.add_argument(
            "--format",
            choices=("table", "json"),
            default="table",
            help="table for people (default), json for programs",
        )
        parser.add_argument(
            "--timeout",
            metavar="SECONDS",
            type=_seconds,
            default=DEFAULT_TIMEOUT_S,
            help=f"how long one step may take (default {DEFAULT_TIMEOUT_S:g})",
        )

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare what this command takes besides the arguments of all."""

    async def run(self, admin: "AdminClient", args: Namespace, output: Output) -> int:
        """Ask and show; return the exit code."""
        raise NotImplementedError

    def main(self, args: Namespace) -> int:
        import asyncio  # noqa: PLC0415  (start-up time)

        from kohort.client.admin import AdminClient  # noqa: PLC0415

        try:
            admin = AdminClient(args.bootstrap_server, client_id="kohort-cli", timeout=args.timeout)
        except ValueError as error:
            complain(f"--bootstrap-server: {error}")
            return USAGE
        return print_result(
            lambda output: asyncio.run(self._with(admin, args, output)),
            as_json=args.format == "json",
        )

    async def _with(self, admin: "AdminClient", args: Namespace, output: Output) -> int:
        from kohort.cli.progress import Progress  # noqa: PLC0415  (start-up time)

        async with Progress(output), admin:
            return await self.run(admin, args, output)


def print_result(show: Callable[[Output], int], *, as_json: bool) -> int:
    """Let a command write to stdout, and make an exit code of whatever happens meanwhile."""
    if isinstance(sys.stdout, TextIOWrapper):  # no terminal is too old for the names of groups
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = show(Output(sys.stdout, as_json=as_json))
        sys.stdout.flush()
    except KohortError as error:
        complain(reason(error))
        return FAILED
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return 130
    return code


def complain(text: str) -> None:
    """One line on stderr."""
    erase_progress()
    sys.stderr.write(f"kohort: {printable(text)}\n")


def complain_of(thing: str, outcomes: "Outcomes[str, Any]") -> int:
    """A line for each of them that failed, and the exit code that follows from it."""
    for name, error in outcomes.failed.items():
        complain_about(thing, name, error)
    return FAILED if outcomes.failed else OK


def complain_about(thing: str, name: object, error: ApiError) -> None:
    """One line that names the thing, once."""
    shown = f"{thing} {name}" if name != "" else f"{thing} ''"
    named = shown.lower() in error.message.lower()
    complain(reason(error) if named else f"{shown}: {reason(error)}")


def reason(error: Exception) -> str:
    """An error in one line: its text, and the protocol's name for it where it has one."""
    if not isinstance(error, ApiError):
        return str(error)
    if not error.message:
        return error.code.name
    if error.code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT):
        return error.message
    return f"{error.message} ({error.code.name})"


def error_fields(error: Exception) -> dict[str, str]:
    """An error in JSON: the protocol's name for it, and the text."""
    if isinstance(error, ApiError):
        return {"error": error.code.name, "message": error.message}
    return {"error": type(error).__name__, "message": str(error)}


def name(text: str) -> str:
    """An argument type: a name that can be sent, which is text in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentTypeError(f"{printable(text)!r} is not text in UTF-8") from None
    return text


def words(thing: str, valid: Iterable[str]) -> "_Words":
    """An argument type: names out of `valid`, in any case, several with commas between them."""
    return _Words(thing, {name.lower(): name for name in valid})


class _Words:
    def __init__(self, thing: str, valid: dict[str, str]) -> None:
        self._thing = thing
        self._valid = valid

    def __call__(self, text: str) -> list[str]:
        names = [one.strip() for one in text.split(",")]
        for name in names:
            if name.lower() not in self._valid:
                raise ArgumentTypeError(
                    f"{name!r} is not a {self._thing}, "
                    f"expected one of {', '.join(self._valid.values())}"
                )
        return [self._valid[name.lower()] for name in names]


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86_400:
        raise ArgumentTypeError(f"{text!r} is not a timeout, expected seconds above 0")
    return seconds
