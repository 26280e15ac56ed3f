# SPDX-License-Identifier: Apache-2.0
"""`kohort produce`: lines and files become records. Each is sent as soon as it has been read."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from kohort.cli.cluster_commands import (
    CLIENT_ID,
    ClusterCommand,
    cluster_of,
    connection_or_none,
    telling_origin,
)
from kohort.cli.command import FAILED, OK, USAGE, complain, pair, print_result, topic_name
from kohort.cli.connection import Connection
from kohort.cli.positions import time_ms
from kohort.cli.record_formats import (
    NewRecord,
    TextForm,
    any_escaped,
    escaped,
    new_record,
    new_record_of_json,
)
from kohort.cli.render import Output
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.figures import counted

if TYPE_CHECKING:
    from kohort.cli.deliveries import Deliveries
    from kohort.cli.record_input import Piece, RecordInput
    from kohort.client.producer import Producer

LINGER_MS = 5
REQUEST_BYTES = 1 << 25  # the broker decides how long a record may be, not this side
COMPRESSION = ("none", "gzip", "snappy", "lz4", "zstd")
_TEXT_ONLY = ("key", "key_separator", "delimiter", "null", "whole")


class Produce(ClusterCommand):
    """`kohort produce`."""

    help: ClassVar[str] = "append lines or files to a topic, a record for each"
    notes: ClassVar[str] = (
        "It sends each line once and in order, and ends at the first one that is refused, with "
        "code 1; what was under way by then may be written. It does not create topics."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "echo hello | kohort produce orders",
        "kohort produce orders --file orders.txt --key-separator :",
        "kohort produce copy --format json < orders.jsonl",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("topic", metavar="TOPIC", type=topic_name, help="the topic's name")
        parser.add_argument(
            "--file",
            nargs="+",
            action="extend",
            default=[],
            metavar="FILE",
            help="files to read, one after the other, in place of stdin",
        )
        _add_form(parser)
        parser.add_argument(
            "--header",
            action="append",
            type=pair,
            default=[],
            metavar="NAME=VALUE",
            help="a header of each record; may be repeated",
        )
        parser.add_argument(
            "--partition", type=_partition, metavar="N", help="the partition of each record"
        )
        parser.add_argument(
            "--timestamp",
            type=time_ms,
            metavar="TIME",
            help="the time of each record: in ISO 8601, in UTC where it names no zone, or @ and "
            "milliseconds since 1970",
        )
        parser.add_argument(
            "--compression", choices=COMPRESSION, default="none", help="of batches (default: none)"
        )
        parser.add_argument(
            "--acks",
            choices=("all", "1", "0"),
            default="all",
            help="who has a record before it counts as written: all in-sync replicas (default), "
            "the leader, or nobody",
        )
        parser.add_argument(
            "--no-idempotence",
            action="store_true",
            help="send without a producer id: what is sent again may be there twice",
        )

    def main(self, args: Namespace) -> int:
        import asyncio

        mistake = _mistake(args)
        if mistake is not None:
            complain(f"produce: {mistake}")
            return USAGE
        connection = connection_or_none(args)
        if connection is None:
            return USAGE
        return print_result(lambda output: asyncio.run(_produce(connection, args, output)))


def _add_form(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text: a line is a value (default); json: a line is an object as those of `kohort "
        "consume --format json`, with its partition and its time",
    )
    parser.add_argument(
        "--repartition",
        action="store_true",
        help="with --format json: the keys choose the partitions, whatever the objects say",
    )
    parser.add_argument(
        "--key-separator",
        type=escaped,
        metavar="TEXT",
        help="a line is a key, this text, and a value (default: a value without a key). Equal "
        "keys go to one partition, the same one as with Java's producer",
    )
    parser.add_argument("--key", type=any_escaped, metavar="TEXT", help="the key of each record")
    parser.add_argument(
        "--delimiter",
        type=escaped,
        metavar="TEXT",
        help=r"what ends a record, in place of a line end; \t, \n, \0 and \xHH stand for bytes",
    )
    parser.add_argument(
        "--null",
        type=any_escaped,
        metavar="TEXT",
        help="a key or a value that is this text is null; '' makes tombstones of empty values",
    )
    parser.add_argument(
        "--whole", action="store_true", help="each file is one value, or all of stdin is"
    )


def _partition(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:11]) < 1 << 31 and len(text) < 11):
        raise ArgumentTypeError(f"{text!r} is no partition, expected a number from 0 on")
    return int(text)


def _mistake(args: Namespace) -> str | None:
    """What is wrong with arguments that are fine one by one; None if nothing is."""
    if args.format == "json":
        given = [one for one in _TEXT_ONLY if getattr(args, one) not in (None, False)]
        if given:
            return f"--{given[0].replace('_', '-')} is for text, not for --format json"
    elif args.repartition:
        return "--repartition is for --format json: text names no partitions"
    if args.repartition and args.partition is not None:
        return "--repartition and --partition contradict each other: give one"
    if args.key is not None and args.key_separator is not None:
        return "--key and --key-separator contradict each other: give one"
    if args.whole and (args.delimiter is not None or args.key_separator is not None):
        return "--whole takes all there is as one value, without --delimiter and --key-separator"
    return None


async def _produce(connection: Connection, args: Namespace, output: Output) -> int:
    from kohort.cli.deliveries import Deliveries
    from kohort.cli.record_input import RecordInput
    from kohort.client.producer import Producer

    deliveries = Deliveries(args.topic)
    delimiter = None if args.whole else args.delimiter or b"\n"
    records = RecordInput(args.file, delimiter, deliveries.failed)
    with telling_origin(connection.server):
        await _check_topic(connection, args)
    timeout_ms = max(1, int(args.timeout * 1000))
    producer = Producer(
        bootstrap_servers=connection.server.text,
        security=connection.security,
        client_id=CLIENT_ID,
        acks=args.acks,
        enable_idempotence=False if args.no_idempotence else None,
        compression_type=args.compression,
        linger_ms=LINGER_MS,
        max_request_size=REQUEST_BYTES,
        max_block_ms=timeout_ms,
        request_timeout_ms=timeout_ms,
        delivery_timeout_ms=timeout_ms + LINGER_MS,
    )
    last = None
    try:
        async with producer:
            last = await _send(producer, records, deliveries, args)
    finally:
        failures = list(deliveries.report())
        for line in failures:
            complain(line)
        if failures and last is not None and not records.ended:
            complain(f"nothing after {last} was sent")
        if deliveries.acknowledged:
            doubt = ", acknowledged by nobody" if args.acks == "0" else ""
            output.line(f"{counted(deliveries.acknowledged, 'record')} to {args.topic}{doubt}")
    return FAILED if failures else OK


async def _check_topic(connection: Connection, args: Namespace) -> None:
    """The topic is there: a producer would wait for it, and a broker may create it."""
    import asyncio

    from kohort.client.admin.topics import describe_topics

    cluster = cluster_of(connection)
    deadline = asyncio.get_running_loop().time() + args.timeout
    try:
        (await describe_topics(cluster, [args.topic], deadline=deadline)).all()
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        text = f"{error.message}, create it first: kohort topics create {args.topic}"
        raise ApiError(error.code, text) from None
    finally:
        await cluster.close()


async def _send(
    producer: "Producer", records: "RecordInput", deliveries: "Deliveries", args: Namespace
) -> "Piece | None":
    """Send what is read, until a record is known to be refused. Returns the last one taken."""
    parse = _parser(args)
    last: Piece | None = None
    refused = deliveries.failed
    async for piece in records.pieces():
        if refused.done():
            break
        try:
            record = parse(piece.data)
        except KohortError as error:
            raise KohortError(f"{piece} {error}") from None
        try:
            delivery = await producer.send(
                args.topic,
                record.value,
                key=record.key,
                headers=record.headers,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
        except ApiError as error:
            deliveries.refuse(piece, error)
            break
        deliveries.add(piece, delivery)
        last = piece._replace(data=b"")
    return last


def _parser(args: Namespace) -> Callable[[bytes], NewRecord]:
    """What makes a record of a piece, with what the arguments say of all records."""
    headers = tuple((label, value.encode()) for label, value in args.header)
    form = TextForm(b"\n", args.key_separator, args.null)
    read = new_record_of_json if args.format == "json" else lambda data: new_record(data, form)

    def parse(data: bytes) -> NewRecord:
        record = read(data)
        if args.key is not None:
            record = record._replace(key=args.key)
        if args.partition is not None or args.repartition:
            record = record._replace(partition=args.partition)
        if args.timestamp is not None:
            record = record._replace(timestamp_ms=args.timestamp)
        return record._replace(headers=record.headers + headers) if headers else record

    return parse


COMMAND = Produce()
