# SPDX-License-Identifier: Apache-2.0
"""Groups: describe under either protocol (KIP-848), delete (KIP-229)."""

from collections.abc import Iterable, Sequence
from typing import Any

from kohort.client.admin.answers import Arrived
from kohort.client.admin.group_views import (
    Assignment,
    Attachment,
    ClientAssignor,
    ClientSide,
    GroupDescription,
    MemberDescription,
)
from kohort.client.admin.listings import state_of
from kohort.client.admin.request_rounds import Locate, failure, settle
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node, answered
from kohort.client.network.connection import Need
from kohort.client.network.denials import explained
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError, WireError, api_error
from kohort.records import consumer_protocol
from kohort.security.acls import operations_in
from kohort.terms import GroupState, GroupType
from kohort.wire.messages import consumer_group_describe as described_848
from kohort.wire.messages import describe_groups as described_classic
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kohort.wire.messages.describe_groups import DescribeGroupsRequest

OPERATIONS = Need(3, "authorized operations", "KIP-430, Apache Kafka 2.3")

_MEMBER_TYPES = {0: GroupType.CLASSIC, 1: GroupType.CONSUMER}
# ConsumerGroupDescribe's ways to say that a group may be found by DescribeGroups.
_ELSEWHERE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


def coordinator_of(cluster: Cluster, group_id: str) -> Locate[Any]:
    """How `settle` finds the broker for parts of one group, be they partitions or members."""

    async def locate(keys: Sequence[Any], deadline: float) -> dict[Any, Node | ApiError]:
        found = (await cluster.coordinators([group_id], deadline))[group_id]
        if isinstance(found, ApiError):
            found = explained(found, cluster.principal, group_id)
        return dict.fromkeys(keys, found)

    return locate


async def describe_groups(
    cluster: Cluster,
    group_ids: Iterable[str],
    *,
    include_authorized_operations: bool = False,
    deadline: float,
    arrived: Arrived[str, GroupDescription] | None = None,
) -> Outcomes[str, GroupDescription]:
    """See `AdminClient.describe_groups`."""

    async def ask(
        node: Node, ids: Sequence[str], deadline: float
    ) -> dict[str, GroupDescription | ApiError]:
        """ConsumerGroupDescribe for all, then DescribeGroups for those it does not know."""
        connection = await cluster.connection(node.address, deadline)
        outcomes: dict[str, GroupDescription | ApiError] = {}
        rest = list(ids)
        if connection.offers(ConsumerGroupDescribeRequest):
            answer = await connection.ask(
                ConsumerGroupDescribeRequest(
                    group_ids=rest, include_authorized_operations=include_authorized_operations
                ),
                deadline=deadline,
            )
            for group in answer.groups:
                described = _consumer_group(group, node)
                # Apache Kafka 3.9 answers once for each partition of its log that has one of the
                # groups, and each of these answers denies those of the others.
                if not isinstance(described, ApiError) or group.group_id not in outcomes:
                    outcomes[group.group_id] = described
            rest = [id_ for id_ in ids if _may_be_classic(id_, outcomes.get(id_))]
        if rest:
            classic_request = DescribeGroupsRequest(
                groups=rest, include_authorized_operations=include_authorized_operations
            )
            need = OPERATIONS if include_authorized_operations else None
            try:
                answer = await connection.ask(classic_request, deadline=deadline, need=need)
            except (ApiError, UnsupportedVersionError, WireError) as error:
                if len(rest) == len(ids):
                    raise
                return outcomes | dict.fromkeys(rest, failure(error))  # the first answer holds
            classics = {group.group_id: _classic_group(group, node) for group in answer.groups}
            outcomes |= {
                id_: _better(one, outcomes.get(id_))
                for id_, one in answered("group", rest, classics).items()
            }
        return outcomes

    return Outcomes(
        await settle(
            cluster, group_ids, cluster.coordinators, ask, deadline=deadline, arrived=arrived
        )
    )


def _may_be_classic(group_id: str, outcome: GroupDescription | ApiError | None) -> bool:
    """The empty id is none for the new protocol, and may have offsets of an old simple consumer."""
    if not isinstance(outcome, ApiError):
        return False
    nameless = group_id == "" and outcome.code is ErrorCode.INVALID_GROUP_ID
    return nameless or outcome.code in _ELSEWHERE


def _better(
    found: GroupDescription | ApiError, first: GroupDescription | ApiError | None
) -> GroupDescription | ApiError:
    """The answer of DescribeGroups; where it knows no such group either, what was said before: that
    a share group is no consumer group says more than that it is no classic one.
    """
    if isinstance(found, ApiError) and isinstance(first, ApiError):
        nowhere = ErrorCode.GROUP_ID_NOT_FOUND
        if found.code is nowhere and first.code is nowhere and first.message:
            return first
    return found


def _consumer_group(group: described_848.DescribedGroup, node: Node) -> GroupDescription | ApiError:
    if group.error_code:
        return api_error(group.error_code, group.error_message)
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.CONSUMER,
        state=state_of(group.group_state),
        protocol_type="consumer",
        assignor=group.assignor_name,
        coordinator_id=node.id,
        coordinator_host=node.host,
        coordinator_port=node.port,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=tuple(_consumer_member(member) for member in group.members),
        client_side=_client_side(group.client_side),
        authorized_operations=operations_in(group.authorized_operations),
    )


