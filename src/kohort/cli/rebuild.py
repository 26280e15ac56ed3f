# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline rebuild` and `verify`: gold anew from the rows, and whether all is as it was
written.
"""

import logging
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from kohort.cli.arguments import directory, require
from kohort.cli.command import FAILED, OK, Command, print_result
from kohort.cli.pipeline_progress import ProgressPrinter
from kohort.cli.render import Output

if TYPE_CHECKING:
    from kohort.pipeline.format.rebuild import RebuildResult
    from kohort.spark.tables.verification import VerificationResult


class Rebuild(Command):
    """`kohort pipeline rebuild`."""

    help: ClassVar[str] = "compute all tables of gold anew from the rows that were read"
    examples: ClassVar[tuple[str, ...]] = ("kohort pipeline rebuild groups",)

    def configure(self, parser: ArgumentParser) -> None:
        _add_tables(parser)

    def main(self, args: Namespace) -> int:
        return print_result(lambda output: _rebuild(args.tables, output))


def _add_tables(parser: ArgumentParser) -> None:
    parser.add_argument("tables", type=directory, metavar="DIR", help="the directory of the tables")


def _rebuild(tables: Path, output: Output) -> int:
    require("spark")
    from kohort.spark import jobs

    logging.getLogger().addHandler(logging.NullHandler())  # else Py4J shows traces of its own
    _print_rebuild_result(jobs.rebuild(tables, progress=ProgressPrinter(), alone=True), output)
    return OK


def _print_rebuild_result(found: "RebuildResult", output: Output) -> None:
    output.line(
        f"computed {len(found.tables)} tables in {found.directory} anew from {found.rows:,} rows "
        f"of {found.partitions:,} partitions in {found.seconds:.0f} s, as of "
        f"{found.as_of.isoformat(' ', 'seconds').removesuffix('+00:00')} UTC"
    )
    if found.upgraded:
        output.line("note: another Kohort had computed them before")
    output.line()
    rows = [(name, before, after) for name, (before, after) in found.tables.items()]
    output.table(("GOLD", "ROWS BEFORE", "ROWS"), rows)


class Verify(Command):
    """`kohort pipeline verify`."""

    help: ClassVar[str] = "say whether tables are as they were written, and gold is what they tell"
    notes: ClassVar[str] = "Exit code: 0 all is well, 1 something is not. Changes nothing."
    examples: ClassVar[tuple[str, ...]] = (
        "kohort pipeline verify groups",
        "kohort pipeline verify groups --all --format json",
    )

    def configure(self, parser: ArgumentParser) -> None:
        _add_tables(parser)
        parser.add_argument(
            "--all",
            dest="every",
            action="store_true",
            help="compute gold of all partitions of the log anew, not of four",
        )
        parser.add_argument(
            "--format",
            choices=("table", "json"),
            default="table",
            help="table for people (default), json for programs",
        )

    def main(self, args: Namespace) -> int:
        return print_result(lambda output: _verify(args, output), args.format)


def _verify(args: Namespace, output: Output) -> int:
    require("spark")
    from kohort.spark import jobs

    logging.getLogger().addHandler(logging.NullHandler())
    found = jobs.verify(args.tables, every=args.every, progress=ProgressPrinter(), alone=True)
    (_print_json if not output.is_table else _print_findings)(found, output)
    return FAILED if found.findings else OK


def _print_findings(found: "VerificationResult", output: Output) -> None:
    for finding in found.findings:
        output.line(str(finding))
    if found.partitions is None:
        output.line(f"note: gold was not recomputed, since {found.why_not}")
    elif not found.findings:
        output.line(
            f"{found.directory} is as it was written, and gold is what the log tells "
            f"(recomputed of {len(found.partitions)} partitions)"
        )


def _print_json(found: "VerificationResult", output: Output) -> None:
    output.json(
        {
            "directory": str(found.directory),
            "findings": [finding._asdict() for finding in found.findings],
            "computed_anew": None if found.partitions is None else [*found.partitions],
            "why_not": found.why_not,
        }
    )
