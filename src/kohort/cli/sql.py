# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline sql`: a question to the tables in SQL. No Spark and no Java are needed."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, ClassVar

from kohort.cli.arguments import add_out, count
from kohort.cli.command import OK, Command, WrongCallError, add_format, print_result
from kohort.cli.render import Output
from kohort.cli.show import ROWS_SHOWN, cell
from kohort.user_files import DATA_BYTES_MAX, stdin_bytes

if TYPE_CHECKING:
    import pyarrow as pa


class Sql(Command):
    """`kohort pipeline sql`."""

    help: ClassVar[str] = "answer a SELECT over the tables, by DuckDB"
    notes: ClassVar[str] = (
        "Every table is a view; `show tables` and `describe lag` are queries too. All of a query "
        "is answered from one moment. Nothing is written, and no other file is read. "
        "Times are in UTC."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort pipeline sql 'show tables' --out groups",
        "kohort pipeline sql 'select trigger, count(*) from rebalances group by all' --out groups",
        "kohort pipeline sql - --out groups --format csv < question.sql",
    )

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument("query", metavar="QUERY", help="a SELECT; - reads it from stdin")
        add_out(parser, several=True)
        parser.add_argument(
            "--limit",
            type=count,
            metavar="N",
            help=f"at most N rows (default {ROWS_SHOWN}, and all for programs)",
        )
        add_format(parser)

    def main(self, args: Namespace) -> int:
        return print_result(lambda output: _sql(args, output), args.format)


def _sql(args: Namespace, output: Output) -> int:
    from kohort import tables

    query = _of_stdin() if args.query == "-" else args.query
    most = args.limit if args.limit or args.format != "table" else ROWS_SHOWN
    answer = tables.sql(args.out, query, limit=None if most is None else most + 1)
    shown = answer if most is None else answer.slice(0, most)
    _print(shown, args.format, output)
    if args.format == "table" and shown.num_rows < answer.num_rows:
        output.line("… and more rows: --limit N shows N, --format json, jsonl or csv all")
    return OK


def _of_stdin() -> str:
    """The query on stdin. Raises WrongCallError."""
    try:
        return stdin_bytes(DATA_BYTES_MAX).decode()
    except OSError as error:
        raise WrongCallError(f"sql: cannot read the query of stdin: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise WrongCallError(
            f"sql: cannot read the query of stdin: byte {error.start} is not UTF-8"
        ) from None


def _print(answer: "pa.Table", form: str, output: Output) -> None:
    from kohort.tables.plain import csv_header, csv_lines, plain, rows

    names = answer.schema.names
    batches = answer.to_batches()
    if form == "csv":
        output.text(csv_header(answer.schema))
        for batch in batches:
            output.text(csv_lines(batch))
        return
    found = (row for batch in batches for row in rows(batch))
    if output.is_table:
        output.table(
            [name.upper() for name in names], [[cell(value) for value in row] for row in found]
        )
    else:
        output.rows(
            "rows", (dict(zip(names, map(plain, row), strict=True)) for row in found), names
        )
