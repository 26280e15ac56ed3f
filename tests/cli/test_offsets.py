# SPDX-License-Identifier: Apache-2.0
"""`kohort offsets` against a broker of ours: plans, what is set, and what is refused (K848-200)."""

import csv
import io
import os
import subprocess
import sys

import pytest
from tests.client.joining import ConsumerMember, commit, coordinator
from tests.client.scripted import asynchronous
from tests.serve.talk import Talk

from kohort.client.admin import AdminClient, NewTopic
from kohort.client.producer import Producer
from kohort.testing.broker import Broker

HEADERS = ["GROUP", "TOPIC", "PARTITION", "NOW", "NEW", "LAG-NOW", "LAG-NEW", "RESULT"]


@pytest.fixture
def cluster():
    """Two topics, ten records in orders:0; group `billing` without members, `busy` with one."""

    @asynchronous
    async def populate():
        async with AdminClient(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("orders", 2, 1), NewTopic("other", 1, 1)])).all()
        async with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(10):
                await producer.send("orders", b"x", partition=0, timestamp_ms=1_000 * (number + 1))
            await producer.flush()
        async with coordinator(broker.bootstrap, "billing") as connection:
            offsets = {("orders", 0): 4, ("other", 0): 0}
            assert await commit(connection, "billing", offsets) == [0, 0]
        async with coordinator(broker.bootstrap, "busy") as connection:
            member = ConsumerMember(connection, "busy", "member-1")
            await member.join("orders")

    with Broker(in_memory=True) as broker:
        populate()
        yield broker


@pytest.fixture
def server(cluster):
    return ("--bootstrap-server", cluster.bootstrap)


def committed(kohort, server, group):
    rows = csv.reader(io.StringIO(kohort("offsets", "export", group, *server).out))
    return {f"{topic}:{partition}": int(offset) for _, topic, partition, offset in rows}


