# SPDX-License-Identifier: Apache-2.0
"""What a command is: a line of help, examples, its arguments, and what it does with them.

A command is one class with a row in its noun's COMMANDS. Its exit code is 0 when all went well, 1
when something failed, 2 when it was called wrongly, 130 when it was interrupted. Each failure is a
line on stderr.
"""

import errno
import gc
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from kohort.cli.render import FORMATS, Output, erase_progress, printable, runs
from kohort.errors import ApiError, ErrorCode, KohortError

if TYPE_CHECKING:  # the client is imported when a command runs: `--help` must not wait for it
    from kohort.client.admin import Listings, Outcomes
    from kohort.tables.walking import UnreadableDirectory

Result = TypeVar("Result")

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
NO_SETTING = "expected NAME=VALUE; the text is not shown, as it may be a secret"
CODEC_VARIABLE = "KOHORT_CODEC"  # `kohort.native.choice` reads it
NAME_BYTES = 32_767  # what the protocol can carry
_DECIMAL = re.compile(r"\d+(\.\d+)?|\.\d+", re.ASCII)


class Command:
    """One command. `notes` say what it does not do, `examples` are calls that work."""

    help: ClassVar[str]
    notes: ClassVar[str] = ""
    examples: ClassVar[tuple[str, ...]] = ()
    asks_a_cluster: ClassVar[bool] = False

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        raise NotImplementedError

    def main(self, args: Namespace) -> int:
        """Do it, and return the exit code."""
        raise NotImplementedError


Commands = Mapping[str, "Command | Commands"]
"""What may follow a noun: commands, and nouns that have commands of their own."""


def add_format(parser: ArgumentParser) -> None:
    """The argument of a command that shows rows."""
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default=FORMATS[0],
        help="table for people (default); for programs one document of json, a line of jsonl for "
        "each row, or csv",
    )


class WrongCallError(KohortError):
    """The command was called wrongly, which showed only when it was under way."""


def plug_streams() -> None:
    """Open the null device in place of each stream that the caller has closed (`<&-`): it is None
    to Python, and its number would go to the next socket. Every program calls this first.
    """
    for stream, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, stream) is None:
            setattr(sys, stream, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def codec_refusal() -> str:
    """Why the codec that the environment asks for cannot be used; "" where it can."""
    if os.environ.get(CODEC_VARIABLE) not in (None, "", "python"):  # which is always there
        try:
            import kohort.native.choice  # noqa: F401
        except ImportError as error:
            return str(error)
    return ""


def run_program(main: Callable[[Sequence[str]], int]) -> int:
    """Run what a shell has called; returns its exit code. The process ends after this.

    Cycles are looked for after 200,000 objects, not after 700: modules, and the answer of a large
    cluster, live until the end, and to go through them again and again took a sixth of the time.
    What is left then goes with the process, so the interpreter need not look through it either.
    """
    gc.set_threshold(200_000, 20, 50)
    code = main(sys.argv[1:])
    gc.freeze()
    return code


def print_result(show: Callable[[Output], int], form: str = FORMATS[0]) -> int:
    """Let a command write to stdout, and turn whatever happens meanwhile into an exit code.

    A command that answers in JSON reports its failure as a document: its reader always gets one.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # it may lack characters of a name
        sys.stdout.reconfigure(errors="backslashreplace")
    output = Output(sys.stdout, form)
    code: int | None = None
    try:
        try:
            code = show(output)
        except KohortError as error:
            complain(reason(error))
            output.error(error_fields(error))
            code = USAGE if isinstance(error, WrongCallError) else FAILED
        output.end()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has ended
        _leave_stdout()
        return FAILED
    except OSError as error:
        if not is_unwritable(error):
            raise
        _leave_stdout()
        done = "" if code is None else _done_all_the_same(output, code)
        complain(f"cannot write to stdout: {error.strerror}{done}")
        return FAILED
    except KeyboardInterrupt:
        _leave_stdout()
        if output.is_changing:
            complain(f"interrupted while {output.doing}: it may be done all the same")
        return INTERRUPTED
    return code


def is_unwritable(error: OSError) -> bool:
    """Whether it says that stdout, and no file with a name, takes no more."""
    return error.errno in _UNWRITABLE and error.filename is None


def show_lost(show: Callable[[], int], error: OSError, output: Output) -> int:
    """Go through a result again that could not be written, for its lines on stderr; returns the
    exit code. The change was made, and nobody must take the full disk for its failure.
    """
    _leave_stdout()
    code = show()
    complain(f"cannot write to stdout: {error.strerror}{_done_all_the_same(output, code)}")
    return FAILED


def _done_all_the_same(output: Output, code: int) -> str:
    """What became of the change of a command whose result could not be written, if it made one. Its
    failures are lines on stderr.
    """
    if not output.has_changed:
        return ""
    return f"; {output.doing} is done all the same{', but for what is named' if code else ''}"


def result_of(work: Coroutine[Any, Any, Result]) -> Result:
    """What the work returns, in an event loop of its own.

    The task of the loop itself has no result. When `asyncio.run` gives Ctrl-C back, it asks twice
    whether the handler is a constant of `signal`, and the error for what is none shows the task
    with its result: for the groups of a large cluster that took longer than to list them.
    """
    import asyncio

    results: list[Result] = []

    async def main() -> None:
        results.append(await work)

    asyncio.run(main())
    return results[0]


def _leave_stdout() -> None:
    """Drop what is still in the buffer: written at the end, it could block for ever."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # no file of the system, as in a test
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def complain(text: str) -> None:
    """One line on stderr."""
    erase_progress()
    sys.stderr.write(f"kohort: {printable(text)}\n")


def pair(text: str) -> tuple[str, str]:
    """The type of an argument NAME=VALUE."""
    key, found, value = text.partition("=")
    if not found or not key.strip():
        raise ArgumentTypeError(NO_SETTING)
    return name(key.strip()), name(value)


_UNSURE = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


def is_unsure(outcome: object) -> bool:
    """Whether the request may have taken effect in spite of this error: it may have arrived, and no
    answer says what became of it.
    """
    return (
        isinstance(outcome, ApiError)
        and outcome.code in _UNSURE
        and bool(getattr(outcome, "sent", True))
    )


def with_doubt(error: ApiError, done: str) -> ApiError:
    """The error of a change. Its text says so if the change may have been made all the same."""
    if not is_unsure(error):
        return error
    what = error.message or error.code.name
    return ApiError(error.code, f"{what}; it may be {done} all the same")


def complain_of(thing: str, outcomes: "Outcomes[str, Any]") -> int:
    """A line for each failure, and the exit code that follows from them."""
    for name, error in outcomes.failed.items():
        complain_about(thing, name, error)
    return FAILED if outcomes.failed else OK


def complain_about(thing: str, name: object, error: ApiError) -> None:
    """One line that names the thing, once."""
    shown = f"{thing} {name}" if name != "" else f"{thing} ''"
    named = shown.lower() in error.message.lower()
    complain(reason(error) if named else f"{shown}: {reason(error)}")


def complain_of_missing(listings: "Listings") -> int:
    """A line for each broker whose groups are missing, one for the coordinators that could not be
    asked, and the exit code that follows from them.
    """
    coordinators: dict[str, list[int]] = {}
    for part, error in listings.errors.items():
        if isinstance(part, int):
            complain(f"the groups of node {part} are missing: {reason(error)}")
        elif error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            coordinators.setdefault("", []).append(part.partition)
        else:
            coordinators.setdefault(f": {reason(error)}", []).append(part.partition)
    for why, indexes in coordinators.items():
        many = f"{len(indexes)} coordinators" if len(indexes) > 1 else "a coordinator"
        which = "partitions" if len(indexes) > 1 else "partition"
        where = f"{which} {runs(indexes)} of __consumer_offsets"
        what = f"nobody coordinates {where}" if not why else f"{where}{why}"
        complain(f"the groups of {many} are missing: {what}")
    if listings.unverified is not None:
        complain(listings.unverified.message)
    return FAILED if listings.errors else OK


def complain_of_lost(lost: "Sequence[UnreadableDirectory]") -> int:
    """A line for each directory that an answer lacks, and the exit code that follows from it."""
    for absent in lost:
        complain(f"{absent.why}: what is here is without it")
    return FAILED if lost else OK


def missing_groups(listings: "Listings") -> list[dict[str, Any]]:
    """The same in JSON."""
    missing = [
        {
            **({"node": part} if isinstance(part, int) else part._asdict()),
            **error_fields(error),
        }
        for part, error in listings.errors.items()
    ]
    unverified = listings.unverified
    return missing + ([] if unverified is None else [error_fields(unverified)])


def reason(error: Exception) -> str:
    """An error in one line: its text, and the protocol's name for it, if any."""
    if not isinstance(error, ApiError):
        return str(error)
    if not error.message:
        return error.code.name
    if error.code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT):
        return error.message
    return f"{error.message} ({error.code.name})"


