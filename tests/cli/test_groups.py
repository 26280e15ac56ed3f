# SPDX-License-Identifier: Apache-2.0
"""`kohort groups` against a broker of ours, and against a cluster with a node missing."""

import asyncio
import csv
import io
import json

import pytest
from tests.client.admin.test_groups import deletion, listing
from tests.client.admin.test_offsets import COMMITTED, saying
from tests.client.admin.test_topics import found
from tests.client.joining import ConsumerMember, commit, coordinator, join_classic
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous

from kohort.cli.main import main
from kohort.client.admin import AdminClient, Listings, NewTopic, TopicListing
from kohort.errors import ApiError, ErrorCode
from kohort.testing.broker import Broker
from kohort.wire.messages import describe_groups as old
from kohort.wire.messages.create_topics import CreateTopicsRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kohort.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kohort.wire.messages.offset_fetch import OffsetFetchRequest

CLASSIC = "classic"
REST = "expected none: stop its consumers first"


@pytest.fixture
def server():
    """A broker with a group of each protocol, and one that holds offsets only."""

    @asynchronous
    async def populate():
        async with AdminClient(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("orders", 3, 1)])).all()
        for group_id in ("idle", "idle-too"):
            async with coordinator(broker.bootstrap, group_id) as connection:
                assert await commit(connection, group_id, {("orders", 1): 0}) == [0]
        async with coordinator(broker.bootstrap, "modern") as connection:
            member = ConsumerMember(connection, "modern", "member-1")
            await member.join("orders")
            offsets = {("orders", 0): 0}
            codes = await commit(
                connection, "modern", offsets, member_id="member-1", epoch=member.epoch
            )
            assert codes == [0]
        async with coordinator(broker.bootstrap, "vintage") as connection:
            await join_classic(connection, "vintage", "orders", [0, 2])

    with Broker(in_memory=True) as broker:
        populate()
        yield ("--bootstrap-server", broker.bootstrap)


def test_a_day_with_groups(kohort, server):
    """K40-20, K518-21, K848-173."""
    listed = kohort("groups", "list", *server)
    assert (listed.code, listed.err) == (0, "")
    assert listed.rows == [
        ["GROUP", "TYPE", "STATE", "PROTOCOL"],
        ["idle", "classic", "Empty", "-"],
        ["idle-too", "classic", "Empty", "-"],
        ["modern", "consumer", "Stable", "consumer"],
        ["vintage", "classic", "Stable", "consumer"],
    ]

    filtered = kohort(
        "groups",
        "list",
        "--state",
        "sTaBle",
        "--type",
        "CONSUMER,classic",
        "--format",
        "json",
        *server,
    )
    assert [one["group_id"] for one in filtered.json["groups"]] == ["modern", "vintage"]
    assert filtered.json["errors"] == []
    assert filtered.json["groups"][0] == {
        "group_id": "modern",
        "type": "consumer",
        "state": "Stable",
        "protocol_type": "consumer",
    }

    described = kohort("groups", "describe", "modern", *server)
    assert (described.code, described.err) == (0, "")
    assert described.rows[0][:5] == ["GROUP", "TYPE", "STATE", "ASSIGNOR", "EPOCH"]
    assert described.rows[1][:6] == ["modern", "consumer", "Stable", "uniform", "2", "2"]
    assert described.rows[4] == [
        *("member-1", "member", "127.0.0.1", "2", "orders:0-2", "orders:0-2")
    ]
    assert described.rows[6:] == [
        ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"],
        ["orders", "0", "0", "0", "0", "member-1"],
        ["orders", "1", "-", "0", "-", "member-1"],
        ["orders", "2", "-", "0", "-", "member-1"],
    ]

    everything = kohort("groups", "describe", "--all", "--format", "json", *server).json
    groups = {one["group_id"]: one for one in everything["groups"]}
    counts = [one["uncommitted_partitions"] for one in groups.values()]
    assert counts == [0, 0, 2, 2], "of partitions that members own"
    assert list(groups) == ["idle", "idle-too", "modern", "vintage"]
    assert (everything["errors"], everything["skipped"]) == ([], [])
    assert groups["idle"]["members"] == []
    assert groups["idle"]["offsets"][0] == {
        "topic": "orders",
        "partition": 1,
        "committed_offset": 0,
        "leader_epoch": None,
        "metadata": "test",
        "end_offset": 0,
        "lag": 0,
        "member_id": None,
    }
    assert groups["vintage"]["members"][0]["assignment"] == {"orders": [0, 2]}
    assert groups["vintage"]["group_epoch"] is None

    missing = kohort("groups", "describe", "idle", "nobody", *server)
    assert missing.code == 1
    assert missing.rows[1][0] == "idle"
    assert missing.complaints == ["kohort: Group nobody not found. (GROUP_ID_NOT_FOUND)"]


