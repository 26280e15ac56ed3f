# SPDX-License-Identifier: Apache-2.0
"""`kohort inspect`: shows what Kohort has inside. It asks no broker."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from typing import Any, ClassVar

from kohort.cli.command import (
    OK,
    USAGE,
    Command,
    Commands,
    complain,
    print_result,
)
from kohort.cli.inspect_data import InspectData
from kohort.cli.render import Output


class InspectCodec(Command):
    """`kohort inspect codec`."""

    help: ClassVar[str] = "print the functions that encode and decode a message in one version"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort inspect codec OffsetCommitRequest 8",
        "kohort inspect codec GroupMetadataValue 3 --format json",
    )

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "message",
            metavar="MESSAGE",
            help="a request, a response, or a key or value of __consumer_offsets, in any case: "
            "OffsetCommitRequest, GroupMetadataValue",
        )
        parser.add_argument("version", metavar="VERSION", type=_version, help="its version")
        parser.add_argument(
            "--format",
            choices=("table", "json"),
            default="table",
            help="table for people (default), json for programs",
        )

    def main(self, args: Namespace) -> int:
        from kohort.wire.codegen import decoder_source, encoder_source

        by_name = _messages()
        cls = by_name.get(args.message.lower())
        if cls is None:
            complain(_no_message(args.message, by_name))
            return USAGE
        if args.version not in cls.versions:
            complain(
                f"{cls.__name__} has no version {args.version}, expected one of {cls.versions}"
            )
            return USAGE
        functions = {
            "encode": encoder_source(cls, args.version),
            "decode": decoder_source(cls, args.version),
        }

        def show(output: Output) -> int:
            if not output.is_table:
                output.json(_fields(cls, args.version, functions))
            else:
                for index, (source, constants) in enumerate(functions.values()):
                    output.text("\n\n" * bool(index) + source.rstrip() + "\n")
                    output.text("".join(f"# {line}\n" for line in _meanings(constants)))
            return OK

        return print_result(show, args.format)


Functions = Mapping[str, tuple[str, dict[str, Any]]]


def _fields(cls: type[Any], version: int, functions: Functions) -> dict[str, Any]:
    return {
        "message": cls.__name__,
        "version": version,
        "versions": str(cls.versions),
        "flexible": version in cls.flexible,
        **{name: source for name, (source, _) in functions.items()},
    }


def _messages() -> dict[str, type[Any]]:
    """Every class that has a layout on the wire or in the log, by its name in small letters."""
    from kohort.records import schemas
    from kohort.wire.apis import APIS

    on_wire = [cls for api in APIS.values() for cls in (api.request, api.response)]
    in_log = [
        cls
        for cls in vars(schemas).values()
        if isinstance(cls, type) and cls.__name__.endswith(("Key", "Value"))
    ]
    return {cls.__name__.lower(): cls for cls in (*on_wire, *in_log)}


def _no_message(name: str, by_name: Mapping[str, type[Any]]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), by_name, n=3) or ["offsetcommitrequest"]
    examples = ", ".join(by_name[key].__name__ for key in near)
    return f"no message {name!r}, expected such as {examples}"


def _meanings(constants: Mapping[str, Any]) -> list[str]:
    """What the numbered names in a source mean, a line each."""
    return [f"{name}: {_meaning(value)}" for name, value in constants.items()]


def _meaning(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    layout = getattr(getattr(value, "__self__", None), "format", None)
    return f"{value.__name__} of Struct({layout!r})" if layout else repr(value)


def _version(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not a version, expected a number from 0")
    return int(text)


COMMANDS: Commands = {"codec": InspectCodec(), "data": InspectData()}
