# SPDX-License-Identifier: Apache-2.0
"""The numbers of a broker move with the act."""

import pytest
from tests.python_calls import python_calls
from tests.server.desk import Desk
from tests.server.transactional import Producing
from tests.world import START

from kohort.errors import ErrorCode
from kohort.server.metrics.meters import UNSUPPORTED, RequestMeter, error_finder, metered
from kohort.wire.apis import APIS
from kohort.wire.codec import encoder
from kohort.wire.columns import Columns
from kohort.wire.frames import RequestHeader, encode_request
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.leave_group import LeaveGroupResponse, MemberResponse
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kohort.wire.messages.sync_group import SyncGroupResponse
from kohort.wire.schema import Primitive, fields_of


def requests_of(desk):
    return {key: meter.count for key, meter in desk.cluster.meters.requests.items()}


def beat(epoch, **more):
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, **more)


def test_each_request_is_counted_those_answered_from_memory_too():
    desk = Desk()
    desk.create("orders", partitions=2)
    names = {"subscribed_topic_names": ["orders"], "rebalance_timeout_ms": 1000}
    epoch = desk.ask(beat(0, topic_partitions=[], **names), 1).member_epoch
    for _ in range(3):
        desk.ask(beat(epoch), 1)
    assert requests_of(desk) == {(19, 7): 1, (68, 1): 4}
    assert all(not meter.errors for meter in desk.cluster.meters.requests.values())


def test_an_error_counts_in_each_place_that_has_one():
    desk = Desk()
    desk.create("orders", partitions=2)
    desk.ask(beat(7), 1)
    commit = OffsetCommitRequest(
        group_id="g",
        member_id="x",
        generation_id_or_member_epoch=4,
        topics=[
            OffsetCommitRequestTopic(
                name="orders",
                partitions=[OffsetCommitRequestPartition(partition_index=i) for i in range(2)],
            )
        ],
    )
    desk.ask(commit, 8)
    meters = desk.cluster.meters.requests
    assert meters[68, 1].errors == {ErrorCode.GROUP_ID_NOT_FOUND: 1}
    assert meters[8, 8].errors == {ErrorCode.ILLEGAL_GENERATION: 2}


def test_the_errors_of_partitions_are_counted_under_whatever_name_they_have():
    """AddPartitionsToTxn has its own name for them."""
    desk = Desk()
    desk.create()
    Producing(desk).add(("nowhere", 0), ("orders", 0))
    errors = desk.cluster.meters.requests[24, 3].errors
    assert errors == {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 1,
        ErrorCode.OPERATION_NOT_ATTEMPTED: 1,
    }


def test_a_version_that_is_not_served_is_counted_under_one_name():
    """A client may not make up as many names as it likes."""
    desk = Desk()
    for version in (100, 101):
        header = RequestHeader(
            request_api_key=18, request_api_version=version, correlation_id=version, client_id="x"
        )
        body = encoder(ApiVersionsRequest, 3)(ApiVersionsRequest())
        desk.clients[0].put(encode_request(header, body, flexible=True))
        desk.cluster.turn(START)
    meter = desk.cluster.meters.requests[18, UNSUPPORTED]
    assert (meter.count, meter.errors) == (2, {ErrorCode.UNSUPPORTED_VERSION: 2})
    assert list(desk.cluster.meters.requests) == [(18, UNSUPPORTED)]


def has_code(message):
    return any(
        field.name in ("error_code", "partition_error_code")
        or (field.array and not isinstance(field.of, Primitive) and has_code(field.of))
        for field in fields_of(message)
    )


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_answer_with_error_codes_is_searched(api):
    assert (error_finder(api.response) is not None) == has_code(api.response)


def test_what_is_found_in_an_answer():
    find = error_finder(OffsetCommitResponse)
    parts = [OffsetCommitResponsePartition(partition_index=i) for i in range(3)]
    answer = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=parts)])
    assert not find(answer)
    parts[2].error_code = 12
    assert find(answer)
    answer.topics[0].partitions = tuple(parts)
    assert find(answer)
    find = error_finder(LeaveGroupResponse)
    assert find(LeaveGroupResponse(error_code=25))
    assert find(LeaveGroupResponse(members=[MemberResponse(member_id="a", error_code=25)]))


def test_what_is_found_in_an_answer_that_is_kept_by_field():
    def answer(*values):
        parts = Columns(OffsetCommitResponsePartition, values)
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=parts)])

    find = error_finder(OffsetCommitResponse)
    assert not find(answer([0, 1]))
    assert not find(answer([0, 1], [0, 0]))
    assert find(answer([0, 1], [0, 12]))
    meter = RequestMeter()
    metered(encoder(OffsetCommitResponse, 8), OffsetCommitResponse, meter)(answer([0, 1], [0, 12]))
    assert meter.errors == {12: 1}


def test_the_answer_is_the_same_with_a_meter():
    meter = RequestMeter()
    plain = encoder(SyncGroupResponse, 5)
    answer = SyncGroupResponse(error_code=27)
    assert metered(plain, SyncGroupResponse, meter)(answer) == plain(answer)
    assert meter.errors == {27: 1}


def test_a_load_is_measured_and_a_turn():
    desk = Desk()
    desk.create("orders")
    desk.ask(beat(7), 1)
    meters = desk.cluster.meters
    assert len(meters.turns.samples) > 0
    assert meters.loads.count == 0  # an empty log is not loaded


def test_many_errors_of_an_answer_cost_no_call_each():
    """The loop is held by an answer of a hundred thousand as long as they are counted."""

    def calls(count):
        meter = RequestMeter()
        partitions = [
            OffsetCommitResponsePartition(partition_index=i, error_code=i % 3) for i in range(count)
        ]
        topics = [OffsetCommitResponseTopic(name="t", partitions=[one]) for one in partitions]
        encode = metered(encoder(OffsetCommitResponse, 8), OffsetCommitResponse, meter)
        seen = python_calls(lambda: encode(OffsetCommitResponse(topics=topics)))
        assert meter.errors == {1: count // 3, 2: count // 3}
        return seen

    assert calls(900) == calls(3)
