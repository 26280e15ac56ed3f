# SPDX-License-Identifier: Apache-2.0
"""OffsetDelete on its way to the group's shard."""

from typing import Any

from kohort.errors import ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import DELETE, READ
from kohort.server.apis.named_topics import put_back, take_refused, why_not
from kohort.server.node import Node
from kohort.server.requests.reply_tokens import MappingToken
from kohort.terms import GroupId
from kohort.wire.messages import offset_delete as delete_wire
from kohort.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse


def delete_offsets(node: Node, call: Call[OffsetDeleteRequest]) -> None:
    """Refuse topics that are missing or forbidden, unless the group itself is refused."""
    request = call.request
    driver = node.driver_for(call.client, DELETE, GroupId(request.group_id))

    def why(topic: Any) -> ErrorCode | None:
        return why_not(node, call.client, READ, topic, by_id=False)

    def refusal(
        topic: Any, indexes: list[int], code: ErrorCode
    ) -> delete_wire.OffsetDeleteResponseTopic:
        partition = delete_wire.OffsetDeleteResponsePartition
        return delete_wire.OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[partition(partition_index=index, error_code=code) for index in indexes],
        )

    request.topics, refused = take_refused(request.topics, node.cluster.topics, why, refusal)

    def whole(response: OffsetDeleteResponse) -> Any:
        return response if response.error_code else put_back(refused, response)

    if refused:
        call.token = MappingToken(call.token, whole)
    node.cluster.submit(driver, call)
