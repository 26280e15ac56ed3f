# SPDX-License-Identifier: Apache-2.0
"""`kohort acls` against a broker of ours."""

import pytest
from tests.client.admin.test_acls import AUTHORIZER

from kohort import AclOperation, ResourceType
from kohort.cli.acls import _CAPITAL, OPERATIONS, POSSIBLE, RESOURCES
from kohort.testing import Broker

ALICE = ("--allow-principal", "User:alice")


@pytest.fixture
def acls(kohort):
    with Broker(AUTHORIZER, in_memory=True) as broker:
        yield lambda *argv: kohort("acls", *argv, "--bootstrap-server", broker.bootstrap)


def rows(ran):
    assert ran.code == 0, ran.err
    return [" ".join(row) for row in ran.rows[1:]]


def test_rules_are_added_listed_and_removed(acls):
    assert acls("list").out == "no rules\n"
    add = ("add", *ALICE, "--operation", "read,Describe", "--group", "billing")
    added = rows(acls(*add))
    assert added == [
        f"GROUP billing LITERAL User:alice * ALLOW {one}" for one in ("READ", "DESCRIBE")
    ]
    assert rows(acls(*add)) == added, "a rule that is there already is no mistake"
    denied = ("--deny-principal", "User:*", "--deny-host", "127.0.0.1", "--topic", "ord")
    deny = (*denied, "--resource-pattern-type", "prefixed")
    assert rows(acls("add", *deny)) == ["TOPIC ord PREFIXED User:* 127.0.0.1 DENY ALL"]

    assert len(rows(acls("list"))) == 3
    assert rows(acls("list", "--principal", "User:alice")) == added
    match = acls(
        "list", "--topic", "orders", "--resource-pattern-type", "match", "--format", "json"
    )
    (rule,) = match.json["acls"]
    assert (rule["resource_name"], rule["permission"], rule["pattern"]) == (
        "ord",
        "DENY",
        "PREFIXED",
    )
    assert acls("list", "--topic", "orders").out == "no rules\n"

    gone = acls("remove", *ALICE, "--operation", "Read", "--group", "billing", "--yes")
    assert rows(gone) == added[:1]
    absent = acls("remove", "--yes", *ALICE, "--group", "billing")  # All is not there
    assert (absent.code, absent.out) == (1, "")
    told = "there is no rule of GROUP billing (LITERAL): User:alice * ALLOW ALL"
    assert absent.complaints == [f"kohort: {told} (RESOURCE_NOT_FOUND)"]
    assert rows(acls("remove", "--yes", "--group", "billing")) == added[1:]
    assert rows(acls("list")) == ["TOPIC ord PREFIXED User:* 127.0.0.1 DENY ALL"]


def test_roles_have_the_rules_of_upstreams_tool(acls):
    consumer = ("--consumer", "--topic", "orders", "--group", "billing")
    assert rows(acls("add", *ALICE, *consumer)) == [
        "TOPIC orders LITERAL User:alice * ALLOW READ",
        "TOPIC orders LITERAL User:alice * ALLOW DESCRIBE",
        "GROUP billing LITERAL User:alice * ALLOW READ",
    ]
    producer = ("--producer", "--topic", "orders", "--transactional-id", "x")
    assert [row.split()[-1] for row in rows(acls("add", *ALICE, *producer))] == [
        *("WRITE", "DESCRIBE", "CREATE"),
        *("WRITE", "DESCRIBE"),
    ]
    assert len(rows(acls("remove", "--yes", *ALICE, *consumer))) == 3
    left = rows(acls("list"))
    assert len(left) == 4, "what producer and consumer both need is one rule"


def test_the_cluster_has_one_name(acls):
    prefixed = ("--resource-pattern-type", "prefixed")
    added = acls("add", *ALICE, "--operation", "Alter", "--cluster", *prefixed)
    assert rows(added) == ["CLUSTER kafka-cluster LITERAL User:alice * ALLOW ALTER"]


