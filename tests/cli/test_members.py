# SPDX-License-Identifier: Apache-2.0
"""`kohort groups members remove` against a broker of ours."""

import pytest
from tests.client.joining import ConsumerMember, coordinator, join_classic
from tests.client.scripted import asynchronous

from kohort.client.admin import AdminClient, NewTopic
from kohort.testing.broker import Broker


@pytest.fixture
def server():
    """A group of each protocol with one member, which stays."""

    @asynchronous
    async def populate():
        async with AdminClient(broker.bootstrap) as admin:
            (await admin.create_topics([NewTopic("orders", 3, 1)])).all()
        async with coordinator(broker.bootstrap, "modern") as connection:
            await ConsumerMember(connection, "modern", "member-1").join("orders")
        async with coordinator(broker.bootstrap, "vintage") as connection:
            await join_classic(connection, "vintage", "orders", [0, 2])

    with Broker(in_memory=True) as broker:
        populate()
        yield ("--bootstrap-server", broker.bootstrap)


def members(kohort, server, group):
    (found,) = kohort("groups", "describe", group, "--format", "json", *server).json["groups"]
    return [member["member_id"] for member in found["members"]]


@pytest.mark.parametrize("group", ["modern", "vintage"])
def test_a_member_of_either_protocol_is_removed(kohort, server, group):
    (member,) = members(kohort, server, group)
    call = ("groups", "members", "remove", "--yes", group, "--member-id", member)
    ran = kohort(*call, "--reason", "host-7 is gone", *server)
    assert (ran.code, ran.err) == (0, "")
    assert ran.rows == [["MEMBER", "INSTANCE", "RESULT"], [member, "-", "removed"]]
    assert members(kohort, server, group) == []

    again = kohort(*call, "--format", "json", *server)
    assert again.code == 1
    (row,) = again.json["members"]
    assert (row["member_id"], row["result"], row["error"]) == (
        *(member, "failed", "UNKNOWN_MEMBER_ID"),
    )
    (complaint,) = again.complaints
    assert f"group {group}, member {member}" in complaint


def test_all_members_are_removed(kohort, server):
    assert kohort("groups", "members", "remove", "--yes", "vintage", "--all", *server).code == 0
    assert members(kohort, server, "vintage") == []
    none = kohort("groups", "members", "remove", "--yes", "vintage", "--all", *server)
    assert (none.code, none.out) == (0, "no members\n")
    gone = kohort("groups", "members", "remove", "--yes", "nobody", "--all", *server)
    assert gone.code == 1
    assert gone.complaints == ["kohort: Group nobody not found. (GROUP_ID_NOT_FOUND)"]


def test_a_person_sees_who_is_meant(kohort, server, monkeypatch):
    asked = []
    monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
    monkeypatch.setattr(
        "kohort.cli.cluster_commands.confirm",
        lambda question, lines: asked.append((question, list(lines))),
    )
    ran = kohort("groups", "members", "remove", "modern", "--all", *server)
    assert ran.code == 1
    ((question, (_, line)),) = asked
    assert question.startswith("Remove these members from group modern at ")
    assert line.split() == ["member-1", "-", "member", "127.0.0.1", "orders:0-2"]
    assert members(kohort, server, "modern") == ["member-1"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ((), "expected --instance-id, --member-id or --all"),
        (("--all", "--member-id", "a"), "expected --instance-id, --member-id or --all"),
        (("--instance-id", ""), "an id is empty"),
        (("--all", "--reason", "x" * 256), "reason"),
    ],
)
def test_wrong_calls(kohort, call, words):
    where = ("--bootstrap-server", "127.0.0.1:1")
    ran = kohort("groups", "members", "remove", "g", *call, *where)
    assert (ran.code, ran.out) == (2, "")
    (complaint,) = ran.complaints
    assert words in complaint


def test_a_yes_removes_those_that_were_shown(kohort, server, monkeypatch):
    """A member that joins after the look stays, and one that is not there needs no yes."""

    @asynchronous
    async def second():
        async with coordinator(server[1], "modern") as connection:
            member = ConsumerMember(connection, "modern", "member-2")
            await member.heartbeat(
                rebalance_timeout_ms=60_000, subscribed_topic_names=["orders"], topic_partitions=[]
            )

    def confirm(_question, _lines):
        second()
        return True

    monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
    monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
    ran = kohort("groups", "members", "remove", "modern", "--all", *server)
    assert (ran.code, [row[0] for row in ran.rows[1:]]) == (0, ["member-1"])
    assert members(kohort, server, "modern") == ["member-2"]
    unknown = kohort("groups", "members", "remove", "modern", "--instance-id", "i", *server)
    assert unknown.code == 1
    assert "instance i is not in the group (UNKNOWN_MEMBER_ID)" in unknown.err
