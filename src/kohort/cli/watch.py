"""`kohort groups watch`: groups as they are now, and what happens to them, until somebody stops it.

A terminal has a table that is drawn again at each look, with the last events below it. Anything
else gets a line for each event, and none for a look at which nothing has happened.
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.arguments import count
from kohort.cli.cluster_commands import (
    ClusterCommand,
    admin_client,
    connection_or_none,
    telling_origin,
)
from kohort.cli.command import OK, USAGE, complain, decimal_or_none, name, print_result, reason
from kohort.cli.describe import DESCRIBABLE, LAG_TIME, add_lag_seconds
from kohort.cli.group_changes import (
    GroupChanges,
    GroupEvent,
    GroupRow,
    GroupSnapshot,
    event_line,
)
from kohort.cli.lags import ends_of, group_lag, group_time_lag, time_lags_of, time_text
from kohort.cli.list_groups import add_match, is_match
from kohort.cli.render import Output, name_text, printable
from kohort.errors import ApiError
from kohort.figures import counted

if TYPE_CHECKING:
    import asyncio

    from rich.console import Console, RenderableType

    from kohort.client.admin import AdminClient

EVERY_S = 2.0
EVENTS_KEPT = 200
QUIT = b"q"
HEADERS = ("GROUP", "STATE", "MEMBERS", "EPOCH", "LAG", "LAG/S")


class WatchGroups(ClusterCommand):
    """`kohort groups watch`."""

    help: ClassVar[str] = "show groups as they change: state, members, epochs and lag"
    notes: ClassVar[str] = (
        "On a terminal q ends it. In a pipe there is a line for each thing that happens."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort groups watch",
        "kohort groups watch billing reports --every 5",
        "kohort groups watch --match '^orders-' | tee events.log",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "groups", nargs="*", metavar="GROUP", type=name, help="only these (default: all)"
        )
        add_match(parser)
        parser.add_argument(
            "--every",
            type=_seconds,
            default=EVERY_S,
            metavar="SECONDS",
            help=f"how long to wait between two looks (default {EVERY_S:g})",
        )
        add_lag_seconds(parser)
        parser.add_argument("--looks", type=count, metavar="N", help="end after N looks")

    def main(self, args: Namespace) -> int:
        import asyncio

        if args.groups and args.match is not None:
            complain(f"groups watch: {args.groups[0]!r} and --match are given, expected one")
            return USAGE
        connection = connection_or_none(args)
        if connection is None:
            return USAGE

        def watch(output: Output) -> int:
            async def whole() -> None:
                async with admin_client(connection, args) as admin:
                    if sys.stdout.isatty():
                        await _on_screen(admin, args, connection.server.text)
                    else:
                        await _in_lines(admin, args, output)

            with telling_origin(connection.server):
                asyncio.run(whole())
            return OK

        return print_result(watch)


async def _look(admin: "AdminClient", args: Namespace, known: Iterable[str]) -> list[GroupSnapshot]:
    """The groups at this moment. One that cannot be looked at is there with its error: a group that
    is `known` is not gone while a part of the cluster does not say which groups it has.

    Raises ApiError where nothing could be asked.
    """
    ids = list(dict.fromkeys(args.groups))
    if not ids:
        listings = await admin.list_groups()
        ids = [one.group_id for one in listings if one.type in DESCRIBABLE]
        ids = [group_id for group_id in ids if is_match(args, group_id)]
        if not listings.complete:
            ids = list(dict.fromkeys([*ids, *known]))
    described = await admin.describe_groups(ids)
    offsets = await admin.list_group_offsets(list(described.succeeded))
    ends, committed = await ends_of(admin, offsets), offsets.succeeded
    times = await time_lags_of(admin, offsets, ends) if args.lag_seconds else None
    seen = []
    for group_id, found in described.items():
        if isinstance(found, ApiError):
            seen.append(GroupSnapshot(group_id, error=reason(found)))
            continue
        members = {member.member_id: member.client_id for member in found.members}
        some = committed.get(group_id)
        seen.append(
            GroupSnapshot(
                group_id,
                str(found.state),
                found.group_epoch,
                found.assignment_epoch,
                members,
                None if some is None else group_lag(some, ends),
                time_lag=None
                if some is None or times is None
                else group_time_lag(some, ends, times),
            )
        )
    return seen


async def _in_lines(admin: "AdminClient", args: Namespace, output: Output) -> None:
    import asyncio

    changes, looks, trouble = GroupChanges(), 0, ""
    while True:
        try:
            rows, events = changes.look(await _look(admin, args, changes.known), _now_s())
        except ApiError as error:
            if not looks:
                raise
            if not trouble:
                trouble = reason(error)
                output.line(f"{_clock()} no answer: {trouble}")
        else:
            if trouble:
                trouble = ""
                output.line(f"{_clock()} the cluster answers again")
            if not looks:
                events = [GroupEvent(row.group.group_id, _first(row.group)) for row in rows]
            for event in events:
                output.line(event_line(event, _clock()))
        sys.stdout.flush()
        looks += 1
        if looks == args.looks:
            return
        await asyncio.sleep(args.every)


def _first(seen: GroupSnapshot) -> str:
    if seen.error is not None:
        return seen.error
    lag = "" if seen.lag is None or not seen.lag.text else f", lag {seen.lag.text}"
    in_time = None if seen.time_lag is None else time_text(seen.time_lag)
    lag += "" if in_time is None else f", in time {in_time}"
    return f"is {seen.state}, {counted(len(seen.members), 'member')}{lag}"


async def _on_screen(admin: "AdminClient", args: Namespace, server: str) -> None:
    import asyncio

    from rich.console import Console
    from rich.live import Live

    console = Console()
    changes, looks = GroupChanges(), 0
    events: deque[str] = deque(maxlen=EVENTS_KEPT)
    quit_ = asyncio.Event()
    with _keys(quit_), Live(console=console, screen=True, auto_refresh=False) as live:
        while not quit_.is_set():
            try:
                rows, news = changes.look(await _look(admin, args, changes.known), _now_s())
                trouble = ""
            except ApiError as error:
                trouble = f"no answer: {reason(error)}"
                if not looks:
                    raise
            else:
                events += [event_line(event, _clock()) for event in news]
            title = f"{server}  {_clock()}  every {args.every:g} s, q ends it"
            headers = (*HEADERS, LAG_TIME) if args.lag_seconds else HEADERS
            screen = _screen(console, title, trouble, rows, list(events), headers)
            live.update(screen, refresh=True)
            looks += 1
            if looks == args.looks:
                return
            try:
                await asyncio.wait_for(quit_.wait(), args.every)
            except TimeoutError:
                continue


def _screen(
    console: "Console",
    title: str,
    trouble: str,
    rows: Sequence[GroupRow],
    events: Sequence[str],
    headers: Sequence[str] = HEADERS,
) -> "RenderableType":
    """What fits: a part of the groups, the most behind first, and a third for the last events."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    height = max(8, console.height)
    for_events = min(len(events), max(3, height // 3))
    room = max(1, height - for_events - 6)
    ordered = sorted(rows, key=_most_behind)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, header in enumerate(headers):
        table.add_column(header, justify="left" if index < 2 else "right", no_wrap=True)
    for row in ordered[:room]:
        table.add_row(*(Text(cell, overflow="ellipsis") for cell in _cells(row, headers)))
    more = len(ordered) - room
    parts: list[RenderableType] = [Text(title, style="dim", no_wrap=True), table]
    if trouble:
        parts.insert(1, Text(printable(trouble), style="red", no_wrap=True, overflow="ellipsis"))
    if more > 0:
        parts.append(Text(f"and {counted(more, 'more group')}", style="dim"))
    parts.append(Text())
    shown = [Text(printable(one), no_wrap=True, overflow="ellipsis") for one in events]
    parts += shown[len(shown) - for_events :]
    return Group(*parts)


def _most_behind(row: GroupRow) -> tuple[Any, ...]:
    lag = row.group.lag
    return (row.group.error is None, -(lag.records if lag else 0), row.group.group_id)


def _cells(row: GroupRow, headers: Sequence[str]) -> Iterator[str]:
    group = row.group
    yield printable(name_text(group.group_id))
    if group.error is not None:
        yield printable(group.error)
        yield from [""] * (len(headers) - 2)
        return
    yield group.state
    yield f"{len(group.members):,}"
    if group.epoch is None:
        yield "-"
    else:
        target = "" if group.target_epoch == group.epoch else f" ({group.target_epoch})"
        yield f"{group.epoch}{target}"
    yield "-" if group.lag is None else group.lag.text or "-"
    yield "-" if row.per_second is None else f"{row.per_second:+,.0f}"
    if LAG_TIME in headers:
        yield (time_text(group.time_lag) if group.time_lag else None) or "-"


@contextmanager
def _keys(quit_: "asyncio.Event") -> Iterator[None]:
    """Sets the event when somebody types q; the terminal is as before afterwards."""
    import asyncio

    try:
        import termios
        import tty
    except ImportError:  # Windows: Ctrl-C ends it
        yield
        return
    if not sys.stdin.isatty():
        yield
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    loop = asyncio.get_running_loop()

    def typed() -> None:
        import os

        if QUIT in os.read(number, 100).lower():
            quit_.set()

    tty.setcbreak(number)
    loop.add_reader(number, typed)
    try:
        yield
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _now_s() -> float:
    import asyncio

    return asyncio.get_running_loop().time()


def _clock() -> str:
    return datetime.now().strftime("%H:%M:%S")  # noqa: DTZ005  (a person's own time)


def _seconds(text: str) -> float:
    seconds = decimal_or_none(text)
    if seconds is None or not 0.1 <= seconds <= 3600:
        raise ArgumentTypeError(f"{text!r} is no time to wait, expected 0.1 to 3600 seconds")
    return seconds
