# SPDX-License-Identifier: Apache-2.0
"""`kohort groups watch`: groups as they are now, and what happens to them, until somebody stops it.

A terminal has a table that is drawn again at each look, with the last events below it. Anything
else gets a line for each event, and none for a look at which nothing has happened.
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from kohort.cli.arguments import count
from kohort.cli.cluster_commands import (
    ClusterCommand,
    admin_client,
    connection_or_none,
    telling_origin,
)
from kohort.cli.command import (
    FAILED,
    OK,
    USAGE,
    complain,
    decimal_or_none,
    name,
    print_result,
    reason,
    result_of,
)
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
from kohort.cli.render import Output, name_text
from kohort.cli.watch_screen import HEADERS, ORDERS, WatchScreen, keys_of
from kohort.errors import ApiError
from kohort.figures import counted

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient

EVERY_S = 2.0
EVENTS_KEPT = 200
QUIT = "quit"
BY_SECONDS = "lag-seconds"


class WatchGroups(ClusterCommand):
    """`kohort groups watch`."""

    help: ClassVar[str] = "show groups as they change: state, members, epochs and lag"
    notes: ClassVar[str] = (
        "On a terminal arrows, j and k, PgUp and PgDn scroll, and q ends it. In a pipe there is a "
        "line for each thing that happens. Times of day are those of this machine's time zone."
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
        parser.add_argument(
            "--sort",
            choices=tuple(ORDERS),
            default=next(iter(ORDERS)),
            help="on a terminal: the most lag first (default), in seconds, by name, by state, or "
            "the most members first",
        )
        parser.add_argument("--looks", type=count, metavar="N", help="end after N looks")

    def main(self, args: Namespace) -> int:
        args.lag_seconds |= args.sort == BY_SECONDS
        if args.groups and args.match is not None:
            complain(f"groups watch: {args.groups[0]!r} and --match are given, expected one")
            return USAGE
        connection = connection_or_none(args)
        if connection is None:
            return USAGE

        def watch(output: Output) -> int:
            async def whole() -> list[str]:
                async with admin_client(connection, args) as admin:
                    if sys.stdout.isatty():
                        return await _on_screen(admin, args, connection.server.text)
                    return await _in_lines(admin, args, output)

            with telling_origin(connection.server):
                lost = result_of(whole())
            for text in lost:
                complain(text)
            return FAILED if lost else OK

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


async def _in_lines(admin: "AdminClient", args: Namespace, output: Output) -> list[str]:
    import asyncio

    changes, looks, trouble, lost = GroupChanges(), 0, "", list[str]()
    while True:
        try:
            rows, events = changes.look(await _look(admin, args, changes.known), _now_s())
        except ApiError as error:
            if not looks:
                raise
            lost = [_no_answer(error)]
            if not trouble:
                trouble = reason(error)
                output.line(f"{_clock()} no answer: {trouble}")
        else:
            lost = _lost(rows, args)
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
            return lost
        await asyncio.sleep(args.every)


def _first(seen: GroupSnapshot) -> str:
    if seen.error is not None:
        return seen.error
    lag = "" if seen.lag is None or not seen.lag.text else f", lag {seen.lag.text}"
    in_time = None if seen.time_lag is None else time_text(seen.time_lag)
    lag += "" if in_time is None else f", in time {in_time}"
    return f"is {seen.state}, {counted(len(seen.members), 'member')}{lag}"


async def _on_screen(admin: "AdminClient", args: Namespace, server: str) -> list[str]:
    import asyncio

    from rich.console import Console
    from rich.live import Live

    console = Console()
    changes, looks = GroupChanges(), 0
    events: deque[str] = deque(maxlen=EVENTS_KEPT)
    quit_ = asyncio.Event()
    headers = (*HEADERS, LAG_TIME) if args.lag_seconds else HEADERS
    screen = WatchScreen(console, args.sort, headers)

    def draw() -> None:
        screen.events = list(events)
        live.update(screen.drawn(), refresh=True)

    def pressed(key: str) -> None:
        if key == QUIT:
            quit_.set()
        else:
            screen.move(key)
            draw()

    lost: list[str] = []
    with Live(console=console, screen=True, auto_refresh=False) as live, _keys(pressed):
        while not quit_.is_set():
            try:
                rows, news = changes.look(await _look(admin, args, changes.known), _now_s())
                screen.trouble = ""
            except ApiError as error:
                if not looks:
                    raise
                screen.trouble = _no_answer(error)
                lost = [screen.trouble]
            else:
                events += [event_line(event, _clock()) for event in news]
                screen.update(rows)
                lost = _lost(rows, args)
            screen.title = f"{server}  {_clock()}  every {args.every:g} s, q ends it"
            draw()
            looks += 1
            if looks == args.looks:
                break
            with suppress(TimeoutError):
                await asyncio.wait_for(quit_.wait(), args.every)
    return lost


def _no_answer(error: ApiError) -> str:
    return f"no answer: {reason(error)}"


def _lost(rows: Sequence[GroupRow], args: Namespace) -> list[str]:
    """A line for each group that the arguments name and that could not be looked at."""
    named = frozenset(args.groups)
    errors = ((row.group.group_id, row.group.error) for row in rows)
    return [
        f"group {name_text(group_id)}: {error}"
        for group_id, error in errors
        if error is not None and group_id in named
    ]


@contextmanager
def _keys(pressed: Callable[[str], None]) -> Iterator[None]:
    """Calls back with each key that somebody presses; the terminal is as before afterwards."""
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

        for key in keys_of(os.read(number, 100)):
            pressed(key)

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