def test_groups_are_deleted_each_by_itself(kohort, server):
    """K229-15, K229-18."""
    planned = kohort("groups", "delete", "idle", "modern", "--dry-run", *server)
    assert planned.code == 1
    assert planned.rows[1:] == [["idle", "would", "be", "deleted"], ["modern", "would", "fail"]]
    assert planned.complaints == [
        "kohort: group modern is Stable with 1 member, expected Empty (NON_EMPTY_GROUP)"
    ]
    assert kohort("groups", "delete", "idle", "--dry-run", *server).code == 0

    deleted = kohort("groups", "delete", "--yes", "idle", "modern", "nobody", "idle", *server)
    assert deleted.code == 1
    assert deleted.rows[1:] == [["idle", "deleted"], ["modern", "failed"], ["nobody", "failed"]]
    assert deleted.complaints == [
        f"kohort: group modern has members, {REST} (NON_EMPTY_GROUP)",
        "kohort: Group nobody not found. (GROUP_ID_NOT_FOUND)",
    ]

    last = kohort("groups", "delete", "--yes", "idle-too", "idle", "--format", "json", *server)
    assert last.json == {
        "dry_run": False,
        "groups": [
            {"group_id": "idle-too", "result": "deleted"},
            {
                "group_id": "idle",
                "result": "failed",
                "error": "GROUP_ID_NOT_FOUND",
                "message": "Group idle not found.",
            },
        ],
    }
    left = kohort("groups", "list", "--format", "json", *server).json["groups"]
    assert [one["group_id"] for one in left] == ["modern", "vintage"]


def test_what_a_list_says_may_be_deleted_as_it_is(kohort, server, tmp_path):
    (tmp_path / "empty.json").write_text(
        kohort("groups", "list", "--state", "empty", "--format", "json", *server).out
    )
    done = kohort("groups", "delete", "--yes", "--from", str(tmp_path / "empty.json"), *server)
    assert (done.code, done.err) == (0, "")
    assert done.rows[1:] == [["idle", "deleted"], ["idle-too", "deleted"]]


ODD = ["my group", "größe ☃", "tab\there", "a,b", " lead", "--dry-run", "日本", "x" * 200]


def test_many_groups_and_odd_names(kohort):
    many = [f"g-{index}" for index in range(300)]

    @asynchronous
    async def populate():
        async with AdminClient(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("orders", 1, 1)])).all()
        async with coordinator(broker.bootstrap, "any") as connection:
            for group_id in (*many, *ODD):
                assert await commit(connection, group_id, {("orders", 0): 0}) == [0]

    with Broker(in_memory=True) as broker:
        populate()
        server = ("--bootstrap-server", broker.bootstrap)
        listed = kohort("groups", "list", "--format", "json", *server).json["groups"]
        assert sorted(one["group_id"] for one in listed) == sorted([*many, *ODD])
        everything = kohort("groups", "describe", "--all", "--format", "json", *server)
        assert (everything.code, everything.err) == (0, "")
        assert len(everything.json["groups"]) == 308
        for group_id in ODD:
            shown = kohort("groups", "describe", "--format", "json", *server, "--", group_id)
            assert shown.code == 0
            assert [one["group_id"] for one in shown.json["groups"]] == [group_id]
        assert "tab\\there" in kohort("groups", "list", *server).out
        deleted = kohort("groups", "delete", "--yes", *server, "--", *many, *ODD)
        assert (deleted.code, len(deleted.rows)) == (0, 309)
        assert kohort("groups", "list", *server).rows[1:] == []


