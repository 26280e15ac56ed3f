# SPDX-License-Identifier: Apache-2.0
"""Producers of partitions, and transactions (KIP-664): found, described, fenced and aborted.

Partitions are asked at their leaders, transactional ids at their coordinators.
"""

import asyncio
from collections.abc import Iterable, Sequence

from kohort.client.admin.answers import Arrived
from kohort.client.admin.coordinator_sweeps import Part, sweep
from kohort.client.admin.request_rounds import Locate, failure, settle
from kohort.client.admin.single_requests import broker_by_id, settle_one
from kohort.client.admin.topics import leaders, left_ms
from kohort.client.admin.transaction_views import (
    TRANSACTIONS_TOPIC,
    FencedProducer,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionListings,
    TransactionState,
)
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import OF_TRANSACTION, Cluster, Node
from kohort.client.network.connection import Need
from kohort.client.network.denials import explained
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError, WireError, api_error
from kohort.terms import TopicPartition, by_topic
from kohort.wire.messages import describe_producers as producers_wire
from kohort.wire.messages import describe_transactions as description_wire
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kohort.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

BY_DURATION = Need(1, "filtering by duration", "KIP-994, Apache Kafka 3.8")
BY_PATTERN = Need(2, "filtering by a pattern of ids", "KIP-1152, Apache Kafka 4.1")
INIT_MAX = 5  # the version of InitProducerId behind it is for two-phase commits (KIP-939)
FENCING_MAX_MS = 60_000  # a broker takes a timeout of 15 minutes at most, by default
_STATES = {state.value: state for state in TransactionState}

Producers = tuple[ProducerState, ...]


async def describe_producers(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    broker_id: int | None,
    *,
    deadline: float,
    arrived: Arrived[TopicPartition, Producers] | None = None,
) -> Outcomes[TopicPartition, Producers]:
    """See `AdminClient.describe_producers`."""

    async def ask(
        node: Node, keys: Sequence[TopicPartition], deadline: float
    ) -> dict[TopicPartition, Producers | ApiError]:
        request = producers_wire.DescribeProducersRequest(
            topics=[
                producers_wire.TopicRequest(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(keys).items()
            ]
        )
        answer: producers_wire.DescribeProducersResponse = await cluster.ask(
            node, request, deadline=deadline
        )
        found: dict[TopicPartition, Producers | ApiError] = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition_index)
                found[key] = _producers(partition)
        return found

    locate: Locate[TopicPartition] = leaders(cluster)
    if broker_id is not None:
        locate = broker_by_id(cluster, lambda _: broker_id)
    return Outcomes(
        await settle(cluster, partitions, locate, ask, deadline=deadline, arrived=arrived)
    )


def _producers(partition: producers_wire.PartitionResponse) -> Producers | ApiError:
    if partition.error_code:
        return api_error(partition.error_code, partition.error_message)
    return tuple(
        ProducerState(
            state.producer_id,
            state.producer_epoch,
            _or_none(state.last_sequence),
            _or_none(state.last_timestamp),
            _or_none(state.coordinator_epoch),
            _or_none(state.current_txn_start_offset),
        )
        for state in sorted(partition.active_producers, key=lambda state: state.producer_id)
    )


def _or_none(number: int) -> int | None:
    return number if number >= 0 else None


async def list_transactions(
    cluster: Cluster,
    *,
    states: Iterable[TransactionState],
    producer_ids: Iterable[int],
    min_duration_ms: int | None,
    pattern: str | None,
    deadline: float,
) -> TransactionListings:
    """See `AdminClient.list_transactions`."""
    request = ListTransactionsRequest(
        state_filters=[state.value for state in states],
        producer_id_filters=list(producer_ids),
        duration_filter=-1 if min_duration_ms is None else min_duration_ms,
        transactional_id_pattern=pattern,
    )
    by_duration = None if min_duration_ms is None else BY_DURATION
    need = by_duration if pattern is None else BY_PATTERN

    found: dict[str, TransactionListing] = {}

    async def ask(node: Node, _parts: Sequence[Part], deadline: float) -> ApiError | None:
        answer: ListTransactionsResponse = await cluster.ask(
            node, request, deadline=deadline, need=need
        )
        if answer.error_code:
            return api_error(answer.error_code)
        if answer.unknown_state_filters:
            text = f"{node} knows no state {', '.join(answer.unknown_state_filters)}"
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        for listed in answer.transaction_states:
            found[listed.transactional_id] = TransactionListing(
                listed.transactional_id, listed.producer_id, _state_of(listed.transaction_state)
            )
        return None

    swept = await sweep(cluster, TRANSACTIONS_TOPIC, ask, deadline)
    listings = tuple(found[id_] for id_ in sorted(found))
    return TransactionListings(listings, swept.errors, swept.unverified)


