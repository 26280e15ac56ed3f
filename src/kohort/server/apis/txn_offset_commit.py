# SPDX-License-Identifier: Apache-2.0
"""TxnOffsetCommit on its way to the group's shard: first its transaction is asked.

The partition of the group's offsets must be in the transaction, or no marker would ever decide
about them. From version 5 on the commit brings it in by itself (KIP-890).
"""

from typing import Any

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Producer
from kohort.server.access import GROUP, READ, TRANSACTIONAL_ID, WRITE, check
from kohort.server.apis.named_topics import put_back, take_refused, why_not
from kohort.server.apis.transactions import offsets_partition
from kohort.server.node import Node
from kohort.server.requests.reply_tokens import ContinuationToken, MappingToken
from kohort.terms import GroupId
from kohort.transactions.messages import Enrol, EnrolResult
from kohort.transactions.transaction import EPOCHS_IN_RESPONSE
from kohort.wire.messages import txn_offset_commit as wire
from kohort.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_ABORTABLE_SINCE = 4
_ENROLS_SINCE = 5
_LOADING_SINCE = 2


def commit_offsets(node: Node, call: Call[TxnOffsetCommitRequest]) -> None:
    """Refuse topics that are missing or forbidden; pass on the rest."""
    request = call.request
    may, client = node.cluster.may, call.client
    check(may, client, WRITE, TRANSACTIONAL_ID, request.transactional_id)
    check(may, client, READ, GROUP, request.group_id)

    def why(topic: Any) -> ErrorCode | None:
        return why_not(node, client, READ, topic, by_id=False)

    def refusal(topic: Any, indexes: list[int], code: ErrorCode) -> Any:
        partition = wire.TxnOffsetCommitResponsePartition
        return wire.TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[partition(partition_index=index, error_code=code) for index in indexes],
        )

    request.topics, refused = take_refused(request.topics, node.cluster.topics, why, refusal)
    if not request.topics:
        call.token.answer(TxnOffsetCommitResponse(topics=refused))
        return
    call.token = MappingToken(call.token, lambda response: put_back(refused, response))
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    driver = node.driver_of(GroupId(request.group_id))

    def enrolled(answer: EnrolResult) -> None:
        error = _refusal(answer, call.version)
        if error is not None:
            call.token.answer(request.refused(error))
        else:
            node.cluster.submit(driver, call)

    enrol = Enrol(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        (offsets_partition(node, request.group_id),),
        EPOCHS_IN_RESPONSE if call.version >= _ENROLS_SINCE else 0,
        verify_only=call.version < _ENROLS_SINCE,
    )
    transactor = node.transaction_coordinator_anywhere(request.transactional_id)
    then = ContinuationToken(call.token, enrolled)
    node.cluster.submit(transactor, Call(then, enrol, call.version, client))


def _refusal(answer: EnrolResult, version: int) -> ApiError | None:
    """Why the transaction takes no offsets, in a code that a client of this version understands."""
    code = answer.code
    if answer.missing:
        code = ErrorCode.INVALID_TXN_STATE
        if version >= _ABORTABLE_SINCE:
            code = ErrorCode.TRANSACTION_ABORTABLE
        return ApiError(code, "the offsets of the group are not in the transaction")
    if code is ErrorCode.NONE:
        return None
    if code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _LOADING_SINCE:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ApiError(code, answer.message)
