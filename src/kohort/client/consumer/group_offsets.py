# SPDX-License-Identifier: Apache-2.0
"""Committed offsets, as a member of the group asks for them and commits them.

The coordinator refuses whoever is not the member that it claims to be (KIP-848, KIP-345). One
commit is under way at a time, so that an older one never overtakes a newer one.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from kohort.client.admin.group_views import CommittedOffset
from kohort.client.consumer.coordinator import Coordinator
from kohort.client.network.cluster import Cluster, Node, unanswered
from kohort.client.network.connection import Need
from kohort.client.network.denials import explained
from kohort.errors import ApiError, ErrorCode, api_error
from kohort.terms import NO_TOPIC_ID, TopicId, TopicPartition, by_topic
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

BY_NAME = 9  # the last version of both that names topics
BATCHED = 8  # OffsetFetch takes groups from this version on
STABLE = 7  # and waits for transactions from this one on
OF_MEMBERS = Need(9, "a commit by a member of a KIP-848 group", "KIP-848, Apache Kafka 3.7")

Committed = Mapping[TopicPartition, CommittedOffset]
Ids = Mapping[TopicPartition, TopicId]


class OffsetsToCommit(NamedTuple):
    """`ids` are the topics that these are offsets of, and `refusal` says why others that were
    handed out cannot be committed any more.
    """

    offsets: Committed
    ids: Ids
    refusal: ApiError | None


class Identity:
    """Who commits. `epoch` is the member epoch or, in a classic group, the generation."""

    __slots__ = ("epoch", "instance_id", "is_modern", "member_id")

    def __init__(
        self,
        member_id: str = "",
        epoch: int = -1,
        instance_id: str | None = None,
        *,
        is_modern: bool = False,
    ) -> None:
        self.member_id = member_id
        self.epoch = epoch
        self.instance_id = instance_id
        self.is_modern = is_modern

    def outdated(self) -> "Identity":
        """One of an earlier epoch, which no coordinator takes for the member of now."""
        return Identity(self.member_id, max(self.epoch - 1, 0), is_modern=self.is_modern)


NOBODY = Identity()  # a consumer that chose its partitions by itself


_GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_LOOKS = 4  # for a topic that the coordinator does not know: it may be new
# What a coordinator answers to whoever is not the member that it claims to be, or is no more.
NOT_THE_MEMBER = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


class _Commit:
    """What is left of a commit that was asked for, and what was lost meanwhile."""

    def __init__(self, left: dict[TopicPartition, CommittedOffset]) -> None:
        self.left = left
        self.lost: set[TopicPartition] = set()


class GroupOffsets:
    """`identity` says who asks, at the moment of each request; None for nobody while the consumer
    is to be a member and is none. `on_refusal` hears when the coordinator does not take somebody
    for the member, and `on_unknown` which partitions it does not know.

    Topics are named by id where all ids are known and the coordinator understands them (version 10
    of both requests): offsets of a topic that was deleted are never those of one of its name.
    """

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        identity: Callable[[], Identity | None],
        *,
        on_refusal: Callable[[Identity, ApiError], None] = lambda _who, _error: None,
        on_unknown: Callable[[Collection[TopicPartition]], None] = lambda _partitions: None,
    ) -> None:
        self._cluster = cluster
        self._on_refusal = on_refusal
        self._on_unknown = on_unknown
        self._group_id = group_id
        self._identity = identity
        self._coordinator = Coordinator(cluster, group_id)
        self._turn = asyncio.Lock()
        self._commits: list[_Commit] = []  # one is under way, and others wait for their turn

    @property
    def has_identity(self) -> bool:
        """Whether anything can be asked at the moment."""
        return self._identity() is not None

    async def fetch(
        self, partitions: Collection[TopicPartition], deadline: float, ids: Ids | None = None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """The committed offset of each partition, None where there is none. Raises ApiError:
        UNKNOWN_TOPIC_ID at once, as somebody has to look up which topic it is by now.

        Waits while an open transaction may still change an offset (KIP-447).
        """
        if not partitions:
            return {}
        unknown: list[ApiError] = []

        async def attempt(node: Node) -> dict[TopicPartition, CommittedOffset | None]:
            try:
                return await self._fetch(node, partitions, deadline, ids or {})
            except ApiError as error:
                if error.code is not ErrorCode.UNKNOWN_TOPIC_ID:
                    raise
                unknown.append(error)
                return {}

        found = await self._coordinator.settle(attempt, deadline)
        if unknown:
            raise unknown[0]
        return found

    async def commit(
        self,
        offsets: Callable[[], Committed] | Committed,
        deadline: float,
        topic_id: Callable[[TopicPartition], TopicId] = lambda _: NO_TOPIC_ID,
    ) -> None:
        """Commit all of these, or raise the ApiError of the first that was refused for good.

        A function is asked for them when their turn has come, and so is `topic_id`. Those beside a
        refused one may be committed. After NETWORK_EXCEPTION and REQUEST_TIMED_OUT it is unknown
        whether they are. UNKNOWN_MEMBER_ID says that some were `lost` meanwhile.
        """
        mine = _Commit({} if callable(offsets) else dict(offsets))
        left = mine.left
        ids: dict[TopicPartition, TopicId] = {}
        missing: list[ApiError] = []

        async def attempt(node: Node) -> None:
            if not left:
                return
            outcomes = await self._commit(node, dict(left), deadline, ids)
            for partition, error in outcomes.items():
                if error is None:
                    left.pop(partition, None)
                    mine.lost.discard(partition)
            refused = [
                _at(partition, error)
                for partition, error in outcomes.items()
                if error and partition in left
            ]
            refused.sort(key=lambda error: error.code in _GONE)
            if refused and refused[0].code in _GONE:
                missing.append(refused[0])
                if len(missing) == _LOOKS:  # it is deleted, and not about to be made
                    return
            if refused:
                raise refused[0]
            missing.clear()

        self._commits.append(mine)
        try:
            async with self._turn:
                if callable(offsets):
                    mine.lost.clear()
                    left.update(offsets())
                ids.update((partition, topic_id(partition)) for partition in left)
                if left:
                    await self._coordinator.settle(attempt, deadline)
        finally:
            self._commits.remove(mine)
        if mine.lost:
            shown = ", ".join(map(str, sorted(mine.lost)))
            text = f"{shown}: lost before they were committed, and others may have them"
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, text)
        if missing:
            raise missing[0]

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """Others may have these: what is tried again must not go behind what they commit, under an
        epoch that the member has got since.
        """
        for commit in self._commits:
            gone = commit.left.keys() & set(partitions)
            commit.lost |= gone
            for partition in gone:
                del commit.left[partition]

    async def finished(self) -> None:
        """No commit is under way: what is given away now is not overtaken by one of ours."""
        async with self._turn:
            return

    # One attempt

    async def _fetch(
        self,
        node: Node,
        partitions: Collection[TopicPartition],
        deadline: float,
        ids: Ids,
    ) -> dict[TopicPartition, CommittedOffset | None]:
        connection = await self._cluster.connection(node.address, deadline)
        at_most = _at_most(partitions, ids)
        version = connection.version(OffsetFetchRequest, at_most)
        who = self._who()
        request = self._question(who, partitions, version, ids)
        names = {ids.get(partition, NO_TOPIC_ID): partition.topic for partition in partitions}
        answer: OffsetFetchResponse = await connection.ask(
            request, deadline=deadline, at_most=at_most
        )
        code = answer.error_code
        told: list[OffsetFetchResponseTopic | OffsetFetchResponseTopics] = [*answer.topics]
        if version >= BATCHED:
            group_told = answer.groups[0] if answer.groups else None
            if group_told is None:
                raise unanswered("group", self._group_id)
            code, told = group_told.error_code, [*group_told.topics]
        if code:
            raise self._refused(who, self._explained(code, self._group_id), partitions)
        found: dict[TopicPartition, CommittedOffset | None] = {}
        for topic in told:
            name = topic.name
            if isinstance(topic, OffsetFetchResponseTopics):
                name = name or names.get(TopicId(topic.topic_id), "")
            for partition in topic.partitions:
                place = TopicPartition(name, partition.partition_index)
                if partition.error_code:
                    error = _at(place, self._explained(partition.error_code, place))
                    raise self._refused(who, error, [place])
                found[place] = None
                if partition.committed_offset >= 0:
                    epoch = partition.committed_leader_epoch
                    found[place] = CommittedOffset(
                        partition.committed_offset,
                        epoch if epoch >= 0 else None,
                        partition.metadata or "",
                    )
        for place in partitions:
            if place not in found:
                raise unanswered("partition", place)
        return found

    def _question(
        self, who: Identity, partitions: Collection[TopicPartition], version: int, ids: Ids
    ) -> OffsetFetchRequest:
        topics = by_topic(sorted(partitions))
        if version < BATCHED:
            return OffsetFetchRequest(
                group_id=self._group_id,
                topics=[
                    OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                    for name, indexes in topics.items()
                ],
                require_stable=version >= STABLE,
            )
        id_of = {partition.topic: ids.get(partition, NO_TOPIC_ID) for partition in partitions}
        group = OffsetFetchRequestGroup(
            group_id=self._group_id,
            topics=[
                OffsetFetchRequestTopics(name=name, topic_id=id_of[name], partition_indexes=indexes)
                for name, indexes in topics.items()
            ],
        )
        if who.is_modern:
            group.member_id, group.member_epoch = who.member_id, who.epoch
        return OffsetFetchRequest(groups=[group], require_stable=True)

    async def _commit(
        self, node: Node, offsets: Committed, deadline: float, ids: Ids
    ) -> dict[TopicPartition, ApiError | None]:
        who = self._who()
        topics: dict[tuple[str, TopicId], list[OffsetCommitRequestPartition]] = {}
        for place, offset in offsets.items():
            topics.setdefault((place.topic, ids[place]), []).append(
                OffsetCommitRequestPartition(
                    partition_index=place.partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=-1
                    if offset.leader_epoch is None
                    else offset.leader_epoch,
                    committed_metadata=offset.metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=who.epoch,
            member_id=who.member_id,
            group_instance_id=who.instance_id,
            topics=[
                OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=committed)
                for (name, topic_id), committed in topics.items()
            ],
        )
        answer: OffsetCommitResponse = await self._cluster.ask(
            node,
            request,
            deadline=deadline,
            need=OF_MEMBERS if who.is_modern else None,
            at_most=_at_most(offsets, ids),
        )
        names = {topic_id: name for name, topic_id in topics}
        outcomes: dict[TopicPartition, ApiError | None] = {
            place: unanswered("partition", place) for place in offsets
        }
        for topic in answer.topics:
            name = topic.name or names.get(TopicId(topic.topic_id), "")
            for partition in topic.partitions:
                place = TopicPartition(name, partition.partition_index)
                code = partition.error_code
                of_group = code == ErrorCode.GROUP_AUTHORIZATION_FAILED
                what = self._group_id if of_group else place
                outcomes[place] = self._explained(code, what) if code else None
        for code in dict.fromkeys(error.code for error in outcomes.values() if error):
            of = [place for place, error in outcomes.items() if error and error.code is code]
            self._refused(who, ApiError(code, "a commit was refused"), of)
        return outcomes

    def _refused(self, who: Identity, error: ApiError, of: Collection[TopicPartition]) -> ApiError:
        """An error, once whoever has to know of it has heard it."""
        if error.code in NOT_THE_MEMBER:
            self._on_refusal(who, error)
        elif error.code in _GONE:
            self._on_unknown(of)
        return error

    def _explained(self, code: int, name: object) -> ApiError:
        return explained(api_error(code), self._cluster.principal, name)

    def _who(self) -> Identity:
        who = self._identity()
        if who is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"the consumer is no member of group {self._group_id} at the moment: others may "
                "have its partitions",
            )
        return who


def _at_most(partitions: Collection[TopicPartition], ids: Ids) -> int:
    """The highest version of a request that names these: by id where all have one."""
    whole = all(ids.get(partition, NO_TOPIC_ID) != NO_TOPIC_ID for partition in partitions)
    return 32767 if whole else BY_NAME


def _at(place: TopicPartition, error: ApiError) -> ApiError:
    why = error.message or error.code.name
    if error.code is ErrorCode.UNKNOWN_TOPIC_ID:
        why = "its topic was deleted, and another one may have its name"
    elif error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        why = "there is no such partition"
    return ApiError(error.code, f"{place}: {why}")
