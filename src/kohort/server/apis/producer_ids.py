# SPDX-License-Identifier: Apache-2.0
"""InitProducerId: a number that distinguishes idempotent producers (KIP-98).

The coordinator of its transactional id gives a transactional producer its number.
"""

from kohort.errors import ApiError, ErrorCode, StorageError
from kohort.machines.effects import Call
from kohort.server.access import (
    ANY,
    CLUSTER,
    CLUSTER_NAME,
    IDEMPOTENT_WRITE,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    check,
)
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def init_producer_id(
    node: Node, call: Call[InitProducerIdRequest], _now: Millis
) -> InitProducerIdResponse | None:
    """A new id for an idempotent producer, whatever it had before; or the one that belongs to a
    transactional id.
    """
    request = call.request
    may = node.cluster.may
    transactional_id = request.transactional_id
    if transactional_id is not None:
        check(may, call.client, WRITE, TRANSACTIONAL_ID, transactional_id)
    elif not may(call.client, WRITE, TOPIC, ANY):  # who writes anywhere needs an id
        check(may, call.client, IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"producer id {request.producer_id} with epoch {request.producer_epoch}, "
            "expected both or none",
        )
    if transactional_id is not None:
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        driver = node.transaction_coordinator_of(transactional_id)
        if node.cluster.catalog.has_producer_ids:
            node.cluster.submit(driver, call)
        else:  # without one it is refused, and asks again
            node.cluster.reserve_producer_ids(lambda _error: node.cluster.submit(driver, call))
        return None
    producer_id = node.cluster.catalog.next_producer_id()
    if producer_id is not None:
        return _init_response(producer_id)
    node.cluster.reserve_producer_ids(
        lambda error: call.token.answer(_when_reserved(node, call, error))
    )
    return None


def _init_response(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)


def _when_reserved(
    node: Node, call: Call[InitProducerIdRequest], error: StorageError | None
) -> InitProducerIdResponse:
    """Answer once more ids are reserved, or once the disk has refused to record that."""
    producer_id = None if error else node.cluster.catalog.next_producer_id()
    if producer_id is None:
        text = str(error or "the reserved ids are used up already")
        return call.request.refused(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text))
    return _init_response(producer_id)
