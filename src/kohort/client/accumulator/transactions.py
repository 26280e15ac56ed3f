# SPDX-License-Identifier: Apache-2.0
"""Where a transactional producer stands, and what it may do next (KIP-98, KIP-890).

In transactions of the first version the coordinator is told of each partition and group before
anything is written. In those of the second version brokers tell it themselves, and the end of a
transaction gives the producer its next epoch.

An error of a coordinator that is not listed here and not retriable is fatal. One of a leader is
fatal only where `error_actions.py` lists it: who changes one of the two looks at the other.
"""

from collections.abc import Collection
from enum import Enum

from kohort.client.accumulator.errors import TransactionError
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicPartition


class Phase(Enum):
    """What may follow is in the methods of `Transactions`."""

    NEW = "not initialised"
    READY = "in no transaction"
    OPEN = "in a transaction"
    FLUSHING = "about to commit"
    ABORTABLE_ERROR = "in a transaction that has to be aborted"
    COMMITTING = "committing"
    ABORTING = "aborting"
    FATAL = "of no more use"


UNFINISHED = (Phase.OPEN, Phase.FLUSHING, Phase.ABORTABLE_ERROR, Phase.ABORTING)  # may be aborted


class CoordinatorErrorAction(Enum):
    """What to do about an error of a coordinator."""

    RETRY = "ask again after a pause"
    ELSEWHERE = "look up the coordinator, and ask again"
    ABORT = "abort the transaction"
    FATAL = "give the producer up"


_ELSEWHERE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_ABORT = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
_FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


def coordinator_error_action(code: ErrorCode) -> CoordinatorErrorAction:
    """What an error in a coordinator's answer asks for; of a lost answer as well."""
    if code in _ELSEWHERE:
        return CoordinatorErrorAction.ELSEWHERE
    if code in _ABORT:
        return CoordinatorErrorAction.ABORT
    return CoordinatorErrorAction.RETRY if code.retriable else CoordinatorErrorAction.FATAL


_WAYS_OUT = {
    Phase.COMMITTING: ", call `commit_transaction` to learn whether it is done",
    Phase.ABORTING: ", call `abort_transaction` to go on with it",
}


class Transactions:
    """`missing` are partitions that the coordinator has to be told of, `has_begun` says that it
    knows of the transaction, or may know, and `is_known` that it has said so.
    """

    def __init__(self) -> None:
        self.phase = Phase.NEW
        self.error: TransactionError | None = None
        self.is_v2 = False
        self.has_begun = False
        self.is_known = False
        self.missing: set[TopicPartition] = set()
        self._added: set[TopicPartition] = set()

    def initialised(self) -> None:
        """The cluster has given the producer its id, and ended what one before it had left."""
        self.phase = Phase.READY

    def begin(self, *, is_v2: bool) -> None:
        """A transaction starts. Raises ValueError while there is one."""
        self.check_useful()
        if self.phase is not Phase.READY:
            raise ValueError(f"a transaction cannot begin: {self._state()}")
        self.phase = Phase.OPEN
        self.is_v2 = is_v2
        self.error = None

    def check_open(self) -> None:
        """Raises ValueError outside a transaction, and TransactionError in one that failed."""
        self.check_useful()
        if self.error is not None:
            raise self.error
        if self.phase in (Phase.FLUSHING, Phase.COMMITTING):
            raise ValueError(
                f"the producer is {self.phase.value}: this comes too late for the transaction"
            )
        if self.phase is not Phase.OPEN:
            raise ValueError(
                f"the producer is {self.phase.value}: use `async with producer.transaction()`"
            )

    def check_useful(self) -> None:
        """Raises TransactionError when the producer is of no more use."""
        if self.phase is Phase.FATAL and self.error is not None:
            raise self.error

    # Writing

    def may_send(self, place: TopicPartition) -> bool:
        """Whether this partition may be written to now. If not, it is `missing` or it is late."""
        if self.phase not in (Phase.OPEN, Phase.FLUSHING):
            return False
        if self.is_v2:
            self.has_begun = True  # the leader tells the coordinator
        elif place not in self._added:
            self.missing.add(place)
            return False
        return True

    def added(self, places: Collection[TopicPartition]) -> None:
        """The coordinator knows these partitions."""
        self.is_known = True
        self._added.update(places)
        self.missing.difference_update(places)

    def require_abort(self, error: ApiError) -> None:
        """Something of the transaction has failed: all of it has to."""
        if self.phase in (Phase.OPEN, Phase.FLUSHING):
            self.to_abortable_error(error)

    def to_abortable_error(self, error: ApiError) -> TransactionError:
        """The transaction has to be aborted, even when its commit was asked for."""
        self.error = TransactionError(
            error.code,
            f"the transaction has to be aborted: {error.message}",
            abortable=True,
            maybe_committed=self.phase is Phase.COMMITTING,
        )
        self.phase = Phase.ABORTABLE_ERROR
        return self.error

    def of_delivery(self, error: ApiError) -> ApiError:
        """What a delivery raises that has failed so: where another producer may have taken over,
        that is an error of the transaction, as everything else of this producer raises it.
        """
        return self.error if error.code in _FENCED and self.error is not None else error

    def to_fatal_error(self, error: ApiError) -> TransactionError:
        """Nothing can be done by this producer any more, and why."""
        why = error.message or error.code.name
        if error.code in _FENCED:
            why = f"another producer has taken over its transactional id: {why}"
        if self.phase is not Phase.FATAL or self.error is None:
            maybe = self.phase is Phase.COMMITTING
            why += "; an earlier request may have committed the transaction" if maybe else ""
            self.phase = Phase.FATAL
            self.error = TransactionError(error.code, why, abortable=False, maybe_committed=maybe)
        return self.error

    # The end

    def start_commit(self) -> None:
        """Nothing more is taken; what was taken is delivered first. Raises as `check_open`, but not
        after a commit whose answer was lost.
        """
        if self.phase is not Phase.COMMITTING:
            self.check_open()
            self.phase = Phase.FLUSHING

    def check_delivered(self) -> None:
        """Raises TransactionError when something was not delivered, ValueError when the
        transaction was aborted meanwhile.
        """
        if self.error is not None:
            raise self.error
        if self.phase not in (Phase.FLUSHING, Phase.COMMITTING):
            raise ValueError(f"nothing can be committed: {self._state()}")

    def commit_asked(self) -> None:
        """From now on the coordinator may have committed the transaction."""
        self.phase = Phase.COMMITTING

    def commit_refused(self, before: Phase) -> None:
        """The coordinator has not done what it was asked for: all is as it was before."""
        if self.phase is Phase.COMMITTING:
            self.phase = before

    def resume(self) -> None:
        """The commit was given up. If it was not asked for, the transaction is open again."""
        if self.phase is Phase.FLUSHING:
            self.phase = Phase.OPEN

    def start_abort(self) -> None:
        """Nothing more is written. Raises ValueError where there is nothing to abort."""
        self.check_useful()
        if self.phase not in UNFINISHED:
            raise ValueError(f"nothing can be aborted: {self._state()}")
        self.phase = Phase.ABORTING
        self.error = None
        self.missing.clear()

    def ended(self) -> None:
        """The transaction is over, one way or the other."""
        self.phase = Phase.READY
        self.has_begun = self.is_known = False
        self.missing.clear()
        self._added.clear()

    def _state(self) -> str:
        return f"the producer is {self.phase.value}{_WAYS_OUT.get(self.phase, '')}"
