# SPDX-License-Identifier: Apache-2.0
"""FindCoordinator: which node to ask about a group."""

import pytest
from tests.server.apis.asking import metadata
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.java import coordinator_partition
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest

OFFSETS = "__consumer_offsets"


def test_groups_are_coordinated_by_the_leader_of_their_partition():
    desk = Desk(nodes=3)
    (topic,) = metadata(desk, OFFSETS).topics
    leaders = {one.partition_index: one.leader_id for one in topic.partitions}
    names = [f"group-{number}" for number in range(20)] + ["", "größe"]
    answer = desk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=names), 4)

    for one in answer.coordinators:
        assert one.error_code == 0
        assert one.node_id == leaders[coordinator_partition(one.key, 4)]
        assert one.port == 9092 + one.node_id
    assert len({one.node_id for one in answer.coordinators}) > 1


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        (2, ErrorCode.INVALID_REQUEST, "share groups"),
        (9, ErrorCode.INVALID_REQUEST, "key type is 9"),
    ],
)
def test_what_has_no_coordinator(desk, kind, code, words):
    single = desk.ask(FindCoordinatorRequest(key="k", key_type=kind), 3)
    (many,) = desk.ask(
        FindCoordinatorRequest(key_type=kind, coordinator_keys=["k"]), 6
    ).coordinators

    for one in (single, many):
        assert (one.error_code, one.node_id, one.host, one.port) == (
            code,
            -1,
            "",
            -1,
        )
        assert words in one.error_message
    assert not desk.told.warnings


TRANSACTIONS = "__transaction_state"


def test_transactions_are_coordinated_by_the_leader_of_their_partition():
    """Whoever asks first waits until the topic is made."""
    desk = Desk(nodes=3)
    assert TRANSACTIONS not in desk.cluster.catalog.by_name
    names = [f"t-{number}" for number in range(20)] + ["größe"]
    answer = desk.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=names), 4)

    (topic,) = metadata(desk, TRANSACTIONS).topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 4)
    leaders = {one.partition_index: one.leader_id for one in topic.partitions}
    for one in answer.coordinators:
        assert one.error_code == 0
        assert one.node_id == leaders[coordinator_partition(one.key, 4)]
    assert len({one.node_id for one in answer.coordinators}) > 1
    single = desk.ask(FindCoordinatorRequest(key="t-0", key_type=1), 3)
    assert single.node_id == answer.coordinators[0].node_id


def test_without_room_for_their_topic_there_are_no_transactions():
    desk = Desk(max_partitions="6")
    (one,) = desk.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 4).coordinators

    assert (one.error_code, one.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert "max.partitions is 6" in desk.told.warnings[0]


def test_no_error_has_the_words_of_its_version(desk):
    assert desk.ask(FindCoordinatorRequest(key="g"), 1).error_message == "NONE"
    many = desk.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    assert many.coordinators[0].error_message == ""


def test_nobody_coordinates_what_nobody_leads():
    """K40-22: the node that leads the partition is stopped, and nothing has another replica."""
    desk = Desk(nodes=3)
    names = [f"name-{number}" for number in range(20)]

    def found(kind, node=0):
        asked = FindCoordinatorRequest(key_type=kind, coordinator_keys=names)
        answer = desk.ask(asked, 4, node=node).coordinators
        for one in answer:
            if one.error_code:
                assert (one.node_id, one.host, one.port) == (-1, "", -1)
                assert "nobody leads partition" in one.error_message
        return {one.key: one.error_code or one.node_id for one in answer}

    before = found(0), found(1)
    gone = ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.rearrange(lambda placement: placement.leave(1, replaced=False))
    for kind in (0, 1):
        for node in (0, 2):
            expected = {name: gone if at == 1 else at for name, at in before[kind].items()}
            assert found(kind, node) == expected
            assert gone in expected.values()
    desk.rearrange(lambda placement: placement.join(1))
    assert (found(0), found(1)) == before
    desk.rearrange(lambda placement: placement.leave(1))
    assert all(at in (0, 2) for kind in (0, 1) for at in found(kind).values())


def test_nobody_coordinates_what_has_no_open_log():
    desk = Desk(nodes=2)
    shard = coordinator_partition("g", 4)
    del desk.cluster.table.open[OFFSETS, shard]
    (one,) = desk.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators
    assert (one.error_code, one.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
