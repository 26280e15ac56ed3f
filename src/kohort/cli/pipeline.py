"""`kohort pipeline`: the group log as tables, what they say, and a report.

`run` needs Spark and Java; all the others read and write Parquet by themselves and start at once.
"""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.command import OK, USAGE, Command, complain, print_result
from kohort.cli.render import ERASE, Cell, Output, printable

if TYPE_CHECKING:
    from kohort.spark.adding import Summary
    from kohort.spark.progress import Doing

SHORT = {"deletable": "deletable_groups"}
LATEST = {"lag": "at"}
"""Tables of which the newest moment is shown, unless the history is asked for."""
_WHERE = ("group_id", "topic", "topic_partition")
SHOWN: dict[str, tuple[str, ...]] = {
    "rebalances": (
        *("group_id", "epoch", "started_at", "started_before", "seconds", "outcome", "trigger"),
        *("members", "partitions_moved", "evidence"),
    ),
    "assignments": (*_WHERE, "member_id", "epoch", "valid_from", "valid_to"),
    "members": (
        *("group_id", "member_id", "group_instance_id", "client_id", "client_host", "is_leader"),
        *("subscribed_topics", "valid_from", "valid_to"),
    ),
    "offsets": (*_WHERE, "committed_offset", "metadata", "committed_at", "pending"),
    "lag": (
        *("group_id", "level", "topic", "topic_partition", "committed_offset", "end_offset"),
        *("lag_records", "lag_seconds", "lag_seconds_error", "reason", "at"),
    ),
    "status": (
        *("group_id", "rules", "level", "topic", "topic_partition", "status", "rule"),
        *("lag_records", "lag_seconds", "last_commit_at"),
    ),
    "deletable_groups": (
        *("group_id", "type", "state", "deletable", "last_commit_at", "days_idle", "expires_at"),
        "reason",
    ),
}
"""Columns for a terminal, which has no room for all; of other tables all are shown."""
ROWS_SHOWN = 100
PATIENCE_S = 2.0
LINE_EVERY_S = 10.0
UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Run(Command):
    """`kohort pipeline run`."""

    help: ClassVar[str] = "read what is new in a group log into tables, and write a report"

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--source",
            required=True,
            metavar="SOURCE",
            help="log:DIR, a broker's directory of logs or a copy; cluster:HOST:PORT; parquet:DIR; "
            "connector:HOST:PORT, by Spark's Kafka connector",
        )
        _add_out(parser)
        for option, what in (("--from", "not older than"), ("--to", "older than")):
            parser.add_argument(
                option,
                dest=f"{option[2:]}_time",
                type=_moment,
                metavar="TIME",
                help=f"read records that are {what} this: 2026-11-21T07:00Z, or milliseconds",
            )
        parser.add_argument(
            "--stream", action="store_true", help="read in micro-batches, all that is there now"
        )
        parser.add_argument(
            "--every",
            type=_duration,
            metavar="10s",
            help="with --stream: go on until interrupted, a micro-batch this often",
        )
        _add_cluster(parser)
        parser.add_argument("--master", metavar="URL", help="Spark's master (default local[*])")
        parser.add_argument(
            "-X",
            dest="conf",
            action="append",
            type=_pair,
            default=[],
            metavar="NAME=VALUE",
            help="a setting of Spark; may be repeated",
        )
        parser.add_argument(
            "--format",
            choices=("parquet", "delta"),
            default="parquet",
            help="how the tables are kept (default parquet)",
        )
        parser.add_argument(
            "--as-of",
            type=_moment,
            metavar="TIME",
            help="the moment for which lag and the like are computed (default --to, or now)",
        )
        parser.add_argument(
            "--keep",
            type=_days,
            metavar="DAYS",
            help="drop history that is older, but not what tells the state of groups",
        )

    def main(self, args: Namespace) -> int:
        if args.every is not None and not args.stream:
            complain("pipeline run: --every is for --stream")
            return USAGE
        if args.stream and args.to_time is not None:
            complain("pipeline run: --to is not for --stream")
            return USAGE
        return print_result(lambda output: _run(args, output), as_json=False)


def _add_cluster(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--retention",
        type=_duration,
        metavar="7d",
        help="offsets.retention.minutes of the cluster, where it cannot be asked",
    )
    parser.add_argument(
        "--session-timeout",
        type=_duration,
        metavar="45s",
        help="the shortest session of a member of the consumer protocol, where the cluster "
        "cannot be asked: group.consumer.session.timeout.ms, or what groups set for themselves",
    )


def _run(args: Namespace, output: Output) -> int:
    _require_spark()
    from kohort.spark import jobs  # noqa: PLC0415  (start-up time)

    common: dict[str, Any] = {
        "master": args.master,
        "from_time": args.from_time,
        "conf": dict(args.conf),
        "as_of": args.as_of,
        "retention_ms": args.retention,
        "session_timeout_ms": args.session_timeout,
        "format": args.format,
        "keep_days": args.keep,
        "progress": _Shown(),
    }
    if args.stream:
        every_s = None if args.every is None else args.every / 1000
        summary = jobs.stream(args.source, args.out, every_s=every_s, **common)
    else:
        summary = jobs.run(args.source, args.out, to_time=args.to_time, **common)
    _tell(summary, args.source, output)
    _tell_causes(args.out, output)
    _write_report(args.out, None, output)
    return OK


