# SPDX-License-Identifier: Apache-2.0
"""The id by which the cluster recognises an idempotent producer (KIP-98)."""

import asyncio
import logging
from collections.abc import Callable

from kohort.client.accumulator.accumulator import RecordAccumulator
from kohort.client.accumulator.batch import ProducerId
from kohort.client.log_deduplication import LogDeduplicator
from kohort.client.network.cluster import Cluster
from kohort.client.network.connection import Connection
from kohort.client.network.denials import explained
from kohort.client.settings import INT32_MAX
from kohort.errors import (
    ApiError,
    AuthenticationError,
    ErrorCode,
    KohortError,
    UnsupportedVersionError,
    api_error,
)
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

logger = logging.getLogger(__name__)

_ASK_S = 30.0


async def ask_for_identity(
    cluster: Cluster, queue: RecordAccumulator, on_fatal_error: Callable[[ApiError], None]
) -> None:
    """Give the queue a producer id, asking any broker until there is one. `on_fatal_error` is
    told where there will be none.
    """
    attempt = 0
    repeats = LogDeduplicator()
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX)

    async def ask(connection: Connection, deadline: float) -> InitProducerIdResponse:
        answer: InitProducerIdResponse = await connection.ask(request, deadline=deadline, at_most=5)
        return answer

    while True:
        deadline = asyncio.get_running_loop().time() + _ASK_S
        try:
            answer = await cluster.ask_any(ask, deadline)
        except UnsupportedVersionError as error:
            text = f"{error}: set enable_idempotence to false"
            on_fatal_error(ApiError(ErrorCode.UNSUPPORTED_VERSION, text))
            return
        except AuthenticationError as error:
            on_fatal_error(error)
            return
        except KohortError as error:
            _say(repeats, error)
        else:
            if not answer.error_code:
                queue.producer = ProducerId(answer.producer_id, answer.producer_epoch)
                return
            refusal = explained(api_error(answer.error_code), cluster.principal, "")
            if not refusal.code.retriable:
                on_fatal_error(refusal)
                return
            _say(repeats, refusal)
        await cluster.pause(attempt, float("inf"))
        attempt += 1


def _say(repeats: LogDeduplicator, error: KohortError) -> None:
    if repeats.is_due(str(error)):
        logger.info("no producer id yet: %s", error)
