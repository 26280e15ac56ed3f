"""Requests about groups: which shards they belong to, and how the shards' answers become one.

What this release does not have yet is refused here, before a coordinator is asked.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kohort.coordinator.effects import Call
from kohort.errors import ApiError, ErrorCode
from kohort.server.apis import unsupported
from kohort.server.tokens import Gather
from kohort.terms import GroupId
from kohort.wire.messages import consumer_group_describe as consumer_wire
from kohort.wire.messages import describe_groups as describe_wire
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from kohort.runtime.driver import PartitionDriver
    from kohort.server.node import Node


def one_group(node: "Node", call: Call[Any]) -> None:
    """JoinGroup, SyncGroup, Heartbeat, LeaveGroup: the group's shard answers."""
    if getattr(call.request, "group_instance_id", None) is not None:
        raise unsupported.static_membership(call.request.group_instance_id)
    _submit(node, call.request.group_id, call)


def consumer_heartbeat(node: "Node", call: Call[ConsumerGroupHeartbeatRequest]) -> None:
    request = call.request
    if "consumer" not in node.cluster.config.group_coordinator_rebalance_protocols:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if request.instance_id is not None:
        raise unsupported.static_membership(request.instance_id)
    if request.subscribed_topic_regex:
        raise unsupported.regular_expression(request.subscribed_topic_regex)
    _submit(node, request.group_id, call)


def _submit(node: "Node", group_id: str, call: Call[Any]) -> None:
    node.cluster.submit(node.driver_of(GroupId(group_id)), call)


def list_groups(node: "Node", call: Call[ListGroupsRequest]) -> None:
    """Every shard of this node; one that is still loading makes the whole answer wait.

    The groups of a shard that cannot be loaded are left out, as upstream does: who lists the groups
    of a cluster shall see those that work. Any other error is the answer.
    """
    _every(node, node.drivers(), call, _merge_listings)


def _merge_listings(parts: list[ListGroupsResponse]) -> ListGroupsResponse:
    for part in parts:
        if part.error_code not in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR):
            return part
    return ListGroupsResponse(groups=[group for part in parts for group in part.groups])


def _every(
    node: "Node",
    drivers: list["PartitionDriver"],
    call: Call[Any],
    merge: Callable[[list[Any]], Any],
) -> None:
    if not drivers:
        call.token.answer(merge([]))
        return
    gather = Gather(call.token, len(drivers), merge)
    for index, driver in enumerate(drivers):
        part = Call(gather.part(index), call.request, call.version, call.client)
        node.cluster.submit(driver, part)


def describe_groups(node: "Node", call: Call[DescribeGroupsRequest]) -> None:
    request = call.request

    def narrowed(ids: list[str]) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(
            groups=ids, include_authorized_operations=request.include_authorized_operations
        )

    def merge(parts: list[Any]) -> Any:
        groups = [group for part in parts for group in part.groups]
        return describe_wire.DescribeGroupsResponse(groups=groups)

    _split(node, call, request.groups, narrowed, merge)


def describe_consumer_groups(node: "Node", call: Call[ConsumerGroupDescribeRequest]) -> None:
    request = call.request
    if "consumer" not in node.cluster.config.group_coordinator_rebalance_protocols:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)

    def narrowed(ids: list[str]) -> ConsumerGroupDescribeRequest:
        return ConsumerGroupDescribeRequest(
            group_ids=ids, include_authorized_operations=request.include_authorized_operations
        )

    def merge(parts: list[Any]) -> Any:
        groups = [group for part in parts for group in part.groups]
        return consumer_wire.ConsumerGroupDescribeResponse(groups=groups)

    _split(node, call, request.group_ids, narrowed, merge)


def delete_groups(node: "Node", call: Call[DeleteGroupsRequest]) -> None:
    """A group named twice is deleted, and answered, once."""

    def narrowed(ids: list[str]) -> DeleteGroupsRequest:
        return DeleteGroupsRequest(groups_names=ids)

    def merge(parts: list[Any]) -> Any:
        return DeleteGroupsResponse(results=[one for part in parts for one in part.results])

    _split(node, call, list(dict.fromkeys(call.request.groups_names)), narrowed, merge)


def _split(
    node: "Node",
    call: Call[Any],
    ids: list[str],
    narrowed: Callable[[list[str]], Any],
    merge: Callable[[list[Any]], Any],
) -> None:
    """One call per shard, with its groups; groups of other brokers are refused one by one."""
    by_driver: dict[PartitionDriver | None, list[str]] = {}
    for group_id in ids:
        driver = node.driver_or_none(GroupId(group_id))
        by_driver.setdefault(driver, []).append(group_id)
    if not by_driver:
        call.token.answer(merge([]))
        return
    gather = Gather(call.token, len(by_driver), merge)
    for index, (driver, own) in enumerate(by_driver.items()):
        part = Call(gather.part(index), narrowed(own), call.version, call.client)
        if driver is None:
            part.token.answer(part.request.refused(not_coordinator(own[0])))
        else:
            node.cluster.submit(driver, part)


def not_coordinator(group_id: str) -> ApiError:
    return ApiError(
        ErrorCode.NOT_COORDINATOR, f"this broker does not coordinate the group {group_id!r}"
    )
