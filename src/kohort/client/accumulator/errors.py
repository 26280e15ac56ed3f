# SPDX-License-Identifier: Apache-2.0
"""What a producer tells when it cannot do what it was asked for, and how much of it is known."""

from functools import partial
from typing import Any

from kohort.errors import ApiError, ErrorCode, api_error
from kohort.wire.messages.produce import PartitionProduceResponse


def produce_error(response: PartitionProduceResponse) -> ApiError:
    """The error of a partition, with what is said of single records (KIP-467)."""
    text = response.error_message or ""
    reasons = [
        f"record {refused.batch_index}: {refused.batch_index_error_message or 'refused'}"
        for refused in response.record_errors[:3]
    ]
    return api_error(response.error_code, "; ".join([*([text] if text else []), *reasons]) or None)


class DeliveryError(ApiError):
    """A record was not delivered, or nobody knows whether it was.

    `maybe_written` is False where it is certain that the log does not have the record: it may be
    sent again. It is True where an answer was lost, and the log may have it or get it yet.
    """

    def __init__(self, code: ErrorCode, message: str, *, maybe_written: bool) -> None:
        super().__init__(code, message)
        self.maybe_written = maybe_written

    def __reduce__(self) -> Any:
        make = partial(DeliveryError, maybe_written=self.maybe_written)
        return make, (self.code, self.message)


class TransactionError(ApiError):
    """A transaction cannot go on.

    With `abortable` the transaction has to be aborted, and the producer may begin another one.
    Without, the producer is of no more use: another one with its transactional id has taken over
    (PRODUCER_FENCED, INVALID_PRODUCER_EPOCH), or it is not allowed to go on.

    `maybe_committed` is True where the answer to a commit was lost. When `code.retriable`, commit
    again to find out. Otherwise this producer cannot find out any more.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        abortable: bool,
        maybe_committed: bool = False,
    ) -> None:
        super().__init__(code, message)
        self.abortable = abortable
        self.maybe_committed = maybe_committed

    def __reduce__(self) -> Any:
        make = partial(
            TransactionError, abortable=self.abortable, maybe_committed=self.maybe_committed
        )
        return make, (self.code, self.message)