@pytest.mark.parametrize(
    ("group_id", "complaint"),
    [
        ("my group", "kohort: Group my group not found. (GROUP_ID_NOT_FOUND)"),
        ("", "kohort: group '': Group  not found. (GROUP_ID_NOT_FOUND)"),
    ],
)
def test_a_group_that_is_not_there(kohort, server, group_id, complaint):
    ran = kohort("groups", "describe", group_id, *server)
    assert (ran.code, ran.out) == (1, "")
    assert ran.complaints == [complaint]


@asynchronous
async def test_the_offsets_of_all_groups_are_one_request_for_each_coordinator(capsys):
    """K709-33."""
    groups = [f"g{number}" for number in range(102)]
    COMMITTED.update({one: {} for one in groups})
    answers = {
        ListGroupsRequest: lambda asked: ListGroupsResponse(
            groups=[
                ListedGroup(group_id=one, protocol_type="", group_state="Empty", group_type=CLASSIC)
                for number, one in enumerate(groups)
                if number % 2 == asked.node
            ]
        ),
        DescribeGroupsRequest: lambda asked: old.DescribeGroupsResponse(
            groups=[
                old.DescribedGroup(group_id=one, group_state="Empty")
                for one in asked.request.groups
            ]
        ),
        OffsetFetchRequest: saying(),
    }
    async with ScriptedCluster(2, answers) as scripted:
        scripted.offer("ConsumerGroupDescribe", None)
        scripted.coordinators = {one: number % 2 for number, one in enumerate(groups)}
        code = await against(scripted, "groups", "describe", "--all", "--format", "json")
    assert (code, len(json.loads(capsys.readouterr().out)["groups"])) == (0, 102)
    asked = scripted.sent("OffsetFetch")
    assert sorted((one.node, len(one.request.groups)) for one in asked) == [(0, 51), (1, 51)]


# --- clusters that are not well


def against(scripted: ScriptedCluster, *argv: str):
    return asyncio.to_thread(main, [*argv, "--bootstrap-server", scripted.bootstrap])


@pytest.mark.parametrize("way", ["names", "file"])
@asynchronous
async def test_a_deletion_that_nobody_has_confirmed_is_no_failure_that_is_certain(
    capsys, tmp_path, way
):
    """One coordinator of two hangs up before it answers. Which of both it did nobody knows."""
    (tmp_path / "ids").write_text("a\nb\n")
    given = ["a", "b"] if way == "names" else ["--from", str(tmp_path / "ids")]
    answers = {
        DeleteGroupsRequest: lambda asked: deletion({})(asked) if asked.node == 0 else CLOSE,
        DescribeGroupsRequest: lambda asked: old.DescribeGroupsResponse(
            groups=[
                old.DescribedGroup(group_id=one, group_state="Empty")
                for one in asked.request.groups
            ]
        ),
        OffsetFetchRequest: saying(),
    }
    async with ScriptedCluster(2, answers) as scripted:
        scripted.offer("ConsumerGroupDescribe", None)
        scripted.coordinators = {"b": 1}
        code = await against(scripted, "groups", "delete", "--yes", *given, "--format", "json")
        port = scripted.nodes[1].port
    captured = capsys.readouterr()
    closed = f"127.0.0.1:{port} closed the connection"
    first, second = json.loads(captured.out)["groups"]
    assert (code, first) == (1, {"group_id": "a", "result": "deleted"})
    assert second["result"] == "unknown"
    assert captured.err.startswith(f"kohort: group b: {closed}")
    assert captured.err.endswith("; it may be deleted all the same\n")
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize("verb", ["create", "delete"])
@asynchronous
async def test_a_change_of_topics_that_nobody_has_confirmed_neither(capsys, verb):
    answers = {CreateTopicsRequest: lambda _: CLOSE, DeleteTopicsRequest: lambda _: CLOSE}
    async with ScriptedCluster(1, answers) as scripted:
        code = await against(scripted, "topics", verb, "--yes", "t")
    captured = capsys.readouterr()
    assert (code, captured.out.split()) == (1, ["TOPIC", "RESULT", "t", "unknown"])
    assert captured.err.endswith(f"; it may be {verb}d all the same\n")


