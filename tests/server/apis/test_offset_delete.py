# SPDX-License-Identifier: Apache-2.0
"""OffsetDelete: topics that do not exist are the broker's to refuse."""

from tests.server.apis.offsets import commit, delete

from kohort.errors import ErrorCode

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_of_what_does_not_exist_are_not_deleted(desk):
    desk.create(partitions=2)
    commit(desk, [("orders", [0, 1])])

    assert delete(desk, [("orders", [1, 7]), ("none", [0]), ("orders", [])]) == (
        0,
        [("orders", [(7, UNKNOWN), (1, 0)]), ("none", [(0, UNKNOWN)])],
    )
    assert delete(desk, [("none", [0])]) == (0, [("none", [(0, UNKNOWN)])])


def test_an_error_of_the_group_is_told_first(desk):
    desk.create()

    assert delete(desk, [("none", [0])], "h") == (ErrorCode.GROUP_ID_NOT_FOUND, [])