def _tell(summary: "Summary", source: str, output: Output) -> None:
    """What was read, what happened to the log, and what is in gold."""
    total = sum(summary.rows.values())
    output.line(
        f"read {total:,} records of {source} into {summary.directory} in {summary.seconds:.0f} s"
    )
    if total:
        output.line()
        output.table(("TABLE", "NEW ROWS"), [pair for pair in summary.rows.items() if pair[1]])
    for note in summary.notes:
        output.line(f"note: {note.text}")
    if summary.gold:
        output.line()
        output.table(("GOLD", "ROWS"), list(summary.gold.items()))


def _tell_causes(directory: Path, output: Output) -> None:
    """How many rebalances there were, and why."""
    from collections import Counter  # noqa: PLC0415  (start-up time)

    from kohort.spark.jobs import reader  # noqa: PLC0415
    from kohort.spark.report.picks import select  # noqa: PLC0415

    found = select(reader(directory)("rebalances"), ["trigger", "possible"]).to_pylist()
    causes = Counter(_cause(row["trigger"], row["possible"]) for row in found).most_common()
    total = len(found)
    listed = ", ".join(f"{count} {cause}" for cause, count in causes)
    output.line()
    output.line(f"{total:,} rebalances" + (f": {listed}" if total else ""))


def _cause(trigger: str, possible: list[str] | None) -> str:
    return f"{trigger} ({' or '.join(sorted(possible))})" if possible else trigger


class Report(Command):
    """`kohort pipeline report`."""

    help: ClassVar[str] = "write a page with charts of what the tables say"

    def configure(self, parser: ArgumentParser) -> None:
        _add_out(parser)
        _add_group(parser, "only this group; may be repeated")

    def main(self, args: Namespace) -> int:
        return print_result(lambda output: _report(args, output), as_json=False)


def _report(args: Namespace, output: Output) -> int:
    _require_spark()
    _write_report(args.out, tuple(args.group) or None, output)
    return OK


def _write_report(directory: Path, groups: tuple[str, ...] | None, output: Output) -> None:
    from kohort.spark import jobs  # noqa: PLC0415  (start-up time)

    output.line(f"report: {jobs.report(directory, groups)}")


class Show(Command):
    """`kohort pipeline show`."""

    help: ClassVar[str] = "print a table: rebalances, lag, deletable, members, or any other"

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument("table", metavar="TABLE", help="rebalances, lag, deletable, members …")
        _add_out(parser)
        _add_group(parser, "only rows of this group; may be repeated")
        parser.add_argument(
            "--columns", metavar="NAMES", help="these columns, with commas between (default most)"
        )
        parser.add_argument(
            "--history",
            action="store_true",
            help="of lag, all moments and not only the newest",
        )
        parser.add_argument(
            "--limit",
            type=_count,
            metavar="N",
            help=f"at most so many rows (default {ROWS_SHOWN}, and all in JSON)",
        )
        parser.add_argument(
            "--format",
            choices=("table", "json"),
            default="table",
            help="table for people (default), json for programs",
        )

    def main(self, args: Namespace) -> int:
        return print_result(lambda output: _show(args, output), as_json=args.format == "json")


def _show(args: Namespace, output: Output) -> int:
    _require_spark()
    from kohort.spark.plain import Tables  # noqa: PLC0415  (start-up time)
    from kohort.spark.store import table_of  # noqa: PLC0415

    tables = Tables(args.out)
    table = table_of(args.out, tables.manifest, SHORT.get(args.table, args.table))
    names = _columns(args, table.name, table.names, as_json=output.as_json)
    if names is None:
        return USAGE
    if args.group and "group_id" not in table.names:
        complain(f"table {table.name} has no groups, so --group cannot choose among its rows")
        return USAGE
    rows = _rows(tables, table.name, args, table.names)
    limit = args.limit if args.limit is not None else None if output.as_json else ROWS_SHOWN
    shown = rows.select(names).slice(0, limit)
    if output.as_json:
        output.json([{name: _plain(cell) for name, cell in row.items()} for row in _dicts(shown)])
        return OK
    output.table(
        [name.upper() for name in names],
        [[_cell(row[name]) for name in names] for row in _dicts(shown)],
    )
    if rows.num_rows > shown.num_rows:
        output.line(f"… and {rows.num_rows - shown.num_rows:,} more rows: see --limit and --group")
    return OK


def _columns(args: Namespace, table: str, names: list[str], *, as_json: bool) -> list[str] | None:
    """The columns to show; None, with a complaint, when one is asked for that is not there."""
    if args.columns is None:
        return names if as_json else list(SHOWN.get(table, names))
    wanted = [name.strip() for name in args.columns.split(",")]
    for name in wanted:
        if name not in names:
            complain(f"table {table} has no column {name!r}, expected of {', '.join(names)}")
            return None
    return wanted