@pytest.mark.parametrize(
    ("way", "offset"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 10),
        (("--to-current",), 4),
        (("--to-offset", "7"), 7),
        (("--shift-by", "2"), 6),
        (("--shift-by", "-3"), 1),
        (("--to-datetime", "1970-01-01T00:00:06Z"), 5),
        (("--by-duration", "1m"), 10),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_each_way_is_planned_and_then_done(kohort, server, way, offset):
    call = ("offsets", "reset", "--yes", "billing", *way, "--topic", "orders:0", *server)
    planned = kohort(*call, "--dry-run")
    row = ["billing", "orders", "0", "4", str(offset), "6", str(10 - offset)]
    assert planned.rows == [HEADERS, [*row, "would", "be", "set"]]
    assert committed(kohort, server, "billing") == {"orders:0": 4, "other:0": 0}

    done = kohort(*call)
    assert (done.code, done.rows) == (0, [HEADERS, [*row, "set"]])
    assert committed(kohort, server, "billing") == {"orders:0": offset, "other:0": 0}


def test_all_that_has_an_offset_is_reset_where_no_topic_is_named(kohort, server):
    ran = kohort("offsets", "reset", "--yes", "billing", "--to-latest", "--format", "json", *server)
    assert ran.json == {
        "offsets": [
            {
                "group_id": "billing",
                "topic": topic,
                "partition": 0,
                "current_offset": now,
                "new_offset": end,
                "lag_before": end - now,
                "lag_after": 0,
                "adjustment": None,
                "result": "set",
            }
            for topic, now, end in (("orders", 4, 10), ("other", 0, 0))
        ],
        "dry_run": False,
    }


def test_an_offset_that_no_log_has_is_moved_and_told(kohort, server):
    ran = kohort(
        "offsets", "reset", "--yes", "billing", "--to-offset", "99", "--topic", "orders:0", *server
    )
    assert ran.code == 0
    assert ran.complaints == [
        "kohort: group billing, orders:0: the log ends before that, at the offset that is taken"
    ]
    assert committed(kohort, server, "billing")["orders:0"] == 10


def test_a_group_with_members_is_left_alone_and_others_are_reset(kohort, server):
    ran = kohort(
        "offsets",
        "reset",
        "--yes",
        "busy",
        "billing",
        "--to-latest",
        "--topic",
        "orders:0",
        *server,
    )
    assert ran.code == 1
    assert [(row[0], row[-1]) for row in ran.rows[1:]] == [("busy", "failed"), ("billing", "set")]
    (complaint,) = ran.complaints
    assert complaint.startswith("kohort: group busy is Stable, expected a group without members")
    assert committed(kohort, server, "busy") == {}


def test_what_cannot_be_reset_fails_alone(kohort, server):
    call = ("offsets", "reset", "--yes", "billing", "--shift-by", "1", "--topic", "orders")
    ran = kohort(*call, *server)
    assert ran.code == 1
    assert [row[-1] for row in ran.rows[1:]] == ["set", "failed"]
    (complaint,) = ran.complaints
    assert "group billing, orders:1: " in complaint
    assert "no committed offset to shift" in complaint


def test_a_group_that_is_not_there_needs_topics_and_comes_into_being(kohort, server):
    ran = kohort("offsets", "reset", "--yes", "new", "--to-earliest", *server)
    assert ran.code == 1
    assert ran.complaints == [
        "kohort: group new has no committed offset, expected --topic for those it shall get"
    ]
    ran = kohort("offsets", "reset", "--yes", "new", "--to-earliest", "--topic", "orders", *server)
    assert (ran.code, committed(kohort, server, "new")) == (0, {"orders:0": 0, "orders:1": 0})


def test_groups_that_begin_with_a_mark_of_the_byte_order_are_imported_as_exported(
    kohort, cluster, server, tmp_path
):
    """Each group's part of the file got another mark, and so became another group."""
    names = ["\ufeffone", "\ufefftwo", "\ufeff\ufeffthree"]
    for name in names:
        cluster.groups[name].commit("orders", 2)
    file = tmp_path / "offsets.csv"
    file.write_text(kohort("offsets", "export", *names, *server).out, encoding="utf-8")
    kohort("offsets", "reset", "--yes", *names, "--to-earliest", *server)
    before = kohort("groups", "list", *server).out
    ran = kohort("offsets", "import", "--yes", str(file), *server)
    assert (ran.code, [row[-1] for row in ran.rows[1:]]) == (0, ["set"] * 3)
    assert kohort("groups", "list", *server).out == before
    for name in names:
        assert committed(kohort, server, name) == {"orders:0": 2}


def test_what_was_exported_is_imported(kohort, server, tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text(kohort("offsets", "export", "--all", *server).out)
    assert file.read_text() == "billing,orders,0,4\nbilling,other,0,0\n"
    kohort("offsets", "reset", "--yes", "billing", "--to-latest", *server)
    ran = kohort("offsets", "import", "--yes", str(file), *server)
    assert (ran.code, [row[-1] for row in ran.rows[1:]]) == (0, ["set", "set"])
    assert committed(kohort, server, "billing") == {"orders:0": 4, "other:0": 0}

    file.write_text("orders,0,3\n")
    ran = kohort("offsets", "import", "--yes", str(file), "--group", "a", "--group", "b", *server)
    assert ran.code == 0
    assert committed(kohort, server, "a") == committed(kohort, server, "b") == {"orders:0": 3}


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("", (), "the file has no line"),
        ("orders,0,3\n", (), "names no group, expected --group"),
        ("a,orders,0,3\n", ("--group", "b"), "has no line of group b"),
        ("orders,0,1\nb,1\n", (), "line 2 has 2 fields"),
        ("orders,0,-1\n", ("--group", "b"), "'-1'"),
    ],
)
def test_a_file_that_makes_no_sense_is_a_wrong_call(kohort, tmp_path, text, more, words):
    file = tmp_path / "offsets.csv"
    file.write_text(text)
    ran = kohort("offsets", "import", str(file), *more, "--bootstrap-server", "127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    (complaint,) = ran.complaints
    assert words in complaint
    assert str(file) in complaint


def test_a_group_goes_on_where_another_one_is(kohort, server):
    ran = kohort("offsets", "clone", "--yes", "billing", "billing-2", *server)
    assert (ran.code, [row[0] for row in ran.rows[1:]]) == (0, ["billing-2", "billing-2"])
    assert committed(kohort, server, "billing-2") == {"orders:0": 4, "other:0": 0}
    assert kohort("offsets", "clone", "--yes", "billing", "billing", *server).code == 2


def test_offsets_are_deleted(kohort, server):
    call = ("offsets", "delete", "--yes", "billing", "--topic", "orders", *server)
    planned = kohort(*call, "--dry-run")
    assert planned.rows[1:] == [["orders", "0", "4", "would", "be", "deleted"]]
    assert committed(kohort, server, "billing") == {"orders:0": 4, "other:0": 0}
    done = kohort(*call, "--format", "json")
    assert done.json["offsets"] == [
        {
            "group_id": "billing",
            "topic": "orders",
            "partition": 0,
            "committed_offset": 4,
            "result": "deleted",
        }
    ]
    assert committed(kohort, server, "billing") == {"other:0": 0}
    again = kohort(*call)
    assert (again.code, again.out) == (1, "")
    assert again.complaints == ["kohort: group billing has no committed offset in orders"]


@pytest.fixture
def person(monkeypatch):
    """Somebody at a terminal, who answers so."""
    asked = []

    def answers(answer):
        def confirm(question, before):
            asked.append((question, list(before)))
            return answer

        monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
        monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
        return asked

    return answers


@pytest.mark.parametrize(("answer", "offset", "code"), [(True, 0, 0), (False, 4, 1)])
def test_a_person_reads_the_plan_and_is_asked(
    kohort, server, person, monkeypatch, answer, offset, code
):
    asked = person(answer)
    call = ("offsets", "reset", "billing", "--to-earliest", "--topic", "orders:0", *server)
    assert kohort(*call).code == code
    ((question, before),) = asked
    assert question == f"Set these offsets at {server[1]}?"
    assert [line.split() for line in before] == [
        HEADERS[:-1],
        ["billing", "orders", "0", "4", "0", "6", "10"],
    ]
    monkeypatch.undo()
    assert committed(kohort, server, "billing")["orders:0"] == offset


def test_a_yes_makes_the_plan_that_was_shown(kohort, cluster, server, person, monkeypatch):
    """The log grows between the two."""

    def confirm(_question, _before):
        with Talk(cluster.bootstrap) as client:
            client.produce("orders", b"later")
        return True

    person(True)
    monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
    kohort("offsets", "reset", "billing", "--to-latest", "--topic", "orders:0", *server)
    assert committed(kohort, server, "billing")["orders:0"] == 10


def test_the_question_names_who_fails_and_who_is_new(kohort, server, person):
    asked = person(False)
    groups = ("billing", "busy", "biling")
    kohort("offsets", "reset", *groups, "--to-latest", "--topic", "orders:0", *server)
    ((_, before),) = asked
    new, refused = before[-2:]
    assert new == "group biling is not there yet: it will be made"
    assert refused.startswith("not set: group busy is Stable")


def test_nobody_is_asked_about_what_would_be_refused(kohort, server, person):
    asked = person(True)
    ran = kohort("offsets", "reset", "busy", "--to-latest", "--topic", "orders:0", *server)
    assert (ran.code, asked) == (1, [])
    (complaint,) = ran.complaints
    assert "group busy is Stable" in complaint


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("reset", "g"), "is required"),
        (("reset", "g", "--to-offset", "-1"), "'-1' is no offset"),
        (("reset", "g", "--to-offset", "9" * 30), "is no offset"),
        (("reset", "g", "--shift-by", "x"), "'x' is no number of records"),
        (("reset", "g", "--to-datetime", "soon"), "'soon' is not a time"),
        (("reset", "g", "--by-duration", "2"), "'2' is not a duration"),
        (("reset", "g", "--by-duration", "99999999999d"), "is too long, expected at most 100000d"),
        (("reset", "g", "--to-latest", "--topic", "a:x"), "'x' in 'a:x' is no partition"),
        (("reset", "g", "--to-latest", "--topic", ":1"), "names no topic"),
        (("reset", "g", "--to-latest", "--topic", "a:5-2"), "is no range"),
        (("delete", "g"), "expected --topic"),
        (("export",), "expected group ids"),
        (("export", "g", "--all"), "expected group ids"),
    ],
)
def test_wrong_calls(kohort, call, words):
    ran = kohort("offsets", *call, "--bootstrap-server", "127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_the_group_without_a_name_is_exported_and_imported(kohort, server, tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text(",orders,0,3\n")
    ran = kohort("offsets", "import", "--yes", str(file), *server)
    assert (ran.code, ran.rows[1][0]) == (0, '""')
    assert kohort("offsets", "export", "", *server).out == ",orders,0,3\n"


def test_a_yes_deletes_the_offsets_that_were_shown(kohort, cluster, server, person, monkeypatch):
    def confirm(_question, _before):
        with Talk(cluster.bootstrap) as client:
            assert client.commit("billing", "orders", 7, index=1) == 0
        return True

    person(True)
    monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
    ran = kohort("offsets", "delete", "billing", "--topic", "orders", *server)
    assert [row[1] for row in ran.rows[1:]] == ["0"]
    assert committed(kohort, server, "billing") == {"orders:1": 7, "other:0": 0}


def test_an_export_is_utf_8_whatever_the_terminal_has(cluster, server):
    """An escape in its place would be the name of another group."""
    with Talk(cluster.bootstrap) as client:
        assert client.commit("größe", "orders", 3) == 0
    done = subprocess.run(
        [sys.executable, "-m", "kohort", "offsets", "export", "größe", *server],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert done.stdout == "größe,orders,0,3\n".encode()
