"""`kohort`: finds the command that the arguments name, and runs it."""

import sys
from argparse import Action, ArgumentParser
from collections.abc import Sequence
from typing import Any, NoReturn

from kohort.cli import groups, inspect, pipeline, topics
from kohort.cli.command import USAGE, Command
from kohort.cli.serve import SERVE

NOUNS = {
    "groups": ("list, describe and delete consumer groups", groups.COMMANDS),
    "topics": ("create, list, describe and delete topics", topics.COMMANDS),
    "pipeline": ("what happened to every consumer group, from the group log", pipeline.COMMANDS),
    "inspect": ("see what Kohort makes of things", inspect.COMMANDS),
}
ALONE: dict[str, Command] = {"serve": SERVE}


class Parser(ArgumentParser):
    """Says what is wrong with the arguments in one line, as every other failure is said."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


class _Version(Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import version  # noqa: PLC0415  (start-up time)

        sys.stdout.write(f"kohort {version('kohort')}\n")
        parser.exit()


def parser() -> ArgumentParser:
    """The whole command line."""
    top = Parser(
        prog="kohort",
        description="Consumer groups for the Kafka protocol: serve them, list, describe and "
        "delete them.",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    words = top.add_subparsers(metavar="COMMAND", required=True)
    for name, command in ALONE.items():
        _add(words, name, command)
    for noun, (help_text, commands) in NOUNS.items():
        verbs = words.add_parser(noun, help=help_text, description=help_text).add_subparsers(
            metavar="COMMAND", required=True
        )
        for verb, command in commands.items():
            _add(verbs, verb, command)
    return top


def _add(words: Any, name: str, command: Command) -> None:
    one = words.add_parser(name, help=command.help, description=command.help)
    command.configure(one)
    one.set_defaults(command=command)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (without the program's name) says; returns its exit code."""
    args = parser().parse_args(argv)
    command: Command = args.command
    return command.main(args)


if __name__ == "__main__":
    sys.exit(main())