def test_a_refusal_is_a_line_for_each_rule(kohort):
    with Broker(in_memory=True) as broker:
        server = ("--bootstrap-server", broker.bootstrap)
        ran = kohort("acls", "add", *ALICE, "--topic", "t", *server)
        assert (ran.code, ran.out) == (1, "")
        rule = "rule TOPIC t LITERAL User:alice * ALLOW ALL"
        told = "No Authorizer is configured. (SECURITY_DISABLED)"
        assert ran.complaints == [f"kohort: {rule}: {told}"]
        as_json = kohort("acls", "add", *ALICE, "--topic", "t", "--format", "json", *server)
        assert as_json.json["acls"][0]["error"] == "SECURITY_DISABLED"
        gone = kohort("acls", "remove", "--yes", "--topic", "t", *server)
        assert gone.complaints == [f"kohort: rules are not removed: {told}"]
        told = "No Authorizer is configured on the broker (SECURITY_DISABLED)"
        assert kohort("acls", "list", *server).complaints == [f"kohort: {told}"]


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("add", *ALICE), "acls add: no resource is given, expected --topic, --group"),
        (("add", "--topic", "t"), "acls add: nobody is given, expected --allow-principal"),
        (("remove",), "acls remove: no resource is given"),
        (("remove", "--topic", "t", "--operation", "Read"), "acls remove: --operation needs"),
        (("add", *ALICE, "--topic", "t", "--deny-host", "h"), "--deny-host needs --deny-principal"),
        (("add", *ALICE, "--consumer", "--topic", "t"), "--consumer needs --group"),
        (("add", *ALICE, "--producer", "--group", "g"), "--consumer and --producer need --topic"),
        (("remove", "--producer", "--topic", "t"), "need --allow-principal"),
        (
            ("add", *ALICE, "--producer", "--topic", "t", "--operation", "Read"),
            "--operation is not for --consumer and --producer",
        ),
        (("add", "--allow-principal", "alice", "--topic", "t"), "expected User:NAME"),
        (("add", *ALICE, "--topic", "t", "--operation", "Reed"), "'Reed' is no operation"),
        (("add", *ALICE, "--group", "g", "--operation", "write"), "nobody can Write a group"),
        (("add", *ALICE, "--cluster", "--operation", "Read"), "nobody can Read a cluster"),
        (("add", *ALICE, "--topic", "t", "--allow-host", "localhost"), "'localhost' is no address"),
        (("add", *ALICE, "--topic", "t", "--allow-host", "10.0.0.0/8"), "'10.0.0.0/8' is no"),
        (("create",), "kohort acls add"),
    ],
)
def test_a_wrong_call_is_a_line(kohort, argv, told):
    ran = kohort("acls", *argv)
    (line,) = ran.complaints
    assert (ran.code, ran.out) == (2, "")
    assert told in line


def test_the_words_are_those_of_the_admin_client():
    assert set(POSSIBLE) == {*RESOURCES, "cluster"}
    assert {"All"}.union(*POSSIBLE.values()) == set(OPERATIONS)
    names = {_CAPITAL.sub("_", word).upper() for word in OPERATIONS}
    assert names == {one.name for one in AclOperation if one > AclOperation.ANY}
    kinds = {*RESOURCES.values(), "CLUSTER"}
    assert kinds == {one.name for one in ResourceType if one > ResourceType.ANY}


def test_a_person_is_asked_before_rules_are_removed(acls, monkeypatch, capsys):
    acls("add", *ALICE, "--topic", "t")
    asked = []
    monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
    monkeypatch.setattr(
        "kohort.cli.cluster_commands.confirm",
        lambda question, lines: asked.append((question, list(lines))),
    )
    ran = acls("remove", "--topic", "t")
    assert ran.code == 1
    ((question, lines),) = asked
    assert question.startswith("Remove these rules at 127.0.0.1:")
    assert [line.split() for line in lines] == [
        ["TOPIC", "t", "LITERAL", "User:alice", "*", "ALLOW", "ALL"]
    ]
    assert len(rows(acls("list"))) == 1


def test_a_yes_removes_the_rules_that_were_shown(acls, monkeypatch):
    """One that is made between the look and the answer stays, and so where nothing was there."""
    acls("add", *ALICE, "--operation", "Read", "--topic", "t")
    late = ("add", "--allow-principal", "User:bob", "--operation", "Read", "--topic", "t")

    def confirm(_question, _lines):
        assert acls(*late).code == 0
        return True

    monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
    monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
    assert rows(acls("remove", "--topic", "t")) == ["TOPIC t LITERAL User:alice * ALLOW READ"]
    assert rows(acls("list")) == ["TOPIC t LITERAL User:bob * ALLOW READ"]
    absent = acls("remove", "--topic", "other")
    assert (absent.code, absent.out) == (1, "")
    assert "there is no rule of TOPIC other (LITERAL): any" in absent.err