ERROR_FIELDS = ("error", "message")


def error_fields(error: Exception) -> dict[str, str]:
    """An error in JSON: the protocol's name for it, and the text."""
    if isinstance(error, ApiError):
        return {"error": error.code.name, "message": error.message}
    return {"error": type(error).__name__, "message": str(error)}


def name(text: str) -> str:
    """An argument type: a name that can be sent, which is text in UTF-8, and not too long."""
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise ArgumentTypeError(f"{printable(text)!r} is not text in UTF-8") from None
    if length > NAME_BYTES:
        raise ArgumentTypeError(
            f"a name of {length:,} bytes is too long, expected {NAME_BYTES:,} at most"
        )
    return text


def topic_name(text: str) -> str:
    """An argument type: a name that a topic can have. No broker has another one."""
    from kohort.terms import TOPIC_NAME_MAX, topic_name_fault

    if topic_name_fault(name(text)) is not None:
        raise ArgumentTypeError(
            f"no topic can have the name {text!r}, expected 1 to {TOPIC_NAME_MAX} of ASCII "
            "letters, digits, '.', '_' and '-', and not '.' or '..'"
        )
    return text


def chosen_name(text: str) -> str:
    """An argument type: the name of something that shall come into being."""
    if not text:
        raise ArgumentTypeError("the name is empty, expected at least one character")
    return name(text)


def decimal_or_none(text: str) -> float | None:
    """The number that a text is in plain digits; None for all else that Python takes for one."""
    return float(text) if _DECIMAL.fullmatch(text) else None


def words(thing: str, valid: Iterable[str]) -> "_Words":
    """An argument type: names out of `valid`, in any case, several with commas between them."""
    return _Words(thing, {name.lower(): name for name in valid})


class _Words:
    def __init__(self, thing: str, valid: dict[str, str]) -> None:
        self._thing = thing
        self._valid = valid
        self.valid = tuple(valid.values())

    def __call__(self, text: str) -> list[str]:
        names = [part.strip() for part in text.split(",")]
        for name in names:
            if name.lower() not in self._valid:
                raise ArgumentTypeError(
                    f"{name!r} is no {self._thing}, "
                    f"expected one of {', '.join(self._valid.values())}"
                )
        return [self._valid[name.lower()] for name in names]
