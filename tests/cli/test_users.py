# SPDX-License-Identifier: Apache-2.0
"""`kohort users` against a broker of ours."""

import io
import sys

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort.cli import users as command
from kohort.cli.main import parser
from kohort.cli.render import Output
from kohort.client.admin import AdminClient
from kohort.errors import ErrorCode
from kohort.testing import Broker
from kohort.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kohort.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

SECRET = "hunter2"


@pytest.fixture
def users(kohort, monkeypatch):
    with Broker(in_memory=True) as broker:

        def run(*argv, stdin=f"{SECRET}\n", kind=io.StringIO):
            monkeypatch.setattr(sys, "stdin", kind(stdin))
            ran = kohort("users", *argv, "--bootstrap-server", broker.bootstrap)
            assert SECRET not in ran.out + ran.err
            return ran

        yield run


def test_users_are_created_listed_and_deleted(users, tmp_path):
    assert users("list").out == "no users\n"
    assert users("create", "alice").rows == [["USER", "RESULT"], ["alice", "created"]]
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    made = users("create", "bob", "--password-file", str(path), *both, "--iterations", "4096")
    assert (made.code, made.err) == (0, "")

    assert users("list").rows[1:] == [
        ["alice", "SCRAM-SHA-512", "8192"],
        ["bob", "SCRAM-SHA-256", "4096"],
        ["bob", "SCRAM-SHA-512", "4096"],
    ]
    (alice,) = users("list", "alice", "--format", "json").json["users"]
    assert alice["credentials"] == [{"mechanism": "SCRAM-SHA-512", "iterations": 8192}]

    gone = users("delete", "--yes", "bob", "--mechanism", "SCRAM-SHA-256")
    assert gone.rows[1:] == [["bob", "deleted"]]
    ran = users("delete", "--yes", "bob", "zed", "alice", "--format", "json")
    assert ran.code == 1
    results = {one["user"]: one["result"] for one in ran.json["users"]}
    assert results == {"bob": "deleted", "zed": "failed", "alice": "deleted"}
    assert ran.json["users"][-1]["error"] == "RESOURCE_NOT_FOUND"
    assert users("list").out == "no users\n"


def test_a_file_that_others_can_read_warns(users, tmp_path):
    path = tmp_path / "password"
    path.write_text(SECRET)
    path.chmod(0o644)
    ran = users("create", "alice", "--password-file", str(path))
    assert ran.code == 0
    assert ran.complaints == [f"kohort: all users of this machine can read {path}: chmod 600"]


def test_a_password_is_the_first_line_whatever_else_parts_texts(tmp_path):
    """Others end lines at U+0085, U+2028 or a form feed. All of that may be in a password."""
    path = tmp_path / "password"
    for end in ("\n", "\r\n", "\nnext"):
        path.write_text(f"{SECRET}\x0b\x1c\x85\u2028{end}", newline="")
        path.chmod(0o600)
        given = parser().parse_args(["users", "create", "a", "--password-file", str(path)])
        assert command._password(given) == f"{SECRET}\x0b\x1c\x85\u2028"


def test_a_file_in_the_home_directory_is_found(users, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "password").write_text(SECRET)
    (tmp_path / "password").chmod(0o600)
    assert users("create", "alice", "--password-file", "~/password").code == 0


@asynchronous
async def test_a_credential_that_is_newer_than_this_client_is_named():
    """It would stay without a word: nobody can say which one is to be deleted."""
    infos = [
        CredentialInfo(mechanism=1, iterations=4096),
        CredentialInfo(mechanism=9, iterations=1),
    ]
    deleted = []

    def describe(asked):
        results = [
            DescribeUserScramCredentialsResult(user=one.name, credential_infos=infos[at:])
            for at, one in enumerate(asked.request.users)
        ]
        return DescribeUserScramCredentialsResponse(results=results)

    def alter(asked):
        deleted.extend(asked.request.deletions)
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(user=one.name) for one in asked.request.deletions
            ]
        )

    answers = {
        DescribeUserScramCredentialsRequest: describe,
        AlterUserScramCredentialsRequest: alter,
    }
    async with ScriptedCluster(1, answers) as cluster, AdminClient(cluster.bootstrap) as admin:
        args = parser().parse_args(["users", "delete", "alice", "bob", "--yes"])
        outcome = await command.DeleteUsers().ask(admin, args, Output(io.StringIO()))
    assert {name: error and error.code for name, error in outcome.items()} == dict.fromkeys(
        ("alice", "bob"), ErrorCode.UNSUPPORTED_SASL_MECHANISM
    )
    assert [one.name for one in deleted] == ["alice"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("again", "code"), [(SECRET, 0), ("other", 2)])