async def describe_transactions(
    cluster: Cluster,
    transactional_ids: Iterable[str],
    *,
    deadline: float,
    arrived: Arrived[str, TransactionDescription] | None = None,
) -> Outcomes[str, TransactionDescription]:
    """See `AdminClient.describe_transactions`."""

    async def ask(
        node: Node, ids: Sequence[str], deadline: float
    ) -> dict[str, TransactionDescription | ApiError]:
        request = description_wire.DescribeTransactionsRequest(transactional_ids=list(ids))
        answer: description_wire.DescribeTransactionsResponse = await cluster.ask(
            node, request, deadline=deadline
        )
        return {
            state.transactional_id: _description(state, node) for state in answer.transaction_states
        }

    locate = _coordinators(cluster)
    return Outcomes(
        await settle(cluster, transactional_ids, locate, ask, deadline=deadline, arrived=arrived)
    )


def _description(
    state: description_wire.TransactionState, node: Node
) -> TransactionDescription | ApiError:
    if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        text = f"no producer has used transactional id {state.transactional_id}"
        return ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, text)
    if state.error_code:
        return api_error(state.error_code)
    return TransactionDescription(
        state.transactional_id,
        node.id,
        _state_of(state.transaction_state),
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        _or_none(state.transaction_start_time_ms),
        tuple(
            sorted(
                TopicPartition(topic.topic, index)
                for topic in state.topics
                for index in topic.partitions
            )
        ),
    )


async def fence_producers(
    cluster: Cluster, transactional_ids: Iterable[str], *, deadline: float
) -> Outcomes[str, FencedProducer]:
    """See `AdminClient.fence_producers`."""

    async def fence(
        node: Node, transactional_id: str, deadline: float
    ) -> FencedProducer | ApiError:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=min(left_ms(deadline), FENCING_MAX_MS),
        )
        try:
            answer: InitProducerIdResponse = await cluster.ask(
                node, request, deadline=deadline, at_most=INIT_MAX
            )
        except (ApiError, UnsupportedVersionError, WireError) as error:
            return failure(error)  # what has become of the others is known
        if answer.error_code:
            return api_error(answer.error_code)
        return FencedProducer(answer.producer_id, answer.producer_epoch)

    async def ask(
        node: Node, ids: Sequence[str], deadline: float
    ) -> dict[str, FencedProducer | ApiError]:
        """A request has one id."""
        fenced = await asyncio.gather(*(fence(node, id_, deadline) for id_ in ids))
        return dict(zip(ids, fenced, strict=True))

    locate = _coordinators(cluster)
    return Outcomes(
        await settle(cluster, transactional_ids, locate, ask, deadline=deadline, repeatable=False)
    )


async def abort_transaction(
    cluster: Cluster,
    partition: TopicPartition,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    deadline: float,
) -> None:
    """See `AdminClient.abort_transaction`."""
    request = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transaction_result=False,
                topics=[
                    WritableTxnMarkerTopic(
                        name=partition.topic, partition_indexes=[partition.partition]
                    )
                ],
                coordinator_epoch=coordinator_epoch,
            )
        ]
    )

    async def ask(node: Node, deadline: float) -> None:
        answer: WriteTxnMarkersResponse = await cluster.ask(node, request, deadline=deadline)
        codes = [
            result.error_code
            for marker in answer.markers
            for topic in marker.topics
            for result in topic.partitions
        ]
        if not codes:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{node} has answered for no partition")
        if codes[0]:
            raise explained(api_error(codes[0]), cluster.principal, partition, "Alter")

    await settle_one(cluster, partition, leaders(cluster), ask, deadline=deadline, repeatable=False)


def _state_of(text: str) -> TransactionState | str:
    return _STATES.get(text, text)


def _coordinators(cluster: Cluster) -> Locate[str]:
    async def locate(ids: Sequence[str], deadline: float) -> dict[str, Node | ApiError]:
        return await cluster.coordinators(ids, deadline, key_type=OF_TRANSACTION)

    return locate
