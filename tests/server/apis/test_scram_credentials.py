# SPDX-License-Identifier: Apache-2.0
"""Credentials of users: given, described and taken away (KIP-554)."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.access import ALTER, CLUSTER, DESCRIBE
from kohort.server.apis import scram_credentials
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kohort.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

SHA_256, SHA_512 = 1, 2
PASSWORD = b"a salted password"


def upsert(name, mechanism=SHA_256, iterations=4096, **more):
    given = {"salt": b"salt", "salted_password": PASSWORD, **more}
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, **given)


def delete(name, mechanism=SHA_256):
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(desk, *changes, node=0):
    request = AlterUserScramCredentialsRequest(
        deletions=[one for one in changes if isinstance(one, ScramCredentialDeletion)],
        upsertions=[one for one in changes if isinstance(one, ScramCredentialUpsertion)],
    )
    results = desk.ask(request, 0, node=node).results
    assert len({one.user for one in results}) == len(results)
    for one in results:
        assert (one.error_message is None) == (one.error_code == 0)
    return {one.user: one.error_code for one in results}


def told(desk, *names, node=0):
    """What users have, or the code of the refusal."""
    users = [UserName(name=name) for name in names] or None
    answer = desk.ask(DescribeUserScramCredentialsRequest(users=users), 0, node=node)
    if answer.error_code:
        return answer.error_code
    return {
        one.user: one.error_code or {(x.mechanism, x.iterations) for x in one.credential_infos}
        for one in answer.results
    }


def test_credentials_are_given_told_and_taken_away():
    desk = Desk(node_id="1", nodes=2)
    assert told(desk) == {}
    assert alter(desk, upsert("alice"), upsert("bob", SHA_512, 16_384)) == {"alice": 0, "bob": 0}
    assert alter(desk, upsert("alice", SHA_512, 5000), node=1) == {"alice": 0}
    everybody = {"alice": {(SHA_256, 4096), (SHA_512, 5000)}, "bob": {(SHA_512, 16_384)}}
    assert told(desk) == everybody
    assert told(desk, "bob", node=1) == {"bob": everybody["bob"]}
    assert alter(desk, upsert("alice", SHA_256, 8192), delete("bob", SHA_512)) == {
        "alice": 0,
        "bob": 0,
    }
    assert told(desk) == {"alice": {(SHA_256, 8192), (SHA_512, 5000)}}
    assert alter(desk, delete("alice", SHA_512)) == {"alice": 0}
    assert told(desk) == {"alice": {(SHA_256, 8192)}}


def test_an_empty_list_of_users_means_all():
    desk = Desk(node_id="1")
    alter(desk, upsert("alice"))
    answer = desk.ask(DescribeUserScramCredentialsRequest(users=[]), 0)
    assert [one.user for one in answer.results] == ["alice"]


def test_a_user_who_is_unknown_or_named_twice_is_refused_alone():
    desk = Desk(node_id="1")
    alter(desk, upsert("alice"), upsert("bob"))
    assert told(desk, "bob", "carol", "alice", "bob", "bob") == {
        "alice": {(SHA_256, 4096)},
        "bob": ErrorCode.DUPLICATE_RESOURCE,
        "carol": ErrorCode.RESOURCE_NOT_FOUND,
    }


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([upsert("", SHA_256)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([delete("")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsert("eve", 0)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([delete("eve", 7)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([upsert("eve", SHA_256, 4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsert("eve", SHA_512, 16_385)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsert("eve", salted_password=b"")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([delete("eve")], ErrorCode.RESOURCE_NOT_FOUND),
        ([delete("bob", SHA_512)], ErrorCode.RESOURCE_NOT_FOUND),
        ([upsert("eve"), upsert("eve", SHA_512)], ErrorCode.DUPLICATE_RESOURCE),
        ([delete("bob"), upsert("bob")], ErrorCode.DUPLICATE_RESOURCE),
        ([delete("bob"), delete("bob")], ErrorCode.DUPLICATE_RESOURCE),
        ([delete("eve"), upsert("eve")], ErrorCode.RESOURCE_NOT_FOUND),
        ([upsert("eve"), upsert("eve"), upsert("eve")], ErrorCode.DUPLICATE_RESOURCE),
    ],
)
def test_what_is_wrong_for_one_user_changes_nothing_for_that_user_alone(changes, code):
    desk = Desk(node_id="1")
    alter(desk, upsert("bob"))
    assert alter(desk, *changes, upsert("alice")) == {changes[0].name: code, "alice": 0}
    assert told(desk) == {"alice": {(SHA_256, 4096)}, "bob": {(SHA_256, 4096)}}


def test_credentials_are_there_after_a_restart_and_passwords_are_not():
    files = SimulatedFiles()
    desk = Desk(files=files, node_id="1")
    assert not any("credentials" in line for line in desk.told.warnings)
    alter(desk, upsert("alice"), upsert("bob"))
    desk.cluster.close()
    for name in ("kohort.catalog.json", "kohort.catalog.json.former"):
        text = bytes(files.open(f"/data/{name}").read(0, 1 << 20))
        assert b'"alice"' in text
        assert PASSWORD not in text

    desk = Desk(files=files, node_id="1")
    assert not any("credentials" in line for line in desk.told.warnings)
    assert told(desk) == {"alice": {(SHA_256, 4096)}, "bob": {(SHA_256, 4096)}}
    assert alter(desk, delete("alice")) == {"alice": 0}
    desk.cluster.close()
    assert told(Desk(files=files, node_id="1")) == {"bob": {(SHA_256, 4096)}}


def test_a_full_disk_refuses_what_would_have_changed_and_nothing_else():
    files = SimulatedFiles()
    desk = Desk(files=files, node_id="1")
    alter(desk, upsert("bob"))
    files.room_bytes = 0
    codes = alter(desk, upsert("alice"), delete("bob"), delete("eve"))
    assert codes == {
        "alice": ErrorCode.KAFKA_STORAGE_ERROR,
        "bob": ErrorCode.KAFKA_STORAGE_ERROR,
        "eve": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert told(desk) == {"bob": {(SHA_256, 4096)}}


def test_there_is_an_end_of_credentials(monkeypatch):
    monkeypatch.setattr(scram_credentials, "CREDENTIALS_MAX", 2)
    desk = Desk(node_id="1")
    assert alter(desk, upsert("a"), upsert("b"), upsert("c")) == {
        "a": 0,
        "b": 0,
        "c": ErrorCode.POLICY_VIOLATION,
    }
    assert alter(desk, upsert("a", SHA_256, 9000), delete("b"), upsert("c")) == {
        "a": 0,
        "b": 0,
        "c": 0,
    }
    assert told(desk) == {"a": {(SHA_256, 9000)}, "c": {(SHA_256, 4096)}}


@pytest.mark.parametrize("operation", [ALTER, DESCRIBE])
def test_who_may_not_is_told(operation):
    def may(_client, asked, kind, _name):
        return kind != CLUSTER or asked != operation

    desk = Desk(node_id="1", may=may)
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if operation == DESCRIBE:
        assert told(desk) == told(desk, "alice") == refused
        assert alter(desk, upsert("alice")) == {"alice": 0}
    else:
        assert alter(desk, upsert("b"), delete("a"), upsert("a")) == {"a": refused, "b": refused}
        assert told(desk) == {}


def test_the_secret_of_decoys_is_made_with_the_first_credential_and_kept():
    files = SimulatedFiles()
    desk = Desk(files=files, node_id="1")
    assert desk.cluster.catalog.decoy_secret == b""
    alter(desk, upsert("alice"))
    secret = desk.cluster.catalog.decoy_secret
    assert len(secret) == 32
    alter(desk, upsert("bob"), delete("alice"))
    assert desk.cluster.catalog.decoy_secret == secret
    desk.cluster.close()
    assert Desk(files=files, node_id="1").cluster.catalog.decoy_secret == secret
