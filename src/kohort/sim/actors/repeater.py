# SPDX-License-Identifier: Apache-2.0
"""Names one thing very often in a request. A broker does the work once, and answers once."""

from typing import Any, ClassVar

from kohort.sim.actors.actor import Actor
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

TIMES = 600
TOPIC, NAME = "home", "repeated"
TOPIC_RESOURCE = 2


def requests() -> list[tuple[Any, int]]:
    """Each with its version. None of them has so many elements in its answer for one name."""
    config = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configuration_keys=None
    )
    topics = [MetadataRequestTopic(name=TOPIC)] * TIMES
    producers = TopicRequest(name=TOPIC, partition_indexes=[0] * TIMES)
    groups = ConsumerGroupDescribeRequest(
        group_ids=[NAME] * TIMES, include_authorized_operations=False
    )
    return [
        (MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12),
        (DescribeConfigsRequest(resources=[config] * TIMES), 4),
        (FindCoordinatorRequest(key_type=0, coordinator_keys=[NAME] * TIMES), 4),
        (DescribeGroupsRequest(groups=[NAME] * TIMES), 5),
        (groups, 1),
        (OffsetFetchRequest(groups=[_offsets(TIMES)]), 8),
        (OffsetFetchRequest(groups=[_offsets(1)] * TIMES), 8),
        (DescribeProducersRequest(topics=[producers]), 0),
        (DescribeTransactionsRequest(transactional_ids=[NAME] * TIMES), 0),
    ]


def _offsets(times: int) -> OffsetFetchRequestGroup:
    topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0] * times)
    return OffsetFetchRequestGroup(group_id=NAME, topics=[topic])


class Repeater(Actor):
    """Nothing of what it names is changed by it."""

    kind: ClassVar[str] = "repeater"

    async def live(self) -> None:
        asked = requests()
        while not self.over:
            await self.pause(self.random.randrange(500, 8000))
            if self.calm:
                continue
            request, version = self.random.choice(asked)
            answer = await self.ask(request, version)
            count = 0 if answer is None else _elements(answer)
            if count >= TIMES:
                self.alarm(f"has named one thing {TIMES} times in {type(request).__name__}, and"
                           f" is answered with {count} elements")  # fmt: skip
        self.caller.hang_up()


def _elements(message: Any) -> int:
    """The number of elements in all arrays of a message."""
    count = 0
    for name in type(message).__struct_fields__:
        value = getattr(message, name)
        for item in value if isinstance(value, list) else ():
            count += 1 + (_elements(item) if hasattr(item, "__struct_fields__") else 0)
    return count
