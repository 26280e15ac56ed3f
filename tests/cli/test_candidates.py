# SPDX-License-Identifier: Apache-2.0
"""`kohort groups delete --from`: what the pipeline found, looked at again on the cluster."""

import asyncio
import io
import json
import sys
from types import SimpleNamespace

import pytest
from tests.client.joining import ConsumerMember, commit, coordinator
from tests.client.scripted import asynchronous

from kohort.cli.candidates import Candidate, CandidatesError, read_candidates, reasons_to_skip
from kohort.client.admin import AdminClient, NewTopic
from kohort.client.admin.views import Outcomes
from kohort.errors import ApiError, ErrorCode
from kohort.testing.broker import Broker

GROUPS = ("same", "moved", "more", "fewer", "busy", "named", "kept")
DENIED = ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "no")


@pytest.fixture
def server():
    """Groups that hold offset 3 of `orders:0`; a member has come to one."""

    @asynchronous
    async def populate():
        async with AdminClient(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("orders", 3, 1)])).all()
        for group_id in GROUPS:
            async with coordinator(broker.bootstrap, group_id) as connection:
                offsets = {("orders", 0): 3} | ({("orders", 1): 4} if group_id == "more" else {})
                assert set(await commit(connection, group_id, offsets)) == {0}
        async with coordinator(broker.bootstrap, "busy") as connection:
            await ConsumerMember(connection, "busy", "member-1").join("orders")

    with Broker(in_memory=True) as broker:
        populate()
        yield ("--bootstrap-server", broker.bootstrap)


def row(group_id, *offsets, **more):
    """A row as `kohort pipeline show deletable --format json` prints it."""
    listed = [
        {"topic": "orders", "topic_partition": index, "committed_offset": offset}
        for index, offset in enumerate(offsets)
    ]
    return {"group_id": group_id, "deletable": True, "offsets": listed} | more


def test_each_group_is_looked_at_again(kohort, server, tmp_path):
    file = tmp_path / "deletable.json"
    rows = [
        row("same", 3),
        row("moved", 2),
        row("more", 3),
        row("fewer", 3, 9),  # its second offset has expired since
        row("busy", 3),
        row("gone", 3),
        row("kept", 3, deletable=False, reason="idle for 0.5 days only"),
        row("same", 3),
    ]
    file.write_text(json.dumps(rows))
    against = [
        "kohort: group moved: it has committed since: orders:0 is at 3, was at 2",
        "kohort: group more: it has committed since: orders:1 is at 4, was at none",
        "kohort: group busy: it is Stable with 1 member, expected Empty",
        "kohort: group gone: it is not there any more",
        "kohort: group kept: idle for 0.5 days only",
    ]
    planned = kohort("groups", "delete", "--from", str(file), "--dry-run", *server)
    assert (planned.code, planned.complaints) == (1, against)
    assert planned.rows[1] == ["same", "would", "be", "deleted"]

    done = kohort("groups", "delete", "--yes", "--from", str(file), "--format", "json", *server)
    assert (done.code, done.complaints) == (1, against)
    assert [(one["group_id"], one["result"]) for one in done.json["groups"]] == [
        ("same", "deleted"),
        ("moved", "kept"),
        ("more", "kept"),
        ("fewer", "deleted"),
        ("busy", "kept"),
        ("gone", "gone"),
        ("kept", "kept"),
    ]
    assert done.json["groups"][1]["reason"] == against[0].removeprefix("kohort: group moved: ")
    left = kohort("groups", "list", "--format", "json", *server).json["groups"]
    assert [one["group_id"] for one in left] == ["busy", "kept", "more", "moved", "named"]

    again = kohort("groups", "delete", "--from", str(file), "--dry-run", *server)
    assert "kohort: group same: it is not there any more" in again.complaints


def test_a_group_id_in_each_line(kohort, server, monkeypatch):
    """Nothing is known of their offsets, so they only have to be empty; gone is no fault."""
    told = io.TextIOWrapper(io.BytesIO(b"named\n\nnobody\n"))
    monkeypatch.setattr(sys, "stdin", told)
    done = kohort("groups", "delete", "--yes", "--from", "-", *server)
    assert (done.code, done.rows[1:]) == (0, [["named", "deleted"], ["nobody", "gone"]])


class Refusing:
    """An admin client of a cluster on which not everything may be seen."""

    async def describe_groups(self, ids):
        empty = SimpleNamespace(state="Empty", members=())
        return Outcomes({one: DENIED if one == "hidden" else empty for one in ids})

    async def list_group_offsets(self, wanted):
        secret = {("orders", 0): DENIED}
        return Outcomes({one: DENIED if one == "dumb" else secret for one in wanted})


def test_what_cannot_be_looked_at_is_not_deleted():
    candidates = [Candidate("hidden"), Candidate("dumb"), Candidate("secret", {})]
    found = asyncio.run(reasons_to_skip(Refusing(), candidates))
    assert [(one.result, one.is_failure) for one in found.values()] == [
        ("failed", True),
        ("failed", True),
        ("kept", True),
    ]
    assert (
        found["secret"].why == "the committed offset of orders:0: no (GROUP_AUTHORIZATION_FAILED)"
    )


