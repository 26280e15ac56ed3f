# SPDX-License-Identifier: Apache-2.0
"""Groups whose names attack: a terminal, a table, CSV, a command line.

Everybody who may commit chooses such a name, and an operator reads it.
"""

import csv
import io
import json
import unicodedata

import pytest

from kohort.drop_in import consumer_groups
from kohort.testing import Broker

NAMES = [
    "a b",
    "q'\"",
    "n\nl",
    "cr\rx",
    "e\x1b[2Jx",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\u202ebidi",
    "z\u200bw",
    "emoji 🎉",
    "l" * 249,
    "c,s;v\t=1",
    "=cmd|' /C calc'!A0",
    "-dash",
    "--all",
    "{plain}",
    "%s",
]
HARMFUL = ("Cc", "Cf", "Zl", "Zp")  # categories of Unicode: controls, and what has no width
ASKING = [
    ("groups", "describe"),
    ("groups", "config"),
    ("groups", "delete", "--dry-run"),
    ("offsets", "reset", "--to-latest", "--dry-run"),
    ("offsets", "delete", "--topic", "t", "--dry-run"),
]
FAILING = [
    ("groups", "describe"),
    ("groups", "delete"),
    ("groups", "members", "remove", "--all"),
    ("offsets", "export"),
    ("offsets", "reset", "--to-latest"),
    ("offsets", "delete", "--topic", "t"),
    ("topics", "describe"),
    ("topics", "delete"),
    ("users", "list"),
    ("users", "delete", "--yes"),
]


@pytest.fixture(scope="module")
def server():
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        for name in NAMES:
            broker.groups[name].commit("t", 0)
        yield ("--bootstrap-server", broker.bootstrap)


def harmful(text):
    return [one for one in text if one != "\n" and unicodedata.category(one) in HARMFUL]


def test_a_table_has_a_row_for_each_and_controls_nothing(kohort, server):
    for command in (("groups", "list"), ("groups", "list", "--lag")):
        ran = kohort(*command, *server)
        assert (ran.code, ran.err, harmful(ran.out)) == (0, "", [])
        assert len(ran.out.splitlines()) == len(NAMES) + 1
    ran = kohort("groups", "describe", "--all", *server)
    assert (ran.code, ran.err, harmful(ran.out)) == (0, "", [])


def test_a_watch_has_a_line_for_each(kohort, server):
    ran = kohort("groups", "watch", "--looks", "1", "--every", "0.1", *server)
    assert (ran.code, ran.err, harmful(ran.out)) == (0, "", [])
    assert len(ran.out.splitlines()) == len(NAMES)


def test_programs_get_each_name_as_it_is(kohort, server):
    for command in (("groups", "list"), ("groups", "describe", "--all")):
        found = kohort(*command, "--format", "json", *server)
        assert harmful(found.out) == []
        assert sorted(one["group_id"] for one in found.json["groups"]) == sorted(NAMES)
        lines = kohort(*command, "--format", "jsonl", *server).out.split("\n")[:-1]
        assert sorted(json.loads(line)["group_id"] for line in lines) == sorted(NAMES)
        text = kohort(*command, "--format", "csv", *server).out
        rows = csv.DictReader(io.StringIO(text, newline=""))
        assert sorted(row["group_id"] for row in rows) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_each_can_be_named_and_controls_nothing(kohort, server, name):
    for command in ASKING:
        ran = kohort(*command, *server, "--", name)
        assert (ran.code, ran.err, harmful(ran.out)) == (0, "", []), command
    (row,) = csv.reader(
        io.StringIO(kohort("offsets", "export", *server, "--", name).out, newline="")
    )
    assert row == [name, "t", "0", "0"]
    missing = kohort("offsets", "import", "/dev/null", f"--group={name}", *server)
    assert "has no line" in missing.err


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_an_error_about_it_is_one_line_and_controls_nothing(kohort, server, name):
    for command in FAILING:
        ran = kohort(*command, *server, "--", f"no {name}")
        assert ran.code in (1, 2), command
        assert (len(ran.complaints), harmful(ran.err + ran.out)) == (1, []), command


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_the_drop_in_tool_shows_it_and_controls_nothing(capsys, server, name):
    for view in ("--offsets", "--members", "--state"):
        argv = [*server, "--describe", f"--group={name}", view]
        assert consumer_groups.main(argv) == 0
        shown = capsys.readouterr()
        assert harmful(shown.out + shown.err) == []


def test_a_line_feed_in_a_name_begins_no_line_of_the_drop_in_tool(capsys, server):
    """A name with a line feed added a row to every table, with what it liked in it."""
    assert consumer_groups.main([*server, "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(NAMES)
    (name,) = [name for name in NAMES if "\n" in name]
    assert consumer_groups.main([*server, "--describe", "--group", name]) == 0
    shown = capsys.readouterr()
    assert [line.split()[:2] for line in shown.out.split("\n") if line] == [
        ["GROUP", "TOPIC"],
        [repr(name).strip("'"), "t"],
    ]
    assert consumer_groups.main([*server, "--delete", "--group", f"no {name}"]) == 1
    shown = capsys.readouterr()
    assert not any(line.startswith("l") for line in (shown.out + shown.err).split("\n"))


def test_what_the_drop_in_tool_exports_is_the_same_group_where_it_is_imported(
    capsys, server, tmp_path
):
    """`--export` wrote escapes into a file, which `--from-file` then took for other groups."""
    assert consumer_groups.main([*server, "--list"]) == 0
    before = capsys.readouterr().out
    several = "--reset-offsets", "--all-topics", "--to-current", "--export", "--dry-run"
    odd = [name for name in NAMES if not name.startswith("-")]
    groups = [word for name in odd for word in ("--group", name)]
    assert consumer_groups.main([*server, *several, *groups]) == 0
    file = tmp_path / "offsets.csv"
    file.write_bytes(capsys.readouterr().out.encode())
    rows = list(csv.reader(io.StringIO(file.read_bytes().decode(), newline="")))
    assert sorted(row[0] for row in rows if row) == sorted(odd)
    again = ["--reset-offsets", "--from-file", str(file), "--execute"]
    assert consumer_groups.main([*server, *again, *groups]) == 0
    capsys.readouterr()
    assert consumer_groups.main([*server, "--list"]) == 0
    assert capsys.readouterr().out == before
