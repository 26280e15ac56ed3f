# SPDX-License-Identifier: Apache-2.0
"""`kohort completion`: the script with which a shell completes commands, options and live names.

At each TAB that script calls `kohort` itself, with the line so far in the environment; `complete`
answers it. Names of groups are free text: a name that a shell could take for more than a word is
quoted, or is not offered. Whatever goes wrong, the answer is that nothing is known.
"""

import os
import re
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from threading import Timer
from typing import Any, ClassVar

from argcomplete.completers import BaseCompleter
from argcomplete.finders import CompletionFinder, safe_actions
from argcomplete.shell_integration import shellcode

from kohort.cli.cluster_commands import CLIENT_ID
from kohort.cli.command import FAILED, OK, Command, print_result
from kohort.cli.completion_cache import CompletionCache
from kohort.cli.connection import Connection, connection_of, profile_names
from kohort.cli.render import Output
from kohort.errors import KohortError

TIMEOUT_S = 1.0
GUARD_S = 2.5
SHELLS = ("bash", "zsh", "fish")
GROUPS, TOPICS, BROKERS = "groups", "topics", "brokers"
_KINDS = {  # by what arguments are called in the code
    "group": GROUPS,
    "groups": GROUPS,
    "source": GROUPS,
    "topic": TOPICS,
    "topics": TOPICS,
    "brokers": BROKERS,
}
_NEW = ("kohort topics create",)  # what it names is not there yet
_FILES = ("FILE", "DIR")
_PROFILE = "profile"
_WORD_STARTS = "~#=^"  # at the start of a word a shell takes them for more than themselves
_LIVE_IN_QUOTES = "*?[!"  # bash still does something about them between double quotes
# Bash splits such an answer into words, and takes each word for a pattern of files.
_SPLIT_BY_BASH = re.compile(
    r"COMPREPLY=\(\$\((?P<call>.*?)\)\)\n\s*if \[\[ \$\? != 0 ]]", re.DOTALL
)
_READ_BY_BASH = """local answer code
        answer=$({call})
        code=$?
        IFS="$IFS" read -r -a COMPREPLY <<< "$answer"
        if [[ $code != 0 ]]"""


class PrintCompletion(Command):
    """`kohort completion`."""

    help: ClassVar[str] = "print the script that completes commands and names in a shell"
    notes: ClassVar[str] = (
        'One line does it: eval "$(kohort completion bash)" in ~/.bashrc, the same with zsh in '
        "~/.zshrc behind compinit, kohort completion fish | source in ~/.config/fish/config.fish. "
        "Names of groups, topics and brokers come from the cluster that the line names. One that "
        f"does not answer within {TIMEOUT_S:g} s completes nothing; an answer is kept for a minute."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort completion bash",
        "kohort completion fish | source",
    )

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument("shell", choices=SHELLS, help="the shell")

    def main(self, args: Namespace) -> int:
        def show(output: Output) -> int:
            output.text(_script(args.shell))
            return OK

        return print_result(show)


COMMAND = PrintCompletion()


def _script(shell: str) -> str:
    """The library's script, but in bash a name such as `/proc/*/*` is a word, not a pattern: bash
    would look for its files at each TAB. Zsh and fish take no answer of a command for a pattern.

    Raises KohortError where the library has another script than the one that is known.
    """
    script: str = shellcode(["kohort"], shell=shell, complete_arguments=["-o", "nospace"])
    if shell != "fish":  # one script serves bash and zsh
        script, found = _SPLIT_BY_BASH.subn(
            lambda match: _READ_BY_BASH.replace("{call}", match["call"]), script
        )
        if found != 1:
            raise KohortError("this version of argcomplete has another script than is expected")
    return script.lstrip("\n")


def complete(
    parser: ArgumentParser,
    *,
    stores: Iterable[type[Action]],
    exit_method: Callable[[int], Any] = os._exit,
) -> None:
    """Answer the shell, which has put its line into the environment, and end the process.
    `stores` are actions of the parser's own that only keep a value: their options count, as the
    address of a cluster does. The library takes no notice of an action that it does not know.
    """
    safe_actions.update(stores)
    # Not even a name server that says nothing, on which a thread waits, may hold up the shell.
    guard = Timer(GUARD_S, os._exit, (FAILED,))
    guard.daemon = True
    guard.start()
    _Finder()(
        parser,
        always_complete_options=False,
        default_completer=_Values(),
        exit_method=exit_method,
    )
    guard.cancel()


