# SPDX-License-Identifier: Apache-2.0
"""Producers and transactions, by brokers that are silent, old, or say something unusual."""

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort import (
    ApiError,
    ErrorCode,
    FencedProducer,
    ProducerState,
    TopicPartition,
    TransactionState,
    UnsupportedVersionError,
)
from kohort.wire.messages import describe_producers as producers_wire
from kohort.wire.messages import describe_transactions as description_wire
from kohort.wire.messages import list_transactions as listing_wire
from kohort.wire.messages.describe_producers import DescribeProducersRequest
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kohort.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

PLACE = TopicPartition("t", 0)
EPOCHS = {"producer_id": 7, "producer_epoch": 3}


def listed(*names, state="Ongoing"):
    return ListTransactionsResponse(
        transaction_states=[
            listing_wire.TransactionState(
                transactional_id=name, producer_id=1, transaction_state=state
            )
            for name in names
        ]
    )


def producers(asked):
    states = [
        producers_wire.ProducerState(producer_id=9, producer_epoch=2, coordinator_epoch=-1),
        producers_wire.ProducerState(
            producer_id=4,
            last_sequence=0,
            last_timestamp=5,
            coordinator_epoch=0,
            current_txn_start_offset=0,
        ),
    ]
    return producers_wire.DescribeProducersResponse(
        topics=[
            producers_wire.TopicResponse(
                name=topic.name,
                partitions=[
                    producers_wire.PartitionResponse(
                        partition_index=index,
                        active_producers=states,
                        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED if index == 1 else 0,
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.request.topics
        ]
    )


@asynchronous
async def test_producers_are_asked_for_at_leaders_or_at_a_replica():
    async with (
        ScriptedCluster(2, {DescribeProducersRequest: producers}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.topics = {"t": [1, 0]}
        described = await admin.describe_producers([PLACE, ("t", 1)])
        assert described[PLACE] == (
            ProducerState(4, 0, 0, 5, 0, 0),
            ProducerState(9, 2, None, None, None, None),
        )
        assert described.failed["t", 1].message == "User:ANONYMOUS is not authorized for topic t"
        await admin.describe_producers([PLACE], broker_id=0)
        nowhere = await admin.describe_producers([PLACE], broker_id=7)
        assert nowhere.failed[PLACE].code is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert [asked.node for asked in scripted.sent("DescribeProducers")][-1] == 0
    assert len(scripted.sent("DescribeProducers")) == 3


@asynchronous
async def test_every_broker_is_asked_and_who_is_silent_is_named():
    def answer(asked):
        return CLOSE if asked.node == 1 else listed(f"t-{asked.node}", "all")

    async with (
        ScriptedCluster(3, {ListTransactionsRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.topics = {"__transaction_state": [0, 5, 2]}
        found = await admin.list_transactions()
    assert [each.transactional_id for each in found] == ["all", "t-0", "t-2"]
    assert found.transactions[0].state is TransactionState.ONGOING
    nobody = TopicPartition("__transaction_state", 1)
    assert list(found.errors) == [1, nobody]
    assert found.errors[1].code is ErrorCode.NETWORK_EXCEPTION
    assert found.errors[nobody].code is ErrorCode.COORDINATOR_NOT_AVAILABLE


@asynchronous
async def test_filters_are_sent_and_no_lesser_request():
    answers = {ListTransactionsRequest: lambda _: listed("a", state="Novel")}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        (found,) = await admin.list_transactions(
            states=["ongoing", TransactionState.EMPTY, "Ongoing"],
            producer_ids=3,
            min_duration_ms=0,
            pattern="a.*",
        )
        assert found.state == "Novel"
        scripted.offer("ListTransactions", "0-1")
        with pytest.raises(UnsupportedVersionError, match=r"a pattern of ids needs v2 \(KIP-1152"):
            await admin.list_transactions(pattern="a")
        scripted.offer("ListTransactions", "0")
        await scripted.stop_connections()
        with pytest.raises(UnsupportedVersionError, match=r"duration needs v1 \(KIP-994"):
            await admin.list_transactions(min_duration_ms=5)
    (sent,) = [asked.request for asked in scripted.sent("ListTransactions")]
    assert sent.state_filters == ["Ongoing", "Empty"]
    assert (sent.producer_id_filters, sent.duration_filter) == ([3], 0)
    assert sent.transactional_id_pattern == "a.*"


@asynchronous
async def test_a_state_that_a_broker_does_not_know_is_no_empty_answer():
    answer = ListTransactionsResponse(unknown_state_filters=["PrepareEpochFence"])
    answers = {ListTransactionsRequest: lambda _: answer}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        with pytest.raises(ApiError, match="knows no state PrepareEpochFence"):
            await admin.list_transactions(states="PrepareEpochFence")


@asynchronous
async def test_transactions_are_described_by_their_coordinators():
    def answer(asked):
        states = {
            "a": description_wire.TransactionState(
                transactional_id="a",
                transaction_state="Ongoing",
                transaction_timeout_ms=60,
                transaction_start_time_ms=5,
                producer_id=4,
                producer_epoch=2,
                topics=[description_wire.TopicData(topic="t", partitions=[2, 0])],
            ),
            "b": description_wire.TransactionState(
                transactional_id="b",
                error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ),
        }
        wanted = asked.request.transactional_ids
        return description_wire.DescribeTransactionsResponse(
            transaction_states=[states[name] for name in wanted]
        )

    async with (
        ScriptedCluster(2, {DescribeTransactionsRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.coordinators = {"a": 1}
        described = await admin.describe_transactions(["a", "b"])
    found = described["a"]
    assert (found.coordinator_id, found.state, found.start_time_ms) == (1, "Ongoing", 5)
    assert found.partitions == (("t", 0), ("t", 2))
    error = described.failed["b"]
    assert error.message == "User:ANONYMOUS is not authorized for transactional id b"


@asynchronous
async def test_a_producer_is_fenced_when_its_transaction_has_ended():
    ending = InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
    fenced = InitProducerIdResponse(producer_id=4, producer_epoch=9)
    answers = {InitProducerIdRequest: in_turn(ending, ending, fenced)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        assert (await admin.fence_producers("a"))["a"] == FencedProducer(4, 9)
    asked = scripted.sent("InitProducerId")
    assert len(asked) == 3
    assert {each.version for each in asked} == {5}  # v6 begins two-phase commits
    assert {each.request.producer_id for each in asked} == {-1}


@asynchronous
async def test_who_was_fenced_is_told_though_the_next_one_was_not():
    """A request has one id, so that an answer that is lost is that of one of them."""

    def answer(asked):
        if asked.request.transactional_id == "b":
            return CLOSE
        return InitProducerIdResponse(producer_id=4, producer_epoch=9)

    answers = {InitProducerIdRequest: answer}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        fenced = await admin.fence_producers(["a", "b"])
    assert fenced["a"] == FencedProducer(4, 9)
    assert fenced.failed["b"].sent
    assert len(scripted.sent("InitProducerId")) == 2


def marked(code):
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=7,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name="t",
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=0, error_code=code)
                        ],
                    )
                ],
            )
        ]
    )


@asynchronous
async def test_an_abort_is_one_marker_for_one_partition():
    async with (
        ScriptedCluster(2, {WriteTxnMarkersRequest: lambda _: marked(0)}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.topics = {"t": [1]}
        assert await admin.abort_transaction(PLACE, **EPOCHS, coordinator_epoch=2) is None
        await admin.abort_transaction(("t", 0), **EPOCHS)
    first, second = scripted.sent("WriteTxnMarkers")
    (marker,) = first.request.markers
    assert (first.node, marker.producer_id, marker.producer_epoch) == (1, 7, 3)
    assert (marker.transaction_result, marker.coordinator_epoch) == (False, 2)
    assert [(each.name, each.partition_indexes) for each in marker.topics] == [("t", [0])]
    assert second.request.markers[0].coordinator_epoch == 0


@asynchronous
async def test_an_abort_that_is_refused_raises_and_one_that_may_have_arrived_is_not_repeated():
    fenced = marked(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    denied = marked(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    answers = {WriteTxnMarkersRequest: in_turn(fenced, denied, WriteTxnMarkersResponse(), CLOSE)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        scripted.topics = {"t": [0]}
        for text in (
            "TRANSACTION_COORDINATOR_FENCED",
            "not authorized for Alter on the cluster",
            "has answered for no partition",
            "closed the connection",
        ):
            with pytest.raises(ApiError, match=text):
                await admin.abort_transaction(PLACE, **EPOCHS)
        with pytest.raises(ApiError, match="partition t:9 does not exist"):
            await admin.abort_transaction(("t", 9), **EPOCHS)
    assert len(scripted.sent("WriteTxnMarkers")) == 4
