"""`kohort consume`: prints the records of a topic as they come. It joins no group."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Collection
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
from kohort.cli.documents import json_text
from kohort.cli.render import Output, printable
from kohort.errors import KohortError

if TYPE_CHECKING:
    from kohort.client.fetcher.record import AnyRecord
    from kohort.client.network.cluster import Cluster
    from kohort.client.topic_reader import TopicReader
    from kohort.terms import TopicPartition

WAIT_MS = 200  # how long a leader that has nothing holds up the others


class Consume(ClusterCommand):
    """`kohort consume`."""

    help: ClassVar[str] = "print the records of a topic as they come, until interrupted"
    notes: ClassVar[str] = (
        "It is for looking into topics: it joins no group and commits nothing, reads all "
        "partitions, each in its order, and shows records of open and aborted transactions too."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort consume orders --from-beginning --max 10",
        "kohort consume orders --from-beginning --until-end --format json > orders.jsonl",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("topic", metavar="TOPIC", type=name, help="the topic's name")
        parser.add_argument(
            "--from-beginning",
            action="store_true",
            help="begin with the oldest records (default: with those from now on)",
        )
        parser.add_argument(
            "--until-end", action="store_true", help="end with the last record that is there now"
        )
        parser.add_argument("--max", type=count, metavar="N", help="end after N records")
        parser.add_argument(
            "--key-separator", metavar="TEXT", help="print the key and this text before each value"
        )
        parser.add_argument(
            "--format",
            choices=("text", "json"),
            default="text",
            help="text: the value, and a line end (default); json: an object on each line, with "
            "the place, the time, key, value and headers",
        )

    def main(self, args: Namespace) -> int:
        import asyncio

        connection = connection_or_none(args)
        if connection is None:
            return USAGE
        return print_result(lambda output: asyncio.run(_consume(connection, args, output)))


async def _consume(connection: Connection, args: Namespace, output: Output) -> int:
    cluster = cluster_of(connection)
    try:
        with telling_origin(connection.server):
            await _read(cluster, args)
    except KohortError as error:
        if args.format == "json":
            output.text(json.dumps(error_fields(error), ensure_ascii=False) + "\n")
        raise
    finally:
        await cluster.close()
    return OK


async def _read(cluster: "Cluster", args: Namespace) -> None:
    import asyncio

    from kohort.client.topic_reader import TopicReader
    from kohort.terms import TopicPartition

    now = asyncio.get_running_loop().time
    show = _json if args.format == "json" else _text
    reader = await TopicReader.open(
        cluster,
        [args.topic],
        when="earliest" if args.from_beginning else "latest",
        deadline=now() + args.timeout,
    )
    ends = await reader.ends(now() + args.timeout) if args.until_end else None
    left = args.max
    while unread := [
        place for place, at in reader.places.items() if ends is None or at < ends[place]
    ]:
        found = await _next(reader, unread, args.timeout)
        for note in reader.notes:
            complain(note)
        reader.notes.clear()
        for record in found:
            if ends is None or record.offset < ends[TopicPartition(record.topic, record.partition)]:
                _write(show(record, args.key_separator))
                left = None if left is None else left - 1
                if left == 0:
                    return
        if ends is not None and not found:  # a log that was cut may never be as long again
            later = await reader.ends(now() + args.timeout)
            ends = {place: min(end, later[place]) for place, end in ends.items()}
        sys.stdout.flush()


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


def _text(record: "AnyRecord", separator: str | None) -> bytes:
    key = (
        b""
        if separator is None
        else (record.key or b"") + separator.encode(errors="surrogateescape")
    )
    return key + (record.value or b"")


def _json(record: "AnyRecord", _separator: str | None) -> bytes:
    fields = {
        "topic_partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        **_field("key", record.key),
        **_field("value", record.value),
        "headers": [{"key": label, **_field("value", value)} for label, value in record.headers],
    }
    return json_text(fields).encode()


def _field(label: str, data: bytes | None) -> dict[str, str | None]:
    """Bytes as text. Bytes that are no text become hexadecimal, under a name that says so."""
    try:
        return {label: None if data is None else data.decode()}
    except UnicodeDecodeError:
        return {f"{label}_bytes": data.hex() if data is not None else None}


def _write(data: bytes) -> None:
    """Write a line: to a terminal as text that cannot move its cursor, else the bytes."""
    if sys.stdout.isatty():
        sys.stdout.write(printable(data.decode(errors="backslashreplace")) + "\n")
    else:
        sys.stdout.buffer.write(data + b"\n")


COMMAND = Consume()