def test_a_file_or_names(kohort):
    for argv, why in (
        ((), "nothing says which groups, expected group ids, --from, --match or --all"),
        (("g", "--from", "f"), "'g' and --from are given, expected one of them"),
    ):
        refused = kohort("groups", "delete", *argv)
        assert refused.code == 2
        assert refused.complaints == [f"kohort: groups delete: {why}"]


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        (b"a\nb\n\na\n", [Candidate("a"), Candidate("b")]),
        ("a\u2028b\x0b\r\nc".encode(), [Candidate("a\u2028b\x0b"), Candidate("c")]),
        (b'["a"]', [Candidate("a")]),
        (b"\xef\xbb\xbfa\r\nb\r\n", [Candidate("a"), Candidate("b")]),
        (b'\xef\xbb\xbf["a", "a"]', [Candidate("a")]),
        (b'{"rows": [{"group_id": "a"}]}', [Candidate("a")]),
        (b'{"group_id": "a"}\n', [Candidate("a")]),
        (b'{"group_id": "a"}\n{"group_id": "b"}\n', [Candidate("a"), Candidate("b")]),
        (b'{"groups": [{"group_id": "a", "deletable": false}]}', [
            Candidate("a", None, "the file says no")
        ]),
        (json.dumps([row("a", 3)]).encode(), [Candidate("a", {("orders", 0): 3})]),
    ],
)  # fmt: skip
def test_what_a_file_may_hold(tmp_path, text, candidates):
    file = tmp_path / "file"
    file.write_bytes(text)
    assert read_candidates(str(file)) == candidates


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"group_id": "plain", "group_id": "-rf"}', ""),
        ('[{"group_id": "a"}, {"group_id": "plain", "group_id": "-rf"}]', ""),
        ('{"group_id": "a"}\n{"group_id": "plain", "group_id": "-rf"}', "line 2 of "),
    ],
)
def test_a_row_that_names_two_groups_is_refused(tmp_path, text, where):
    """The last one counted: a reader of the file may have seen the first."""
    file = tmp_path / "groups.json"
    file.write_text(text)
    with pytest.raises(CandidatesError) as caught:
        read_candidates(str(file))
    what = 'has "group_id" twice in an object, expected it once'
    assert str(caught.value) == f"{where}{file} {what}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "is empty, expected groups to delete"),
        (b"[1", "begins as JSON, but is none"),
        (b"{}", "has no list of groups"),
        (b"[1]", "row 1 of"),
        (b'[{"group": "a"}]', 'is {"group": "a"}, expected a group_id and offsets'),
        (b'[{"group_id": "a", "offsets": [1]}]', "row 1 of"),
        (b"\xff", "line 1 of "),
        (b"a\nb\n\xff\nc\n", "is not text in UTF-8: byte 4"),
        (b"a\nb\n\xff\nc\n", "line 3 of "),
        (b"a\n" + b"b" * 32_768, "has 32,768 bytes, expected a group id of 32,767 at most"),
        (b'["a", "\\ud800"]', "row 2 of "),
        (b'["a", "\\ud800"]', 'is "\\ud800", expected text in UTF-8'),
        (b'[{"group_id": "a", "deletable": "false"}]', "row 1 of "),
        (b'[{"group_id": "a", "deletable": false}, "b", "a"]', "has group a otherwise than row 1"),
        (b"[" * 100_000, "begins as JSON, but is none"),
    ],
)
def test_a_file_that_says_nothing(tmp_path, text, told):
    file = tmp_path / "file"
    file.write_bytes(text)
    with pytest.raises(CandidatesError, match="file") as refused:
        read_candidates(str(file))
    assert told in str(refused.value)


def test_a_file_that_is_not_there(kohort):
    assert kohort("groups", "delete", "--yes", "--from", "no/such").complaints == [
        "kohort: --from: cannot read no/such: No such file or directory"
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "GROUP    TYPE      STATE  PROTOCOL\nbilling  consumer  Empty  consumer\n",
            "looks like a",
        ),
        ("GROUP  STATE\na      Empty\n", "stdin looks like a printed table, use --format json"),
        ("GROUP_ID  TYPE  STATE  DELETABLE\na  classic  Empty  yes\n", "a printed table, use"),
        ("group_id,type,state\na,classic,Empty\n", "stdin looks like CSV, use --format json"),
        ("", "stdin is empty, expected groups to delete"),
        (" \n\n", "stdin is empty, expected groups to delete"),
    ],
)
def test_what_names_no_groups_is_a_wrong_call(kohort, monkeypatch, text, words):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    ran = kohort("groups", "delete", "--from", "-", "--yes", "--bootstrap-server", "127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.complaints
    assert words in line


def test_a_group_may_be_called_as_a_header_is(tmp_path):
    file = tmp_path / "ids"
    file.write_text("GROUP\nSTATE\n")
    assert [one.group_id for one in read_candidates(str(file))] == ["GROUP", "STATE"]
