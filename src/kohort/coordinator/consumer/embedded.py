# SPDX-License-Identifier: Apache-2.0
"""The payloads of classic consumers, for a coordinator that reads and writes them itself.

Classic members name topics where the coordinator has ids. Topics that do not exist are left out in
both directions, and so are partitions that a topic does not have.
"""

from collections.abc import Iterable, Mapping

from kohort.assignors import Assignment
from kohort.errors import WireError
from kohort.machines.topics import Topics
from kohort.records.consumer_protocol import (
    NEWEST,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_subscription,
    encode,
)
from kohort.terms import TopicId


def subscription(protocols: Mapping[str, bytes]) -> ConsumerProtocolSubscription:
    """What a member asks for: what it says to the assignor that it would like best. Raises
    WireError where these bytes are no subscription.
    """
    for metadata in protocols.values():
        return decode_subscription(metadata)
    raise WireError("a member offers no assignor")


def partitions(named: Iterable[TopicPartition], topics: Topics) -> Assignment:
    """Partitions by topic id, ascending, each once."""
    found: dict[TopicId, set[int]] = {}
    for part in named:
        topic = topics.by_name.get(part.topic)
        if topic is not None:
            indices = (index for index in part.partitions if 0 <= index < topic.partitions)
            found.setdefault(topic.id, set()).update(indices)
    return {topic_id: tuple(sorted(indices)) for topic_id, indices in found.items() if indices}


def assignment(
    given: Mapping[TopicId, Iterable[int]],
    subscribed: bytes,
    topics: Topics,
    user_data: bytes | None = None,
) -> bytes:
    """What a member is given, in the version of its subscription, the bytes of `subscribed`."""
    by_id = topics.by_id
    payload = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=by_id[topic_id].name, partitions=list(indices))
            for topic_id, indices in given.items()
            if topic_id in by_id
        ],
        user_data=user_data,
    )
    version = int.from_bytes(subscribed[:2], signed=True)
    return encode(payload, min(max(version, 0), NEWEST))
