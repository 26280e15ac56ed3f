# SPDX-License-Identifier: Apache-2.0
"""An answer that is encoded while it is made."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.machines.effects import Call, Client
from kohort.server.network.connection import EncodedResponse
from kohort.server.requests.piecewise import PiecewiseAnswer, answer_in_pieces
from kohort.server.requests.steps import STEP_ELEMENTS
from kohort.wire.codec import encode
from kohort.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest
from kohort.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class Token:
    gone = False

    def __init__(self):
        self.answers = []

    def answer(self, response):
        self.answers.append(response)


@pytest.fixture
def node():
    return Desk().dispatchers[0].node


def asked(request, version):
    return Call(Token(), request, version, Client("c", "/h"))


def topics(count):
    partition = MetadataResponsePartition(error_code=5)
    return [
        MetadataResponseTopic(error_code=number % 2 * 3, name=f"t-{number}", partitions=[partition])
        for number in range(count)
    ]


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("count", [0, 1, STEP_ELEMENTS // 2, STEP_ELEMENTS, 5 * STEP_ELEMENTS])
def test_its_bytes_are_those_of_the_whole_message(node, version, count):
    answer = PiecewiseAnswer(node, asked(MetadataRequest(topics=None), version), "topics")
    for topic in topics(count):
        answer.add(topic, 2)
    whole = answer.whole(MetadataResponse(cluster_id="c", controller_id=7))
    message = MetadataResponse(cluster_id="c", controller_id=7, topics=topics(count))
    is_long = 2 * count >= STEP_ELEMENTS
    assert isinstance(whole, EncodedResponse) is is_long
    assert (b"".join(whole) if is_long else encode(whole, version)) == encode(message, version)


def test_no_more_messages_are_held_than_a_step_makes(node):
    answer = PiecewiseAnswer(node, asked(MetadataRequest(topics=None), 12), "topics")
    for topic in topics(10 * STEP_ELEMENTS):
        answer.add(topic)
        assert len(answer._elements) < STEP_ELEMENTS
    answer.extend(topics(STEP_ELEMENTS))
    assert not answer._elements


def test_its_errors_are_counted_once(node):
    call = asked(MetadataRequest(topics=None), 13)
    answer = PiecewiseAnswer(node, call, "topics")
    answer.extend(topics(4 * STEP_ELEMENTS))
    answer.extend(topics(2))
    answer.whole(MetadataResponse(error_code=ErrorCode.INVALID_REQUEST))
    assert node.cluster.meters.of(3, 13).errors == {
        3: 2 * STEP_ELEMENTS + 1,
        5: 4 * STEP_ELEMENTS + 2,
        ErrorCode.INVALID_REQUEST: 1,
    }


def test_elements_are_made_when_it_is_their_turn(node):
    made = []

    def elements():
        for number in range(10 * STEP_ELEMENTS):
            made.append(number)
            yield Coordinator(key=str(number), node_id=0, host="", port=0)

    call = asked(FindCoordinatorRequest(), 6)
    answer_in_pieces(node, call, "coordinators", elements())
    (work,) = node.cluster.scheduler.waiting
    for step in (1, 2, 3):
        assert work.run(lambda: True)
        assert len(made) == step * STEP_ELEMENTS
    while work.run(lambda: True):
        pass
    (answer,) = call.token.answers
    assert isinstance(answer, EncodedResponse)


def test_a_client_reads_a_long_answer_as_any_other():
    desk = Desk()
    keys = [f"g-{number}" for number in range(3 * STEP_ELEMENTS)]
    for version in (4, 6):
        answer = desk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=keys), version)
        assert [one.key for one in answer.coordinators] == keys
