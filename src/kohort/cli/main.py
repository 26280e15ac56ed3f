# SPDX-License-Identifier: Apache-2.0
"""`kohort`: finds the command that the arguments name, and runs it.

Only modules whose word is among the arguments are imported, so `kohort --help` is quick.
"""

import os
import re
import sys
from argparse import Action, ArgumentError, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Collection, Sequence
from importlib import import_module
from textwrap import fill
from typing import Any, NoReturn

from kohort.cli.command import (
    INTERRUPTED,
    OK,
    USAGE,
    Command,
    Commands,
    codec_refusal,
    complain,
    plug_streams,
    run_program,
)
from kohort.cli.connection import add_connection, in_front_or_none
from kohort.cli.render import printable

# The first word, its help, and whether others follow: then they are in the COMMANDS of its module,
# else its module has one COMMAND.
WORDS = {
    "serve": ("run a broker with a real group coordinator", False),
    "produce": ("append lines or files to a topic, a record for each", False),
    "consume": ("print the records of topics as they come, until interrupted", False),
    "groups": ("list, describe, configure and delete consumer groups", True),
    "offsets": ("reset, export, import, clone and delete committed offsets", True),
    "topics": ("create, list, describe, configure, alter and delete topics", True),
    "brokers": ("show and change the settings of brokers", True),
    "acls": ("list, add and remove rules of access", True),
    "users": ("list, create and delete users of SCRAM", True),
    "doctor": ("look for what is wrong between this machine and a cluster", False),
    "pipeline": ("what happened to every consumer group, from the group log", True),
    "inspect": ("see what Kohort makes of things", True),
    "completion": ("print the script that completes commands and names in a shell", False),
}
NOUNS = {"kohort groups members": "remove members from a group"}  # nouns behind a noun
_RESET = "kohort offsets reset"
_MEMBERS = "kohort groups describe GROUP shows members, kohort groups members remove removes them"
ELSEWHERE = {
    "kohort": {
        "lag": "kohort groups describe GROUP shows lag",
        "members": _MEMBERS,
        "reset": _RESET,
        "report": "kohort pipeline report",
        "sql": "kohort pipeline sql",
        "acl": "kohort acls",
        "user": "kohort users",
        "ping": "kohort doctor",
        "check": "kohort doctor",
        "simulate": "python -m kohort.sim",
    },
    "kohort groups": {
        "reset": _RESET,
        "offsets": "kohort groups describe GROUP shows committed offsets and lag",
        "lag": "kohort groups describe GROUP shows lag",
        "state": "kohort groups describe GROUP shows the state",
        "seek": _RESET,
        "remove": "kohort groups delete",
        "show": "kohort groups describe",
        "settings": "kohort groups config",
    },
    "kohort groups members": {
        "list": "kohort groups describe GROUP shows members",
        "describe": "kohort groups describe GROUP shows members",
        "delete": "kohort groups members remove",
    },
    "kohort offsets": {
        "list": "kohort groups describe GROUP shows committed offsets and lag",
        "show": "kohort groups describe GROUP shows committed offsets and lag",
        "describe": "kohort groups describe GROUP shows committed offsets and lag",
        "alter": _RESET,
        "set": _RESET,
        "copy": "kohort offsets clone",
        "remove": "kohort offsets delete",
    },
    "kohort topics": {
        "settings": "kohort topics config",
        "remove": "kohort topics delete",
        "show": "kohort topics describe",
    },
    "kohort acls": {
        "create": "kohort acls add",
        "delete": "kohort acls remove",
        "show": "kohort acls list",
    },
    "kohort users": {
        "add": "kohort users create",
        "alter": "kohort users create gives a user another password",
        "describe": "kohort users list",
        "remove": "kohort users delete",
    },
    "kohort pipeline": {
        "lag": "kohort pipeline show lag",
        "rebalances": "kohort pipeline show rebalances",
        "members": "kohort pipeline show members",
        "deletable": "kohort pipeline show deletable",
        "stream": "kohort pipeline run --stream",
        "query": "kohort pipeline sql",
    },
}
"""Words of other tools, and what to call here instead, by the part of the line before them."""
FIRST = (
    "kohort serve --in-memory",
    "kohort topics create orders --partitions 3",
    "echo hello | kohort produce orders",
    "kohort consume orders --from-beginning",
    "kohort groups list --bootstrap-server broker.example:9092",
)

_COMPLETION = "_ARGCOMPLETE"  # the script of `kohort completion` sets it
_SECRET = re.compile("passw|secret|token|jaas")  # in the name of an option, which nobody has


