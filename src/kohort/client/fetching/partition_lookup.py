"""Before anything can be fetched: who leads a partition, where it begins, and whether the log still
has what was read before.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from kohort.client.cluster import Node
from kohort.client.environment import environment
from kohort.client.fetching.partition_state import EARLIEST, LATEST, NONE, Track
from kohort.client.fetching.record import Place
from kohort.client.fetching.settings import DURATION, FetchSettings, duration_of
from kohort.client.metadata import Metadata
from kohort.errors import ApiError, ErrorCode, KohortError, UnsupportedVersionError, api_error
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

PAUSE_S = 0.1
_POINTS = {EARLIEST: -2, LATEST: -1}


class Finding:
    """Asks the cluster of `metadata`, whose connections are not those of long fetches.

    What concerns one partition alone is never raised: it becomes the error of its track, or it is
    looked for again after a pause. `on_anew` hears of each partition whose topic was made anew.
    """

    def __init__(self, metadata: Metadata, settings: FetchSettings) -> None:
        self._metadata = metadata
        self._settings = settings
        self._timeout_s = min(10.0, settings.request_timeout_ms / 1000)
        self._missed: set[str] = set()  # topics and partitions that were told of
        self.on_anew: Callable[[TopicPartition], None] = lambda _: None

    # Leaders

    async def leaders(self, tracks: Sequence[Track]) -> None:
        """Who leads each of these, as the cluster says now. Raises what `Metadata.topics` raises.

        A partition without a leader rests for a while.
        """
        if not tracks:
            return
        names = {track.partition.topic for track in tracks}
        for name in names:
            self._metadata.outdated(name)
        topics = await self._metadata.topics(names, self._deadline())
        later = _later()
        for track in tracks:
            topic = topics[track.partition.topic]
            if isinstance(topic, ApiError):
                self._miss(track.partition.topic, str(topic))
                track.refused(topic, later)
                continue
            if not self._is_of(track, topic.id):
                track.not_before = later
                continue
            known = topic.partitions.get(PartitionIndex(track.partition.partition))
            if known is None:
                count = len(topic.partitions)
                self._miss(str(track.partition), f"{track.partition.topic} has {count} partitions")
            if known is None or known.leader is None:
                track.not_before = later
            else:
                track.leader, track.leader_epoch = known.leader, known.leader_epoch

    def _miss(self, name: str, why: str) -> None:
        """Tell once that this is not there."""
        if name not in self._missed:
            self._missed.add(name)
            logger.warning("%s: %s; it is looked for again", name, why)

    def _is_of(self, track: Track, topic_id: TopicId) -> bool:
        """Whether the track may be read from the topic that has this id now."""
        if NO_TOPIC_ID in (track.topic_id, topic_id) or track.topic_id == topic_id:
            track.topic_id = track.topic_id if topic_id == NO_TOPIC_ID else topic_id
            return True
        if track.is_bound:
            logger.info("%s: another topic has its name by now", track.partition)
            return False
        former, at = track.topic_id, track.position
        track.made_anew(topic_id)
        tell_anew(track, former, None if at is None else at.offset)
        self.on_anew(track.partition)
        return True

    # Places

    async def places(self, leader: Node, tracks: Iterable[Track]) -> None:
        """Where these begin, or whether they may go on, as their leader says. It is asked once."""
        every = list(tracks)
        try:
            await self._resets(leader, [track for track in every if track.reset is not None])
            await self._checks(leader, [track for track in every if track.has_to_be_checked])
        except KohortError as error:
            logger.info("%s: %s", leader, error)
            later = _later()
            for track in every:
                track.look_up(later)

    async def _resets(self, leader: Node, tracks: Sequence[Track]) -> None:
        asked: dict[TopicPartition, str] = {}
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for track in tracks:
            name, index = track.partition
            if track.reset == NONE:
                track.reset = None
                track.error = ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{track.partition} has no committed offset, and auto_offset_reset is none",
                )
            elif track.reset is not None:
                asked[track.partition] = track.reset
                topics.setdefault(name, []).append(
                    ListOffsetsPartition(
                        partition_index=index,
                        current_leader_epoch=track.leader_epoch,
                        timestamp=_timestamp(track.reset),
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
        for track in tracks:
            partition = track.partition
            if partition in asked and track.reset == asked[partition]:  # else somebody has sought
                self._begin(track, told.get(partition), leader)

    def _begin(
        self, track: Track, found: ListOffsetsPartitionResponse | None, leader: Node
    ) -> None:
        if found is None or found.error_code:
            error = _untold(leader) if found is None else api_error(found.error_code)
            logger.info("%s: no offset yet: %s", track.partition, error)
            track.refused(error, _later())
        elif found.offset >= 0:
            track.go_to(Place(found.offset, found.leader_epoch))
            track.checked_epoch = track.leader_epoch
        elif track.reset != LATEST:  # every record is older than that
            track.reset = LATEST
        else:
            track.not_before = _later()

    # What was read before

    async def _checks(self, leader: Node, tracks: Sequence[Track]) -> None:
        """A leader of a newer epoch may never have had what was read of the former (KIP-320)."""
        asked: dict[TopicPartition, tuple[Place, int]] = {}
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        for track in tracks:
            assert track.buffer is not None
            name, index = track.partition
            place, epoch = track.buffer.fetch_from, track.leader_epoch
            asked[track.partition] = (place, epoch)
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
            for track in tracks:
                track.checked_epoch = track.leader_epoch
            return
        told = {
            TopicPartition(topic.topic, partition.partition): partition
            for topic in answer.topics
            for partition in topic.partitions
        }
        for track in tracks:
            place, epoch = asked[track.partition]
            if track.buffer is None or track.buffer.fetch_from != place:
                continue  # somebody has sought meanwhile
            end = told.get(track.partition)
            if end is None or end.error_code:
                error = _untold(leader) if end is None else api_error(end.error_code)
                logger.info("%s: not checked yet: %s", track.partition, error)
                track.refused(error, _later())
            else:
                self._judge(track, end, epoch)

    def _judge(self, track: Track, end: EpochEndOffset, epoch: int) -> None:
        assert track.buffer is not None
        place = track.buffer.fetch_from
        unknown = end.leader_epoch < 0 or end.end_offset < 0
        if not unknown and end.end_offset >= place.offset:
            track.checked_epoch = epoch
            return
        if track.buffer.has_something:  # some of that may still be there: it is fetched anew
            track.go_to(track.position)
            return
        until = "an offset that is not known" if unknown else f"offset {end.end_offset}"
        text = (
            f"{track.partition} was truncated: epoch {place.leader_epoch} ends at {until}, and the "
            f"next record was to be {place.offset}"
        )
        if self._settings.auto_offset_reset == NONE:
            track.error = ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
            return
        logger.warning("%s", text)
        if unknown:
            track.go_to(None)
        else:
            track.go_to(Place(end.end_offset, end.leader_epoch))
            track.checked_epoch = epoch

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout_s


def _later() -> float:
    return asyncio.get_running_loop().time() + PAUSE_S


def _timestamp(reset: str) -> int:
    """What ListOffsets calls it: a point of the log, or milliseconds since 1970."""
    if reset.startswith(DURATION):
        return max(0, int((environment().clock.time() - duration_of(reset).total_seconds()) * 1000))
    return _POINTS[reset]


def _untold(node: Node) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer of {node} lacks it")


def tell_anew(track: Track, former: TopicId, offset: int | None) -> None:
    """Whoever reads the log has to know that offsets are those of another topic from now on."""
    logger.warning(
        "%s: the topic was deleted and made anew (id %s, before %s): %s in place of offset %s",
        track.partition,
        uuid_text(track.topic_id),
        uuid_text(former),
        "stopped" if track.error is not None else "from its first record on",
        "unknown" if offset is None else offset,
    )


def out_of_range(track: Track, policy: str, log_start: int | None) -> None:
    """The leader has no record at the place where the partition goes on."""
    assert track.buffer is not None
    offset = track.buffer.fetch_from.offset
    known = [("it begins at", log_start), ("it ends at", track.high_watermark)]
    shown = ", ".join(
        f"{text} {offset}" for text, offset in known if offset is not None and offset >= 0
    )
    if policy == NONE:
        text = f"{track.partition} has no offset {offset}" + (f": {shown}" if shown else "")
        track.error = ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
    else:
        logger.warning("%s has no offset %d (%s): to %s", track.partition, offset, shown, policy)
        track.go_to(None)