SHARED = [
    ListedGroup(group_id="s", protocol_type="share", group_state="Empty", group_type="share"),
    ListedGroup(group_id="t", protocol_type="share", group_state="Stable", group_type="share"),
]


def unknown(asked):
    groups = [
        old.DescribedGroup(group_id=group, error_code=69, error_message=f"Group {group} not found.")
        for group in asked.request.groups
    ]
    return old.DescribeGroupsResponse(groups=groups)


@pytest.mark.parametrize("way", ["names", "file"])
@asynchronous
async def test_a_group_of_another_type_is_there_though_it_cannot_be_described(
    capsys, tmp_path, way
):
    """DeleteGroups deletes share and streams groups, too: a dry run says what the run would do."""
    (tmp_path / "ids").write_text("s\nt\nnone\n")
    given = ["s", "t", "none"] if way == "names" else ["--from", str(tmp_path / "ids")]
    answers = {
        ListGroupsRequest: lambda _: ListGroupsResponse(groups=SHARED),
        DescribeGroupsRequest: unknown,
    }
    async with ScriptedCluster(1, answers) as scripted:
        scripted.offer("ConsumerGroupDescribe", None)
        options = ("--dry-run", "--format", "json")
        code = await against(scripted, "groups", "delete", *given, *options)
    captured = capsys.readouterr()
    told = [(one["group_id"], one["result"]) for one in json.loads(captured.out)["groups"]]
    assert code == 1
    if way == "names":
        assert told == [("s", "would be deleted"), ("t", "would fail"), ("none", "would fail")]
        assert "group t is Stable, expected Empty (NON_EMPTY_GROUP)" in captured.err
        assert "Group none not found" in captured.err
    else:
        assert told == [("s", "kept"), ("t", "kept"), ("none", "gone")]
        assert "group s: it is a share group, whose offsets are not looked at" in captured.err


@asynchronous
async def test_what_never_left_has_certainly_failed(capsys):
    async with ScriptedCluster(2) as scripted:
        scripted.coordinators = {"b": 1}
        await scripted.stop(1)
        assert await against(scripted, "groups", "delete", "--yes", "b", "--format", "json") == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["groups"][0]["result"] == "failed"
    assert "all the same" not in captured.err


@pytest.mark.parametrize("fmt", ["table", "json"])
@asynchronous
async def test_a_missing_node_is_named_and_the_rest_is_shown(capsys, fmt):
    async with ScriptedCluster(2, {ListGroupsRequest: listing}) as scripted:
        await scripted.stop(1)
        code = await against(scripted, "groups", "list", "--format", fmt)
        port = scripted.nodes[1].port
    captured = capsys.readouterr()
    assert code == 1
    assert "Stable" in captured.out
    refused = f"cannot connect to 127.0.0.1:{port}: refused"
    assert captured.err == f"kohort: the groups of node 1 are missing: {refused}\n"
    assert (refused in captured.out) == (fmt == "json")


