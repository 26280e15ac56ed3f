# SPDX-License-Identifier: Apache-2.0
"""The state machine behind one partition of __transaction_state.

Requests come in by call(), records by replay(), time by tick(). It is driven as the machine of the
groups is: see `coordinator/shard.py`.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any

from kohort.errors import ApiError, Broken, ErrorCode
from kohort.machines.deadlines import DeadlineMixin
from kohort.machines.effects import BackgroundTask, Call, Effects, Producer, Reply
from kohort.machines.topics import Topics
from kohort.records import transactions as records
from kohort.records.causes import Headers
from kohort.records.transactions import Record, Unknown
from kohort.terms import Millis
from kohort.transactions import ending, enrolling, expiring, initialise, queries
from kohort.transactions.messages import Enrol, MarkersWritten
from kohort.transactions.state import EXPIRY, MARKERS, TIMEOUT, State
from kohort.transactions.transaction import Transaction, TransactionState
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.list_transactions import ListTransactionsRequest


class TransactionCoordinator(DeadlineMixin, State):
    """The transactional ids of one partition, as a machine that a driver runs."""

    running_tasks: Container[tuple[Any, ...]] = ()

    def call(self, call: Call[Any], now: Millis) -> Effects:
        """Answer a request. A refusal is an answer like any other."""
        try:
            return CALLS[type(call.request)](self, call, now)
        except ApiError as error:
            return Effects([], [Reply(call.token, call.request.refused(_as_known(call, error)))])

    def reads(self, call: Call[Any]) -> bool:
        """Whether this call only asks."""
        return type(call.request) in READS

    def meet(self, kind: str, now: Millis, *about: Any) -> Effects:
        """Do what one deadline asks for."""
        return DEADLINES[kind](self, now, *about)

    def topics_changed(self, _topics: Topics, _now: Millis) -> Iterator[Effects]:
        """A marker for a topic that is gone is told to be written: nothing is left to do here."""
        return iter(())

    def start(self, now: Millis) -> Iterator[Effects]:
        """The log has been read: time counts again, and what was decided is completed."""
        decided = []
        for known in self.transactions.values():
            if known.state.decided:
                decided.append(known)  # nothing else changes it until its markers are written
            elif known.state is TransactionState.ONGOING:
                self.schedule_timeout(known.id, Millis(known.started_at + known.timeout_ms))
            else:
                self.schedule_expiry(known.id, known.updated_at)
        for known in decided:
            yield ending.begin_again(self, known, now)
        if self.unexpected_markers:
            text = (
                f"{self.unexpected_markers} markers in a log of transactional ids end nothing and"
                f" are passed over, the last one of {self.last_unexpected_marker}"
            )
            yield Effects(warnings=[text])

    def replay(self, record: Record | Unknown, offset: int, producer: Producer | None) -> None:
        """Make true what the record says. Nothing else changes what a log can bring back."""
        if producer is not None:
            raise Broken(f"the record at offset {offset} is in a transaction of {producer}")
        if isinstance(record, Unknown):
            return
        if record.value is None:
            self.transactions.pop(record.transactional_id, None)
            self.last_epochs.pop(record.transactional_id, None)
        else:
            known = Transaction.of(record.transactional_id, record.value)
            self.transactions[known.id] = known
            self.note_producer_id(max(known.producer_id, known.next_producer_id))

    def replay_marker(self, producer: Producer, *, commit: bool) -> None:
        """Nothing here is in a transaction, so a marker ends nothing; `start` tells of it. An older
        broker has let transactions into this very log.
        """
        self.unexpected_markers += 1
        self.last_unexpected_marker = f"producer {producer.id} (commit: {commit})"

    encode = staticmethod(records.encode)

    def decode(self, key: bytes, value: bytes | None) -> Record | Unknown:
        """The record. Raises WireError for one that nobody could have written."""
        record = records.decode(key, value)
        if isinstance(record, Record) and record.value is not None:
            Transaction.of(record.transactional_id, record.value)
        return record

    def headers(self, _step: Effects) -> Mapping[int, Headers]:
        """Its records have none."""
        return {}

    def finished(self, task: BackgroundTask, _outcome: Any, _now: Millis) -> Effects:
        """It sends nobody on tasks. Raises Broken."""
        raise Broken(f"{task} has come back, expected none")

    def log_lines(self, _calls: Iterable[Call[Any]], _steps: Iterable[Effects]) -> Iterator[str]:
        """What to tell about a turn: transactions that were aborted without their producer."""
        lines, self.lines = self.lines, []
        yield from lines


def _as_known(call: Call[Any], error: ApiError) -> ApiError:
    """Older clients do not know PRODUCER_FENCED."""
    since = _FENCED_SINCE.get(type(call.request), 0)
    if error.code is ErrorCode.PRODUCER_FENCED and call.version < since:
        return ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
    return error


_FENCED_SINCE: dict[type, int] = {InitProducerIdRequest: 4, EndTxnRequest: 2}

CALLS: dict[type, Callable[[State, Any, Millis], Effects]] = {
    InitProducerIdRequest: initialise.init_transactional_id,
    Enrol: enrolling.enrol,
    EndTxnRequest: ending.end,
    MarkersWritten: ending.written,
    DescribeTransactionsRequest: queries.describe,
    ListTransactionsRequest: queries.list_transactions,
}

READS = frozenset({DescribeTransactionsRequest, ListTransactionsRequest})

DEADLINES: dict[str, Callable[..., Effects]] = {
    TIMEOUT: ending.timed_out,
    MARKERS: ending.ask_again,
    EXPIRY: expiring.expired,
}
