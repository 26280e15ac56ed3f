# SPDX-License-Identifier: Apache-2.0
"""Requests about groups: find their shards, and make one answer of the shards' answers.

What this release cannot do yet is refused here, before a coordinator is asked.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from kohort.coordinator.classic_protocol import check_sync
from kohort.coordinator.descriptions import Description
from kohort.coordinator.listing import ShardListing
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client
from kohort.runtime.driver import Condition
from kohort.security.acls import AclOperation
from kohort.server.access import (
    CLUSTER,
    CLUSTER_NAME,
    DELETE,
    DESCRIBE,
    GROUP,
    READ,
    TOPIC,
    May,
    check,
    everyone_may,
    operations,
)
from kohort.server.apis.every_shard import ask_every_shard
from kohort.server.coordinators.coordinator_partitions import Driver
from kohort.server.network.connection import EncodedResponse
from kohort.server.node import Node
from kohort.server.requests.piecewise import PiecewiseAnswer
from kohort.server.requests.reply_tokens import (
    GatherToken,
    MappingToken,
    ReplyToken,
    ask_in_sequence,
)
from kohort.server.requests.steps import has_gone, slices_of_names
from kohort.server.scheduler import never
from kohort.terms import GroupId
from kohort.wire.codec import piecewise_encoder
from kohort.wire.messages import consumer_group_describe as consumer_wire
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kohort.wire.messages.sync_group import SyncGroupRequest

DELETED_AT_ONCE = 8  # each may have very many offsets
DESCRIBED_AT_ONCE = 500
_HAS_HIDDEN_TOPICS = (
    "The group has described topic(s) that the client is not authorized to describe."
)


def one_group(node: Node, call: Call[Any]) -> None:
    """JoinGroup, LeaveGroup: pass on to the group's shard."""
    driver = node.driver_for(call.client, READ, GroupId(call.request.group_id))
    node.cluster.submit(driver, call)


def sync(node: Node, call: Call[SyncGroupRequest]) -> None:
    check_sync(call)
    one_group(node, call)


def heartbeat(node: Node, call: Call[HeartbeatRequest]) -> None:
    """A shard that is loading takes every member for alive, as upstream does: whoever it loads gets
    a new session, and aiokafka never sends a heartbeat again after any other answer.
    """
    driver = node.driver_for(call.client, READ, GroupId(call.request.group_id))
    if driver.condition is Condition.LOADING:
        call.token.answer(HeartbeatResponse())
    else:
        node.cluster.submit(driver, call)


def consumer_heartbeat(node: Node, call: Call[ConsumerGroupHeartbeatRequest]) -> None:
    request = call.request
    if "consumer" not in node.cluster.config.group_coordinator_rebalance_protocols:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    driver = node.driver_for(call.client, READ, GroupId(request.group_id))
    may = node.cluster.may
    if may is not everyone_may:
        for name in request.subscribed_topic_names or ():
            check(may, call.client, DESCRIBE, TOPIC, name, with_text=False)
    node.cluster.submit(driver, call)


def client_side(node: Node, call: Call[Any]) -> None:
    """ConsumerGroupPrepareAssignment, ConsumerGroupInstallAssignment."""
    if "consumer" not in node.cluster.config.group_coordinator_rebalance_protocols:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    one_group(node, call)


def list_groups(node: Node, call: Call[ListGroupsRequest]) -> None:
    """The groups of this node that the client may describe."""
    may, client = node.cluster.may, call.client
    shows_all = may(client, DESCRIBE, CLUSTER, CLUSTER_NAME)

    def shown(parts: list[ListGroupsResponse]) -> ListGroupsResponse:
        return ListGroupsResponse(
            groups=[
                group
                for part in parts
                for group in part.groups
                if may(client, DESCRIBE, GROUP, group.group_id)
            ]
        )

    if shows_all:
        _list_all(node, call)
    else:
        ask_every_shard(node, call, node.drivers(), call.request, shown)


def _list_all(node: Node, call: Call[ListGroupsRequest]) -> None:
    """The groups of a shard are encoded once, for as long as none of them changes."""
    version = call.version
    encoder = piecewise_encoder(ListGroupsResponse, version, "groups")

    def encoded(part: ListGroupsResponse) -> ListGroupsResponse:
        groups = part.groups
        if not isinstance(groups, ShardListing):  # an error
            part.groups = groups = ShardListing(groups)
        if version not in groups.encoded:
            groups.encoded[version] = encoder.elements(part)
        return part

    def whole(parts: list[ListGroupsResponse]) -> EncodedResponse:
        listings: list[Any] = [part.groups for part in parts]
        before, behind = encoder.around(ListGroupsResponse(), sum(map(len, listings)))
        pieces = (listing.encoded[version] for listing in listings)
        return EncodedResponse((before, *pieces, behind))

    ask_every_shard(node, call, node.drivers(), call.request, whole, change=encoded)


def describe_groups(node: Node, call: Call[DescribeGroupsRequest]) -> None:
    request = call.request

    def narrowed(ids: list[str]) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(groups=ids)

    wanted = request.include_authorized_operations
    shown = partial(_shown, node, call.client, tells_operations=wanted)
    _split(node, call, DESCRIBE, request.groups, DESCRIBED_AT_ONCE, narrowed, "groups", shown)


