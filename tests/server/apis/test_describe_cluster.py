# SPDX-License-Identifier: Apache-2.0
"""DescribeCluster: the nodes that there are."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.wire.messages.describe_cluster import DescribeClusterRequest


def test_the_cluster():
    desk = Desk(nodes=2, broker_rack="east,west")
    answer = desk.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), 2)

    assert [(one.broker_id, one.rack) for one in answer.brokers] == [(0, "east"), (1, "west")]
    assert answer.controller_id == 0


@pytest.mark.parametrize(
    ("kind", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_controllers_are_elsewhere(desk, kind, code):
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=kind
    )

    assert desk.ask(request, 1).error_code == code
