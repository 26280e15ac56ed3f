# SPDX-License-Identifier: Apache-2.0
"""How a tool runs: its arguments, its cluster, its exit code.

The Java tools leave with 0 after nearly every failure, which scripts then overlook. These leave
with 1 when anything failed, and with `--java-exit-codes` as the Java tools do.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kohort.cli.command import codec_refusal, plug_streams, print_result, result_of, run_program
from kohort.cli.render import Output, printable
from kohort.drop_in.java import ERRORS, JavaError, illegal, in_future, of_error
from kohort.drop_in.options import NONE, OPTIONAL, Option, Options, parse

if TYPE_CHECKING:  # the client is imported when a tool asks: `--help` must not wait for it
    from kohort.client.admin import AdminClient
    from kohort.security.settings import Security

T = TypeVar("T")

LIKE = "4.3.1"  # the version of the tools whose output this is
OK, FAILED = 0, 1
JAVA_EXIT_CODES = "--java-exit-codes"
CLIENT_ID = "kohort-tools"
_CONFIG_ERROR = "org.apache.kafka.common.config.ConfigException"
_HELP_WIDTH = 54
_LONGEST_MS = 86_400_000
_API_TIMEOUT, _REQUEST_TIMEOUT = TIMEOUTS = ("default.api.timeout.ms", "request.timeout.ms")

COMMON = (
    Option("help", "Show this text."),
    Option("version", "Show the version of Apache Kafka whose tools these follow."),
)


class UsageError(Exception):
    """The tool was called wrongly: its lines and the usage go to stderr, and it leaves with 1."""


class Tool(NamedTuple):
    """A tool: its name, its summary, its options, and what it does with those that were given.

    `act` returns whether everything went well. What it raises as JavaError is shown by
    `failed`, which gets the arguments as well.
    """

    name: str
    summary: str
    options: Collection[Option]
    act: Callable[[Options], bool]
    parse_fails: Callable[[JavaError], None]
    failed: Callable[[JavaError, Sequence[str]], None]
    java_fails: bool = False  # whether the Java tool leaves with 1 after a failure


def run(tool: Tool, argv: Sequence[str] | None = None) -> int:
    """Run a tool; returns its exit code. `argv` is without the program's name; None is that of the
    shell.
    """
    plug_streams()
    if argv is None:
        return run_program(lambda given: run(tool, given))
    words = [word for word in argv if word != JAVA_EXIT_CODES]
    is_java = len(words) < len(argv)

    def main(_output: Output) -> int:
        refusal = codec_refusal()
        if refusal:
            error_line(refusal)
            return FAILED
        return _run(tool, words, is_java=is_java)

    return print_result(main)


def _run(tool: Tool, words: list[str], *, is_java: bool) -> int:
    try:
        try:
            options = parse(words, (*tool.options, *COMMON))
        except JavaError as error:
            tool.parse_fails(error)
            return FAILED
        if not words or options.has("help"):
            _print_usage(tool)
            return FAILED if is_java or not words else OK
        if options.has("version"):
            line(LIKE)
            return OK
        try:
            went_well = tool.act(options)
        except JavaError as error:
            tool.failed(error, words)
            went_well = False
    except UsageError as error:
        for text in error.args:
            error_line(text)
        _print_usage(tool)
        return FAILED
    return OK if went_well or (is_java and not tool.java_fails) else FAILED


def _print_usage(tool: Tool) -> None:
    from textwrap import wrap

    lines = [f"{tool.name}: {tool.summary}", "", "options:"]
    more = Option(JAVA_EXIT_CODES[2:], "Leave as the Java tool does: with 0 after most failures.")
    for option in (*tool.options, *COMMON, more):
        value = {NONE: "", OPTIONAL: f" [{option.shown}]"}.get(option.value, f" {option.shown}")
        text = wrap(option.help, _HELP_WIDTH)
        head = f"  --{option.name}{value}"
        if len(head) > 24:
            lines.append(head)
            head = ""
        lines += [f"{head:24}  {text[0]}", *(f"{'':26}{more_text}" for more_text in text[1:])]
    for each in lines:
        error_line(each)


def line(text: str = "", *, before: str = "", end: str = "\n") -> None:
    """A line on stdout, `before` and `end` around it. Control characters of names are escaped,
    which the Java tools do not: a line feed in a name would begin a line that nobody wrote.
    """
    sys.stdout.write(before + printable(text) + end)


def error_line(text: str, *, before: str = "") -> None:
    """The same on stderr."""
    sys.stderr.write(f"{before}{printable(text)}\n")


def print_csv(text: str) -> None:
    """Lines for a program, and an empty one behind them. Names in them are as they are, unless a
    person looks: an escape would be the name of another group.
    """
    Output(sys.stdout).csv(text)
    line()


def print_error(text: str, error: JavaError | None = None) -> None:
    """A failure as the Java tools tell it: a line on stdout, the trace on stderr."""
    line(f"Error: {text}", before="\n")
    for traced in error.trace() if error is not None else ():
        error_line(traced)


def ask(
    options: Options,
    asked: Callable[["AdminClient"], Awaitable[T]],
    *,
    timeout_ms: int,
    unreachable: Callable[[JavaError | None], JavaError],
) -> T:
    """What `asked` finds out by a client of the cluster that the options name. Raises JavaError;
    where no broker answers it is what `unreachable` makes of the reason.
    """
    from kohort.client.admin import AdminClient
    from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
    from kohort.errors import KohortError

    server, security = _connection(options)
    if timeout_ms <= 0:
        raise unreachable(None)
    timeout = min(timeout_ms, _LONGEST_MS) / 1000

    async def main() -> T:
        await _resolve(server)
        async with AdminClient(
            server, client_id=CLIENT_ID, timeout=timeout, security=security
        ) as admin:
            await admin.wait_for_broker()  # it may be starting, and Java's client tries again
            return await asked(admin)

    try:
        return result_of(main())
    except (ConnectionFailedError, RequestTimeoutError) as error:
        raise unreachable(JavaError("java.net.ConnectException", error.message)) from None
    except KohortError as error:
        raise in_future(of_error(error)) from None
    except ValueError as error:  # an argument that no request can have
        raise illegal(str(error)) from None


def api_timeout_ms(options: Options, usual_ms: int) -> int:
    """How long a call may take, as Java's client reads its file of settings: the time of the API,
    which is no shorter than that of a request. Raises JavaError.
    """
    config = _config(options)
    if config is None:
        return usual_ms
    from kohort.cli.connection import text_of
    from kohort.config import read_properties

    try:
        given = read_properties(text_of("--command-config", config))
    except ValueError as error:
        raise _no_client(str(error)) from None
    times = {name: _milliseconds(name, given[name]) for name in TIMEOUTS if name in given}
    longest = max(times.values(), default=usual_ms)
    if times.get(_API_TIMEOUT, longest) < longest:
        raise _no_client(
            f"The specified value of {_API_TIMEOUT} must be no smaller than the value of "
            f"{_REQUEST_TIMEOUT}."
        )
    return times.get(_API_TIMEOUT, max(longest, usual_ms))


def _milliseconds(name: str, text: str) -> int:
    """A time of a file of settings. Raises JavaError."""
    digits = text.strip().removeprefix("+").removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10 and int(digits) < 1 << 31):
        why = "Not a number of type INT"
    elif int(text) < 0:
        why = "Value must be at least 0"
    else:
        return int(text)
    raise JavaError(_CONFIG_ERROR, f"Invalid value {text} for configuration {name}: {why}")


def no_node(call: str, why: JavaError | None) -> JavaError:
    """No broker answered in time, when this was to be asked first."""
    text = f"Timed out waiting for a node assignment. Call: {call}"
    return JavaError(f"{ERRORS}.TimeoutException", text, why)


def _connection(options: Options) -> "tuple[str, Security]":
    from kohort.cli.connection import connection_of
    from kohort.client.network.address import without_protocols
    from kohort.client.settings import addresses_of

    named = options.value("bootstrap-server") or ""
    server = without_protocols(named)
    config = _config(options)
    given = {"bootstrap_server": server}
    if config is not None:
        given["command_config"] = config
    try:
        connection = connection_of(Namespace(**given), followed=TIMEOUTS)
    except ValueError as error:
        raise _no_client(str(error)) from None
    bad = [part for part in named.split(",") if ":" not in without_protocols(part)]
    try:
        addresses_of(server)
    except ValueError:
        bad = bad or [named]
    if bad:
        raise _no_client(f"Invalid url in bootstrap.servers: {bad[0].strip()}")
    return connection.server.text, connection.security


def _config(options: Options) -> str | None:
    """The file of settings. Raises JavaError where it is not there."""
    config = options.value("command-config")
    if config is not None and not os.path.exists(config):  # noqa: PTH110  (pathlib is slow to import)
        missing = JavaError("java.nio.file.NoSuchFileException", config)
        raise JavaError("java.lang.RuntimeException", cause=missing)
    return config


async def _resolve(servers: str) -> None:
    """Raises JavaError where no host has an address: to wait for one is of no use."""
    from kohort.client.settings import addresses_of

    for address in addresses_of(servers):
        with suppress(OSError, ValueError):
            if await address.hosts():
                return
    raise _no_client("No resolvable bootstrap urls given in bootstrap.servers")


def _no_client(why: str) -> JavaError:
    cause = JavaError(_CONFIG_ERROR, why)
    text = "Failed to create new KafkaAdminClient"
    return JavaError("org.apache.kafka.common.KafkaException", text, cause)
