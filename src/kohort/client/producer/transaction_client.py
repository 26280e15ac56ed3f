# SPDX-License-Identifier: Apache-2.0
"""What a transactional producer asks its coordinator, from its first id to the end of each."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeVar

from kohort.client.accumulator.batch import ProducerId
from kohort.client.accumulator.errors import TransactionError
from kohort.client.accumulator.transactions import (
    CoordinatorErrorAction,
    Phase,
    Transactions,
    coordinator_error_action,
)
from kohort.client.admin.group_views import CommittedOffset
from kohort.client.consumer import GroupMetadata
from kohort.client.network.cluster import OF_GROUP, OF_TRANSACTION, Cluster, Node, unanswered
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.client.network.denials import explained
from kohort.client.producer.sender import NEWEST, Sender
from kohort.client.producer.settings import ProducerSettings
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError, WireError, api_error
from kohort.terms import TopicPartition, by_topic
from kohort.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kohort.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kohort.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

logger = logging.getLogger(__name__)

FEATURE = "transaction.version"
# The last versions for transactions of the first kind (KIP-890), and for clients at all.
PRODUCE_V1, END_V1, OFFSETS_V1, ADD_MAX, INIT_MAX = 11, 4, 4, 3, 5
NEW_EPOCH = 3  # InitProducerId raises the epoch of a producer from this version on (KIP-360)

Answer = TypeVar("Answer")
Ask = Callable[[Node, float], Awaitable[Answer]]
Committed = Mapping[TopicPartition, CommittedOffset]


class Key(NamedTuple):
    """What has a coordinator."""

    name: str
    kind: int


class TransactionClient:
    """The transactions of one producer. `sender` sends what belongs to them, when it may."""

    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, transactional_id: str, sender: Sender
    ) -> None:
        self.transactions = Transactions()
        self._cluster = cluster
        self._settings = settings
        self._key = Key(transactional_id, OF_TRANSACTION)
        self._sender = sender
        self._nodes: dict[Key, Node] = {}
        self._has_v2 = False  # what the coordinator said when it was last asked
        self._turn = asyncio.Lock()  # it refuses a second request while it works on the first
        self._adding: asyncio.Task[None] | None = None
        self._offering: set[asyncio.Task[None]] = set()  # offsets that a group may get yet
        sender.may_send = self.transactions.may_send
        sender.version = self._produce_version
        sender.on_failure = self._failed
        sender.on_fatal_error = self.transactions.to_fatal_error
        sender.after_turn = self._look

    # What the producer asks for

    async def initialise(self, deadline: float) -> None:
        """Take over the transactional id: what a producer before this one has left is aborted.

        Raises TransactionError.
        """
        await self._identify(None, deadline)
        self.transactions.initialised()

    async def begin(self) -> None:
        """Raises ValueError while there is a transaction, TransactionError for good."""
        self.transactions.begin(is_v2=self._has_v2)

    async def commit(self, deadline: float) -> None:
        """Deliver everything, then end the transaction. Raises TransactionError and ValueError.

        Whoever gives up before the coordinator was asked is in the transaction as before.
        """
        self.transactions.start_commit()
        try:
            await self._sender.flush()
            await self._offered()
            self.transactions.check_delivered()
            await self._end(commit=True, deadline=deadline)
        finally:
            self.transactions.resume()

    async def abort(self, deadline: float) -> None:
        """Give up what is not delivered, then end the transaction. Raises as `commit`."""
        self.transactions.start_abort()
        why = ApiError(ErrorCode.OPERATION_NOT_ATTEMPTED, "the transaction was aborted")
        await self._sender.give_up(why)
        await self._offered()
        await self._end(commit=False, deadline=deadline)

    async def send_offsets(self, offsets: Committed, group: GroupMetadata, deadline: float) -> None:
        """Have these offsets committed with the transaction. Raises TransactionError; ValueError
        outside a transaction.

        Whoever is cancelled here does not take the request back: the end of the transaction waits
        for it, as the group would have the offsets in the next one.
        """
        transactions = self.transactions
        transactions.check_open()
        task = self._sender.spawn(self._offer(offsets, group, deadline))
        self._offering.add(task)
        task.add_done_callback(self._offering.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            lost = "it is unknown whether it has the offsets"
            transactions.require_abort(ApiError(ErrorCode.OPERATION_NOT_ATTEMPTED, lost))
            if not task.cancelled():
                raise
            closed = ApiError(ErrorCode.NETWORK_EXCEPTION, "the producer was closed")
            raise self._fail(closed) from None

    async def _offered(self) -> None:
        """No request with offsets is under way."""
        if self._offering:
            await asyncio.wait(self._offering)

    async def _offer(self, offsets: Committed, group: GroupMetadata, deadline: float) -> None:
        transactions = self.transactions
        try:
            if not transactions.is_v2:
                await self._ask(self._key, lambda *to: self._add_group(group, *to), deadline)
            transactions.has_begun = True
            key = Key(group.group_id, OF_GROUP)
            await self._ask(key, lambda *to: self._commit(offsets, group, *to), deadline)
        except ApiError as error:
            text = f"offsets of group {group.group_id}: {error.message or error.code.name}"
            raise self._fail(ApiError(error.code, text)) from None

    # Requests

    async def _identify(self, former: ProducerId | None, deadline: float) -> None:
        async def ask(node: Node, deadline: float) -> ProducerId:
            connection = await self._cluster.connection(node.address, deadline)
            self._has_v2 = (
                connection.features.get(FEATURE, 0) >= 2
                and connection.version(EndTxnRequest) > END_V1
            )
            raises = connection.offers(InitProducerIdRequest, NEW_EPOCH)
            known = former if former is not None and raises else ProducerId(-1, -1)
            request = InitProducerIdRequest(
                transactional_id=self._key.name,
                transaction_timeout_ms=self._settings.transaction_timeout_ms,
                producer_id=known.id,
                producer_epoch=known.epoch,
            )
            answer: InitProducerIdResponse = await connection.ask(
                request, deadline=deadline, at_most=INIT_MAX
            )
            _raise_for(answer.error_code)
            return ProducerId(answer.producer_id, answer.producer_epoch)

        try:
            self._sender.queue.producer = await self._ask(self._key, ask, deadline)
        except ApiError as error:
            raise self._give_up(error) from None

    async def _add_partitions(self, node: Node, deadline: float) -> None:
        wanted = sorted(self.transactions.missing)
        if not wanted:
            return  # the transaction was aborted
        topics = by_topic(wanted)
        who = self._who()
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._key.name,
            v3_and_below_producer_id=who.id,
            v3_and_below_producer_epoch=who.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        before, self.transactions.has_begun = self.transactions.has_begun, True
        answer: AddPartitionsToTxnResponse = await self._cluster.ask(
            node, request, deadline=deadline, at_most=ADD_MAX
        )
        told = {
            (topic.name, result.partition_index): result.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        }
        codes = sorted({told.get(place, -1) for place in wanted} - {0})
        # The error of one is the reason why the others were not attempted.
        for code in [code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED] or codes:
            self.transactions.has_begun = before  # it takes all of them or none
            _raise_for(code)
        self.transactions.added(wanted)

    async def _add_group(self, group: GroupMetadata, node: Node, deadline: float) -> None:
        self._check_wanted()
        who = self._who()
        request = AddOffsetsToTxnRequest(
            transactional_id=self._key.name,
            producer_id=who.id,
            producer_epoch=who.epoch,
            group_id=group.group_id,
        )
        before, self.transactions.has_begun = self.transactions.has_begun, True
        answer: AddOffsetsToTxnResponse = await self._cluster.ask(node, request, deadline=deadline)
        if answer.error_code:
            self.transactions.has_begun = before
        _raise_for(answer.error_code)
        self.transactions.is_known = True

    async def _commit(
        self, offsets: Committed, group: GroupMetadata, node: Node, deadline: float
    ) -> None:
        self._check_wanted()
        who = self._who()
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for place, offset in offsets.items():
            topics.setdefault(place.topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=place.partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=-1
                    if offset.leader_epoch is None
                    else offset.leader_epoch,
                    committed_metadata=offset.metadata,
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self._key.name,
            group_id=group.group_id,
            producer_id=who.id,
            producer_epoch=who.epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        is_v2 = self.transactions.is_v2
        answer: TxnOffsetCommitResponse = await self._cluster.ask(
            node, request, deadline=deadline, at_most=32767 if is_v2 else OFFSETS_V1
        )
        told = {
            (topic.name, partition.partition_index): partition.error_code
            for topic in answer.topics
            for partition in topic.partitions
        }
        for place in offsets:
            if place not in told:
                raise unanswered("partition", place)
            if told[place]:
                error = ApiError(api_error(told[place]).code, str(place))
                group.refused(error)
                raise error

    async def _end(self, *, commit: bool, deadline: float) -> None:
        transactions = self.transactions

        async def ask(node: Node, deadline: float) -> ProducerId | None:
            who = self._who()
            request = EndTxnRequest(
                transactional_id=self._key.name,
                producer_id=who.id,
                producer_epoch=who.epoch,
                committed=commit,
            )
            connection = await self._cluster.connection(node.address, deadline)
            before = transactions.phase
            if commit:
                transactions.commit_asked()
            try:
                answer: EndTxnResponse = await connection.ask(
                    request, deadline=deadline, at_most=32767 if transactions.is_v2 else END_V1
                )
            except (ConnectionFailedError, RequestTimeoutError) as lost:
                if not lost.sent:
                    transactions.commit_refused(before)
                raise
            except UnsupportedVersionError:
                transactions.commit_refused(before)
                raise
            if answer.error_code:
                error = api_error(answer.error_code)
                if coordinator_error_action(error.code) is not CoordinatorErrorAction.ELSEWHERE:
                    transactions.commit_refused(before)
                raise error
            if answer.producer_id < 0:
                return None
            return ProducerId(answer.producer_id, answer.producer_epoch)

        async with self._turn:  # a request under way may yet tell that nothing has begun
            has_begun = transactions.has_begun
        if has_begun:
            try:
                found = await self._ask(self._key, ask, deadline)
            except ApiError as error:
                # What began it was lost: there is nothing to abort, or the next epoch ends it.
                never = error.code is ErrorCode.INVALID_TXN_STATE and not transactions.is_known
                if commit or not never:
                    raise self._not_ended(error, commit=commit) from None
                found = None
            if found is not None:
                self._sender.queue.producer = found
            elif not commit:  # what was given up has left sequences that will never come
                transactions.has_begun = False
                await self._identify(self._who(), deadline)
        transactions.ended()

    def _not_ended(self, error: ApiError, *, commit: bool) -> TransactionError:
        reply = coordinator_error_action(error.code)
        why = error.message or error.code.name
        if reply in (CoordinatorErrorAction.RETRY, CoordinatorErrorAction.ELSEWHERE):
            verb, done = ("commit", "committed") if commit else ("abort", "aborted")
            if self.transactions.phase is Phase.FLUSHING:
                text = f"the transaction is not committed, abort it or commit again: {why}"
                return TransactionError(error.code, text, abortable=True)
            return TransactionError(
                error.code,
                f"it is unknown whether the transaction is {done}, {verb} again to find out: {why}",
                abortable=not commit,
                maybe_committed=commit,
            )
        if reply is CoordinatorErrorAction.ABORT and commit:
            return self.transactions.to_abortable_error(error)
        return self._give_up(error)

    # Asking until there is an answer

    async def _ask(self, key: Key, ask: Ask[Answer], deadline: float) -> Answer:
        """What the coordinator answers in the end. Raises the ApiError that ends it."""
        loop = asyncio.get_running_loop()
        tried = 0
        while True:
            limit = min(deadline, loop.time() + self._settings.request_timeout_ms / 1000)
            try:
                node = self._nodes.get(key) or await self._find(key, limit)
                if key != self._key:
                    return await ask(node, limit)
                async with self._turn:
                    return await ask(node, limit)
            except UnsupportedVersionError as error:
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None
            except WireError as error:
                failure = ApiError(ErrorCode.NETWORK_EXCEPTION, str(error))
            except ApiError as error:
                failure = error
                if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:  # of topics, not of this
                    failure = explained(error, self._cluster.principal, key.name)
            reply = coordinator_error_action(failure.code)
            if reply is CoordinatorErrorAction.ELSEWHERE:
                self._nodes.pop(key, None)
            elif reply is not CoordinatorErrorAction.RETRY:
                raise failure
            logger.info("%s: %s", key.name, failure)
            if not await self._cluster.pause(tried, deadline):
                raise failure
            tried += 1

    async def _find(self, key: Key, deadline: float) -> Node:
        found = (await self._cluster.coordinators([key.name], deadline, key_type=key.kind))[
            key.name
        ]
        if isinstance(found, ApiError):
            raise found
        self._nodes[key] = found
        return found

    def _check_wanted(self) -> None:
        """A request that is tried again may be one too many."""
        if self.transactions.phase not in (Phase.OPEN, Phase.FLUSHING):
            raise ApiError(ErrorCode.OPERATION_NOT_ATTEMPTED, "the transaction was aborted")

    def _who(self) -> ProducerId:
        who = self._sender.queue.producer
        assert who is not None
        return who

    # What the sender tells

    def _produce_version(self) -> int:
        return NEWEST if self.transactions.is_v2 else PRODUCE_V1

    def _failed(self, error: ApiError) -> ApiError:
        self.transactions.require_abort(error)
        return self.transactions.of_delivery(error)

    def _look(self) -> None:
        """Tell the coordinator of partitions that are to be written to."""
        if self.transactions.missing and self._adding is None:
            self._adding = self._sender.spawn(self._add())

    async def _add(self) -> None:
        try:
            limit_s = self._settings.delivery_timeout_ms / 1000
            deadline = asyncio.get_running_loop().time() + limit_s
            await self._ask(self._key, self._add_partitions, deadline)
        except ApiError as error:
            text = f"partitions could not be added to the transaction: {error.message}"
            failure = self._fail(ApiError(error.code, text))
            self._sender.drop(failure)
        finally:
            self._adding = None
            self._sender.wake()

    def _fail(self, error: ApiError) -> TransactionError:
        """The transaction fails, or the producer."""
        if coordinator_error_action(error.code) is CoordinatorErrorAction.FATAL:
            return self._give_up(error)
        self.transactions.require_abort(error)
        return self.transactions.error or TransactionError(
            error.code, error.message, abortable=True
        )

    def _give_up(self, error: ApiError) -> TransactionError:
        if coordinator_error_action(error.code) in (
            CoordinatorErrorAction.RETRY,
            CoordinatorErrorAction.ELSEWHERE,
        ):  # not in time
            return TransactionError(error.code, error.message, abortable=False)
        failure = self.transactions.to_fatal_error(error)
        self._sender.to_fatal_error(failure)
        return failure


def _raise_for(code: int) -> None:
    if code:
        raise api_error(code)