def _rows(tables: Any, name: str, args: Namespace, names: list[str]) -> Any:
    """The rows that are asked for, by group and in the order of the log."""
    import pyarrow as pa  # noqa: PLC0415  (start-up time)
    import pyarrow.compute as pc  # noqa: PLC0415

    where = pc.field("group_id").isin(args.group) if args.group else None
    rows = tables.table(name, where)
    if name in LATEST and not args.history and rows.num_rows:
        at = rows.column(LATEST[name])
        rows = rows.filter(pc.equal(at, pc.max(at)))
    times = [field.name for field in rows.schema if pa.types.is_timestamp(field.type)]
    keys = [*_WHERE, "partition", "offset", "from_offset", *times[:1]]
    order = [(key, "ascending") for key in keys if key in names]
    return rows.sort_by(order) if order and rows.num_rows else rows


def _dicts(rows: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case bytes():
            return value.hex()
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {name: _plain(one) for name, one in value.items()}
    return value


def _cell(value: Any) -> Cell:
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
            return ", ".join(str(_cell(one)) for one in value)
        case dict():
            return " ".join(str(_cell(one)) for one in value.values())
    return str(value)


class Snapshot(Command):
    """`kohort pipeline snapshot`."""

    help: ClassVar[str] = "add where the topics of a cluster end now, so that time lag is exact"

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--bootstrap-server",
            metavar="HOST:PORT",
            required=True,
            help="a broker of the cluster, or several with commas",
        )
        _add_out(parser)
        parser.add_argument(
            "--every", type=_duration, metavar="60s", help="go on, this often (default: once)"
        )
        parser.add_argument(
            "--count", type=_count, metavar="N", help="with --every: end after so many times"
        )

    def main(self, args: Namespace) -> int:
        if args.count is not None and args.every is None:
            complain("pipeline snapshot: --count is for --every")
            return USAGE
        return print_result(lambda output: _snapshot(args, output), as_json=False)


def _snapshot(args: Namespace, output: Output) -> int:
    _require_spark()
    from kohort.spark import jobs  # noqa: PLC0415  (start-up time)

    every_s = None if args.every is None else args.every / 1000
    jobs.snapshot(
        args.bootstrap_server,
        args.out,
        every_s=every_s,
        count=args.count,
        told=lambda partitions: output.line(f"{_now()} ends of {partitions:,} partitions"),
        failed=lambda error: complain(f"{_now()} {error}"),
    )
    return OK


class _Shown:
    """Shows progress on stderr: in one line of a terminal, else a line every ten seconds."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._said = self._began + PATIENCE_S - LINE_EVERY_S

    def __call__(self, doing: "Doing") -> None:
        now = time.monotonic()
        if sys.stderr.isatty():
            if now - self._began >= PATIENCE_S:
                sys.stderr.write(ERASE + printable(str(doing)))
                sys.stderr.flush()
        elif now - self._said >= LINE_EVERY_S:
            self._said = now
            sys.stderr.write(f"{printable(str(doing))}\n")
            sys.stderr.flush()


def _require_spark() -> None:
    from kohort.spark import require  # noqa: PLC0415  (start-up time)

    require()


def _add_out(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="the directory of the tables"
    )


def _add_group(parser: ArgumentParser, text: str) -> None:
    parser.add_argument("--group", action="append", default=[], metavar="GROUP", help=text)


def _now() -> str:
    return datetime.now(UTC).isoformat(" ", "seconds").removesuffix("+00:00")


def _moment(text: str) -> datetime:
    """A time in ISO 8601, in UTC where it names no zone, or milliseconds since 1970."""
    try:
        if text.isascii() and text.isdigit() and len(text) > 8:
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        raise ArgumentTypeError(
            f"{text!r} is not a time, expected such as 2026-11-21T07:00Z, or milliseconds since "
            "1970"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _duration(text: str) -> int:
    """Milliseconds."""
    number = text.rstrip("dhms")
    unit = UNITS.get(text[len(number) :])
    if unit is None or not (number.isascii() and number.isdigit()) or not int(number):
        raise ArgumentTypeError(f"{text!r} is not a duration, expected such as 10s, 90m or 7d")
    return int(number) * unit


def _days(text: str) -> float:
    try:
        days = float(text.removesuffix("d"))
    except ValueError:
        days = 0.0
    if not 0 < days < 100_000:
        raise ArgumentTypeError(f"{text!r} is not a number of days, expected one above 0")
    return days


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a number, expected one above 0")
    return int(text)


def _pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name.strip():
        raise ArgumentTypeError(f"{text!r} is not a setting, expected NAME=VALUE")
    return name.strip(), value.strip()


COMMANDS: dict[str, Command] = {
    "run": Run(),
    "report": Report(),
    "show": Show(),
    "snapshot": Snapshot(),
}
