# SPDX-License-Identifier: Apache-2.0
"""What ConsumerGroupDescribe tells of assignors."""

from tests.coordinator.assigning import Assigner, offer, part, settle
from tests.coordinator.consumers import settled
from tests.coordinator.desk import Desk

from kohort.coordinator.consumer import description
from kohort.coordinator.consumer.client_side.selection import Choice
from kohort.wire.messages.consumer_group_describe import (
    Attachment,
    ClientAssignor,
    ClientSide,
    ConsumerGroupDescribeRequest,
)


def described(desk):
    request = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    [group] = desk.told(request, 1).groups
    return group


def test_members_with_their_assignors_and_both_assignments_with_what_is_attached():
    """K848-014, K848-015, K848-019, K848-078."""
    desk = Desk()
    one = Assigner(desk, "a", offer("x", -1, 2, reason=7, version=1, metadata=b"m")).join()
    one.compute(part("a", {"orders": [0]}, b"first", 2)).beat()
    one.beat(client_assignors=[offer("x", -1, 2, reason=8, version=1, metadata=b"m")])
    one.compute(part("a", {"orders": [0, 1]}, b"next", 2))
    [member] = described(desk).members
    assert member.client_assignors == [
        ClientAssignor(
            name="x",
            minimum_version=-1,
            maximum_version=2,
            reason=8,
            metadata_version=1,
            metadata_bytes=b"m",
        )
    ]
    assert member.assignment.attachment == Attachment(
        metadata_version=2, metadata_bytes=b"first", assignor_name="x"
    )
    assert member.target_assignment.attachment == Attachment(
        metadata_version=2, metadata_bytes=b"next", assignor_name="x"
    )
    assert [one.partitions for one in member.target_assignment.topic_partitions] == [[0, 1]]


def test_who_computes_why_and_with_what_outcome():
    """K848-073."""
    desk = Desk()
    one = Assigner(desk, "a", offer(reason=3)).join()
    assert described(desk).client_side == ClientSide(selected="x", computing_member="a")
    one.prepare()
    one.install(2, error=9)
    group = described(desk)
    assert (group.assignor_name, group.group_state) == ("x", "Reconciling")
    assert group.client_side == ClientSide(selected="x", last_reason=3, last_error=9)
    settle(one)
    assert described(desk).members[0].assignment.attachment.error == 9


def test_a_group_without_assignors_is_described_as_ever():
    desk = Desk()
    settled(desk, "a")
    group = described(desk)
    assert group.client_side is None
    assert group.members[0].client_assignors == []
    assert group.members[0].assignment.attachment is None


def test_why_the_broker_computes():
    """K848-047, K848-073."""
    assert description.of_client_side(Choice("uniform"), None) is None
    told = description.of_client_side(Choice("uniform", why="they differ"), None)
    assert told == ClientSide(selected="uniform", why="they differ")
