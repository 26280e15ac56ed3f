# SPDX-License-Identifier: Apache-2.0
"""Wrong input of every kind: a line that names the thing, the value and the expectation, the exit
code of docs/cli.md, nothing on stdout, and a cluster that is as it was.
"""

import re
import shlex
import socket
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.client.admin.test_acls import AUTHORIZER
from tests.client.joining import ConsumerMember, coordinator
from tests.client.scripted import asynchronous
from tests.drop_in.recorded_runs import run
from tests.ports import free_port

from kohort import SyncAdminClient
from kohort.drop_in import configs, consumer_groups, groups
from kohort.testing import Broker

TOOLS = {
    "kohort-consumer-groups": consumer_groups.main,
    "kohort-groups": groups.main,
    "kohort-configs": configs.main,
}
TABLE = Path(__file__).parents[1] / "data" / "cli" / "wrong_input.tsv"
HELP = re.compile(r" \(see kohort[^)]*--help\)$")
FILES = {
    "empty": b"",
    "binary": bytes(range(256)),
    "no-columns.csv": b"g,t\n",
    "twice.csv": b"g,t,0,1\ng,t,0,2\n",
    "quote.csv": b'g,"t,0,1\n',
    "long.csv": b"g," + b"t" * 200_000 + b",0,1\n",
    "negative.csv": b"g,t,-1,1\n",
    "before-start.csv": b"g,t,0,-1\n",
    "arabic.csv": "g,t,\u0660,1\n".encode(),
    "hex.csv": b"g,t,0x1,1\n",
    "no-group.csv": b"t,0,1\n",
    "cut.json": b'{"groups": [',
    "number.json": b'{"groups": 3}',
    "numbers.json": b"[1]",
    "broken.toml": b"[p",
    "odd.toml": (
        b'[p]\nx = 1\n[list]\n"sasl.username" = [1]\n[value]\n"security.protocol" = "TLS"\n'
    ),
    "wrong-password": (
        b"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        b"sasl.username=alice\nsasl.password=wrong\n"
    ),
    "alice": (
        b"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        b"sasl.username=alice\nsasl.password=secret\n"
    ),
}


class Wrong(NamedTuple):
    """A row of the table."""

    code: int
    broker: str
    line: str
    told: str

    @property
    def words(self):
        return shlex.split(self.line)


def rows():
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    for line in lines:
        if not line.startswith("# "):
            code, *rest = line.split("\t")
            yield Wrong(int(code), *rest)


ODD = [  # what no line of a file can have
    *(
        Wrong(2, "plain", shlex.join(["kohort", *words]), told)
        for words, told in [
            (
                ("topics", "create", "x" * 250),
                "kohort topics create: argument NAME: no topic …",
            ),
            (
                ("topics", "delete", "a\x1b[2Jb"),
                "kohort topics delete: argument NAME: no topic …",
            ),
            (
                ("topics", "describe", "a\nb"),
                "kohort topics describe: argument NAME: no topic …",
            ),
            (("groups", "delete", "a\udcff"), "kohort groups delete: argument GROUP: 'a …"),
            (("groups", "list", "--match", "\udcff"), "kohort groups list: argument --match: ' …"),
            (
                ("groups", "members", "remove", "busy", "--all", "--reason", "x" * 256),
                "kohort: groups members remove: reason has 256 characters, expected 255 at most …",
            ),
        ]
    ),
    Wrong(
        2,
        "",
        "kohort groups list",
        "kohort: no bootstrap server is given, expected at least one host:port",
    ),
]
ROWS = [*rows(), *ODD]


@pytest.fixture(scope="module")
def plain():
    """A topic with ten records; a group without members and one with a member; rules and users."""

    @asynchronous
    async def joined():
        async with coordinator(broker.bootstrap, "busy") as connection:
            await ConsumerMember(connection, "busy", "member-1").join("t")

    both = ("PLAINTEXT", "SASL_PLAINTEXT")
    with Broker(AUTHORIZER, security=both, users={"alice": "secret"}, clock="manual") as broker:
        broker.create_topic("t")
        broker.produce("t", *map(str, range(10)))
        broker.groups["g"].commit("t", 3)
        joined()
        yield broker


