# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline show`: a table in the terminal, or as JSON. No Spark and no Java are needed."""

from argparse import ArgumentParser, Namespace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.arguments import add_group, add_out, count, require
from kohort.cli.command import (
    USAGE,
    Command,
    add_format,
    complain,
    complain_of_lost,
    print_result,
)
from kohort.cli.render import Cell, Output, name_text
from kohort.cli.table_columns import SHOWN, WHERE
from kohort.figures import FIGURES, Figure, beside, counted, figure

if TYPE_CHECKING:
    import pyarrow as pa

    from kohort.pipeline.schemas import Table
    from kohort.tables.snapshots import Snapshot, Snapshots

LATEST = {"lag": "at"}
"""Tables that show their newest moment, unless the history is asked for."""
ROWS_SHOWN = 100


class Show(Command):
    """`kohort pipeline show`."""

    help: ClassVar[str] = "print a table: rebalances, lag, deletable, members, or any other"
    notes: ClassVar[str] = "Times are in UTC."
    examples: ClassVar[tuple[str, ...]] = (
        "kohort pipeline show rebalances --out groups",
        "kohort pipeline show lag --out groups --group billing",
        "kohort pipeline show deletable --out groups --format json > deletable.json",
    )

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument("table", metavar="TABLE", help="rebalances, lag, deletable, members …")
        add_out(parser, several=True)
        add_group(parser, "only rows of this group; may be repeated")
        parser.add_argument(
            "--columns",
            metavar="NAMES",
            help="these columns, separated by commas (default: most of them)",
        )
        parser.add_argument(
            "--history",
            action="store_true",
            help="of lag: all times, not only the newest",
        )
        parser.add_argument(
            "--limit",
            type=count,
            metavar="N",
            help=f"at most N rows (default {ROWS_SHOWN}, and all for programs)",
        )
        add_format(parser)

    def main(self, args: Namespace) -> int:
        return print_result(lambda output: _show(args, output), args.format)


class _UsageError(Exception):
    """The command was called wrongly; it has been said how."""


def _show(args: Namespace, output: Output) -> int:
    require("tables")
    from kohort import tables
    from kohort.tables.plain import plain
    from kohort.tables.walking import answered

    try:
        (table, names, shown, total), lost = answered(
            args.out, lambda found: _asked(found, args, output), tables.snapshot
        )
    except _UsageError:
        return USAGE
    if not output.is_table:
        rows = ({name: plain(value) for name, value in row.items()} for row in _dicts(shown))
        output.rows("rows", rows, names)
        return complain_of_lost(lost)
    output.table(
        [name.upper() for name in names],
        [[_cell_of(table.name, name, row) for name in names] for row in _dicts(shown)],
        spare=SHOWN[table.name].spare if args.columns is None and table.name in SHOWN else None,
    )
    if total > shown.num_rows:
        of_group = ", --group those of a group" if "group_id" in names else ""
        output.line(
            f"… and {counted(total - shown.num_rows, 'more row')}: --limit N shows N{of_group}, "
            "--format json all"
        )
    return complain_of_lost(lost)


def _asked(
    snapshots: "Snapshots", args: Namespace, output: Output
) -> "tuple[Table, list[str], pa.Table, int]":
    """The table, the columns that are asked for, the first rows with those columns and those that
    tell their bounds, and how many rows there are.
    """
    import pyarrow as pa

    table = snapshots.table(args.table)
    several = len(args.out) > 1
    names = _columns(args, table, several=several, for_people=output.is_table)
    if args.group and "group_id" not in table.names:
        complain(f"table {table.name} has no groups, so --group cannot choose among its rows")
        raise _UsageError
    snapshots.check_groups(args.group, table.name)
    limit = args.limit if args.limit is not None else ROWS_SHOWN if output.is_table else None
    read = [*names, *beside(table.name, names)]
    found = [_rows(member, table, args, read, limit) for member in snapshots.members]
    shown = pa.concat_tables([rows for rows, _ in found])
    return (
        table,
        names,
        shown if limit is None else shown.slice(0, limit),
        sum(total for _, total in found),
    )


def _columns(args: Namespace, table: "Table", *, several: bool, for_people: bool) -> list[str]:
    """The columns to show; of several clusters with their names. Raises _UsageError, with a
    complaint, when one that is asked for does not exist.
    """
    from kohort.pipeline.format.catalog import did_you_mean
    from kohort.pipeline.format.cluster import CLUSTER

    told = [CLUSTER] if several else []
    if args.columns is None:
        of_terminal = SHOWN[table.name].names if table.name in SHOWN else table.names
        return [*(of_terminal if for_people else table.names), *told]
    wanted = list(dict.fromkeys(name.strip() for name in args.columns.split(",")))
    known = [*table.names, CLUSTER]
    for name in wanted:
        if name not in known:
            there = did_you_mean(name, known) or f", expected one of {', '.join(known)}"
            complain(f"table {table.name} has no column {name!r}{there}")
            raise _UsageError
    return wanted


def _rows(
    member: "Snapshot", table: "Table", args: Namespace, names: list[str], most: int | None
) -> "tuple[pa.Table, int]":
    """The first rows of those that are asked for, in log order, and how many there are.

    However large the table is, memory holds only these rows and the piece being read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    where = pc.field("group_id").isin(args.group) if args.group else None
    if table.name in LATEST and not args.history:
        at = LATEST[table.name]
        found = member.scan(table.name, columns=[at], where=where)
        newest = [pc.max(batch.column(0)).as_py() for batch in found]
        latest = pc.field(at) == max(
            (moment for moment in newest if moment is not None), default=None
        )
        where = latest if where is None else where & latest
    times = [field.name for field in table.arrow if pa.types.is_timestamp(field.type)]
    keys = [*WHERE, "partition", "offset", "from_offset", *times[:1]]
    order = [(key, "ascending") for key in keys if key in table.names]
    columns = [*names, *(key for key, _ in order if key not in names)]
    batches = member.scan(table.name, columns=columns, where=where)
    if most is None:
        rows = batches.read_all()
        return (rows.sort_by(order) if order else rows).select(names), rows.num_rows
    total = 0
    first = batches.schema.empty_table()
    for batch in batches:
        total += batch.num_rows
        first = pa.concat_tables([first, pa.Table.from_batches([batch])])
        if order and first.num_rows > most:
            first = first.take(pc.select_k_unstable(first, most, order))
        first = first.slice(0, most)
    return (first.sort_by(order) if order else first).select(names), total


def _cell_of(table: str, column: str, row: dict[str, Any]) -> Cell:
    """A value in a terminal; a figure with its bound and its reason, and of members only what is
    likely of them.
    """
    if column == "likely":
        words = (one["likely"] for one in row[column] or ())
        return ", ".join(dict.fromkeys(word for word in words if word))
    if column not in FIGURES.get(table, {}):
        name = row[column]
        return name_text(name) if name == "" and column in WHERE else cell(name)
    found = figure(table, column, row)
    if found == Figure(found.value):
        return cell(found.value)  # a number, which stands at the right
    return found.text(lambda value: str(cell(value)))


def _dicts(rows: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def cell(value: Any) -> Cell:
    """A value in a terminal, on one line."""
    match value:
        case None | int() | str():
            return "yes" if value is True else "no" if value is False else value
        case float():
            return f"{value:,.1f}"
        case datetime():
            return value.isoformat(" ", "milliseconds").removesuffix("+00:00")
        case bytes():
            return value.hex()
        case list():
            return ", ".join(str(cell(item)) for item in value)
        case dict():
            return " ".join(str(cell(item)) for item in value.values())
    return str(value)
