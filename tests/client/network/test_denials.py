# SPDX-License-Identifier: Apache-2.0
"""Who has no right to what."""

import pytest

from kohort.client.network.credentials import Credentials
from kohort.client.network.denials import explained
from kohort.errors import ApiError, ErrorCode
from kohort.security.settings import Security, Store
from kohort.terms import TopicPartition

TOPIC, GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("code", "text", "name", "message"),
    [
        (TOPIC, "", "n1", "User:a is not authorized for topic n1"),
        (TOPIC, "Authorization failed.", TopicPartition("n1", 3), "User:a is not authorized for t"),
        (GROUP, "Group authorization failed.", "g\n", r"User:a is not authorized for group g\n"),
        (CLUSTER, "", "anything", "User:a is not authorized for the cluster"),
        (
            *(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "", "x"),
            "User:a is not authorized for transactional id x",
        ),
        (GROUP, "The group has described topic(s)", "g", "The group has described topic(s)"),
        (ErrorCode.NOT_COORDINATOR, "", "g", ""),
    ],
)
def test_a_refusal_by_rules_names_the_principal_and_the_thing(code, text, name, message):
    error = explained(ApiError(code, text), "User:a", name)
    assert error.code is code
    assert error.message.startswith(message)
    assert bool(error.message) == bool(message)


@pytest.mark.parametrize(
    ("security", "principal"),
    [
        (Security(), "User:ANONYMOUS"),
        (Security(protocol="SSL"), "User:ANONYMOUS"),
        (
            Security(protocol="SSL", identity=Store(path="me.pem")),
            "the principal of the client's certificate",
        ),
        (
            Security(protocol="SASL_SSL", mechanism="PLAIN", username="alice", password="p"),
            "User:alice",
        ),
        (
            Security(protocol="SASL_SSL", mechanism="OAUTHBEARER", token=lambda: "abc"),
            "the principal of the token",
        ),
    ],
)
def test_a_client_knows_its_principal_as_far_as_it_can(security, principal):
    assert Credentials(security).principal == principal