@pytest.fixture(scope="module")
def places(plain):
    """The addresses of the table, by their names."""
    silent = socket.create_server(("127.0.0.1", 0))
    old = Broker(versions={"ListGroups": 3, "CreateTopics": 3}, in_memory=True)
    tls = Broker(security="SSL", in_memory=True)
    half = Broker(in_memory=True, nodes=3)
    with silent, old, tls, half:
        half.create_topic("t")
        half.groups["g"].commit("t", 0)
        whole = half.bootstrap
        half.node(1).stop(takeover=False)
        yield {
            "plain": plain.bootstrap_of("PLAINTEXT"),
            "login": plain.bootstrap_of("SASL_PLAINTEXT"),
            "tls": tls.bootstrap,
            "old": old.bootstrap,
            "half": whole,
            "silent": f"127.0.0.1:{silent.getsockname()[1]}",
            "closed": f"127.0.0.1:{free_port()}",
        }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "folder").mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    return folder


@pytest.fixture
def call(kohort, places, folder, monkeypatch):
    """A row is run in the folder, in its environment (`NAME=VALUE` in front of the command)."""

    def run_row(row):
        monkeypatch.chdir(folder)
        words = row.words
        while "=" in words[0]:
            monkeypatch.setenv(*words.pop(0).split("=", 1))
        if row.broker != "-":
            words += ["--bootstrap-server", places.get(row.broker, row.broker)]
        if words[0] in TOOLS:
            ran = run(TOOLS[words[0]], words[1:])
            return ran.exit, "", ran.stdout + ran.stderr
        ran = kohort(*words[1:])
        return ran.code, ran.out, ran.err

    return run_row


@pytest.fixture(scope="module")
def state(plain):
    """Looks at all that the cluster has."""
    with SyncAdminClient(plain.bootstrap_of("PLAINTEXT")) as admin:

        def look():
            groups = [each.group_id for each in admin.list_groups()]
            configured = [("group", "g"), ("topic", "t"), ("broker", "0"), ("broker", "")]
            return (
                [repr(admin.describe_groups(groups)[each]) for each in groups],
                [repr(admin.list_group_offsets(groups)[each]) for each in groups],
                repr(admin.list_topics(internal=True)),
                repr(admin.describe_configs(configured)),
                sorted(map(repr, admin.describe_acls())),
                repr(admin.describe_user_scram_credentials()),
            )

        yield look


def without_addresses(text, places):
    for name, address in places.items():
        text = text.replace(address, f"{{{name}}}")
    return text


def test_the_table_has_every_command_that_can_be_called_wrongly():
    nouns = {" ".join(row.words[:2]) for row in ROWS if row.words[0] == "kohort"}
    for word in ("groups", "offsets", "topics", "acls", "users", "brokers", "serve", "doctor"):
        assert f"kohort {word}" in nouns
    assert {row.words[0] for row in ROWS} >= set(TOOLS)
    assert len(ROWS) > 250


@pytest.mark.parametrize("row", ROWS, ids=[str(index) for index in range(len(ROWS))])
def test_wrong_input_is_a_line_and_changes_nothing(call, places, state, row):
    """K40-25, K518-21: the line names the thing, the value and the expectation."""
    before = state()
    code, out, err = call(row)
    assert state() == before
    assert (code, "Traceback" in err) == (row.code, False), err
    lines = [HELP.sub("", line) for line in without_addresses(err, places).splitlines()]
    if row.words[0] in TOOLS:  # they say it as the Java tools do, in several lines
        lines = [line.rstrip() for line in lines if line.startswith(row.told.removesuffix(" …"))]
    (line, *more) = lines
    assert not more or row.words[0] in TOOLS
    assert line == row.told or (row.told.endswith(" …") and line.startswith(row.told[:-2]))
    assert code == 1 or not out, "a wrong call has no output"
    assert {row.split()[-1] for row in out.splitlines()[1:]} <= {"failed"}
