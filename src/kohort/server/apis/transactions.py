# SPDX-License-Identifier: Apache-2.0
"""Requests of transactional producers, and of tools that look at transactions.

What a producer asks goes to the machine of its transactional id; what a tool asks, to several.
"""

from itertools import chain
from typing import Any

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client, Producer
from kohort.server.access import (
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    DESCRIBE,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    May,
    check,
    everyone_may,
    refusal,
)
from kohort.server.apis.every_shard import ask_every_shard
from kohort.server.catalog import OFFSETS_TOPIC
from kohort.server.coordinators.coordinator_partitions import TransactionDriver
from kohort.server.node import Node
from kohort.server.requests.reply_tokens import (
    GatherToken,
    MappingToken,
    ReplyToken,
    ask_in_sequence,
)
from kohort.server.requests.steps import slices
from kohort.terms import GroupId, TopicPartition
from kohort.transactions.messages import Enrol, EnrolResult
from kohort.transactions.queries import matching
from kohort.wire.messages import add_partitions_to_txn as add_wire
from kohort.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kohort.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTransaction,
)
from kohort.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

AT_ONCE = 64  # transactions
_BATCHED_SINCE = 4  # of AddPartitionsToTxn
_FENCED_SINCE = 2  # of AddPartitionsToTxn and AddOffsetsToTxn


def offsets_partition(node: Node, group_id: str) -> TopicPartition:
    """The partition that the offsets of a group are in."""
    return TopicPartition(OFFSETS_TOPIC, node.cluster.placement.shard_of(GroupId(group_id)))


def end(node: Node, call: Call[EndTxnRequest]) -> None:
    """Commit or abort."""
    transactional_id = call.request.transactional_id
    check(node.cluster.may, call.client, WRITE, TRANSACTIONAL_ID, transactional_id)
    node.cluster.submit(node.transaction_coordinator_of(transactional_id), call)


def add_offsets(node: Node, call: Call[AddOffsetsToTxnRequest]) -> None:
    """The partition of the group's offsets comes into the transaction."""
    request = call.request
    check(node.cluster.may, call.client, WRITE, TRANSACTIONAL_ID, request.transactional_id)
    check(node.cluster.may, call.client, READ, GROUP, request.group_id)
    enrol = Enrol(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        (offsets_partition(node, request.group_id),),
    )

    def answer(enrolled: EnrolResult) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=_code(enrolled.code, call.version))

    driver = node.transaction_coordinator_of(request.transactional_id)
    node.cluster.submit(
        driver, Call(MappingToken(call.token, answer), enrol, call.version, call.client)
    )


def add_partitions(node: Node, call: Call[AddPartitionsToTxnRequest]) -> None:
    """Partitions come into transactions: all that a transaction names, or none of them."""
    request = call.request
    if call.version < _BATCHED_SINCE:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        _add(node, call.version, call.client, transaction, MappingToken(call.token, _as_single))
        return
    check(node.cluster.may, call.client, CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)

    parts = slices(request.transactions, AT_ONCE)
    version, client = call.version, call.client

    def ask(token: ReplyToken, number: int) -> None:
        gather = GatherToken(token, len(parts[number]), list)
        for index, transaction in enumerate(parts[number]):
            _add(node, version, client, transaction, gather.part(index))

    def merge(results: list[Any]) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(results_by_transaction=[*chain.from_iterable(results)])

    ask_in_sequence(node.cluster.scheduler, call.token, len(parts), ask, merge)


def _as_single(result: add_wire.AddPartitionsToTxnResult) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)


