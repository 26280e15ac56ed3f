# SPDX-License-Identifier: Apache-2.0
"""ApiVersions: what is offered, and to whom."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.wire.apis import APIS
from kohort.wire.messages.api_versions import ApiVersionsRequest


def versions(desk, version, name="a", number="1"):
    request = ApiVersionsRequest(client_software_name=name, client_software_version=number)
    return desk.ask(request, version)


def test_what_is_served(desk):
    """K848-031."""
    answer = versions(desk, 4)

    offered = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    assert set(offered) == set(APIS)
    assert offered[0] == (0, 13)
    assert offered[1] == (4, 18)
    levels = {one.name: one.max_version_level for one in answer.finalized_features}
    assert levels == {"transaction.version": 2, "group.version": 1}
    assert [one.name for one in answer.supported_features] == [
        "group.version",
        "transaction.version",
    ]


def test_without_the_consumer_protocol_its_feature_is_off():
    """K848-029, K848-031."""
    answer = versions(Desk(group_coordinator_rebalance_protocols="classic"), 3)

    assert [one.name for one in answer.finalized_features] == ["transaction.version"]


@pytest.mark.parametrize("cap", ["Produce:11", "EndTxn:4", "TxnOffsetCommit:4", "EndTxn:-1"])
def test_a_broker_without_the_requests_of_newer_transactions_does_not_name_them(cap):
    """KIP-890: a producer that sees the feature sends these."""
    answer = versions(Desk(api_versions_max=cap), 3)

    assert [one.name for one in answer.finalized_features] == ["group.version"]


@pytest.mark.parametrize(("name", "number"), [("", "1"), ("a b", "1"), ("a", "1~"), ("-a", "1")])
def test_software_is_named_in_plain_letters(desk, name, number):
    answer = versions(desk, 3, name, number)

    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])
