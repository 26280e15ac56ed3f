# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows of groups that are watched: which of them, in which order, and where."""

import io

import pytest
from rich.console import Console

from kohort.cli.group_changes import GroupRow, GroupSnapshot
from kohort.cli.lags import GroupLag
from kohort.cli.watch_screen import HEADERS, WatchScreen, keys_of
from kohort.figures import Bound, Figure


def lines(screen, height=20):
    console = Console(width=100, height=height, file=io.StringIO())
    screen._console = console
    console.print(screen.drawn())
    return [line.split() for line in console.file.getvalue().splitlines() if line.strip()]


def watched(rows, order="lag", headers=HEADERS):
    screen = WatchScreen(Console(width=100, height=20, file=io.StringIO()), order, headers)
    screen.title = "here"
    screen.update(rows)
    return screen


def group(name, lag=0, state="Stable", members=0, error=None):
    clients = {f"m{number}": "c" for number in range(members)}
    snapshot = GroupSnapshot(name, state, members=clients, lag=GroupLag(lag, 1, 0), error=error)
    return GroupRow(snapshot, None)


def names(screen, height=20):
    return [line[0] for line in lines(screen, height) if line[0].startswith("g")]


MANY = [group(f"g{number:03}", lag=number, members=number % 2) for number in range(240)]


def test_it_says_which_of_how_many_are_shown_and_how_many_others_live():
    """Nobody takes what fits for all there is."""
    screen = watched(MANY)
    shown = lines(screen)
    assert [line[0] for line in shown[2:4]] == ["g239", "g238"]
    assert " ".join(shown[-1]) == (
        "1-14 of 240 groups, 113 others have members; arrows, PgUp and PgDn scroll"
    )
    assert " ".join(lines(watched(MANY[:3]))[-1]) == "3 groups"


def test_every_group_can_be_reached():
    screen = watched(MANY, "group")
    seen = dict.fromkeys(names(screen))
    for _ in range(30):
        screen.move("page down")
        seen |= dict.fromkeys(names(screen))
    assert list(seen) == [one.group.group_id for one in MANY]
    assert names(screen)[-1] == "g239"
    screen.move("down")
    assert names(screen)[-1] == "g239", "there is nothing below it"
    screen.move("up")
    assert names(screen)[-1] == "g238"
    screen.move("first")
    assert names(screen)[0] == "g000"
    screen.move("down")
    assert names(screen)[0] == "g001"
    screen.move("last")
    assert names(screen)[-1] == "g239"


def test_a_look_keeps_the_place_and_fewer_groups_or_more_lines_do_not_leave_it_empty():
    screen = watched(MANY, "group")
    screen.move("page down")
    before = names(screen)
    screen.update(MANY)
    assert names(screen) == before
    screen.update(MANY[:5])
    assert len(names(screen)) == 5
    screen.update(MANY)
    screen.move("last")
    assert len(names(screen, height=300)) == 240


def test_events_keep_a_third_of_the_lines():
    screen = watched(MANY)
    screen.events = [f"event {number}" for number in range(50)]
    shown = lines(screen)
    assert " ".join(shown[-1]) == "event 49"
    assert sum(line[0] == "event" for line in shown) == 6
    assert len(shown) <= 20


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("lag", ["lost", "b", "c", "a"]),
        ("group", ["a", "b", "c", "lost"]),
        ("state", ["lost", "c", "a", "b"]),
        ("members", ["a", "b", "c", "lost"]),
    ],
)
def test_the_order_is_the_one_that_was_asked_for(order, found):
    rows = [
        group("a", 1, "Stable", 3),
        group("b", 9, "Stable", 1),
        group("c", 5, "Empty"),
        group("lost", error="no answer"),
    ]
    shown = lines(watched(rows, order))
    assert [line[0] for line in shown[2:-1]] == found


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (b"jk", ["down", "up"]),
        (b"\x1b[A\x1b[B\x1bOA\x1bOB", ["up", "down", "up", "down"]),
        (b"\x1b[5~\x1b[6~", ["page up", "page down"]),
        (b"gG\x1b[H\x1b[F", ["first", "last", "first", "last"]),
        (b"xq", ["quit"]),
        (b"\x1b[1;5C\xc3\xa9", []),
        (b"", []),
    ],
)
def test_keys_of_terminals(typed, keys):
    assert keys_of(typed) == keys


def test_a_terminal_has_a_column_for_the_lag_in_seconds():
    lag = GroupLag(3, 1, 0)
    rows = [
        GroupRow(GroupSnapshot("late", "Empty", lag=lag, time_lag=Figure(90.0)), None),
        GroupRow(GroupSnapshot("new", "Empty", time_lag=Figure(None, Bound.NONE)), None),
        GroupRow(GroupSnapshot("lost", error="no answer"), None),
    ]
    shown = lines(watched(rows, "lag-seconds", (*HEADERS, "LAG-TIME")))
    assert shown[1][-1] == "LAG-TIME"
    assert [line[0] for line in shown[2:5]] == ["lost", "late", "new"]
    found = {line[0]: " ".join(line[-4:]) for line in shown[2:]}
    assert found["late"].endswith("1 min 30 s")
    assert found["new"].endswith("- -")
