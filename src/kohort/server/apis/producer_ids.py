"""InitProducerId: a number that distinguishes idempotent producers (KIP-98)."""

from kohort.coordinator.effects import Call
from kohort.errors import ApiError, ErrorCode, StorageError
from kohort.server.access import ANY, CLUSTER, CLUSTER_NAME, IDEMPOTENT_WRITE, TOPIC, WRITE, check
from kohort.server.apis import unsupported
from kohort.server.catalog import Draft
from kohort.server.disk_work import Finish
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def init_producer_id(
    node: Node, call: Call[InitProducerIdRequest], _now: Millis
) -> InitProducerIdResponse | None:
    """A new id for an idempotent producer, whatever it had before."""
    request = call.request
    may = node.cluster.may
    if request.transactional_id is not None:
        raise unsupported.transactional(may, call.client, request.transactional_id)
    if not may(call.client, WRITE, TOPIC, ANY):  # who writes anywhere needs an id
        check(may, call.client, IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"producer id {request.producer_id} with epoch {request.producer_epoch}, "
            "expected both or none",
        )
    producer_id = node.cluster.catalog.next_producer_id()
    if producer_id is not None:
        return _given(producer_id)

    def reserve(draft: Draft) -> Finish:
        draft.reserve_producer_ids()
        return lambda error: call.token.answer(_when_reserved(node, call, error))

    node.cluster.table.change(reserve)
    return None


def _given(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)


def _when_reserved(
    node: Node, call: Call[InitProducerIdRequest], error: StorageError | None
) -> InitProducerIdResponse:
    """Answer once more ids are reserved, or once the disk has refused to record that."""
    producer_id = None if error else node.cluster.catalog.next_producer_id()
    if producer_id is None:
        text = str(error or "the reserved ids are used up already")
        return call.request.refused(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text))
    return _given(producer_id)
