# SPDX-License-Identifier: Apache-2.0
"""Topics that do not exist are the broker's to refuse; offsets of the others are the shard's."""

from tests.server.apis.offsets import commit, delete

from kohort.errors import ErrorCode

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

NOBODY = b"nobody knows me!"


def test_what_does_not_exist_is_refused_and_the_rest_is_committed(desk):
    desk.create(partitions=2)
    desk.create("payments")

    assert commit(desk, [("orders", [0, 5, 1]), ("none", [0]), ("payments", [0, -1])]) == [
        ("orders", [(5, UNKNOWN), (0, 0), (1, 0)]),
        ("none", [(0, UNKNOWN)]),
        ("payments", [(-1, UNKNOWN), (0, 0)]),
    ]
    assert commit(desk, [("none", [0])]) == [("none", [(0, UNKNOWN)])]
    assert commit(desk, [("orders", [1])]) == [("orders", [(1, 0)])]


def test_ids_that_nobody_knows_are_told_apart(desk):
    """K848-104."""
    topic_id = desk.create(partitions=2)
    other = bytes(reversed(NOBODY))

    assert commit(desk, [(NOBODY, [0]), (topic_id, [1, 2]), (other, [3])], 10) == [
        (NOBODY, [(0, ErrorCode.UNKNOWN_TOPIC_ID)]),
        (topic_id, [(2, UNKNOWN), (1, 0)]),
        (other, [(3, ErrorCode.UNKNOWN_TOPIC_ID)]),
    ]


def test_a_topic_that_is_named_twice_keeps_all_its_answers(desk):
    """A client waits for every partition that it has asked for."""
    desk.create(partitions=3)

    assert commit(desk, [("orders", [0, 7]), ("orders", [1, 8])]) == [
        ("orders", [(7, UNKNOWN), (8, UNKNOWN), (0, 0), (1, 0)])
    ]
    assert commit(desk, [("orders", [7]), ("orders", [8])]) == [
        ("orders", [(7, UNKNOWN), (8, UNKNOWN)])
    ]
    assert commit(desk, [("none", [0]), ("none", [0])]) == [("none", [(0, UNKNOWN), (0, UNKNOWN)])]
    assert commit(desk, [("orders", [0]), ("orders", [1])]) == [
        ("orders", [(0, 0)]),
        ("orders", [(1, 0)]),
    ]
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    assert commit(desk, [(NOBODY, [0]), (NOBODY, [1])], 10) == [
        (NOBODY, [(0, unknown), (1, unknown)])
    ]
    assert delete(desk, [("none", [0]), ("orders", [7, 1]), ("none", [1])]) == (
        0,
        [("none", [(0, UNKNOWN), (1, UNKNOWN)]), ("orders", [(7, UNKNOWN), (1, 0)])],
    )


def test_a_topic_without_partitions(desk):
    """As upstream: one that is there is left out, one that is not is answered with none."""
    topic_id = desk.create(partitions=2)

    assert commit(desk, [("orders", [])]) == []
    assert commit(desk, [("none", [])]) == [("none", [])]
    assert commit(desk, [("orders", []), ("none", []), ("orders", [0])]) == [
        ("none", []),
        ("orders", [(0, 0)]),
    ]
    assert commit(desk, [(topic_id, []), (NOBODY, [])], 10) == [(NOBODY, [])]
    assert delete(desk, [("orders", []), ("none", [])]) == (0, [("none", [])])
