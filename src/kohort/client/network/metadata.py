# SPDX-License-Identifier: Apache-2.0
"""What a cluster has said of topics: partitions, leaders and ids, remembered until it is wrong.

Whoever is refused because a topic or a leader is another one says so by `outdated`; the next
look-up asks the cluster again. An answer never takes a leader back to an older epoch (KIP-320).
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kohort.client.network.cluster import Cluster, Node, nodes_of
from kohort.client.network.denials import explained
from kohort.errors import ApiError, ErrorCode, api_error
from kohort.terms import NO_TOPIC_ID, PartitionIndex, TopicId, TopicPartition, uuid_text
from kohort.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

MAX_AGE_S = 300.0  # upstream's metadata.max.age.ms


class CachedPartition(NamedTuple):
    """One partition: `leader` is None while there is none, `leader_epoch` is -1 where old brokers
    tell none.
    """

    leader: Node | None
    leader_epoch: int


class CachedTopic(NamedTuple):
    """One topic. `id` is NO_TOPIC_ID where the broker tells none (Metadata below v10)."""

    name: str
    id: TopicId
    is_internal: bool
    partitions: dict[PartitionIndex, CachedPartition]

    def __repr__(self) -> str:
        return f"CachedTopic({self.name!r}, {uuid_text(self.id)}, {self.partitions!r})"


class Metadata:
    """The topics that somebody has asked for. Times are those of the running event loop.

    `on_topic_recreated` hears of a topic that was deleted and made anew: it has another id than
    before. `on_count` hears how many partitions a topic has, whenever somebody has asked.
    """

    def __init__(self, cluster: Cluster, *, max_age_s: float = MAX_AGE_S) -> None:
        self.cluster = cluster
        self.on_topic_recreated: Callable[[str, TopicId, TopicId], None] = (
            lambda _name, _before, _now: None
        )
        self.on_count: Callable[[str, int], None] = lambda _name, _partitions: None
        self._max_age_s = max_age_s
        self._topics: dict[str, CachedTopic] = {}
        self._names: dict[TopicId, str] = {}
        self._asked_at: dict[str, float] = {}  # when what is known was told; missing when outdated
        self._nodes: dict[int, Node] = {}
        self._turn = asyncio.Lock()

    # What is known

    def cached(self, topic: str) -> CachedTopic | None:
        """What was last told about a topic, right or wrong; None if it was never found."""
        return self._topics.get(topic)

    def name_of(self, topic_id: TopicId) -> str | None:
        """The name of a topic that was looked up before."""
        return self._names.get(topic_id)

    def partition(self, place: TopicPartition) -> CachedPartition | None:
        """What was last told about a partition."""
        topic = self._topics.get(place.topic)
        return None if topic is None else topic.partitions.get(PartitionIndex(place.partition))

    def node(self, node_id: int) -> Node | None:
        """A broker by its id, for answers that name one (KIP-392)."""
        return self._nodes.get(node_id)

    def outdated(self, topic: str) -> None:
        """What is known about this topic was wrong. It stays `cached` until it is looked up."""
        self._asked_at.pop(topic, None)

    # Looking up

    async def topics(
        self, names: Iterable[str], deadline: float, *, create: bool = False
    ) -> dict[str, CachedTopic | ApiError]:
        """Each topic, or why it is not known: one request for those that are missing or outdated.

        With `create` a broker that allows it makes a topic that does not exist. Raises what
        `Cluster.metadata` raises.
        """
        wanted = sorted(set(names))  # the same request each time, whatever order a set has
        if all(map(self._is_fresh, wanted)):
            return {name: self._topics[name] for name in wanted}
        async with self._turn:  # whoever comes second finds what the first has learned
            missing = [name for name in wanted if not self._is_fresh(name)]
            refused: dict[str, ApiError] = {}
            if missing:
                answer = await self.cluster.metadata(missing, deadline, create=create)
                outcomes = self._learn(answer)
                for name in missing:
                    reason = outcomes.get(name, _unknown(name))
                    if reason is not None:
                        refused[name] = reason
        return {name: refused.get(name) or self._topics[name] for name in wanted}

    async def by_ids(
        self, ids: Iterable[TopicId], deadline: float
    ) -> dict[TopicId, CachedTopic | ApiError]:
        """Each topic by its id, or why it is not known. Needs Metadata v12.

        Raises what `Cluster.metadata` raises.
        """
        wanted = sorted(set(ids))
        missing = [topic_id for topic_id in wanted if topic_id not in self._names]
        refused: dict[TopicId, ApiError] = {}
        if missing:
            answer = await self.cluster.metadata((), deadline, ids=missing)
            self._learn(answer)
            outcomes = {TopicId(topic.topic_id): topic.error_code for topic in answer.topics}
            for topic_id in missing:
                if topic_id not in self._names:
                    code = outcomes.get(topic_id, 0) or ErrorCode.UNKNOWN_TOPIC_ID
                    refused[topic_id] = api_error(code, f"no topic has id {uuid_text(topic_id)}")
        return {
            topic_id: refused.get(topic_id) or self._topics[self._names[topic_id]]
            for topic_id in wanted
        }

    async def all_topics(self, deadline: float) -> dict[str, CachedTopic]:
        """Every topic of the cluster, asked anew. Raises what `Cluster.metadata` raises."""
        answer = await self.cluster.metadata(None, deadline)
        outcomes = self._learn(answer)
        return {name: self._topics[name] for name, reason in outcomes.items() if reason is None}

    # Learning

    def _is_fresh(self, name: str) -> bool:
        asked_at = self._asked_at.get(name)
        now = asyncio.get_running_loop().time()
        return asked_at is not None and now < asked_at + self._max_age_s

    def _learn(self, answer: MetadataResponse) -> dict[str, ApiError | None]:
        """By name what came of each topic: None for one that is known now."""
        self._nodes = nodes_of(answer)
        outcomes: dict[str, ApiError | None] = {}
        for topic in answer.topics:
            name = topic.name or ""
            if topic.error_code:
                error = api_error(topic.error_code, _refusal(name, topic.error_code))
                outcomes[name] = explained(error, self.cluster.principal, name)
                continue
            self._keep(name, topic)
            outcomes[name] = None
        return outcomes

    def _keep(self, name: str, topic: MetadataResponseTopic) -> None:
        before = self._topics.get(name)
        same = before is not None and before.id == topic.topic_id
        partitions: dict[PartitionIndex, CachedPartition] = {}
        whole = True
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index):
            index = PartitionIndex(partition.partition_index)
            known = CachedPartition(self._nodes.get(partition.leader_id), partition.leader_epoch)
            former = before.partitions.get(index) if before is not None and same else None
            if former is not None and former.leader_epoch > known.leader_epoch >= 0:
                known = former  # a broker that lags behind
                whole = False
            whole = whole and known.leader is not None
            partitions[index] = known
        if before is not None and not same:
            self._names.pop(before.id, None)
        topic_id = TopicId(topic.topic_id)
        self._topics[name] = CachedTopic(name, topic_id, topic.is_internal, partitions)
        if topic_id != NO_TOPIC_ID:
            self._names[topic_id] = name
        if whole:
            self._asked_at[name] = asyncio.get_running_loop().time()
        else:  # a partition without a leader is looked up again by the next who wants it
            self._asked_at.pop(name, None)
        if before is not None and not same and NO_TOPIC_ID not in (before.id, topic_id):
            self.on_topic_recreated(name, before.id, topic_id)
        self.on_count(name, len(partitions))


def _unknown(name: str) -> ApiError:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ApiError(code, _refusal(name, code))


def _refusal(name: str, code: int) -> str:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return f"topic {name} does not exist"
    return ""
