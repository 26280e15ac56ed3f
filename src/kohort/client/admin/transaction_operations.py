# SPDX-License-Identifier: Apache-2.0
"""The calls of AdminClient about producers and transactions."""

from collections.abc import Iterable

from kohort.client.admin import arguments, hints
from kohort.client.admin.answers import OutcomeAnswers
from kohort.client.admin.arguments import INT16_MAX, INT32_MAX, INT64_MAX
from kohort.client.admin.calls import AdminCalls
from kohort.client.topic_partitions import Partition
from kohort.terms import TopicPartition


class TransactionOperations(AdminCalls):
    """Who writes in transactions, and how that ends (KIP-664)."""

    def describe_producers(
        self,
        partitions: Iterable[Partition],
        *,
        broker_id: int | None = None,
        timeout: float | None = None,
    ) -> "OutcomeAnswers[TopicPartition, tuple[hints.ProducerState, ...]]":
        """Who has written to partitions, and where open transactions begin (KIP-664), sorted by
        producer id.

        `broker_id` names a replica to ask; None asks the leaders.
        """
        from kohort.client.admin import operation_arguments, transactions

        places = arguments.partitions("partitions", partitions)
        replica = operation_arguments.broker(broker_id)
        return self._answers(
            timeout,
            lambda deadline, arrived: transactions.describe_producers(
                self._cluster, places, replica, deadline=deadline, arrived=arrived
            ),
        )

    async def list_transactions(
        self,
        *,
        states: "hints.TransactionStateName | Iterable[hints.TransactionStateName] | None" = None,
        producer_ids: int | Iterable[int] | None = None,
        min_duration_ms: int | None = None,
        pattern: str | None = None,
        timeout: float | None = None,
    ) -> "hints.TransactionListings":
        """The transactional ids of all brokers, sorted (KIP-664): one ListTransactions each.

        Args:
            states: only transactions in one of these: TransactionState or its name in any case.
            producer_ids: only those of these producers.
            min_duration_ms: none that has been open for less (KIP-994). Brokers list ids without
                an open transaction all the same: `states` leaves those out.
            pattern: a regular expression that the whole id has to match (KIP-1152).
            timeout: seconds that this call may take, instead of those of the client.

        Returns:
            The ids of all brokers that answered; `errors` names the others.

        Raises:
            UnsupportedVersionError: every broker is too old for the filter. No broker was sent an
                unfiltered request.
            ApiError: no broker answered; this is the first one's error.
        """
        from kohort.client.admin import operation_arguments, transactions

        number = operation_arguments.number
        return await transactions.list_transactions(
            self._cluster,
            states=operation_arguments.transaction_states(states),
            producer_ids=[]
            if producer_ids is None
            else operation_arguments.numbers("producer_ids", producer_ids, INT64_MAX),
            min_duration_ms=None
            if min_duration_ms is None
            else number("min_duration_ms", min_duration_ms, INT64_MAX),
            pattern=None if pattern is None else arguments.names("pattern", pattern)[0],
            deadline=self._deadline(timeout),
        )

    def describe_transactions(
        self, transactional_ids: str | Iterable[str], *, timeout: float | None = None
    ) -> "OutcomeAnswers[str, hints.TransactionDescription]":
        """Where transactions stand (KIP-664): one request to each coordinator. An id that nobody
        has used is TRANSACTIONAL_ID_NOT_FOUND.
        """
        from kohort.client.admin import transactions

        ids = arguments.names("transactional_ids", transactional_ids)
        return self._answers(
            timeout,
            lambda deadline, arrived: transactions.describe_transactions(
                self._cluster, ids, deadline=deadline, arrived=arrived
            ),
        )

    async def fence_producers(
        self, transactional_ids: str | Iterable[str], *, timeout: float | None = None
    ) -> "hints.Outcomes[str, hints.FencedProducer]":
        """End the producers of these ids: an open transaction is aborted, and its producer gets
        PRODUCER_FENCED (KIP-98). An id that nobody has used is taken as well.

        No request is sent twice.
        """
        from kohort.client.admin import transactions

        return await transactions.fence_producers(
            self._cluster,
            arguments.names("transactional_ids", transactional_ids),
            deadline=self._deadline(timeout),
        )

    async def abort_transaction(
        self,
        partition: Partition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int | None = None,
        timeout: float | None = None,
    ) -> None:
        """Abort a transaction that hangs in one partition, since its coordinator has forgotten it
        (KIP-664). Take the numbers from `describe_producers`; a transaction that its coordinator
        knows is ended by `fence_producers`.

        No request is sent twice.

        Raises:
            ApiError: INVALID_PRODUCER_EPOCH where the producer has a higher epoch,
                TRANSACTION_COORDINATOR_FENCED where a later coordinator has written,
                CLUSTER_AUTHORIZATION_FAILED without the right to alter the cluster.
        """
        from kohort.client.admin import operation_arguments, transactions

        number = operation_arguments.number
        (where,) = arguments.partitions("partition", [partition])
        epoch = 0 if coordinator_epoch is None else coordinator_epoch
        await transactions.abort_transaction(
            self._cluster,
            where,
            producer_id=number("producer_id", producer_id, INT64_MAX),
            producer_epoch=number("producer_epoch", producer_epoch, INT16_MAX),
            coordinator_epoch=number("coordinator_epoch", epoch, INT32_MAX),
            deadline=self._deadline(timeout),
        )
