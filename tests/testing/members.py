"""Members of groups, request by request."""

from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def join(client, group, member="m", topic="t"):
    """Join a KIP-848 group; the member's epoch."""
    answer = client.ask(
        ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
    )
    assert answer.error_code == 0
    return answer.member_epoch


def beat(client, group, epoch, member="m"):
    """A heartbeat; its error code."""
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch)
    return client.ask(request).error_code
