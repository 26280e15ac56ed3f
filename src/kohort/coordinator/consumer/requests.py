# SPDX-License-Identifier: Apache-2.0
"""What a ConsumerGroupHeartbeat must look like before any group is asked (KIP-848).

The order of the checks is the protocol's: a request with two faults is refused for the first.
"""

from collections.abc import Collection

from kohort.coordinator.consumer.client_side import offers
from kohort.coordinator.consumer.member import AWAY, JOINING, LEAVING, Member
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Client
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

CLIENT_CHOOSES_ID = 1  # the first version in which it does (KIP-1082)


def changes_nothing(request: ConsumerGroupHeartbeatRequest, member: Member, client: Client) -> bool:
    """Whether a member says only that it goes on as before, whatever instance id it names."""
    return (
        request.subscribed_topic_names is None
        and request.rebalance_timeout_ms == -1
        and request.server_assignor is None
        and request.subscribed_topic_regex is None
        and request.rack_id is None
        and request.client_assignors is None
        and client.host == member.client_host
        and client.id == member.client_id
        and not request.member_id.isspace()  # refused, though a v0 member may have this id
    )


def check(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Raise ApiError for the first thing that is wrong with a request."""
    _check_names(request, version)
    epoch = request.member_epoch
    if epoch == JOINING:
        _check_join(request)
    elif epoch == AWAY:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < AWAY:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )
    offers.check(request.client_assignors)


def _check_names(request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    epoch = request.member_epoch
    has_id = version >= CLIENT_CHOOSES_ID or epoch > JOINING or epoch == LEAVING
    if has_id and not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        raise _invalid("InstanceId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId can't be empty.")


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
