# SPDX-License-Identifier: Apache-2.0
"""CreatePartitions: a topic grows."""

import pytest
from tests.server.apis.topics import grow

from kohort.errors import ErrorCode


def test_a_topic_grows_and_keeps_its_records(desk):
    desk.create()
    desk.produce()
    assert grow(desk, "orders", 3, validate_only=True) == 0
    assert desk.cluster.catalog.by_name["orders"].partitions == 1
    assert grow(desk, "orders", 3) == 0

    assert desk.produce(partition=2).base_offset == 0
    assert desk.produce(partition=0).base_offset == 1


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code"),
    [
        ("nothing", 3, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("__consumer_offsets", 9, None, ErrorCode.INVALID_REQUEST),
        ("orders", 2, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", 10**8, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", 4, [[0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [[7]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [[0]], 0),
    ],
)
def test_growth_that_is_refused(desk, name, count, assignments, code):
    desk.create(partitions=2)

    assert grow(desk, name, count, assignments) == code
