# SPDX-License-Identifier: Apache-2.0
"""FindCoordinator: which node to ask about a group or a transactional id."""

from typing import Any

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import DESCRIBE, GROUP, TRANSACTIONAL_ID, check
from kohort.server.apis.leaders import state_of
from kohort.server.catalog import TRANSACTIONS_TOPIC, Topic
from kohort.server.internal_topics import create_transactions_topic
from kohort.server.node import Node
from kohort.server.placement import NOBODY, Endpoint
from kohort.server.requests.piecewise import PiecewiseAnswer
from kohort.server.requests.steps import StepBudget, Steps, continue_in_steps
from kohort.terms import GroupId, Millis
from kohort.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

HASHED_WITH_AN_ELEMENT = 64  # characters: a hash looks at each of them
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_SEVERAL_SINCE = 4  # the version


def find_coordinator(node: Node, call: Call[FindCoordinatorRequest], _now: Millis) -> Steps[Any]:
    """The node of each key, by the partition that it hashes to. Who is the first to ask about
    transactions waits for their topic.
    """
    request = call.request
    keys = request.coordinator_keys if call.version >= _SEVERAL_SINCE else [request.key]
    if request.key_type == _TRANSACTION and TRANSACTIONS_TOPIC not in node.cluster.catalog.by_name:
        for key in keys:
            if node.cluster.may(call.client, DESCRIBE, TRANSACTIONAL_ID, key):
                create_transactions_topic(
                    node.cluster,
                    lambda _error: continue_in_steps(node, call, _answer(node, call)),
                )
                return None
    return (yield from _answer(node, call))


def _answer(node: Node, call: Call[FindCoordinatorRequest]) -> Steps[Any]:
    request = call.request
    if call.version >= _SEVERAL_SINCE:
        answer = PiecewiseAnswer(node, call, "coordinators")
        step_budget = StepBudget()
        for key in dict.fromkeys(request.coordinator_keys):
            answer.add(_coordinator(node, call, key, fine=""))
            if step_budget.is_over(1 + len(key) // HASHED_WITH_AN_ELEMENT):
                yield
        return answer.whole()
    found = _coordinator(node, call, request.key, fine="NONE")
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(
    node: Node, call: Call[FindCoordinatorRequest], key: str, *, fine: str
) -> Coordinator:
    """The answer for one key. `fine` is the text for no error, by version."""
    try:
        found = _found(node, call, key)
    except ApiError as error:
        return Coordinator(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=error.code,
            error_message=error.message,
        )
    return Coordinator(
        key=key,
        node_id=found.id,
        host=found.host,
        port=found.port,
        error_code=0,
        error_message=fine,
    )


def _found(node: Node, call: Call[FindCoordinatorRequest], key: str) -> Endpoint:
    """Raises ApiError. A refusal among several has no text, as upstream's."""
    may, key_type = node.cluster.may, call.request.key_type
    with_text = call.version < _SEVERAL_SINCE
    if key_type == _GROUP:
        check(may, call.client, DESCRIBE, GROUP, key, with_text=with_text)
        shard = node.cluster.placement.shard_of(GroupId(key))
        return _leader(node, node.cluster.offsets_topic(), shard)
    if key_type == _TRANSACTION:
        check(may, call.client, DESCRIBE, TRANSACTIONAL_ID, key, with_text=with_text)
        transactor = node.cluster.placement.transaction_coordinator_of(key)
        if transactor is None:
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, "the topic of transactions cannot be made"
            )
        return _leader(node, node.cluster.catalog.by_name[TRANSACTIONS_TOPIC], transactor[0])
    if key_type == _SHARE:
        text = f"share group key {key!r}: share groups are not supported"
    else:
        text = f"key type is {key_type}, expected 0 for groups or 1 for transactions"
    raise ApiError(ErrorCode.INVALID_REQUEST, text)


def _leader(node: Node, topic: Topic, index: int) -> Endpoint:
    """The node that leads a partition of a coordinator, as Metadata tells it. Raises ApiError where
    nobody does.
    """
    leader = state_of(node, topic, index).leader_id
    if leader == NOBODY:
        raise ApiError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"nobody leads partition {index} of {topic.name}"
        )
    return node.endpoints[leader]