@asynchronous
async def test_a_filter_that_the_brokers_are_too_old_for(capsys):
    async with ScriptedCluster(1, {ListGroupsRequest: listing}) as scripted:
        scripted.offer("ListGroups", "0-3")
        code = await against(scripted, "groups", "list", "--state", "stable")
    captured = capsys.readouterr()
    assert (code, captured.out) == (1, "")
    assert captured.err.endswith("filtering by state needs v4 (KIP-518, Apache Kafka 2.6)\n")


@asynchronous
async def test_groups_of_other_kinds_are_listed_only(capsys):
    """`tea` stands for a type of the future."""
    answers = {
        ListGroupsRequest: lambda asked: listing(asked._replace(node=1)),
        DescribeGroupsRequest: lambda asked: old.DescribeGroupsResponse(
            groups=[
                old.DescribedGroup(group_id=one, group_state="Empty", protocol_type="connect")
                for one in asked.request.groups
            ]
        ),
        OffsetFetchRequest: saying(codes={("orders", 0): 29}),
        ListOffsetsRequest: lambda _: ListOffsetsResponse(),
    }
    async with ScriptedCluster(1, answers) as scripted:
        scripted.offer("ConsumerGroupDescribe", None)
        code = await against(scripted, "groups", "describe", "--all")
    captured = capsys.readouterr()
    assert code == 0
    assert "kohort: group a is a tea group, which is listed only" in captured.err
    assert captured.out.splitlines()[1].startswith("c      classic  Empty")


@asynchronous
async def test_what_is_unknown_of_a_partition_is_said_and_the_rest_is_shown(capsys):
    answers = {
        DescribeGroupsRequest: lambda asked: old.DescribeGroupsResponse(
            groups=[
                old.DescribedGroup(group_id=one, group_state="Empty", protocol_type="consumer")
                for one in asked.request.groups
            ]
        ),
        OffsetFetchRequest: saying(codes={("orders", 0): 29}),
        ListOffsetsRequest: lambda _: ListOffsetsResponse(),
    }
    async with ScriptedCluster(1, answers) as scripted:
        scripted.offer("ConsumerGroupDescribe", None)
        scripted.topics = {"orders": [0]}
        code = await against(scripted, "groups", "describe", "a")
    captured = capsys.readouterr()
    assert code == 1
    lines = captured.out.splitlines()
    assert lines[-2].split() == ["orders", "0", "-", "-", "-", "-"]
    assert lines[-1].split() == ["orders", "1", "11", "-", "-", "-"]
    complaints = captured.err.splitlines()
    assert "kohort: group a, orders:0: committed offset: TOPIC_AUTHORIZATION_FAILED" in complaints
    assert any(
        "orders:1: end offset: partition orders:1 does not exist" in one for one in complaints
    )


@asynchronous
async def test_a_partition_without_a_leader_has_an_unknown_lag(capsys):
    """The rest of the group is shown, and nobody waits for the timeout."""
    answers = {
        DescribeGroupsRequest: lambda asked: old.DescribeGroupsResponse(
            groups=[
                old.DescribedGroup(group_id=one, group_state="Empty", protocol_type="consumer")
                for one in asked.request.groups
            ]
        ),
        OffsetFetchRequest: saying(),
        ListOffsetsRequest: found,
    }
    async with ScriptedCluster(1, answers) as scripted:
        scripted.offer("ConsumerGroupDescribe", None)
        scripted.topics = {"orders": [-1, 0]}
        code = await against(scripted, "groups", "describe", "a", "--timeout", "600")
    captured = capsys.readouterr()
    assert code == 1
    lines = captured.out.splitlines()
    assert lines[-2].split() == ["orders", "0", "10", "-", "-", "-"]
    assert lines[-1].split() == ["orders", "1", "11", "100", "89", "-"]
    told = "end offset: partition orders:0 has no leader (LEADER_NOT_AVAILABLE)"
    assert captured.err == f"kohort: group a, orders:0: {told}\n"


