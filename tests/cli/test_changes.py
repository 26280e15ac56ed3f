# SPDX-License-Identifier: Apache-2.0
"""Commands that change a cluster: who is asked, what goes on without a terminal, and what is not
there. A table has a call of each.
"""

import inspect
import io
import json
import sys

import pytest
from tests.cli.test_main import COMMANDS
from tests.client.admin.test_acls import AUTHORIZER
from tests.client.joining import ConsumerMember, coordinator
from tests.client.scripted import asynchronous

from kohort.cli.cluster_commands import AdminCommand, ChangeCommand
from kohort.cli.main import parser
from kohort.testing import Broker

ASKING = {  # a call that would take something away, so that a person is asked
    "groups delete": "groups delete idle",
    "groups members remove": "groups members remove live --member-id member-1",
    "offsets reset": "offsets reset idle --to-latest",
    "offsets import": "offsets import {file}",
    "offsets clone": "offsets clone source idle",
    "offsets delete": "offsets delete idle --topic orders",
    "topics alter": "topics alter orders --partitions 3",
    "topics delete": "topics delete orders",
    "acls remove": "acls remove --topic orders",
    "users create": "users create alice",
    "users delete": "users delete alice",
}
UNASKED = {  # one that takes nothing away
    "groups config": "groups config idle --set consumer.session.timeout.ms=50000",
    "topics create": "topics create new",
    "topics config": "topics config orders --set retention.ms=-1",
    "brokers config": "brokers config all --set log.retention.ms=-1",
    "acls add": "acls add --allow-principal User:bob --topic orders",
    "users create": "users create bob",
}
FILE = "idle,orders,0,7\n"


@pytest.fixture
def cluster(kohort, tmp_path, monkeypatch):
    """A call of words, as of a script, and what the cluster has."""

    @asynchronous
    async def join():
        async with coordinator(broker.bootstrap, "live") as connection:
            await ConsumerMember(connection, "live", "member-1").join("other")

    (tmp_path / "file.csv").write_text(FILE, encoding="utf-8")
    with Broker(AUTHORIZER, in_memory=True) as broker:

        def run(call, *more):
            words = call.format(file=tmp_path / "file.csv").split()
            monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
            return kohort(*words, *more, "--bootstrap-server", broker.bootstrap)

        for topic in ("orders", "other"):
            broker.create_topic(topic)
            broker.produce(topic, *range(9))
        broker.groups["idle"].commit("orders", 4)
        broker.groups["source"].commit("orders", 5)
        join()
        assert run("users create alice").code == 0
        assert run("acls add --allow-principal User:alice --topic orders").code == 0
        yield run


def contents(cluster):
    """All that a command of the table could change, but for passwords, which nobody is told."""
    shown = (
        *("groups describe --all", "topics describe orders", "topics list"),
        *("topics config orders", "groups config idle", "brokers config all"),
        *("acls list", "users list"),
    )
    return {call: cluster(call, "--format", "json").out for call in shown}


def command(words):
    return parser().parse_args(words.format(file="f").split()).command


def test_the_tables_have_all_commands_that_change_something():
    changing = {
        " ".join(path)
        for path in COMMANDS
        if isinstance(one := command_at(path), AdminCommand) and changes(one)
    }
    assert changing == {*ASKING, *UNASKED}
    for words in (*ASKING.values(), *UNASKED.values()):
        assert isinstance(command(words), ChangeCommand)


def command_at(path):
    found = parser(path)
    for word in path:
        (inner,) = (one for one in found._actions if one.choices and word in one.choices)
        found = inner.choices[word]
    return found.get_default("command")


def changes(found):
    """Whether its class, or a function beside it, works in `output.changing`."""
    modules = {sys.modules[one.__module__] for one in type(found).__mro__ if one is not object}
    texts = [inspect.getsource(one) for one in type(found).__mro__ if one is not object]
    helpers = [
        inspect.getsource(one)
        for module in modules
        for name, one in inspect.getmembers(module, inspect.isfunction)
        if name in "".join(texts) and one.__module__ == module.__name__
    ]
    return any("output.changing(" in text for text in [*texts, *helpers])


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_what_changes_something_can_be_tried_and_needs_no_question(kohort, path):
    """Each has --dry-run and --yes; no other command of a cluster has them."""
    has = {"--dry-run", "--yes"} <= set(kohort(*path, "--help").out.replace(",", " ").split())
    assert has == (" ".join(path) in {*ASKING, *UNASKED})


