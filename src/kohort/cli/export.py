"""`kohort pipeline export`: whole tables as files. No Spark and no Java are needed."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, ClassVar

from kohort.cli.arguments import add_out, local_directory, require
from kohort.cli.command import Command, complain_of_lost, print_result
from kohort.cli.render import Output
from kohort.errors import KohortError

if TYPE_CHECKING:
    from kohort.tables.moment import Snapshots


class Export(Command):
    """`kohort pipeline export`."""

    help: ClassVar[str] = "write whole tables as Parquet, CSV or lines of JSON"
    notes: ClassVar[str] = (
        "A file for each table, all of one moment; of several clusters with the rows of "
        "all. Each is written aside and renamed, so a file of such a name is whole."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort pipeline export --out groups --to files",
        "kohort pipeline export --out groups --to files --format csv --table lag --table offsets",
    )

    def configure(self, parser: ArgumentParser) -> None:
        add_out(parser, several=True)
        parser.add_argument(
            "--to",
            required=True,
            type=local_directory,
            metavar="DIR",
            help="the directory of the files",
        )
        parser.add_argument(
            "--format",
            choices=("parquet", "csv", "jsonl"),
            default="parquet",
            help="what the files are (default parquet)",
        )
        parser.add_argument(
            "--table",
            action="append",
            metavar="TABLE",
            help="this table; may be repeated (default: all)",
        )
        parser.add_argument("--force", action="store_true", help="overwrite files that are there")

    def main(self, args: Namespace) -> int:
        return print_result(lambda output: _export(args, output), as_json=False)


def _export(args: Namespace, output: Output) -> int:
    require("tables")
    from kohort import tables
    from kohort.tables.export import ThereError, export
    from kohort.tables.walking import answered

    def write(found: "Snapshots") -> list[tuple[str, int, str]]:
        files = export(found, args.to, args.format, args.table, overwrite=args.force)
        return [(file.name, file.rows, str(file.path)) for file in files]

    try:
        written, lost = answered(args.out, write, tables.snapshot)
    except ThereError as error:
        raise KohortError(f"{error}: --force overwrites it") from error
    output.table(("TABLE", "ROWS", "FILE"), written)
    return complain_of_lost(lost)
