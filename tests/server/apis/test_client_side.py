# SPDX-License-Identifier: Apache-2.0
"""Assignments that members compute, through the door of a broker."""

from tests.coordinator.assigning import offer, part, share
from tests.coordinator.consumers import request
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.security.acls import ResourceType
from kohort.server.metrics.meters import Traffic
from kohort.server.metrics.metrics import METRICS, MetricsSnapshot
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)

PREPARE, INSTALL = 20070, 20071


def prepare(epoch=1):
    return ConsumerGroupPrepareAssignmentRequest(group_id="g", member_id="a", member_epoch=epoch)


def install(group_epoch, members, epoch=1, error=0):
    return ConsumerGroupInstallAssignmentRequest(
        group_id="g",
        member_id="a",
        member_epoch=epoch,
        group_epoch=group_epoch,
        error=error,
        members=members,
    )


def joined(desk, **fields):
    fields = {"client_assignors": [offer(metadata=b"\0\xffm")], **fields}
    return desk.ask(request("a", 0, **fields), 1)


def offered(desk):
    answer = desk.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    return {one.api_key for one in answer.api_keys}


def test_from_the_notice_to_the_assignment():
    """K848-060, K848-075, K848-076, K848-077, K848-172: bytes come out as they went in."""
    desk = Desk()
    desk.create("orders", partitions=3)
    assert {PREPARE, INSTALL} <= offered(desk)
    answer = joined(desk)
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.COMPUTE_ASSIGNMENT, 1)
    prepared = desk.ask(prepare(), 0)
    assert (prepared.error_code, prepared.assignor_name) == (0, "x")
    assert prepared.members[0].assignor.metadata_bytes == b"\0\xffm"
    assert desk.ask(install(prepared.group_epoch, share(prepared, b"\xfeplan")), 0).error_code == 0
    answer = desk.ask(request("a", 1), 1)
    assert (answer.error_code, answer.member_epoch) == (0, 2)
    [topic] = answer.assignment.topic_partitions
    assert topic.partitions == [0, 1, 2]
    assert answer.assignment.attachment.metadata_bytes == b"\xfeplan"
    described = desk.ask(
        ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False), 1
    )
    assert described.groups[0].assignor_name == "x"
    assert described.groups[0].client_side.selected == "x"


def test_an_old_version_of_the_heartbeat_has_no_assignors():
    """K848-076."""
    desk = Desk()
    answer = desk.ask(request("a", 0, client_assignors=[offer()]), 0)
    assert answer.error_code == 0


def test_switched_off_the_apis_are_not_offered_and_members_are_served_as_by_kafka():
    """K848-076."""
    desk = Desk(group_consumer_client_assignors_enable="false")
    desk.create("orders", partitions=3)
    assert not {PREPARE, INSTALL} & offered(desk)
    answer = joined(desk)
    assert (answer.error_code, answer.member_epoch) == (0, 2)
    assert answer.assignment.topic_partitions[0].partitions == [0, 1, 2]
    assert answer.assignment.attachment is None
    asked = desk.send(prepare(), 0)
    desk.settle()
    assert asked.answer is None  # as for any API that is not offered, the connection is closed


def test_without_the_consumer_protocol_they_are_refused():
    """K848-158, K848-159."""
    desk = Desk(group_coordinator_rebalance_protocols="classic")
    assert desk.ask(prepare(), 0).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert desk.ask(install(1, []), 0).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_another_node_is_not_the_coordinator():
    """K848-158, K848-159."""
    desk = Desk(nodes=2)
    codes = [desk.ask(prepare(), 0, node=node).error_code for node in (0, 1)]
    assert sorted(codes) == [ErrorCode.NOT_COORDINATOR, ErrorCode.GROUP_ID_NOT_FOUND]
    codes = [desk.ask(install(1, []), 0, node=node).error_code for node in (0, 1)]
    assert sorted(codes) == [ErrorCode.NOT_COORDINATOR, ErrorCode.GROUP_ID_NOT_FOUND]


def test_who_may_not_read_the_group_is_refused():
    """K848-158, K848-159."""
    desk = Desk(may=lambda _client, _operation, kind, _name: kind is not ResourceType.GROUP)
    assert desk.ask(prepare(), 0).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert desk.ask(install(1, []), 0).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_what_happens_is_counted():
    """K848-074."""
    desk = Desk()
    desk.create("orders", partitions=1)
    joined(desk, rebalance_timeout_ms=10_000)
    prepared = desk.ask(prepare(), 0)
    desk.ask(install(2, [part("z", {})]), 0)
    desk.ask(install(prepared.group_epoch, [], error=1), 0)
    desk.ask(request("a", 1), 1)
    desk.ask(request("a", 2, client_assignors=[offer(reason=1)]), 1)
    desk.ask(prepare(2), 0)
    desk.ask(install(3, [], epoch=2), 0)
    desk.ask(request("a", 2), 1)
    desk.ask(request("a", 3, client_assignors=[offer(reason=2)]), 1)
    desk.wait(10_000)
    [metric] = [one for one in METRICS if one.name == "kohort_client_side_assignments"]
    counted = {
        outcome: value
        for (outcome,), value in metric.read(MetricsSnapshot(desk.cluster, Traffic()))
    }
    assert counted == {"asked": 3, "installed": 1, "failed": 1, "invalid": 1, "late": 1}