def test_groups_whose_coordinator_is_nobody_are_missing_and_that_is_said(kohort, tmp_path):
    """A node is away, and nobody has taken over its part of __consumer_offsets."""
    names = [f"g{number}" for number in range(8)]
    with Broker(nodes=3, in_memory=True) as broker:
        broker.create_topic("t")
        for group_id in names:
            broker.groups[group_id].commit("t")
        left = {name for name in names if broker.groups[name].coordinator() != 1}
        unheard = next(
            name
            for name in (f"h{number}" for number in range(99))
            if broker.groups[name].coordinator() != 1
        )
        broker.node(1).stop(takeover=False)
        server = ("--bootstrap-server", broker.bootstrap, "--timeout", "2")
        listed = kohort("groups", "list", *server)
        as_json = kohort("groups", "list", "--format", "json", *server)
        described = kohort("groups", "describe", "--all", *server)
        file = tmp_path / "gone"
        file.write_text(unheard)
        deleted = kohort("groups", "delete", "--from", str(file), "--dry-run", *server)
    (line,) = listed.complaints
    assert line == (
        "kohort: the groups of 2 coordinators are missing: "
        "nobody coordinates partitions 0,3 of __consumer_offsets"
    )
    assert listed.code == as_json.code == described.code == 1
    assert {row[0] for row in listed.rows[1:]} == left
    assert as_json.json["errors"] == [
        {
            "topic": "__consumer_offsets",
            "partition": index,
            "error": "COORDINATOR_NOT_AVAILABLE",
            "message": f"nobody coordinates partition {index} of __consumer_offsets",
        }
        for index in (0, 3)
    ]
    assert line in described.complaints
    assert deleted.code == 1
    assert "whether it is a group of another type is not known" in deleted.err


@pytest.mark.parametrize("command", [("groups", "list"), ("groups", "describe", "--all")])
def test_who_may_not_see_the_coordinators_gets_the_groups_and_a_line(kohort, monkeypatch, command):
    async def list_groups(_self, **_):
        refused = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not known, as it is not seen")
        return Listings((), {}, refused)

    monkeypatch.setattr(AdminClient, "list_groups", list_groups)
    with Broker(in_memory=True) as broker:
        listed = kohort(*command, "--bootstrap-server", broker.bootstrap)
    assert (listed.code, listed.complaints) == (0, ["kohort: not known, as it is not seen"])


def test_a_topic_that_cannot_be_looked_at_is_a_complaint(kohort, monkeypatch):
    async def list_topics(_self, **_):
        error = ApiError(ErrorCode.LEADER_NOT_AVAILABLE, "")
        return (TopicListing("orders", None, False, None, error),)

    monkeypatch.setattr(AdminClient, "list_topics", list_topics)
    listed = kohort("topics", "list")
    assert (listed.code, listed.complaints) == (1, ["kohort: topic orders: LEADER_NOT_AVAILABLE"])
    (row,) = kohort("topics", "list", "--format", "json").json["topics"]
    assert (row["partitions"], row["error"]) == (None, "LEADER_NOT_AVAILABLE")


@pytest.mark.parametrize(
    ("options", "deleted", "left"),
    [
        (("--all",), ["idle", "idle-too"], "2 groups with members left as they are"),
        (("--match", "^idle|modern"), ["idle", "idle-too"], "1 group with members left as they"),
        (("--match", "too$"), ["idle-too"], ""),
        (("--match", "nothing"), [], ""),
    ],
)
def test_all_empty_groups_are_deleted_and_no_others(kohort, server, options, deleted, left):
    planned = kohort("groups", "delete", *options, "--dry-run", *server)
    assert [row[0] for row in planned.rows[1:]] == deleted
    ran = kohort("groups", "delete", "--yes", *options, *server)
    assert (ran.code, ran.rows[1:]) == (0, [[one, "deleted"] for one in deleted])
    assert left in ran.err
    there = {"idle", "idle-too", "modern", "vintage"} - {*deleted}
    assert {row[0] for row in kohort("groups", "list", *server).rows[1:]} == there


