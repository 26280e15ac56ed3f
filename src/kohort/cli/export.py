# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline export`: whole tables as files, or as tables of Iceberg. No Spark and no Java
are needed.
"""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, ClassVar

from kohort.cli.arguments import add_out, local_directory, require
from kohort.cli.command import USAGE, Command, complain, complain_of_lost, print_result
from kohort.cli.render import Output
from kohort.errors import KohortError

if TYPE_CHECKING:
    from kohort.tables.snapshots import Snapshots

ICEBERG = "iceberg"
Written = tuple[str, int, str]
"""A table, how many rows it has, and where it is."""
Write = Callable[["Snapshots"], list[Written]]


class Export(Command):
    """`kohort pipeline export`."""

    help: ClassVar[str] = "write whole tables as Parquet, CSV, lines of JSON, or into Iceberg"
    notes: ClassVar[str] = (
        "All tables are of one moment; of several clusters they have the rows of all. A file is "
        "written aside and renamed, so a file of such a name is whole. A table of Iceberg gets "
        "its rows by one commit, and keeps what it had in its history."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort pipeline export --out groups --to files",
        "kohort pipeline export --out groups --to files --format csv --table lag --table offsets",
        "kohort pipeline export --out groups --format iceberg --catalog lake --force",
    )

    def configure(self, parser: ArgumentParser) -> None:
        add_out(parser, several=True)
        parser.add_argument(
            "--to",
            type=local_directory,
            metavar="DIR",
            help="the directory of the files; for iceberg, one with a catalog of its own",
        )
        parser.add_argument(
            "--format",
            choices=("parquet", "csv", "jsonl", ICEBERG),
            default="parquet",
            help="files of this kind, or tables of Iceberg (default parquet)",
        )
        parser.add_argument(
            "--catalog",
            metavar="NAME",
            help="for iceberg, instead of --to: a catalog that pyiceberg is configured for",
        )
        parser.add_argument(
            "--namespace",
            metavar="NAME",
            help="for iceberg: where in the catalog the tables are (default kohort)",
        )
        parser.add_argument(
            "--table",
            action="append",
            metavar="TABLE",
            help="this table; may be repeated (default: all)",
        )
        parser.add_argument("--force", action="store_true", help="overwrite what is there")

    def main(self, args: Namespace) -> int:
        wrong = _misused(args)
        if wrong is not None:
            complain(f"pipeline export: {wrong}")
            return USAGE
        return print_result(lambda output: _export(args, output))


def _misused(args: Namespace) -> str | None:
    """What is wrong with options that do not fit each other."""
    if args.format != ICEBERG:
        if args.catalog is not None or args.namespace is not None:
            return f"--catalog and --namespace are for --format iceberg, not {args.format}"
        return "--to is missing: the directory of the files" if args.to is None else None
    if (args.to is None) == (args.catalog is None):
        return "--format iceberg needs either --catalog or --to, a directory with one of its own"
    return None


def _export(args: Namespace, output: Output) -> int:
    require("tables")
    from kohort import tables
    from kohort.tables.export import ThereError
    from kohort.tables.walking import answered

    write = _into_iceberg(args) if args.format == ICEBERG else _into_files(args)
    try:
        with output.changing("writing tables") if args.format == ICEBERG else nullcontext():
            written, lost = answered(args.out, write, tables.snapshot)
    except ThereError as error:
        raise KohortError(f"{error}: --force overwrites it") from error
    output.table(("TABLE", "ROWS", "FILES" if args.format == ICEBERG else "FILE"), written)
    return complain_of_lost(lost)


def _into_files(args: Namespace) -> Write:
    from kohort.tables.export import export

    def write(found: "Snapshots") -> list[Written]:
        files = export(found, args.to, args.format, args.table, overwrite=args.force)
        return [(file.name, file.rows, str(file.path)) for file in files]

    return write


def _into_iceberg(args: Namespace) -> Write:
    require("iceberg")
    logging.getLogger("pyiceberg").setLevel(logging.CRITICAL)  # what it says is said by errors
    try:
        from kohort.tables.iceberg import NAMESPACE, Lake
    except Exception as error:  # it reads its configuration when it is imported
        raise KohortError(f"pyiceberg does not start: {str(error).splitlines()[0]}") from error

    namespace = NAMESPACE if args.namespace is None else args.namespace
    if args.catalog is None:
        lake = Lake.in_directory(args.to, namespace)
    else:
        lake = Lake.of_catalog(args.catalog, namespace)

    def write(found: "Snapshots") -> list[Written]:
        exported = lake.export(found, args.table, overwrite=args.force)
        return [(table.name, table.rows, table.location) for table in exported]

    return write
