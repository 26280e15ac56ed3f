# SPDX-License-Identifier: Apache-2.0
"""Produce: each batch goes to its partition, and is answered by itself.

Several entries of one topic are answered as one, as upstream does. Of several batches for one
partition upstream writes only the last, without an error for the others; here each is written.
"""

from collections.abc import Sequence
from contextlib import suppress

from kohort.errors import ApiError, ErrorCode, WireError
from kohort.machines.effects import Call, Producer
from kohort.server.access import TRANSACTIONAL_ID, WRITE, check, refusal
from kohort.server.apis.leaders import led_partition, topic_named, whereabouts
from kohort.server.catalog import Topic
from kohort.server.node import Node
from kohort.server.partitions import batch_validation
from kohort.server.partitions.batch_validation import RefusedRecordsError
from kohort.server.partitions.log_reader import PendingReadError
from kohort.server.partitions.partition import Partition
from kohort.server.requests.reply_tokens import ContinuationToken
from kohort.server.requests.steps import STEP_ELEMENTS, StepBudget, Steps, continue_in_steps
from kohort.terms import Millis, TopicId, TopicPartition
from kohort.transactions.messages import Enrol, EnrolResult
from kohort.transactions.transaction import EPOCHS_IN_RESPONSE
from kohort.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

# Upstream's refusals show the start of the log once it has looked at the log, except these.
_START_IS_NOT_TOLD = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
ELEMENT_BYTES = 4096  # of a batch take as long as one more batch
RECORD_ERRORS_MAX = 100  # in one answer; what is refused beyond them is told without its records
_NO_OFFSET = -1
_BY_ID_SINCE = 13
_ENROLS_SINCE = 12  # transactions of the second version
_ABORTABLE_SINCE = 11
# Of the coordinator; older producers do not take them for reasons to try again.
_LATER = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def produce(node: Node, call: Call[ProduceRequest], now: Millis) -> None:
    """Append each batch to its partition, and answer when all of them are durable, also a batch
    that was there already. With acks=0 there is no answer, and a refusal closes the connection.

    What belongs to a transaction is written once its coordinator has said that it does.
    """
    try:
        enrol, count = _enrolment(node, call)
        driver = (
            None if enrol is None else node.transaction_coordinator_anywhere(enrol.transactional_id)
        )
    except ApiError as error:
        if call.request.acks == 0:
            call.token.skip()
            raise WireError(str(error)) from error
        raise
    if enrol is None or driver is None:
        writing = _ProduceAppend(node, call, _EnrolmentCheck(frozenset()))
        if count <= STEP_ELEMENTS or not _repeats(call.request):
            writing.write(now)
        else:
            call.token.hold_back()
            continue_in_steps(node, call, writing.steps(), outlives_client=True)
        return

    def enrolled(answer: EnrolResult) -> None:
        verdict = _EnrolmentCheck(frozenset(enrol.partitions), answer, call.version)
        _ProduceAppend(node, call, verdict).write(node.cluster.now)

    node.cluster.submit(
        driver, Call(ContinuationToken(call.token, enrolled), enrol, call.version, call.client)
    )


def _repeats(request: ProduceRequest) -> bool:
    """Whether partitions are named again and again. Only then there may be any number of batches,
    which are written in steps. What goes to many logs is written in one piece, and synced together:
    each step would have syncs of its own.
    """
    places = {
        (wanted.name, wanted.topic_id, data.index)
        for wanted in request.topic_data
        for data in wanted.partition_data
    }
    return sum(len(wanted.partition_data) for wanted in request.topic_data) > 2 * len(places)


def _enrolment(node: Node, call: Call[ProduceRequest]) -> tuple[Enrol | None, int]:
    """What the coordinator of the transaction must be asked, None without one; and how many topics
    and batches there are. From version 12 on a partition comes into the transaction by what is
    written to it (KIP-890). Raises ApiError.
    """
    request = call.request
    producers: dict[Producer, None] = {}
    partitions: dict[TopicPartition, None] = {}
    count = 0
    for wanted in request.topic_data:
        count += 1
        for data in wanted.partition_data:
            count += 1
            batch_validation.check_readable(data.records)  # before anything is written
            producer = batch_validation.producer_in_transaction(data.records)
            if producer is not None:
                producers[producer] = None
                with suppress(ApiError):  # the end writes a marker where this client may not write
                    partition, _ = _writable(node, call, _topic(node, call, wanted), data)
                    partitions[TopicPartition(partition.topic.name, data.index)] = None
    if not producers:
        return None, count
    transactional_id = request.transactional_id
    if transactional_id is None:
        raise refusal(TRANSACTIONAL_ID, with_text=False)
    check(node.cluster.may, call.client, WRITE, TRANSACTIONAL_ID, transactional_id, with_text=False)
    if len(producers) > 1:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"batches of {len(producers)} producers in one transaction, expected one",
        )
    enrol = Enrol(
        transactional_id,
        next(iter(producers)),
        tuple(partitions),
        EPOCHS_IN_RESPONSE if call.version >= _ENROLS_SINCE else 0,
        verify_only=call.version < _ENROLS_SINCE or not partitions,
    )
    return enrol, count


