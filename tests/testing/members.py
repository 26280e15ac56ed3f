# SPDX-License-Identifier: Apache-2.0
"""Members of groups, request by request."""

from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def join(client, group, member="m", topic="t", instance_id=None):
    """Join a KIP-848 group; the member's epoch."""
    answer = client.ask(
        ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=0,
            instance_id=instance_id,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
    )
    assert answer.error_code == 0
    return answer.member_epoch


def beat(client, group, epoch, member="m", instance_id=None):
    """A heartbeat; its error code."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, instance_id=instance_id
    )
    return client.ask(request).error_code
