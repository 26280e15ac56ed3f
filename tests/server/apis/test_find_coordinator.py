"""FindCoordinator: which node to ask about a group."""

import pytest
from tests.server.apis.asking import metadata
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.placement import coordinator_partition
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
        (
            1,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "transactions are not supported yet",
        ),
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
    assert len(desk.told.warnings) == (2 if "not supported yet" in words else 0)
    for line in desk.told.warnings:  # a client seldom shows the words
        assert line.startswith("FindCoordinator of 'desk' at /")
        assert line.endswith("is refused: transactional id 'k': transactions are not supported yet")


def test_no_error_has_the_words_of_its_version(desk):
    assert desk.ask(FindCoordinatorRequest(key="g"), 1).error_message == "NONE"
    many = desk.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    assert many.coordinators[0].error_message == ""