class _EnrolmentCheck:
    """What the coordinator has said about the partitions that are written to in a transaction."""

    def __init__(
        self,
        asked: frozenset[TopicPartition],
        answer: EnrolResult = EnrolResult(ErrorCode.NONE),  # noqa: B008  (a value)
        version: int = 0,
    ) -> None:
        self._asked = asked
        self._answer = answer
        self._version = version

    def check(self, place: TopicPartition) -> None:
        """Raises ApiError where a transaction may not write there."""
        if place not in self._asked:  # no marker would ever come to it
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{place} could not be written to when its transaction was asked",
            )
        answer = self._answer
        if answer.code is not ErrorCode.NONE:
            raise ApiError(self._code(answer.code), answer.message)
        if place in answer.missing:
            raise ApiError(
                ErrorCode.TRANSACTION_ABORTABLE
                if self._version >= _ABORTABLE_SINCE
                else ErrorCode.INVALID_TXN_STATE,
                "Partition was not added to the transaction",
            )

    def _code(self, code: ErrorCode) -> ErrorCode:
        """The code that a producer of this version understands: upstream's translation."""
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code in _LATER or (
            code is ErrorCode.CONCURRENT_TRANSACTIONS and self._version < _ENROLS_SINCE
        ):
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return code


class _ProduceAppend:
    """A Produce on its way into the logs: its answers so far.

    A batch of an idempotent producer waits where its log must be read first, as after a start. What
    its connection has sent behind it waits as well, and the other batches of the request do not.
    """

    __slots__ = (
        "_answers",
        "_call",
        "_elsewhere",
        "_late",
        "_node",
        "_refused",
        "_room",
        "_touched",
        "_verdict",
    )

    def __init__(self, node: Node, call: Call[ProduceRequest], verdict: _EnrolmentCheck) -> None:
        self._node = node
        self._call = call
        self._verdict = verdict
        self._touched: list[Partition] = []  # that were written to
        self._refused = False
        self._elsewhere: dict[int, NodeEndpoint] = {}
        self._answers: dict[tuple[str, bytes], list[PartitionProduceResponse]] = {}
        self._room = RECORD_ERRORS_MAX
        self._late = 0  # what is still to come: batches that wait, and steps

    def write(self, now: Millis) -> None:
        """Write each batch, and answer when all of them are durable. Raises WireError where only
        the end of the connection can tell a refusal.
        """
        for wanted in self._call.request.topic_data:
            self._write_some(wanted, wanted.partition_data, now)
        if not self._late:
            self._answer()

    def steps(self) -> Steps[None]:
        """The same in steps, for batches of no transaction: one could end meanwhile."""
        self._late += 1  # so a batch that has waited does not answer before the last step
        step_budget = StepBudget()
        for wanted in self._call.request.topic_data:
            for data in wanted.partition_data:
                self._write_some(wanted, [data], self._node.cluster.now)
                if step_budget.is_over(1 + len(data.records or b"") // ELEMENT_BYTES):
                    yield
        self._late -= 1
        if not self._late:
            self._answer()

    def _write_some(
        self, wanted: TopicProduceData, some: Sequence[PartitionProduceData], now: Millis
    ) -> None:
        topic = _topic(self._node, self._call, wanted)
        answers = self._answers.setdefault((wanted.name, wanted.topic_id), [])
        for data in some:
            try:
                answers.append(self._write_one(topic, data, now))
            except ApiError as error:
                answers.append(self._refusal(topic, data.index, error))
            except PendingReadError as error:
                self._wait(error, wanted, data, answers)

    def _write_one(
        self, topic: Topic | ApiError, data: PartitionProduceData, now: Millis
    ) -> PartitionProduceResponse:
        """Raises ApiError, or PendingReadError."""
        node = self._node
        partition, batch = _writable(node, self._call, topic, data)
        transactional = batch_validation.producer_in_transaction(batch) is not None
        if transactional:
            _check_let_in(partition, self._verdict, batch, now)
        begins = transactional and self._call.version >= _ENROLS_SINCE
        try:
            appended = partition.append(batch, now, begins=begins)
        except ApiError as error:
            raise _LogRefusalError(error, partition) from error
        self._touched.append(partition)
        if appended.size_bytes:
            node.cluster.wrote(partition, now, appended.size_bytes)
        return PartitionProduceResponse(
            index=data.index,
            error_code=0,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=partition.log.start,
        )

    def _refusal(
        self, topic: Topic | ApiError, index: int, error: ApiError
    ) -> PartitionProduceResponse:
        self._refused = True
        answer = _refused(self._node, topic, index, error, self._elsewhere, self._room)
        self._room -= len(answer.record_errors)
        return answer

    def _wait(
        self,
        why: PendingReadError,
        wanted: TopicProduceData,
        data: PartitionProduceData,
        answers: list[PartitionProduceResponse],
    ) -> None:
        """Write a batch once its log is read."""
        place = len(answers)
        answers.append(PartitionProduceResponse(index=data.index))
        self._late += 1
        node, call = self._node, self._call
        call.token.hold_back()

        def write() -> None:
            topic = _topic(node, call, wanted)  # it may be gone
            try:
                answers[place] = self._write_one(topic, data, node.cluster.now)
            except ApiError as error:
                answers[place] = self._refusal(topic, data.index, error)
            self._late -= 1
            if not self._late:
                self._answer()

        node.cluster.log_reads.wait_to_write(why, write, call.token)

    def _answer(self) -> None:
        call = self._call
        if call.request.acks != 0:
            responses = [
                TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=answers)
                for (name, topic_id), answers in self._answers.items()
                if answers
            ]
            response = ProduceResponse(
                responses=responses, node_endpoints=list(self._elsewhere.values())
            )
            self._node.cluster.answer_behind(call.token, response, self._touched)
            return
        call.token.skip()
        if self._refused:
            raise WireError("a Produce with acks=0 was refused; closing is the only way to say so")