def test_a_person_types_the_password_twice(users, monkeypatch, again, code):
    typed = iter([SECRET, again])
    monkeypatch.setattr("getpass.getpass", lambda _prompt: next(typed))
    ran = users("create", "alice", kind=Terminal)
    assert ran.code == code
    if code:
        assert ran.complaints == ["kohort: users create: the two passwords differ"]


@pytest.mark.parametrize(
    ("argv", "stdin", "told"),
    [
        (("create", "a"), "", "users create: the password is empty"),
        (("create", "a"), "\nx", "users create: the password is empty"),
        (
            ("create", "a", "--password-file", "/no"),
            "",
            "--password-file: cannot read /no: ",
        ),
        (("create", "a", "--iterations", "1"), "x", "expected 4096 to 16384"),
        (("create", "a", "--mechanism", "PLAIN"), "x", "invalid choice: 'PLAIN'"),
        (("add", "a"), "x", "kohort users create"),
        *(
            (("create", "a", *words), "x", f"unrecognized arguments: {told} (see")
            for words, told in (
                (("--password", SECRET), "--password; did you mean --password-file?"),
                ((f"--password={SECRET}",), "--password; did you mean --password-file?"),
                ((SECRET,), "not shown, one may be a password"),
            )
        ),
        (("list", "--sasl-password", SECRET), "", "unrecognized arguments: --sasl-password"),
        (("create", "a", "-X", f"sasl.password:{SECRET}"), "x", "expected NAME=VALUE"),
    ],
)
def test_a_wrong_call_is_a_line(users, argv, stdin, told):
    ran = users(*argv, stdin=stdin)
    (line,) = ran.complaints
    assert (ran.code, ran.out) == (2, "")
    assert told in line


def test_a_yes_deletes_the_credentials_that_were_shown(users, tmp_path, monkeypatch):
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    make = ("create", "bob", "--password-file", str(path), "--mechanism")
    users(*make, "SCRAM-SHA-256")

    def confirm(_question, _lines):
        assert users(*make, "SCRAM-SHA-512").code == 0
        return True

    monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
    monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
    assert users("delete", "bob").code == 0
    assert users("list").rows[1:] == [["bob", "SCRAM-SHA-512", "8192"]]


def test_a_user_who_was_made_again_meanwhile_is_left_alone(users, monkeypatch):
    """As far as a request tells it: by the number of iterations."""
    for name in ("bob", "carol"):
        users("create", name)

    def confirm(_question, _lines):
        assert users("create", "bob", "--iterations", "4096", "--yes").code == 0
        assert users("create", "carol", "--yes").code == 0
        return True

    monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
    monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
    ran = users("delete", "bob", "carol")
    assert ran.code == 1
    told = "had 8192 iterations when it was shown and has 4096 now: it is left alone"
    assert ran.complaints == [f"kohort: user bob: its SCRAM-SHA-512 {told} (INVALID_REQUEST)"]
    assert users("list").rows[1:] == [["bob", "SCRAM-SHA-512", "4096"]]


@pytest.mark.parametrize("answer", [True, False])
def test_who_is_at_a_terminal_is_asked_before_a_password_is_replaced(users, monkeypatch, answer):
    asked = []

    def confirm(question, lines):
        asked.append((question.partition(" at ")[0], *lines))
        return answer

    monkeypatch.setattr("kohort.cli.cluster_commands.is_person", lambda: True)
    monkeypatch.setattr("kohort.cli.cluster_commands.confirm", confirm)
    assert users("create", "carol").code == 0
    assert asked == []

    assert users("create", "carol").code == (0 if answer else 1)
    assert asked == [("Give this user another password", "user carol: SCRAM-SHA-512")]
    assert users("create", "carol", "--yes").code == 0
    assert len(asked) == 1