class Parser(ArgumentParser):
    """Reports what is wrong with the arguments in one line, like every other failure.

    A parser whose default `may_have_secret` is set shows no words that it does not know.
    """

    def __init__(self, **options: Any) -> None:
        """No option may be shortened: `--password x` is not `--password-file x`. One that has one
        value may be given once: neither the first nor the last one is what was meant.
        """
        super().__init__(allow_abbrev=False, **options)
        self.given: set[str] = set()  # the options that have their value
        for word in (None, "store"):
            self.register("action", word, _StoreOnce)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Complains of what it does not know itself; an outer parser does not know its options."""
        self.given.clear()
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {self._shown(rest)}{self._nearest(rest)}")
        return found, rest

    def _shown(self, given: Sequence[str]) -> str:
        options = [word.partition("=")[0] for word in given if word.startswith("--")]
        if self.get_default("may_have_secret") or any(map(_SECRET.search, options)):
            return " ".join(options) or "not shown, one may be a password"
        return " ".join(given)

    def _nearest(self, given: Sequence[str]) -> str:
        options = [option for option in self._option_string_actions if option.startswith("--")]
        for word in given:
            if not word.startswith("--"):
                continue
            option = word.partition("=")[0]
            if positional := self._positional_or_none(option):
                return f"; did you mean {self.prog} {positional}, without {option}?"
            if near := _near(option, options):
                return f"; did you mean {near}?"
        return ""

    def _positional_or_none(self, option: str) -> str | None:
        """What stands without an option here, and has one in other tools: `--group billing`."""
        for action in self._actions:
            words = {action.dest, action.dest.removesuffix("s"), str(action.metavar).lower()}
            if not action.option_strings and action.metavar and option[2:] in words:
                return str(action.metavar)
        return None

    def _check_value(self, action: Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except ArgumentError as error:
            if value in ELSEWHERE.get(self.prog, ()):
                raise ArgumentError(
                    action, f"there is no {value!r}: {ELSEWHERE[self.prog][value]}"
                ) from None
            near = _near(str(value), [str(choice) for choice in action.choices or ()])
            if not near:
                raise
            raise ArgumentError(action, f"{error.message}; did you mean {near}?") from None

    def error(self, message: str) -> NoReturn:
        code = self.get_default("wrong_call") or USAGE
        self.exit(code, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")


def _near(word: str, known: Sequence[str]) -> str:
    """The one of these that was meant, if one is near enough."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, known, 1)), "")


class _StoreOnce(Action):
    """What argparse does with an option, which otherwise takes the last of several values."""

    def __call__(
        self, parser: Any, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        if option_string is not None:
            if self.dest in parser.given:
                raise ArgumentError(self, "it is given twice, expected once")
            parser.given.add(self.dest)
        setattr(namespace, self.dest, values)


class _Version(Action):
    """Looks the version up, and the codec, only when it is asked for."""

    def __call__(self, parser: ArgumentParser, *_: Any, **__: Any) -> None:
        from kohort.native.choice import CODEC
        from kohort.version import VERSION

        sys.stdout.write(f"kohort {VERSION}, codec: {CODEC}\n")
        parser.exit()


def parser(words: Collection[str] | None = None) -> ArgumentParser:
    """The command line, as far as arguments with these words can need it; None: all of it.

    If the arguments name no command, `parser` is that of the words they have.
    """
    top = Parser(
        prog="kohort",
        description="Consumer groups for the Kafka protocol: serve them, list, describe and "
        "delete them.",
        epilog=_examples(FIRST),
        formatter_class=RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    add_connection(top, in_front=True)
    top.set_defaults(command=None, parser=top)
    inner = top.add_subparsers(metavar="COMMAND", prog="kohort")
    for word, (text, is_noun) in WORDS.items():
        if words is not None and word not in words:
            inner.add_parser(word, help=text)
        elif is_noun:
            _add_noun(inner, word, text, commands_of(word))
        else:
            _add(inner, word, command_of(word))
    return top


def _add_noun(words: Any, noun: str, text: str, commands: Commands, prog: str = "kohort") -> None:
    added = words.add_parser(noun, help=text, description=text)
    if any(not isinstance(one, Command) or one.asks_a_cluster for one in commands.values()):
        add_connection(added, in_front=True)
    added.set_defaults(parser=added)
    prog = f"{prog} {noun}"
    verbs = added.add_subparsers(metavar="COMMAND", prog=prog)
    for verb, command in commands.items():
        if isinstance(command, Command):
            _add(verbs, verb, command)
        else:
            _add_noun(verbs, verb, NOUNS[f"{prog} {verb}"], command, prog)


def _add(words: Any, word: str, command: Command) -> None:
    added = words.add_parser(
        word,
        help=command.help,
        description=f"{command.help}\n\n{fill(command.notes)}" if command.notes else command.help,
        epilog=_examples(command.examples),
        formatter_class=RawDescriptionHelpFormatter,
    )
    command.configure(added)
    added.set_defaults(command=command, prog=added.prog)


def command_of(word: str) -> Command:
    """The command that is called by one word."""
    found: Command = import_module(f"kohort.cli.{word}").COMMAND
    return found


def commands_of(noun: str) -> Commands:
    """The commands of a noun, by their verbs."""
    found: Commands = import_module(f"kohort.cli.{noun}").COMMANDS
    return found


def _examples(calls: Sequence[str]) -> str | None:
    return "examples:\n" + "\n".join(f"  {call}" for call in calls) if calls else None


def _complete() -> int:
    """Answer a shell that wants to know what may follow, and end."""
    line = os.environ.get("COMP_LINE", "")
    from kohort.cli.completion import complete

    complete(parser(line.split()), stores=(_StoreOnce,))
    return OK


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (without the program's name), or what the shell has called; returns
    its exit code.
    """
    plug_streams()
    if argv is None:
        return run_program(main)
    if _COMPLETION in os.environ:
        return _complete()
    refusal = codec_refusal()
    if refusal:
        complain(refusal)
        return USAGE
    args = parser(argv).parse_args(argv)
    command: Command | None = args.command
    if command is None:  # a newcomer's first call: a list of commands helps more than a complaint
        args.parser.print_help(sys.stderr)
        return USAGE
    option = in_front_or_none(args)
    if option is not None and not command.asks_a_cluster:
        complain(f"{option} comes before a command that does not take it there")
        return USAGE
    try:
        return command.main(args)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