class _Finder(CompletionFinder):
    """The library's finder, with stricter quotes."""

    def quote_completions(
        self, completions: list[str], cword_prequote: str, last_wordbreak_pos: int | None
    ) -> list[str]:
        shell = os.environ.get("_ARGCOMPLETE_SHELL")
        if cword_prequote == '"' and shell != "fish":
            completions = [one for one in completions if not set(one) & set(_LIVE_IN_QUOTES)]
        quoted: list[str] = super().quote_completions(
            completions, cword_prequote, last_wordbreak_pos
        )
        if cword_prequote or shell == "fish":  # fish quotes by itself
            return quoted
        return [f"\\{one}" if one[:1] in _WORD_STARTS and one else one for one in quoted]


class _Values(BaseCompleter):
    """What may stand for an argument; nothing if that is unknown."""

    def __call__(
        self, *, prefix: str, action: Action, parser: ArgumentParser, parsed_args: Namespace
    ) -> Iterable[str]:
        """The line has `prefix` of it, and `parsed_args` before it."""
        try:
            return [one for one in _values(prefix, action, parser, parsed_args) if is_offered(one)]
        except Exception:  # noqa: BLE001  (a TAB is no place for a complaint)
            return ()


def is_offered(name: str) -> bool:
    """Whether a shell can be given a name: one that has no control character, and is no option."""
    return name.isprintable() and not name.startswith("-")


def _values(
    prefix: str, action: Action, parser: ArgumentParser, parsed_args: Namespace
) -> Iterable[str]:
    if action.dest.startswith(_PROFILE):
        return profile_names()
    words = getattr(action.type, "valid", None)
    if words is not None:  # a list with commas
        *before, begin = prefix.split(",")
        rest = [word for word in words if word.lower() not in [one.lower() for one in before]]
        return [",".join([*before, one.lower() if begin.islower() else one]) for one in rest]
    if action.metavar in _FILES:
        return _files(prefix)
    command, kind = parser.get_default("command"), _KINDS.get(action.dest)
    if kind is None or command is None or not command.asks_a_cluster or parser.prog in _NEW:
        return ()
    return _names(kind, parsed_args, connection_of(parsed_args))


def _files(prefix: str) -> Iterable[str]:
    folder, slash, begin = prefix.rpartition("/")
    with os.scandir(f"{folder}{slash}" or ".") as entries:
        return sorted(
            f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}"
            for entry in entries
            if begin or not entry.name.startswith(".")
        )


def _names(kind: str, args: Namespace, connection: Connection) -> Sequence[str]:
    """The names of a kind at the cluster, as of a minute ago at most."""
    security = connection.security
    cache = CompletionCache.of_user(
        kind,
        connection.server.text,
        security.protocol,
        security.mechanism or "",
        security.username or security.client_id or "",
        getattr(args, _PROFILE, None) or getattr(args, f"{_PROFILE}_in_front", None) or "",
        getattr(args, "command_config", None) or "",
    )
    found = cache.read()
    if found is None:
        import asyncio

        import kohort.client.admin  # noqa: F401  (the time limit is the cluster's alone)

        found = asyncio.run(asyncio.wait_for(_ask(kind, connection), TIMEOUT_S))
        if found:  # who has none yet may have one soon
            cache.write(found)
    return found


async def _ask(kind: str, connection: Connection) -> list[str]:
    from kohort.client.admin import AdminClient

    admin = AdminClient(
        connection.server.text,
        client_id=CLIENT_ID,
        timeout=TIMEOUT_S,
        security=connection.security,
    )
    async with admin:
        if kind == GROUPS:
            return [one.group_id for one in await admin.list_groups()]
        if kind == TOPICS:
            return [one.name for one in await admin.list_topics()]
        return [str(one.node_id) for one in await admin.describe_cluster()]
