# SPDX-License-Identifier: Apache-2.0
"""Commands with TLS, SASL and rules against a real Apache Kafka, beside its own tools."""

import asyncio
import json
import subprocess
import sys
import uuid

import pytest
from tests.peers.kafka import run_tool, unavailable
from tests.peers.secure_kafka import password_of, secure_kafka

import kohort as kohort_clients

pytestmark = [
    pytest.mark.java,
    pytest.mark.timeout(600),
    pytest.mark.skipif(unavailable() is not None, reason=str(unavailable())),
]


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    with secure_kafka(tmp_path_factory.mktemp("secure")) as running:
        yield running


@pytest.fixture
def kohort(secure, tmp_path):
    """Runs a command as a user, whose settings are in a file as Kafka's tools take it."""

    def run(*argv, listener="SASLSSL", user="admin", mechanism="SCRAM-SHA-512", stdin=""):
        path = properties(secure, tmp_path, user, mechanism, listener)
        return subprocess.run(
            [
                *(sys.executable, "-m", "kohort", *argv),
                *("--bootstrap-server", secure.addresses[listener], "--command-config", str(path)),
            ],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def properties(secure, folder, user, mechanism, listener="SASLSSL"):
    module = {"PLAIN": "plain.PlainLoginModule"}.get(mechanism, "scram.ScramLoginModule")
    lines = {
        "security.protocol": "SASL_SSL" if listener == "SASLSSL" else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required"
        f' username="{user}" password="{password_of(user)}";',
        **(
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": secure.ca}
            if listener == "SASLSSL"
            else {}
        ),
    }
    path = folder / f"{user}-{mechanism}-{listener}.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    path.chmod(0o600)
    return path


def rows(ran):
    assert (ran.returncode, ran.stderr) == (0, "")
    return [line.split() for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("listener", ["SASL", "SASLSSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_file_of_kafkas_tools_is_the_file_of_ours(kohort, mechanism, listener):
    ran = kohort("topics", "list", "--format", "json", mechanism=mechanism, listener=listener)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "topics" in json.loads(ran.stdout)


def test_rules_are_those_that_kafkas_tool_shows(kohort, secure, tmp_path):
    alice = ("--allow-principal", "User:alice")
    consumer = ("--consumer", "--topic", "orders", "--group", "billing")
    assert len(rows(kohort("acls", "add", *alice, *consumer))) == 4
    prefix = ("--topic", "ord", "--resource-pattern-type", "prefixed", "--deny-host", "10.0.0.1")
    assert rows(kohort("acls", "add", "--deny-principal", "User:*", *prefix))[1:] == [
        ["TOPIC", "ord", "PREFIXED", "User:*", "10.0.0.1", "DENY", "ALL"]
    ]
    config = properties(secure, tmp_path, "admin", "PLAIN")
    server = ("--bootstrap-server", secure.addresses["SASLSSL"], "--command-config", str(config))
    shown = run_tool("org.apache.kafka.tools.AclCommand", *server, "--list").stdout
    assert shown.count("principal=User:alice, host=*, operation=READ") == 2
    assert "resourceType=TOPIC, name=ord, patternType=PREFIXED" in shown
    assert "(principal=User:*, host=10.0.0.1, operation=ALL, permissionType=DENY)" in shown

    tool = ("--add", "--allow-principal", "User:bob", "--operation", "Read", "--group", "billing")
    assert run_tool("org.apache.kafka.tools.AclCommand", *server, *tool).returncode == 0
    of_bob = rows(kohort("acls", "list", "--principal", "User:bob"))
    assert of_bob[1:] == [["GROUP", "billing", "LITERAL", "User:bob", "*", "ALLOW", "READ"]]
    gone = rows(kohort("acls", "remove", "--yes", *alice, *consumer))
    assert len(gone) == 4
    match = ("--topic", "orders", "--resource-pattern-type", "match")
    assert len(rows(kohort("acls", "list", *match))) == 2
    rows(kohort("acls", "remove", "--yes", "--group", "billing"))
    prefixed = ("--topic", "ord", "--resource-pattern-type", "prefixed")
    rows(kohort("acls", "remove", "--yes", *prefixed))
    assert kohort("acls", "list").stdout == "no rules\n"


def test_a_user_is_made_and_logs_in(kohort):
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    made = kohort("users", "create", "alice", "--yes", *both, stdin=f"{password_of('alice')}\n")
    assert rows(made)[1:] == [["alice", "created"]]
    assert ["alice", "SCRAM-SHA-512", "8192"] in rows(kohort("users", "list"))
    ran = kohort("topics", "list", user="alice", listener="ONLY512")
    assert ran.returncode == 0, ran.stderr

    unasked = kohort("users", "create", "alice", stdin="another\n")
    assert unasked.returncode == 2, "a password is not replaced without a yes"
    assert kohort("topics", "list", user="alice", listener="ONLY512").returncode == 0
    made = kohort("users", "create", "alice", "--yes", stdin="another\n")
    assert made.returncode == 0
    ran = kohort("topics", "list", user="alice", listener="ONLY512")
    assert ran.returncode == 1
    assert "invalid credentials" in ran.stderr
    assert rows(kohort("users", "delete", "alice", "--yes"))[1:] == [["alice", "deleted"]]
    assert "alice" not in kohort("users", "list").stdout


def test_a_user_without_rights_is_told_which(kohort, secure):
    ran = kohort("acls", "list", user="alice", mechanism="PLAIN")
    assert ran.returncode == 1
    assert "CLUSTER_AUTHORIZATION_FAILED" in ran.stderr
    ran = kohort("doctor", "--topic", "secret", "--group", "g", user="alice", mechanism="PLAIN")
    checks = {line[1]: line for line in (one.split(maxsplit=2) for one in ran.stdout.splitlines())}
    assert ran.returncode == 1, ran.stderr
    assert checks["sasl"][0] == checks["tls"][0] == checks["brokers"][0] == "ok"
    assert checks["principal"] == ["ok", "principal", "User:alice"]
    assert checks["versions"][2].startswith("as Apache Kafka 4.1 or newer")
    assert checks["topic"][::2] == ["failed", "secret: no right to Describe it"]
    assert checks["group"][::2] == ["failed", "g: no right to Describe it"]


@pytest.mark.parametrize(
    ("listener", "protocol", "told"),
    [
        ("SSL", "PLAINTEXT", "TLS"),
        ("PLAINTEXT", "SSL", "speaks plain text"),
        ("EXPIRED", "SSL", "expired"),
        ("ELSEWHERE", "SSL", "a.example"),
        ("MUTUAL", "SSL", "certificate"),
    ],
)
def test_the_doctor_names_what_is_wrong(kohort, secure, listener, protocol, told):
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "kohort", "doctor"),
            *("--bootstrap-server", secure.addresses[listener]),
            *("-X", f"security.protocol={protocol}"),
            *(("-X", f"ssl.ca.location={secure.ca}") if protocol == "SSL" else ()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    last = ran.stdout.splitlines()[-1]
    assert (ran.returncode, last.split()[0]) == (1, "failed")
    assert told in last


def test_samples_are_taken_with_tls_and_sasl(kohort, tmp_path):
    pytest.importorskip("pyarrow")
    made = kohort("topics", "create", "sampled", "--partitions", "2")
    assert made.returncode == 0, made.stderr
    out = str(tmp_path / "out")
    ran = kohort("pipeline", "snapshot", "--out", out)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "ends of" in ran.stdout


@pytest.mark.spark
@pytest.mark.parametrize("option", [(), ("--spark-only",)])
def test_the_group_log_is_read_with_tls_and_sasl(secure, tmp_path, option):
    """By the driver alone, and by the tasks of Spark."""
    pytest.importorskip("pyspark")
    group = uuid.uuid4().hex
    asyncio.run(_commit(secure, group))
    config = properties(secure, tmp_path, "admin", "SCRAM-SHA-512")
    out = tmp_path / "out"
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "kohort", "pipeline", "run", "--out", str(out), *option),
            *("--source", f"cluster:{secure.addresses['SASLSSL']}"),
            *("--command-config", str(config)),
        ],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "kohort", "pipeline", "show", "lag", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert group in shown.stdout
    assert password_of("admin") not in ran.stdout + ran.stderr


async def _commit(secure, group):
    """A group that has committed, by our consumer over TLS and SASL."""
    common = {
        "bootstrap_servers": secure.addresses["SASLSSL"],
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(secure.ca),
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "admin",
        "sasl_plain_password": password_of("admin"),
    }
    async with kohort_clients.Producer(**common) as producer:
        await (await producer.send("letters", b"a"))
    settings = {**common, "group_id": group, "auto_offset_reset": "earliest"}
    async with kohort_clients.Consumer("letters", **settings) as consumer:
        await anext(aiter(consumer))
        await consumer.commit()
