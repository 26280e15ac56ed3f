# SPDX-License-Identifier: Apache-2.0
"""Reading as a member of a group, for `kohort consume --group`.

An offset is committed only after every record before it was written to stdout: what could not be
written is read again by the next member.
"""

import asyncio
import signal
import threading
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from kohort.cli.cluster_commands import CLIENT_ID
from kohort.cli.command import complain
from kohort.cli.connection import Connection
from kohort.cli.positions import BEGINNING, END
from kohort.cli.render import name_text
from kohort.client.admin.groups import describe_groups
from kohort.client.consumer import Consumer
from kohort.client.network.cluster import Cluster
from kohort.figures import counted
from kohort.terms import TopicPartition

if TYPE_CHECKING:
    from kohort.client.fetcher.record import AnyRecord

_WAIT_MS = 200
_BATCH = 500  # records between two commits, at most


class RecordPrinter(Protocol):
    """Where records go. `left` is how many more may come; None for any number."""

    left: int | None

    def write(self, record: "AnyRecord") -> None: ...

    def flush(self) -> None: ...


@contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """SIGTERM and SIGHUP end the work of this block as Ctrl-C does: a supervisor that stops a
    member, and a terminal that is closed, let it commit what it has printed. One that is ignored,
    as behind `nohup`, stays so.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():  # others may set no handler
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


async def complain_of_members(cluster: Cluster, args: Namespace) -> None:
    """A line on stderr if the group that will be joined has members: these give up partitions to
    this one, which a name that was mistyped or reused must not do unseen.
    """
    deadline = asyncio.get_running_loop().time() + args.timeout
    found = (await describe_groups(cluster, [args.group], deadline=deadline)).succeeded
    count = len(found[args.group].members) if found else 0
    if count:
        whose = "its" if count == 1 else "their"
        complain(
            f"joins group {name_text(args.group)}, which has {counted(count, 'member')}: it will "
            f"rebalance, and {whose} partitions are shared with this one"
        )


async def read_as_member(
    connection: Connection, topics: Sequence[str], args: Namespace, printer: RecordPrinter
) -> None:
    """Print what this member is given, until interrupted or until the bounds of the arguments.

    Raises ApiError, also for a commit that the group has refused: others print these records again.
    """
    consumer = Consumer(
        *topics,
        pattern=args.matching,
        bootstrap_servers=connection.server.text,
        security=connection.security,
        client_id=CLIENT_ID,
        group_id=args.group,
        auto_offset_reset="earliest" if args.begin is BEGINNING else "latest",
        isolation_level=args.isolation_level,
        enable_auto_commit=False,
        default_api_timeout_ms=max(1, int(args.timeout * 1000)),
    )
    ends: dict[TopicPartition, int] = {}
    async with consumer:
        while printer.left != 0 and not (args.until is END and await _is_read(consumer, ends)):
            most = _BATCH if printer.left is None else min(printer.left, _BATCH)
            found = await consumer.getmany(timeout_ms=_WAIT_MS, max_records=most)
            if not found:
                continue
            for records in found.values():
                for record in records:
                    printer.write(record)
            printer.flush()
            await _commit(consumer, {place: each[-1].offset + 1 for place, each in found.items()})


async def _commit(consumer: Consumer, offsets: dict[TopicPartition, int]) -> None:
    """Commit them, also where an interrupt came while the records were written."""
    task = consumer.commit_nowait(offsets)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def _is_read(consumer: Consumer, ends: dict[TopicPartition, int]) -> bool:
    """Whether the member has read all that was there when it was given its partitions."""
    owned = consumer.assignment()
    new = [place for place in owned if place not in ends]
    if new:
        found = await consumer.offsets_for_times(dict.fromkeys(new, "latest"))
        ends |= {place: one.offset or 0 for place, one in found.items()}
    try:
        positions = {place: await consumer.position(place) for place in owned}
    except ValueError:  # it was taken away meanwhile
        return False
    return bool(owned) and all(at >= ends[place] for place, at in positions.items())
