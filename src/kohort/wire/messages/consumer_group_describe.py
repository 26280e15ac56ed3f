# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupDescribe (69): KIP-848 groups, their members, and what each has and should have.

v1 distinguishes classic from consumer members (KIP-1099). Tags from 20000 on are ours: what
there is to see of client-side assignors. Other peers skip them.
"""

from kohort.errors import ApiError
from kohort.wire.schema import (
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    String,
    Uuid,
    at,
    request,
    response,
    struct,
)


@request(69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    group_ids: list[String]
    include_authorized_operations: Bool

    def refused(self, error: ApiError) -> "ConsumerGroupDescribeResponse":
        groups = [
            DescribedGroup(
                error_code=error.code, error_message=error.message or None, group_id=group_id
            )
            for group_id in self.group_ids
        ]
        return ConsumerGroupDescribeResponse(groups=groups)


@struct
class TopicPartitions:
    topic_id: Uuid = bytes(16)
    topic_name: String = ""
    partitions: list[Int32] = []


@struct
class Attachment:
    """What a client-side assignor adds to the partitions of a member."""

    error: Int8 = 0
    metadata_version: Int16 = 0
    metadata_bytes: Bytes = b""
    assignor_name: String = at(tag=0, default="")


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = []
    attachment: Attachment | None = at(tag=20000, default=None)


@struct
class ClientAssignor:
    name: String = ""
    minimum_version: Int16 = 0
    maximum_version: Int16 = 0
    reason: Int8 = 0
    metadata_version: Int16 = 0
    metadata_bytes: Bytes = b""


@struct
class Member:
    member_id: String = ""
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = []
    subscribed_topic_regex: String | None = None
    assignment: Assignment
    target_assignment: Assignment
    member_type: Int8 = at("1+", default=-1)
    client_assignors: list[ClientAssignor] = at(tag=20001)


@struct
class ClientSide:
    """Who computes for a group whose members offer assignors. `selected` names the assignor that
    the next target is made by, and `why` says why that is one of the broker. The last target was
    made with `last_reason` and `last_error`.
    """

    selected: String = ""
    computing_member: String | None = None
    last_reason: Int8 = 0
    last_error: Int8 = 0
    why: String = ""


@struct
class DescribedGroup:
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[Member] = []
    authorized_operations: Int32 = -2147483648
    client_side: ClientSide | None = at(tag=20000, default=None)


@response(69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = []
