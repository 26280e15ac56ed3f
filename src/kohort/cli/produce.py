"""`kohort produce`: lines become records. Each line is sent as soon as it has been read."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from kohort.cli.cluster_commands import (
    ClusterCommand,
    cluster_of,
    connection_or_none,
    telling_origin,
)
from kohort.cli.command import OK, USAGE, complain, name, print_result
from kohort.cli.connection import Connection
from kohort.cli.render import Output
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.figures import counted

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from kohort.client.network.cluster import Cluster
    from kohort.client.topic_writer import Entry, TopicWriter

READ_BYTES = 1 << 16
BATCH_BYTES = 1 << 18  # of a batch, unless a single line is longer
LINE_BYTES = 1 << 24  # of a line: longer ones would fill the memory, and brokers take 1 MiB
_UNSURE = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)


class Produce(ClusterCommand):
    """`kohort produce`."""

    help: ClassVar[str] = "append the lines of stdin to a topic, a record for each"
    notes: ClassVar[str] = (
        "It is for trying things out: one request at a time, acknowledged by all in-sync replicas, "
        "without compression, transactions or idempotence. A request that may have arrived is not "
        "sent again. It does not create topics."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "echo hello | kohort produce orders",
        "kohort produce orders --key-separator : < orders.txt",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("topic", metavar="TOPIC", type=name, help="the topic's name")
        parser.add_argument(
            "--key-separator",
            metavar="TEXT",
            help="a line is a key, this text, and a value (default: a value without a key). Equal "
            "keys go to one partition, the same one as with Java's producer",
        )

    def main(self, args: Namespace) -> int:
        import asyncio

        if args.key_separator == "":
            complain("produce: --key-separator is empty, expected a text")
            return USAGE
        connection = connection_or_none(args)
        if connection is None:
            return USAGE
        return print_result(lambda output: asyncio.run(_produce(connection, args, output)))


async def _produce(connection: Connection, args: Namespace, output: Output) -> int:
    cluster = cluster_of(connection)
    separator = (
        None if args.key_separator is None else args.key_separator.encode(errors="surrogateescape")
    )
    written = 0
    try:
        with telling_origin(connection.server):
            writer = await _opened(cluster, args.topic, _deadline(args.timeout))
        async for entries in _batches(separator):
            await _write(writer, entries, written, args.timeout)
            written += len(entries)
    finally:
        await cluster.close()
        if written:
            output.line(f"{counted(written, 'record')} to {args.topic}")
    return OK


async def _opened(cluster: "Cluster", topic: str, deadline: float) -> "TopicWriter":
    from kohort.client.topic_writer import TopicWriter

    try:
        return await TopicWriter.open(cluster, topic, deadline)
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        text = f"{error.message}, create it first: kohort topics create {topic}"
        raise ApiError(error.code, text) from None


async def _write(
    writer: "TopicWriter", entries: "list[Entry]", before: int, timeout_s: float
) -> None:
    """Write the records. Raises the first error, with the lines that it is about."""
    outcomes = await writer.write(entries, _deadline(timeout_s))
    for place, error in outcomes.failed.items():
        lines = f"line {before + 1:,} is"
        if len(entries) > 1:
            lines = f"some of lines {before + 1:,} to {before + len(entries):,} are"
        doubt = ", or may be, as the broker has not answered" if error.code in _UNSURE else ""
        why = error.message or error.code.name
        raise ApiError(error.code, f"{lines} not in {place}{doubt}: {why}")


async def _batches(separator: bytes | None) -> "AsyncIterator[list[Entry]]":
    """Records of what stdin has now, up to a batch's size; the last line may lack its end."""
    stdin = _Stdin()
    number = 0
    rest = b""
    entries: list[Entry] = []
    size = 0
    while data := await stdin.read():
        lines = (rest + data).split(b"\n")
        rest = lines.pop()
        if len(rest) > LINE_BYTES:
            raise KohortError(
                f"line {number + len(lines) + 1:,} is longer than {LINE_BYTES:,} bytes"
            )
        for line in lines:
            number += 1
            if entries and size + len(line) > BATCH_BYTES:
                yield entries
                entries, size = [], 0
            try:
                entries.append(_entry(line, separator, number))
            except KohortError:
                if entries:  # what comes before it is fine
                    yield entries
                raise
            size += len(line)
        if entries:
            yield entries
            entries, size = [], 0
    if rest:
        yield [_entry(rest, separator, number + 1)]


def _entry(line: bytes, separator: bytes | None, number: int) -> "Entry":
    if separator is None:
        return None, line
    key, found, value = line.partition(separator)
    if not found:
        shown = separator.decode(errors="replace")
        raise KohortError(f"line {number:,} has no {shown!r}, expected a key before it")
    return key, value


class _Stdin:
    """Reads stdin in a thread that nothing waits for: an interrupt ends the command at once, and
    the loop keeps its connections alive while it waits for a person.
    """

    def __init__(self) -> None:
        from queue import SimpleQueue
        from threading import Thread

        self._wanted: SimpleQueue[tuple[AbstractEventLoop, Future[bytes]]] = SimpleQueue()
        Thread(target=self._serve, daemon=True).start()

    async def read(self) -> bytes:
        """What is there, or what comes next; nothing at the end."""
        import asyncio

        loop = asyncio.get_running_loop()
        answer: Future[bytes] = loop.create_future()
        self._wanted.put((loop, answer))
        return await answer

    def _serve(self) -> None:
        number = sys.stdin.fileno()
        found: bytes | KohortError = b"not read yet"
        while found and isinstance(found, bytes):
            loop, answer = self._wanted.get()
            try:
                found = os.read(number, READ_BYTES)
            except OSError as error:
                found = KohortError(f"cannot read stdin: {error.strerror}")
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(_settle, answer, found)


def _settle(answer: "Future[bytes]", found: bytes | KohortError) -> None:
    if answer.cancelled():
        return
    if isinstance(found, KohortError):
        answer.set_exception(found)
    else:
        answer.set_result(found)


def _deadline(timeout_s: float) -> float:
    import asyncio

    return asyncio.get_running_loop().time() + timeout_s


COMMAND = Produce()