def describe_consumer_groups(node: Node, call: Call[ConsumerGroupDescribeRequest]) -> None:
    request = call.request
    if "consumer" not in node.cluster.config.group_coordinator_rebalance_protocols:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)

    def narrowed(ids: list[str]) -> ConsumerGroupDescribeRequest:
        return ConsumerGroupDescribeRequest(group_ids=ids, include_authorized_operations=False)

    wanted = request.include_authorized_operations
    shown = partial(_shown, node, call.client, tells_operations=wanted)
    _split(node, call, DESCRIBE, request.group_ids, DESCRIBED_AT_ONCE, narrowed, "groups", shown)


def _shown(node: Node, client: Client, part: Any, *, tells_operations: bool) -> Any:
    """The groups of a shard as a client may see them: as bytes, or as messages where they are
    refused. With `tells_operations` it is told what it may do with each, whether the group exists
    or not.
    """
    may = node.cluster.may
    shown: list[Any] = []
    for group in part.groups:
        if tells_operations and (type(group) is Description or not group.error_code):
            allowed = operations(may, client, GROUP, group.group_id)
        if type(group) is not Description:
            if tells_operations and not group.error_code:
                group.authorized_operations = allowed
            shown.append(group)
        elif may is not everyone_may and _hides(may, client, group):
            refusal = consumer_wire.DescribedGroup(
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                error_message=_HAS_HIDDEN_TOPICS,
                group_id=group.group_id,
            )
            shown.append(refusal)
        else:
            shown.append(group.with_operations(allowed) if tells_operations else group.body)
    part.groups = shown
    return part


def _hides(may: May, client: Client, group: Description) -> bool:
    """Whether a member has a topic that the client may not describe."""
    return not all(may(client, DESCRIBE, TOPIC, name) for name in group.topics)


def delete_groups(node: Node, call: Call[DeleteGroupsRequest]) -> None:
    def narrowed(ids: list[str]) -> DeleteGroupsRequest:
        return DeleteGroupsRequest(groups_names=ids)

    _split(node, call, DELETE, call.request.groups_names, DELETED_AT_ONCE, narrowed, "results")


def _pass_on(
    node: Node,
    call: Call[Any],
    operation: AclOperation,
    group_id: str,
    request: Any,
    whole: Callable[[Any], Any] | None,
) -> bool:
    """Ask the shard of the only group. `whole` makes the answer of that of the shard, where it is
    not the same. False: it is refused here.
    """
    try:
        driver = node.driver_for(call.client, operation, GroupId(group_id))
    except ApiError:
        return False
    token = call.token if whole is None else MappingToken(call.token, whole)
    node.cluster.submit(driver, Call(token, request, call.version, call.client))
    return True


def _split(
    node: Node,
    call: Call[Any],
    operation: AclOperation,
    ids: list[str],
    at_once: int,
    narrowed: Callable[[list[str]], Any],
    array: str,
    shown: Callable[[Any], Any] | None = None,
) -> None:
    """Ask each group's shard, a slice of the groups at a time, so that others are served in
    between. `array` is the field of an answer with the groups; `shown` changes a shard's answer.

    A group of another node, or one that the client may not ask about, is refused by itself, before
    the others. One that is named again and again is answered once.
    """
    ids = list(dict.fromkeys(ids))
    cluster, client, version = node.cluster, call.client, call.version
    parts = slices_of_names(ids, at_once)
    answer = PiecewiseAnswer(node, call, array)

    def add(answers: list[Any]) -> Any:
        for part in answers:
            _extend(answer, getattr(part, array))
        return answer.whole() if len(parts) == 1 else None

    only = None if shown is None else lambda part: add([shown(part)])
    if len(ids) == 1 and _pass_on(node, call, operation, ids[0], narrowed(ids), only):
        return

    def whole(_parts: list[None]) -> Any:
        return answer.whole()

    def ask(token: ReplyToken, number: int) -> None:
        by_driver: dict[Driver, list[str]] = {}
        refused: list[tuple[str, ApiError]] = []
        for group_id in parts[number]:
            try:
                driver = node.driver_for(client, operation, GroupId(group_id))
            except ApiError as error:
                refused.append((group_id, error.without_frames()))
            else:
                by_driver.setdefault(driver, []).append(group_id)
        gather = GatherToken(token, len(by_driver) + len(refused), add)
        for index, (group_id, reason) in enumerate(refused):
            gather.part(index).answer(narrowed([group_id]).refused(reason))
        for index, (driver, own) in enumerate(by_driver.items(), len(refused)):
            part: ReplyToken = gather.part(index)
            if shown is not None:
                part = MappingToken(part, shown)
            cluster.submit(driver, Call(part, narrowed(own), version, client))

    if len(parts) == 1:
        ask(call.token, 0)
        return
    gone = has_gone(call) if operation is DESCRIBE else never
    ask_in_sequence(cluster.scheduler, call.token, len(parts), ask, whole, gone)


def _extend(answer: PiecewiseAnswer, elements: list[Any]) -> None:
    """Append what a shard has answered: messages, and elements of which the bytes are there."""
    encoded: list[bytes] = []
    for element in elements:
        if type(element) is bytes:
            encoded.append(element)
        else:
            if encoded:
                answer.add_encoded((b"".join(encoded),), len(encoded))
                encoded = []
            answer.add(element)
    if encoded:
        answer.add_encoded((b"".join(encoded),), len(encoded))