def _add(
    node: Node,
    version: int,
    client: Client,
    transaction: AddPartitionsToTxnTransaction,
    token: ReplyToken,
) -> None:
    """Answer `token` with the result for one transaction."""

    def add_result(codes: dict[TopicPartition, ErrorCode]) -> add_wire.AddPartitionsToTxnResult:
        return add_wire.AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id,
            topic_results=[
                add_wire.AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        add_wire.AddPartitionsToTxnPartitionResult(
                            partition_index=index,
                            partition_error_code=codes[TopicPartition(topic.name, index)],
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in transaction.topics
            ],
        )

    places = [
        TopicPartition(topic.name, index)
        for topic in transaction.topics
        for index in topic.partitions
    ]

    def answer(enrolled: EnrolResult) -> add_wire.AddPartitionsToTxnResult:
        code = _code(enrolled.code, version)
        absent = ErrorCode.TRANSACTION_ABORTABLE
        return add_result(
            {place: absent if place in enrolled.missing else code for place in places}
        )

    # A broker has asked what its own client may do.
    may = node.cluster.may if version < _BATCHED_SINCE else everyone_may
    try:
        check(may, client, WRITE, TRANSACTIONAL_ID, transaction.transactional_id)
        refused = {place: code for place in places if (code := _why_not(node, may, client, place))}
        if refused:
            rest = dict.fromkeys(places, ErrorCode.OPERATION_NOT_ATTEMPTED)
            token.answer(add_result({**rest, **refused}))
            return
        driver = node.transaction_coordinator_of(transaction.transactional_id)
    except ApiError as error:
        token.answer(add_result(dict.fromkeys(places, error.code)))
        return
    enrol = Enrol(
        transaction.transactional_id,
        Producer(transaction.producer_id, transaction.producer_epoch),
        tuple(places),
        verify_only=transaction.verify_only,
    )
    node.cluster.submit(driver, Call(MappingToken(token, answer), enrol, version, client))


def _why_not(node: Node, may: May, client: Client, place: TopicPartition) -> ErrorCode | None:
    """The error of a partition that no transaction of this client can write to. Nobody may write
    to a topic of the coordinators: its markers are theirs alone.
    """
    known = node.cluster.catalog.by_name.get(place.topic)
    if known is not None and known.is_internal:
        return refusal(TOPIC).code
    if not may(client, WRITE, TOPIC, place.topic):
        return refusal(TOPIC).code
    if known is None or not 0 <= place.partition < known.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


def _code(code: ErrorCode, version: int) -> ErrorCode:
    """Older clients do not know PRODUCER_FENCED."""
    if code is ErrorCode.PRODUCER_FENCED and version < _FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def describe(node: Node, call: Call[DescribeTransactionsRequest]) -> None:
    """Each id by its own machine. Topics that the client may not describe are left out."""
    may, client = node.cluster.may, call.client
    by_driver: dict[TransactionDriver, list[str]] = {}
    refused: list[Any] = []
    for transactional_id in dict.fromkeys(call.request.transactional_ids):
        try:
            check(may, client, DESCRIBE, TRANSACTIONAL_ID, transactional_id)
            by_driver.setdefault(node.transaction_coordinator_of(transactional_id), []).append(
                transactional_id
            )
        except ApiError as error:
            alone = DescribeTransactionsRequest(transactional_ids=[transactional_id])
            refused += alone.refused(error).transaction_states

    def merge(parts: list[DescribeTransactionsResponse]) -> DescribeTransactionsResponse:
        states = refused + [state for part in parts for state in part.transaction_states]
        for state in states:
            state.topics = [
                topic for topic in state.topics if may(client, DESCRIBE, TOPIC, topic.topic)
            ]
        order = {
            transactional_id: place
            for place, transactional_id in enumerate(call.request.transactional_ids)
        }
        states.sort(key=lambda state: order[state.transactional_id])
        return DescribeTransactionsResponse(transaction_states=states)

    if not by_driver:
        call.token.answer(merge([]))
        return
    gather = GatherToken(call.token, len(by_driver), merge)
    for index, (driver, own) in enumerate(by_driver.items()):
        asked = DescribeTransactionsRequest(transactional_ids=own)
        node.cluster.submit(driver, Call(gather.part(index), asked, call.version, client))


def list_transactions(node: Node, call: Call[ListTransactionsRequest]) -> None:
    """The ids of this node that the client may describe."""
    may, client = node.cluster.may, call.client
    matching(call.request.transactional_id_pattern)  # where no log is asked, it is refused as well

    def merge(parts: list[ListTransactionsResponse]) -> ListTransactionsResponse:
        return ListTransactionsResponse(
            unknown_state_filters=list(
                dict.fromkeys(name for part in parts for name in part.unknown_state_filters)
            ),
            transaction_states=[
                state
                for part in parts
                for state in part.transaction_states
                if may(client, DESCRIBE, TRANSACTIONAL_ID, state.transactional_id)
            ],
        )

    ask_every_shard(node, call, node.transaction_coordinators(), call.request, merge)
