# SPDX-License-Identifier: Apache-2.0
"""Before anything can be fetched: who leads a partition, where it begins, and whether the log still
has what was read before.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from kohort.client.fetcher.partition_state import EARLIEST, LATEST, NONE, TopicPartitionState
from kohort.client.fetcher.record import OffsetAndEpoch
from kohort.client.fetcher.settings import DURATION, FetchSettings, duration_of
from kohort.client.network.cluster import Node
from kohort.client.network.denials import explained
from kohort.client.network.environment import environment
from kohort.client.network.metadata import Metadata
from kohort.errors import (
    ApiError,
    AuthenticationError,
    ErrorCode,
    KohortError,
    UnsupportedVersionError,
    api_error,
)
from kohort.terms import NO_TOPIC_ID, PartitionIndex, TopicId, TopicPartition, uuid_text
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kohort.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

logger = logging.getLogger(__name__)

RETRY_BACKOFF_S = 0.1  # upstream's retry.backoff.ms, a constant here
_POINTS = {EARLIEST: -2, LATEST: -1}


class PartitionLookup:
    """Asks the cluster of `metadata`, whose connections are not those of long fetches.

    What concerns one partition alone is never raised: it becomes the error of its state, or it is
    looked for again after a pause. `on_topic_recreated` hears of each partition whose topic was
    made anew.
    """

    def __init__(self, metadata: Metadata, settings: FetchSettings) -> None:
        self._metadata = metadata
        self._settings = settings
        self._timeout_s = min(10.0, settings.request_timeout_ms / 1000)
        self._missed: set[str] = set()  # topics and partitions that were told of
        self.on_topic_recreated: Callable[[TopicPartition], None] = lambda _: None

    # Leaders

    async def leaders(self, states: Sequence[TopicPartitionState]) -> None:
        """Who leads each of these, as the cluster says now. Raises what `Metadata.topics` raises.

        A partition without a leader rests for a while.
        """
        if not states:
            return
        names = {state.partition.topic for state in states}
        for name in names:
            self._metadata.outdated(name)
        topics = await self._metadata.topics(names, self._deadline())
        later = _later()
        for state in states:
            topic = topics[state.partition.topic]
            if isinstance(topic, ApiError):
                self._miss(state.partition.topic, str(topic))
                state.refused(topic, later)
                continue
            if not self._is_of(state, topic.id):
                state.not_before = later
                continue
            known = topic.partitions.get(PartitionIndex(state.partition.partition))
            if known is None:
                count = len(topic.partitions)
                self._miss(str(state.partition), f"{state.partition.topic} has {count} partitions")
            if known is None or known.leader is None:
                state.not_before = later
            else:
                state.leader, state.leader_epoch = known.leader, known.leader_epoch

    def _miss(self, name: str, why: str) -> None:
        """Tell once that this is not there."""
        if name not in self._missed:
            self._missed.add(name)
            logger.warning("%s: %s; it is looked for again", name, why)

    def _is_of(self, state: TopicPartitionState, topic_id: TopicId) -> bool:
        """Whether the state may be read from the topic that has this id now."""
        if NO_TOPIC_ID in (state.topic_id, topic_id) or state.topic_id == topic_id:
            state.topic_id = state.topic_id if topic_id == NO_TOPIC_ID else topic_id
            return True
        if state.is_bound:
            logger.info("%s: another topic has its name by now", state.partition)
            return False
        former, at = state.topic_id, state.position
        state.topic_recreated(topic_id)
        log_recreated(state, former, None if at is None else at.offset)
        self.on_topic_recreated(state.partition)
        return True

    # Places

    async def places(self, leader: Node, states: Iterable[TopicPartitionState]) -> None:
        """Where these begin, or whether they may go on, as their leader says. It is asked once."""
        every = list(states)
        try:
            await self._resets(leader, [state for state in every if state.reset is not None])
            await self._checks(leader, [state for state in every if state.has_to_be_checked])
        except AuthenticationError as error:
            for state in every:
                state.error = error
        except KohortError as error:
            logger.info("%s: %s", leader, error)
            later = _later()
            for state in every:
                state.look_up(later)

    async def _resets(self, leader: Node, states: Sequence[TopicPartitionState]) -> None:
        asked: dict[TopicPartition, str] = {}
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for state in states:
            name, index = state.partition
            if state.reset == NONE:
                state.reset = None
                state.error = ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{state.partition} has no committed offset, and auto_offset_reset is none",
                )
            elif state.reset is not None:
                asked[state.partition] = state.reset
                topics.setdefault(name, []).append(
                    ListOffsetsPartition(
                        partition_index=index,
                        current_leader_epoch=state.leader_epoch,
                        timestamp=_timestamp(state.reset),
                    )
                )
        if not asked:
            return
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self._settings.reads_committed),
            topics=[
                ListOffsetsTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        answer: ListOffsetsResponse = await self._metadata.cluster.ask(
            leader, request, deadline=self._deadline()
        )
        told = {
            TopicPartition(topic.name, result.partition_index): result
            for topic in answer.topics
            for result in topic.partitions
        }
        for state in states:
            partition = state.partition
            if partition in asked and state.reset == asked[partition]:  # else somebody has sought
                self._begin(state, told.get(partition), leader)

    def _begin(
        self, state: TopicPartitionState, found: ListOffsetsPartitionResponse | None, leader: Node
    ) -> None:
        if found is None or found.error_code:
            error = _without_answer(leader) if found is None else api_error(found.error_code)
            error = explained(error, self._metadata.cluster.principal, state.partition)
            logger.info("%s: no offset yet: %s", state.partition, error)
            state.refused(error, _later())
        elif found.offset >= 0:
            state.go_to(OffsetAndEpoch(found.offset, found.leader_epoch))
            state.checked_epoch = state.leader_epoch
        elif state.reset != LATEST:  # every record is older than that
            state.reset = LATEST
        else:
            state.not_before = _later()

    # What was read before

    async def _checks(self, leader: Node, states: Sequence[TopicPartitionState]) -> None:
        """A leader of a newer epoch may never have had what was read of the former (KIP-320)."""
        asked: dict[TopicPartition, tuple[OffsetAndEpoch, int]] = {}
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        for state in states:
            assert state.buffer is not None
            name, index = state.partition
            place, epoch = state.buffer.fetch_from, state.leader_epoch
            asked[state.partition] = (place, epoch)
            topics.setdefault(name, []).append(
                OffsetForLeaderPartition(
                    partition=index, current_leader_epoch=epoch, leader_epoch=place.leader_epoch
                )
            )
        if not asked:
            return
        request = OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderTopic(topic=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        try:
            answer: OffsetForLeaderEpochResponse = await self._metadata.cluster.ask(
                leader, request, deadline=self._deadline()
            )
        except UnsupportedVersionError:  # then nobody can know
            for state in states:
                state.checked_epoch = state.leader_epoch
            return
        told = {
            TopicPartition(topic.topic, partition.partition): partition
            for topic in answer.topics
            for partition in topic.partitions
        }
        for state in states:
            place, epoch = asked[state.partition]
            if state.buffer is None or state.buffer.fetch_from != place:
                continue  # somebody has sought meanwhile
            end = told.get(state.partition)
            if end is None or end.error_code:
                error = _without_answer(leader) if end is None else api_error(end.error_code)
                logger.info("%s: not checked yet: %s", state.partition, error)
                state.refused(error, _later())
            else:
                self._judge(state, end, epoch)

    def _judge(self, state: TopicPartitionState, end: EpochEndOffset, epoch: int) -> None:
        assert state.buffer is not None
        place = state.buffer.fetch_from
        unknown = end.leader_epoch < 0 or end.end_offset < 0
        if not unknown and end.end_offset >= place.offset:
            state.checked_epoch = epoch
            return
        if state.buffer.has_something:  # some of that may still be there: it is fetched anew
            state.go_to(state.position)
            return
        until = "an offset that is not known" if unknown else f"offset {end.end_offset}"
        text = (
            f"{state.partition} was truncated: epoch {place.leader_epoch} ends at {until}, and the "
            f"next record was to be {place.offset}"
        )
        if self._settings.auto_offset_reset == NONE:
            state.error = ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
            return
        logger.warning("%s", text)
        if unknown:
            state.go_to(None)
        else:
            state.go_to(OffsetAndEpoch(end.end_offset, end.leader_epoch))
            state.checked_epoch = epoch

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout_s


def _later() -> float:
    return asyncio.get_running_loop().time() + RETRY_BACKOFF_S


def _timestamp(reset: str) -> int:
    """What ListOffsets calls it: a point of the log, or milliseconds since 1970."""
    if reset.startswith(DURATION):
        return max(0, int((environment().clock.time() - duration_of(reset).total_seconds()) * 1000))
    return _POINTS[reset]


def _without_answer(node: Node) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer of {node} lacks it")


def log_recreated(state: TopicPartitionState, former: TopicId, offset: int | None) -> None:
    """Whoever reads the log has to know that offsets are those of another topic from now on."""
    logger.warning(
        "%s: the topic was deleted and made anew (id %s, before %s): %s in place of offset %s",
        state.partition,
        uuid_text(state.topic_id),
        uuid_text(former),
        "stopped" if state.error is not None else "from its first record on",
        "unknown" if offset is None else offset,
    )


def out_of_range(state: TopicPartitionState, policy: str, log_start: int | None) -> None:
    """The leader has no record at the place where the partition goes on."""
    assert state.buffer is not None
    offset = state.buffer.fetch_from.offset
    known = [("it begins at", log_start), ("it ends at", state.high_watermark)]
    shown = ", ".join(
        f"{text} {offset}" for text, offset in known if offset is not None and offset >= 0
    )
    if policy == NONE:
        text = f"{state.partition} has no offset {offset}" + (f": {shown}" if shown else "")
        state.error = ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
    else:
        logger.warning("%s has no offset %d (%s): to %s", state.partition, offset, shown, policy)
        state.go_to(None)