@pytest.mark.parametrize("name", ASKING)
def test_without_a_terminal_nothing_is_changed_that_a_person_would_be_asked_about(cluster, name):
    before = contents(cluster)

    ran = cluster(ASKING[name])

    assert (ran.code, ran.out) == (2, "")
    (complaint,) = ran.complaints
    assert complaint.startswith(f"kohort: {name}: nobody is at a terminal to be asked ")
    assert complaint.endswith('?", expected --yes, or --dry-run')
    document = json.loads(cluster(ASKING[name], "--format", "json").out)
    assert document["error"] == "WrongCallError"
    assert contents(cluster) == before


@pytest.mark.parametrize("call", [*ASKING.values(), *UNASKED.values()])
def test_trying_needs_no_yes_and_changes_nothing(cluster, call):
    before = contents(cluster)

    ran = cluster(call, "--dry-run")

    assert (ran.code, ran.err) == (0, "")
    assert "would be " in ran.out
    (rows,) = (
        value
        for value in cluster(call, "--dry-run", "--format", "json").json.values()
        if isinstance(value, list) and value
    )
    assert all(row["result"].startswith("would be ") for row in rows)
    assert contents(cluster) == before


@pytest.mark.parametrize("call", [*(f"{one} --yes" for one in ASKING.values()), *UNASKED.values()])
def test_a_yes_changes_it_and_so_does_what_takes_nothing_away(cluster, call):
    before = contents(cluster)

    ran = cluster(call)

    assert (ran.code, ran.err) == (0, "")
    if "users create alice" not in call:
        assert contents(cluster) != before


def test_a_password_is_replaced_by_a_yes_alone(cluster):
    """The row of the table above that shows nothing: the number of iterations is told."""
    replaced = ("--iterations", "4096")
    assert cluster("users create alice", *replaced).code == 2
    assert ["alice", "SCRAM-SHA-512", "8192"] in cluster("users list").rows
    assert cluster("users create alice", "--yes", *replaced).code == 0
    assert ["alice", "SCRAM-SHA-512", "4096"] in cluster("users list").rows
    dry = cluster("users create alice", "--dry-run")
    assert dry.rows[1:] == [["alice", "would", "be", "replaced"]]


MISSING = {  # a call, and the name in it of what is not there
    "groups describe absent": "absent",
    "groups delete absent --yes": "absent",
    "groups delete absent --dry-run": "absent",
    "groups watch absent --looks 1": "absent",
    "groups members remove absent --all --yes": "absent",
    "groups members remove live --member-id absent --yes": "absent",
    "groups members remove live --instance-id absent --dry-run": "absent",
    "offsets reset absent --to-latest --yes": "absent",
    "offsets reset idle --to-latest --topic absent:0 --yes": "absent:0",
    "offsets reset idle --to-latest --topic orders:7 --dry-run": "orders:7",
    "offsets export absent": "absent",
    "offsets clone absent idle --yes": "absent",
    "offsets delete absent --topic orders --yes": "absent",
    "offsets delete idle --topic absent --dry-run": "absent",
    "topics describe absent": "absent",
    "topics alter absent --partitions 3 --yes": "absent",
    "topics alter absent --partitions 3 --dry-run": "absent",
    "topics delete absent --yes": "absent",
    "topics delete absent --dry-run": "absent",
    "topics config absent": "absent",
    "topics config absent --set retention.ms=1 --yes": "absent",
    "brokers config 7": "7",
    "acls remove --topic absent --yes": "absent",
    "acls remove --topic absent --dry-run": "absent",
    "acls remove --topic orders --allow-principal User:absent --yes": "absent",
    "users list absent": "absent",
    "users delete absent --yes": "absent",
    "users delete absent --dry-run": "absent",
    "users delete alice --mechanism SCRAM-SHA-256 --dry-run": "alice",
    "consume absent --until-end": "absent",
    "consume orders:7 --until-end": "partition 7",
    "produce absent": "absent",
}
EMPTY = (  # what only chooses may find nothing, and a setting of a group needs no group
    *("groups list --match absent", "groups delete --match absent --yes"),
    *("groups watch --match absent --looks 1", "topics list --matching absent"),
    *("acls list --topic absent", "groups config absent"),
)


@pytest.mark.parametrize(("call", "name"), MISSING.items(), ids=MISSING)
def test_what_is_named_and_not_there_is_code_1_and_a_line_with_the_name(cluster, call, name):
    before = contents(cluster)

    ran = cluster(call)

    assert ran.code == 1
    assert any(name in line for line in ran.complaints)
    assert contents(cluster) == before


@pytest.mark.parametrize("call", EMPTY)
def test_what_only_chooses_may_find_nothing(cluster, call):
    assert cluster(call).code == 0