def _consumer_member(member: described_848.Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        type=_MEMBER_TYPES.get(member.member_type, GroupType.CONSUMER),
        member_epoch=member.member_epoch,
        subscribed_topics=tuple(member.subscribed_topic_names),
        subscribed_regex=member.subscribed_topic_regex or None,
        assignment=_assignment(member.assignment),
        target_assignment=_assignment(member.target_assignment),
        client_assignors=tuple(
            ClientAssignor(
                assignor.name,
                assignor.minimum_version,
                assignor.maximum_version,
                assignor.reason,
                assignor.metadata_version,
                assignor.metadata_bytes,
            )
            for assignor in member.client_assignors
        ),
        attachment=_attachment(member.assignment.attachment),
        target_attachment=_attachment(member.target_assignment.attachment),
    )


def _client_side(described: described_848.ClientSide | None) -> ClientSide | None:
    if described is None:
        return None
    return ClientSide(
        described.selected,
        described.computing_member,
        described.last_reason,
        described.last_error,
        described.why,
    )


def _attachment(described: described_848.Attachment | None) -> Attachment | None:
    if described is None:
        return None
    return Attachment(
        described.error,
        described.metadata_version,
        described.metadata_bytes,
        described.assignor_name,
    )


def _assignment(assignment: described_848.Assignment) -> Assignment:
    return {
        topic.topic_name: tuple(sorted(topic.partitions))
        for topic in sorted(assignment.topic_partitions, key=lambda topic: topic.topic_name)
    }


def _classic_group(
    group: described_classic.DescribedGroup, node: Node
) -> GroupDescription | ApiError:
    if group.error_code:
        return api_error(group.error_code, group.error_message)
    if group.group_state == GroupState.DEAD:  # how brokers below v6 say that there is no such group
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} not found.")
    consumers = group.protocol_type == "consumer"
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.CLASSIC,
        state=state_of(group.group_state),
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        coordinator_id=node.id,
        coordinator_host=node.host,
        coordinator_port=node.port,
        group_epoch=None,
        assignment_epoch=None,
        members=tuple(_classic_member(member, consumers) for member in group.members),
        authorized_operations=operations_in(group.authorized_operations),
    )


def _classic_member(
    member: described_classic.DescribedGroupMember,
    consumers: bool,  # noqa: FBT001  (positional in one place)
) -> MemberDescription:
    topics: tuple[str, ...] | None = None
    assignment: Assignment | None = None
    if consumers:
        topics = _subscription(member.member_metadata)
        assignment = _classic_assignment(member.member_assignment)
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        instance_id=member.group_instance_id,
        type=GroupType.CLASSIC,
        subscribed_topics=topics,
        assignment=assignment,
        subscription_bytes=member.member_metadata,
        assignment_bytes=member.member_assignment,
    )


def _subscription(data: bytes) -> tuple[str, ...] | None:
    """The topics that a classic consumer asks for; None if damaged, or while rebalancing."""
    try:
        return tuple(consumer_protocol.decode_subscription(data).topics)
    except WireError:
        return None


def _classic_assignment(data: bytes) -> Assignment | None:
    """What a classic consumer was assigned: nothing for no bytes, None for damaged ones."""
    if not data:
        return {}
    try:
        assigned = consumer_protocol.decode_assignment(data).assigned_partitions
    except WireError:
        return None
    return {
        topic.topic: tuple(sorted(topic.partitions))
        for topic in sorted(assigned, key=lambda topic: topic.topic)
    }


async def delete_groups(
    cluster: Cluster,
    group_ids: Iterable[str],
    *,
    deadline: float,
    arrived: Arrived[str, None] | None = None,
) -> Outcomes[str, None]:
    """See `AdminClient.delete_groups`."""
    ids = list(group_ids)
    unsure: set[str] = set()

    async def ask(node: Node, ids: Sequence[str], deadline: float) -> dict[str, ApiError | None]:
        answer: DeleteGroupsResponse = await cluster.ask(
            node, DeleteGroupsRequest(groups_names=list(ids)), deadline=deadline
        )
        found: dict[str, ApiError | None] = {}
        for result in answer.results:
            group_id, code = result.group_id, result.error_code
            found[group_id] = _refusal(group_id, code) if code else None
            if code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                unsure.add(group_id)
            elif code == ErrorCode.GROUP_ID_NOT_FOUND and group_id in unsure:
                found[group_id] = _deleted_before(group_id)
        return found

    return Outcomes(
        await settle(
            cluster,
            ids,
            cluster.coordinators,
            ask,
            deadline=deadline,
            repeatable=False,
            arrived=arrived,
        )
    )


def _deleted_before(group_id: str) -> ApiError:
    """A coordinator answers COORDINATOR_NOT_AVAILABLE, too, when it has written the deletion and
    too few replicas have followed.
    """
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Group {group_id} not found; it may have been deleted by the attempt before, which ended "
        "with COORDINATOR_NOT_AVAILABLE",
    )


def _refusal(group_id: str, code: int) -> ApiError:
    """DeleteGroups answers with bare codes; the two that a user meets get a text."""
    if code == ErrorCode.NON_EMPTY_GROUP:
        return ApiError(
            ErrorCode.NON_EMPTY_GROUP,
            f"group {group_id} has members, expected none: stop its consumers first",
        )
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return api_error(code)