def _topic(node: Node, call: Call[ProduceRequest], wanted: TopicProduceData) -> Topic | ApiError:
    by_id = call.version >= _BY_ID_SINCE
    topic_id = TopicId(wanted.topic_id)
    return topic_named(node, call.client, WRITE, wanted.name, topic_id, by_id=by_id)


def _check_let_in(
    partition: Partition, verdict: _EnrolmentCheck, batch: bytes, now: Millis
) -> None:
    """Raises ApiError for a batch that its transaction does not let in, and PendingReadError."""
    try:
        verdict.check(TopicPartition(partition.topic.name, partition.index))
    except ApiError:
        partition.refused_in_transaction(batch, now)
        raise


def _writable(
    node: Node, call: Call[ProduceRequest], topic: Topic | ApiError, data: PartitionProduceData
) -> tuple[Partition, bytes]:
    """The partition and the batch for it. Raises ApiError for all but what a transaction says and
    what the records say.
    """
    partition = led_partition(node, topic, data.index)
    if partition.topic.is_internal:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic {partition.topic.name} is internal and takes no records from clients",
        )
    batch = batch_validation.one_batch(data.records, call.version)
    acks = call.request.acks
    if acks not in (-1, 0, 1):
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {acks}, expected -1, 0 or 1")
    partition.check_sound()
    return partition, batch


class _LogRefusalError(ApiError):
    """A refusal that was made after looking at the log."""

    def __init__(self, error: ApiError, partition: Partition) -> None:
        super().__init__(error.code, error.message)
        self.records = error.records if isinstance(error, RefusedRecordsError) else ()
        self.start = _NO_OFFSET if error.code in _START_IS_NOT_TOLD else partition.log.start


def _refused(
    node: Node,
    topic: Topic | ApiError,
    index: int,
    error: ApiError,
    elsewhere: dict[int, NodeEndpoint],
    room: int,
) -> PartitionProduceResponse:
    """The answer to a batch that is not written; it names at most `room` of its records."""
    response = PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        error_message=error.message or None,
    )
    if isinstance(error, _LogRefusalError):
        response.log_start_offset = error.start
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=text)
            for place, text in error.records[:room]
        ]
    elif error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and isinstance(topic, Topic):
        leader, epoch = whereabouts(node, topic, index)
        if leader is not None:
            response.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=epoch)
            elsewhere[leader.id] = NodeEndpoint(
                node_id=leader.id, host=leader.host, port=leader.port, rack=leader.rack
            )
    return response