def test_what_would_be_refused_is_left_out_of_the_question(kohort, server, monkeypatch):
    asked = []

    def confirm(question, lines):
        asked.append((question, list(lines)))
        return True

    monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
    monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
    ran = kohort("groups", "delete", "idle", "modern", *server)
    assert (ran.code, ran.rows[1:]) == (1, [["idle", "deleted"], ["modern", "failed"]])
    ((_, lines),) = asked
    assert lines[0].startswith("group idle: Empty, 0 members")
    assert lines[1:] == ["group modern cannot be deleted, and will be named"]

    assert kohort("groups", "delete", "modern", *server).code == 1
    assert len(asked) == 1


def test_views_show_a_part_and_ask_for_no_more(kohort, server, monkeypatch):
    """K518-20."""
    call = ("groups", "describe", "modern", *server)
    whole = kohort(*call).rows
    assert kohort(*call, "--members").rows == whole[:5]
    assert kohort(*call, "--offsets").rows == [*whole[:2], *whole[5:]]
    totals = kohort(*call, "--offsets", "--totals").out.splitlines()[-2:]
    behind = "0 records behind + 2 partitions without a commit"
    assert totals == [f"orders: 3 partitions, {behind}", f"group modern: {behind}"]

    def refused(*_, **__):
        raise AssertionError("nobody asked for it")

    monkeypatch.setattr(AdminClient, "list_group_offsets", refused)
    monkeypatch.setattr(AdminClient, "end_offsets", refused)
    assert kohort(*call, "--state").rows == whole[:2]
    (group,) = kohort(*call, "--state", "--members", "--format", "json").json["groups"]
    assert (len(group["members"]), "offsets" in group) == (1, False)
    assert "uncommitted_partitions" not in group
    (row,) = csv.DictReader(io.StringIO(kohort(*call, "--members", "--format", "csv").out))
    assert (row["group_id"], row["member_id"], row["instance_id"]) == ("modern", "member-1", "")
    assert row["assignment"] == row["target_assignment"] == '{"orders": [0, 1, 2]}'


def test_a_member_in_the_way_is_named(kohort, server):
    """A second member waits for partitions that the first has not given up yet."""

    @asynchronous
    async def second():
        async with coordinator(server[1], "modern") as connection:
            member = ConsumerMember(connection, "modern", "member-2")
            answer = await member.heartbeat(
                rebalance_timeout_ms=60_000, subscribed_topic_names=["orders"], topic_partitions=[]
            )
            assert answer.error_code == 0

    second()
    ran = kohort("groups", "describe", "modern", "--state", *server)
    assert "waits: member (member-1) gives up orders:" in ran.out
    (group,) = kohort("groups", "describe", "modern", "--format", "json", *server).json["groups"]
    assert [one["member_id"] for one in group["waits_for"]] == ["member-1"]


def test_nothing_that_nobody_was_asked_about_is_deleted(kohort, server, monkeypatch):
    """What becomes Empty between the look and the deletion."""
    kohort("groups", "delete", "--yes", "--all", *server)
    monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
    real = AdminClient.describe_groups

    async def late(self, ids, **options):
        found = await real(self, ids, **options)
        async with coordinator(server[1], "late") as connection:
            assert await commit(connection, "late", {("orders", 1): 0}) == [0]
        return found

    monkeypatch.setattr(AdminClient, "describe_groups", late)
    ran = kohort("groups", "delete", "--all", *server)
    assert (ran.code, ran.rows[1:]) == (0, [])
    monkeypatch.undo()
    assert "late" in [row[0] for row in kohort("groups", "list", *server).rows]
