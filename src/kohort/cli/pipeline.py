# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline`: the group log as tables, views of these tables, and a report.

`run`, `rebuild`, `verify` and `warm` need Spark and Java; all the others read and write Parquet by
themselves, with neither, and start at once.
"""

import logging
import sys
import time
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.arguments import (
    add_group,
    add_out,
    count,
    days,
    duration,
    moment,
    pair,
    require,
    source,
)
from kohort.cli.check import Check
from kohort.cli.cluster_commands import connection_or_none
from kohort.cli.command import (
    INTERRUPTED,
    OK,
    USAGE,
    Command,
    Commands,
    complain,
    print_result,
)
from kohort.cli.connection import Connection, add_connection, add_security
from kohort.cli.export import Export
from kohort.cli.pipeline_progress import ProgressPrinter
from kohort.cli.rebuild import Rebuild, Verify
from kohort.cli.render import Output
from kohort.cli.show import Show
from kohort.cli.sql import Sql

if TYPE_CHECKING:
    from kohort.pipeline.format.summary import Summary


class Run(Command):
    """`kohort pipeline run`."""

    help: ClassVar[str] = "read what is new in a group log into tables, and write a report"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort pipeline run --source log:/var/lib/kafka --out groups",
        "kohort pipeline run --source cluster:broker.example:9092 --out groups",
        "kohort pipeline run --source log:/var/lib/kafka --out groups --stream --every 10s",
    )

    def configure(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--source",
            required=True,
            type=source,
            metavar="SOURCE",
            help="log:DIR, a broker's directory of logs or a copy; cluster:HOST:PORT; parquet:DIR; "
            "connector:HOST:PORT, by Spark's Kafka connector",
        )
        add_out(parser)
        for option, what in (("--from", "not older than"), ("--to", "older than")):
            parser.add_argument(
                option,
                dest=f"{option[2:]}_time",
                type=moment,
                metavar="TIME",
                help=f"read records that are {what} this: 2026-11-21T07:00Z (in UTC where it "
                "names no zone), or milliseconds since 1970",
            )
        parser.add_argument(
            "--stream", action="store_true", help="read in micro-batches, all that is there now"
        )
        parser.add_argument(
            "--every",
            type=duration,
            metavar="10s",
            help="with --stream: go on until interrupted, with a micro-batch at this interval",
        )
        _add_cluster(parser)
        add_security(parser)
        _add_server_logs(parser)
        _add_spark(parser)
        parser.add_argument(
            "--as-of",
            type=moment,
            metavar="TIME",
            help="the time for which lag and the like are computed, in UTC where it names no zone "
            "(default --to, or the moment at which reading was planned)",
        )
        parser.add_argument(
            "--keep",
            type=days,
            metavar="DAYS",
            help="drop older history, but not the rows that tell the state of groups",
        )

    def main(self, args: Namespace) -> int:
        if args.every is not None and not args.stream:
            complain("pipeline run: --every is for --stream")
            return USAGE
        if args.stream and args.to_time is not None:
            complain("pipeline run: --to is not for --stream")
            return USAGE
        if None not in (args.from_time, args.to_time) and args.from_time >= args.to_time:
            complain(
                f"pipeline run: --from {_text(args.from_time)} is not before --to "
                f"{_text(args.to_time)}, so no record is between them"
            )
            return USAGE
        connection = None
        if args.source.startswith(("cluster:", "connector:")):
            connection = connection_or_none(args)
            if connection is None:
                return USAGE
        return print_result(lambda output: _run(args, connection, output))


def _add_cluster(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--retention",
        type=duration,
        metavar="7d",
        help="offsets.retention.minutes of the cluster, if it cannot be asked",
    )
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        help="what the column cluster of the tables says (default: the id of the cluster, where it "
        "is known); a directory keeps the name that it was given",
    )
    parser.add_argument(
        "--session-timeout",
        type=duration,
        metavar="45s",
        help="the shortest session of a member of the consumer protocol, where the cluster "
        "cannot be asked: group.consumer.session.timeout.ms, or what groups set for themselves",
    )


def _add_spark(parser: ArgumentParser) -> None:
    parser.add_argument("--master", metavar="URL", help="Spark's master (default local[*])")
    parser.add_argument(
        "-X",
        dest="conf",
        action="append",
        type=pair,
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark; may be repeated",
    )
    parser.add_argument(
        "--spark-only",
        action="store_true",
        help="leave also few rows to Spark's workers: for a cluster whose driver has no access "
        "to the log, or no memory for rows",
    )


def _add_server_logs(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--server-log",
        dest="server_logs",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="log files of Kafka brokers, also by gzip or as patterns: what they say of "
        "members that are gone is proof of causes",
    )


def _run(args: Namespace, connection: Connection | None, output: Output) -> int:
    require("spark")
    told: dict[str, Any] = {
        "from_time": args.from_time,
        "as_of": args.as_of,
        "retention_ms": args.retention,
        "session_timeout_ms": args.session_timeout,
        "keep_days": args.keep,
        "cluster": args.cluster,
    }
    try:
        summary = None if args.stream or args.server_logs else _unchanged(args, told)
        if summary is None:
            summary = _with_spark(args, told, connection, output)
    except KeyboardInterrupt:
        complain(f"interrupted; {_left_in(args.out)}")
        return INTERRUPTED
    _tell(summary, args.source, output)
    if summary.log_end is not None:
        _tell_end(summary.log_end, output, chosen=bool(args.as_of or args.to_time))
    _tell_later_end(args.out, summary.as_of, output)
    _tell_causes(args.out, output)
    if not (summary.unchanged and _has_report(args.out, output)):
        _write_report(args.out, None, output)
    return OK


def _unchanged(args: Namespace, told: dict[str, Any]) -> "Summary | None":
    """What there is to tell where Spark is not needed, not even to be imported."""
    from kohort.pipeline.format import up_to_date

    asked = up_to_date.asked(args.source, to_time=args.to_time, **told)
    return up_to_date.summary_or_none(args.out, asked)


def _left_in(out: Path) -> str:
    """What somebody finds who has interrupted a run."""
    from kohort.errors import KohortError
    from kohort.pipeline.format.manifest import load_or_none
    from kohort.pipeline.stores.places import place_of

    whole = f"{out} has the tables as they were last whole"
    try:
        found = load_or_none(place_of(out))
    except (KohortError, OSError):
        return whole
    if found is None or found.as_of_ms is None:
        return f"{out} has no tables yet"
    return f"{whole}, of {_text(datetime.fromtimestamp(found.as_of_ms / 1000, UTC))} UTC"


def _with_spark(
    args: Namespace, told: dict[str, Any], connection: Connection | None, output: Output
) -> "Summary":
    from kohort.spark import jobs

    told = {**told, "server_logs": args.server_logs}
    if connection is not None:
        told["security"] = connection.security
    common = {
        **told,
        "master": args.master,
        "conf": dict(args.conf),
        "progress": ProgressPrinter(),
        "spark_only": args.spark_only,
    }
    logging.getLogger().addHandler(logging.NullHandler())  # else Py4J shows traces of its own
    if args.stream:
        every_s = None if args.every is None else args.every / 1000
        after_each = None if every_s is None else MicroBatchReporter(args.out, output)
        return jobs.stream(args.source, args.out, every_s=every_s, after_each=after_each, **common)
    return jobs.run(args.source, args.out, to_time=args.to_time, alone=True, **common)


class MicroBatchReporter:
    """Tells of each micro-batch of a stream in a line, and writes the report of its tables: at
    once, and then once in EVERY_S. That takes about two seconds, which a micro-batch may not have
    each time.
    """

    EVERY_S = 60.0

    def __init__(self, out: Path, output: Output) -> None:
        self._out = out
        self._output = output
        self._next: float | None = None

    def __call__(self, added: "Summary") -> None:
        """To be called after each micro-batch, with what it has added. A line or a report that
        cannot be written is said to be so, and the stream goes on.
        """
        try:
            self._tell(added)
        except OSError as error:
            complain(f"cannot write to stdout: {error.strerror}")
        now = time.monotonic()
        if self._next is not None and now < self._next:
            return
        self._next = now + self.EVERY_S
        from kohort.pipeline import report

        try:
            report.write_into(self._out)
        except Exception as error:  # noqa: BLE001  (the rows count, and more are to come)
            complain(f"the report was not written: {error}")

    def _tell(self, added: "Summary") -> None:
        rows = sum(added.rows.values())
        self._output.line(f"{_text(added.as_of)} UTC: {rows:,} records in {added.seconds:.1f} s")
        for note in added.notes:
            self._output.line(f"note: {note.text}")
        sys.stdout.flush()  # a journal hears of it now


def _tell(summary: "Summary", source: str, output: Output) -> None:
    """What was read, what happened to the log, and what is in gold."""
    total = sum(summary.rows.values())
    output.line(
        f"read {total:,} records of {source} into {summary.directory} in {summary.seconds:.0f} s"
    )
    if summary.unchanged:
        output.line(
            f"nothing is new in it: Spark was not started, and the tables are those of "
            f"{_text(summary.as_of)} UTC"
        )
    if total:
        output.line()
        output.table(("TABLE", "NEW ROWS"), [pair for pair in summary.rows.items() if pair[1]])
    for note in summary.notes:
        output.line(f"note: {note.text}")
    _tell_server_logs(summary, output)
    if summary.gold:
        output.line()
        output.table(("GOLD", "ROWS"), list(summary.gold.items()))


def _tell_server_logs(summary: "Summary", output: Output) -> None:
    """What log files of brokers had to say."""
    if not summary.server_logs:
        return
    lines = sum(file.lines for file in summary.server_logs)
    fresh = sum(file.fresh for file in summary.server_logs)
    output.line(
        f"server logs: {len(summary.server_logs):,} files, {lines:,} lines about members that are "
        f"gone, {fresh:,} of them new"
    )
    for file in summary.server_logs:
        if not file.lines:
            output.line(
                f"note: {file.path} has no line about a member that is gone, as a group "
                "coordinator writes them at INFO"
            )


def _tell_end(log_end: datetime, output: Output, *, chosen: bool) -> None:
    """Say that the log ended long ago, and how to see its end, unless the moment was chosen."""
    at = log_end.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    advice = "" if chosen else f": if it is a copy, --as-of {at} tells how things were at its end"
    output.line(f"note: the log ends at {_text(log_end)} UTC{advice}")


def _tell_later_end(directory: Path, as_of: datetime, output: Output) -> None:
    """Say that tables tell of two times, where the log was read beyond the moment."""
    from kohort.pipeline.format.arrow_reader import Tables
    from kohort.pipeline.format.log_end import later_end

    end = later_end(Tables(directory).manifest)
    if end is not None:
        output.line(
            f"note: lag and status are those of {_text(as_of)} UTC; the log was read to "
            f"{_text(end)} UTC, and groups, members, offsets and deletable groups are of then. "
            "--to with the earlier time, into another directory, tells all as it was"
        )


def _tell_causes(directory: Path, output: Output) -> None:
    """How many rebalances there were, and why."""
    from collections import Counter

    from kohort.history import undecided_or_none
    from kohort.pipeline.format.arrow_reader import Tables

    columns = ["trigger", "possible", "evidence"]
    found = Tables(directory)("rebalances").to_table(columns).to_pylist()
    causes = Counter(_cause(row["trigger"], row["possible"]) for row in found).most_common()
    total = len(found)
    listed = ", ".join(f"{count} {cause}" for cause, count in causes)
    output.line()
    output.line(f"{total:,} rebalances" + (f": {listed}" if total else ""))
    if undecided := undecided_or_none(found):
        output.line(f"note: {undecided}")


def _cause(trigger: str, possible: list[str] | None) -> str:
    return f"{trigger} ({' or '.join(sorted(possible))})" if possible else trigger


class Report(Command):
    """`kohort pipeline report`."""

    help: ClassVar[str] = "write a page with charts of what the tables say"
    examples: ClassVar[tuple[str, ...]] = ("kohort pipeline report --out groups",)

    def configure(self, parser: ArgumentParser) -> None:
        add_out(parser)
        add_group(parser, "only this group; may be repeated")

    def main(self, args: Namespace) -> int:
        return print_result(lambda output: _report(args, output))


def _report(args: Namespace, output: Output) -> int:
    require("tables")
    _write_report(args.out, tuple(args.group) or None, output)
    return OK


def _has_report(directory: Path, output: Output) -> bool:
    """Name the report, if there is one of these very tables."""
    from kohort.pipeline.format.manifest import load
    from kohort.pipeline.format.report_mark import up_to_date_or_none
    from kohort.pipeline.stores.places import place_of

    place = place_of(directory)
    found = up_to_date_or_none(place, load(place))
    if found is not None:
        output.line(f"report: {found}")
    return found is not None


def _write_report(directory: Path, groups: tuple[str, ...] | None, output: Output) -> None:
    from kohort.pipeline import report

    output.line(f"report: {report.write_into(directory, groups)}")


class Snapshot(Command):
    """`kohort pipeline snapshot`."""

    help: ClassVar[str] = (
        "record where the topics of a cluster end now, so that lag can be told in seconds"
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort pipeline snapshot --out groups --bootstrap-server broker.example:9092",
        "kohort pipeline snapshot --out groups --every 30s",
    )
    asks_a_cluster: ClassVar[bool] = True

    def configure(self, parser: ArgumentParser) -> None:
        add_connection(parser)
        add_out(parser)
        parser.add_argument(
            "--every",
            type=duration,
            metavar="60s",
            help="take samples at this interval (default: one sample)",
        )
        parser.add_argument(
            "--count", type=count, metavar="N", help="with --every: end after this many samples"
        )

    def main(self, args: Namespace) -> int:
        if args.count is not None and args.every is None:
            complain("pipeline snapshot: --count is for --every")
            return USAGE
        connection = connection_or_none(args)
        if connection is None:
            return USAGE
        return print_result(lambda output: _snapshot(connection, args, output))


def _snapshot(connection: Connection, args: Namespace, output: Output) -> int:
    require("tables")
    from kohort.pipeline.sources.sampler import snapshot

    every_s = None if args.every is None else args.every / 1000
    snapshot(
        connection.server.text,
        args.out,
        security=connection.security,
        every_s=every_s,
        count=args.count,
        told=lambda partitions: output.line(f"{_now()} ends of {partitions:,} partitions"),
        failed=lambda error: complain(f"{_now()} {error}"),
    )
    return OK


class Warm(Command):
    """`kohort pipeline warm`."""

    help: ClassVar[str] = "make an archive of Spark's classes, so that runs start sooner"
    examples: ClassVar[tuple[str, ...]] = ("kohort pipeline warm",)

    def configure(self, parser: ArgumentParser) -> None:
        """It needs to be told nothing."""

    def main(self, args: Namespace) -> int:
        del args
        return print_result(_warm)


def _warm(output: Output) -> int:
    require("spark")
    from kohort.spark.warming import warm

    output.line(f"archive of classes: {warm(complain)}")
    return OK


def _now() -> str:
    return _text(datetime.now(UTC))


def _text(at: datetime) -> str:
    return at.isoformat(" ", "seconds").removesuffix("+00:00")


COMMANDS: Commands = {
    "run": Run(),
    "report": Report(),
    "show": Show(),
    "sql": Sql(),
    "export": Export(),
    "check": Check(),
    "rebuild": Rebuild(),
    "verify": Verify(),
    "snapshot": Snapshot(),
    "warm": Warm(),
}
