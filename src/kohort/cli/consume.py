# SPDX-License-Identifier: Apache-2.0
"""`kohort consume`: prints the records of topics as they come, alone or as a member of a group."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, ClassVar

from kohort.cli.arguments import count
from kohort.cli.cluster_commands import (
    ClusterCommand,
    cluster_of,
    connection_or_none,
    telling_origin,
)
from kohort.cli.command import OK, USAGE, complain, error_fields, name, print_result
from kohort.cli.connection import Connection
from kohort.cli.offset_plans import topic_partitions
from kohort.cli.positions import BEGINNING, END, Position, begin, offsets_at, until
from kohort.cli.record_formats import (
    TextForm,
    any_escaped,
    as_it_is,
    escaped,
    json_of,
    template,
    templated,
    text_of,
    visible_bytes,
)
from kohort.cli.regular_expressions import expression
from kohort.cli.render import Output
from kohort.errors import KohortError

if TYPE_CHECKING:
    from kohort.client.fetcher.record import AnyRecord
    from kohort.client.network.cluster import Cluster
    from kohort.client.topic_reader import TopicReader
    from kohort.terms import TopicPartition

WAIT_MS = 200  # how long a leader that has nothing holds up the others
ISOLATION = ("read_uncommitted", "read_committed")
Wanted = list[str | tuple[str, int]]


class Consume(ClusterCommand):
    """`kohort consume`."""

    help: ClassVar[str] = "print the records of topics as they come, until interrupted"
    notes: ClassVar[str] = (
        "Without --group it joins no group, commits nothing, and reads all partitions, each in "
        "its order. With it, what was printed is committed, after it was written to stdout. Unless "
        "told otherwise it shows the records of open and aborted transactions, too."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort consume orders --from-beginning --max 10",
        "kohort consume orders:0,2 --from -100 --until end --format json > orders.jsonl",
        "kohort consume orders --group audit --template '%p:%o %k=%s\\n'",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "topics",
            nargs="*",
            metavar="TOPIC[:PARTITIONS]",
            type=topic_partitions,
            help="a topic, or such of its partitions as 0-2,5",
        )
        parser.add_argument(
            "--matching",
            type=expression,
            metavar="REGEX",
            help="the topics whose whole name matches, in place of names (RE2)",
        )
        parser.add_argument(
            "--group",
            type=name,
            metavar="GROUP",
            help="read as a member of this group: go on where it has committed, and commit",
        )
        _add_bounds(parser)
        parser.add_argument(
            "--isolation-level",
            choices=ISOLATION,
            default=ISOLATION[0],
            help=f"{ISOLATION[1]} leaves out records of open and aborted transactions (default: "
            f"{ISOLATION[0]})",
        )
        _add_format(parser)

    def main(self, args: Namespace) -> int:
        import asyncio

        mistake = _mistake(args)
        if mistake is not None:
            complain(f"consume: {mistake}")
            return USAGE
        connection = connection_or_none(args)
        if connection is None:
            return USAGE

        def show(output: Output) -> int:
            if args.group is None:
                return asyncio.run(_consume(connection, args, output))
            from kohort.cli.group_reader import ended_as_interrupted

            with ended_as_interrupted():
                return asyncio.run(_consume(connection, args, output))

        return print_result(show)


def _add_bounds(parser: ArgumentParser) -> None:
    begins = parser.add_mutually_exclusive_group()
    begins.add_argument(
        "--from",
        dest="begin",
        type=begin,
        default=END,
        metavar="WHERE",
        help="beginning, end (default), an offset, -N for the last N records of each partition, a "
        "time as 2026-11-21T07:00Z (in UTC where it names no zone), or @ and milliseconds since "
        "1970; with --group the first two, for partitions without a committed offset",
    )
    begins.add_argument(
        "--from-beginning",
        action="store_const",
        dest="begin",
        const=BEGINNING,
        help="the same as --from beginning",
    )
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument(
        "--until",
        type=until,
        metavar="WHERE",
        help="end (of what is there now), an offset, or a time (in UTC where it names no zone): in "
        "each partition, where the first record stands that is not printed any more",
    )
    ends.add_argument(
        "--until-end",
        action="store_const",
        dest="until",
        const=END,
        help="the same as --until end",
    )
    parser.add_argument(
        "--max", "--max-messages", type=count, metavar="N", help="end after N records"
    )


def _add_format(parser: ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text: the value, and a line end (default); json: an object on each line, with "
        "the place, the time, key, value and headers, which `kohort produce` takes",
    )
    how.add_argument(
        "--template",
        type=template,
        metavar="TEXT",
        help="print this for each record: %%s value, %%k key, %%S and %%K their lengths, %%t "
        "topic, %%p partition, %%o offset, %%T time in milliseconds, %%h headers, %%%% a percent "
        r"sign, \n a line end",
    )
    parser.add_argument(
        "--key-separator",
        type=escaped,
        metavar="TEXT",
        help=r"print the key and this text before each value; \t, \n and \xHH stand for bytes",
    )
    parser.add_argument(
        "--delimiter",
        type=any_escaped,
        default=b"\n",
        metavar="TEXT",
        help="print this after each value, instead of a line end",
    )
    parser.add_argument(
        "--null",
        type=any_escaped,
        metavar="TEXT",
        help="print this for a key or a value that is null (default: nothing)",
    )


def _mistake(args: Namespace) -> str | None:
    """What is wrong with arguments that are fine one by one; None if nothing is."""
    if bool(args.topics) == (args.matching is not None):
        return "expected names of topics, or --matching" + (", not both" if args.topics else "")
    if args.group is None:
        return None
    if any(not isinstance(one, str) for topic in args.topics for one in topic):
        return "--group shares the partitions among its members, expected topics without partitions"
    if args.begin not in (BEGINNING, END):
        return "--group begins at committed offsets, expected --from beginning or --from end"
    if args.until not in (None, END):
        return "--group goes on where it has ended, expected --until end"
    return None


class Printer:
    """Prints records in the format of the arguments, `left` more of them, or any number for None.

    A terminal gets text that cannot move its cursor, all else the bytes.
    """

    def __init__(self, args: Namespace) -> None:
        self.left: int | None = args.max
        self._render = _renderer(args, visible_bytes if sys.stdout.isatty() else as_it_is)

    def write(self, record: "AnyRecord") -> None:
        sys.stdout.buffer.write(self._render(record))
        self.left = None if self.left is None else self.left - 1

    def flush(self) -> None:
        sys.stdout.flush()


def _renderer(args: Namespace, show: Callable[[bytes], bytes]) -> "Callable[[AnyRecord], bytes]":
    if args.format == "json":
        return json_of
    if args.template is not None:
        return lambda record: templated(record, args.template, args.null, show)
    form = TextForm(args.delimiter, args.key_separator, args.null)
    return lambda record: text_of(record, form, show)


async def _consume(connection: Connection, args: Namespace, output: Output) -> int:
    cluster = cluster_of(connection)
    printer = Printer(args)
    try:
        with telling_origin(connection.server):
            wanted = await _wanted(cluster, args)
            if args.group is None:
                await _read(cluster, wanted, args, printer)
            else:
                from kohort.cli.group_reader import complain_of_members, read_as_member

                await complain_of_members(cluster, args)
                await read_as_member(connection, [str(one) for one in wanted], args, printer)
    except KohortError as error:
        if args.format == "json":
            output.text(json.dumps(error_fields(error), ensure_ascii=False) + "\n")
        raise
    finally:
        await cluster.close()
    return OK


async def _wanted(cluster: "Cluster", args: Namespace) -> Wanted:
    """The topics that are named or match; for a group only those that are named, if they exist."""
    import asyncio

    from kohort import expressions
    from kohort.client.admin.topics import describe_topics, list_topics

    deadline = asyncio.get_running_loop().time() + args.timeout
    if args.matching is None:
        wanted = [one for topic in args.topics for one in topic]
        if args.group is not None:
            (await describe_topics(cluster, wanted, deadline=deadline)).all()
        return wanted
    found = await list_topics(cluster, internal=True, deadline=deadline)
    names: Wanted = [one.name for one in found if expressions.matches(args.matching, one.name)]
    if args.group is not None:
        return []
    if not names:
        raise KohortError(f"no topic matches {args.matching!r}")
    return names


async def _read(cluster: "Cluster", wanted: Wanted, args: Namespace, printer: Printer) -> None:
    import asyncio

    from kohort.client.topic_reader import TopicReader
    from kohort.terms import TopicPartition

    now = asyncio.get_running_loop().time
    committed = args.isolation_level == ISOLATION[1]
    reader = await TopicReader.open(
        cluster,
        wanted,
        when="earliest" if args.begin is BEGINNING else "latest",
        deadline=now() + args.timeout,
        read_committed=committed,
    )
    places = list(reader.places)

    async def offsets(position: Position) -> dict[TopicPartition, int]:
        deadline = now() + args.timeout
        return await offsets_at(
            cluster, places, position, read_committed=committed, deadline=deadline
        )

    if args.begin not in (BEGINNING, END):
        reader.places |= await offsets(args.begin)
    ends = None if args.until is None else await offsets(args.until)
    while unread := [at for at in places if ends is None or reader.places[at] < ends[at]]:
        found = await _next(reader, unread, args.timeout)
        for note in reader.notes:
            complain(note)
        reader.notes.clear()
        for record in found:
            if ends is None or record.offset < ends[TopicPartition(record.topic, record.partition)]:
                printer.write(record)
                if printer.left == 0:
                    return
        if args.until is END and ends is not None and not found:
            later = await reader.ends(now() + args.timeout)  # a log that was cut stays shorter
            ends = {place: min(end, later[place]) for place, end in ends.items()}
        printer.flush()


async def _next(
    reader: "TopicReader", unread: Collection["TopicPartition"], timeout_s: float
) -> "list[AnyRecord]":
    """The next records. A broker that is away is waited for as long as a step may take."""
    import asyncio

    from kohort.errors import ApiError, ErrorCode

    passing = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.LEADER_NOT_AVAILABLE)
    now = asyncio.get_running_loop().time
    until: float | None = None
    while True:
        try:
            deadline = now() + timeout_s + WAIT_MS / 1000
            return await reader.read(of=unread, wait_ms=WAIT_MS, deadline=deadline)
        except ApiError as error:
            if until is None:
                until = now() + timeout_s
                sys.stdout.flush()
                if error.code in passing:
                    complain(f"{error.message or error.code.name}; waiting for {timeout_s:g} s")
            if error.code not in passing or now() >= until:
                raise
            reader.try_again()
            await asyncio.sleep(WAIT_MS / 1000)


COMMAND = Consume()
