"""Before anything can be fetched: who leads a partition, where it begins, and whether the log still
has what was read before.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from kohort.client.admin.rounds import settle
from kohort.client.admin.topics import When, leaders, list_offsets
from kohort.client.cluster import Node
from kohort.client.fetching.record import Place
from kohort.client.fetching.settings import DURATION, FetchSettings, duration_of
from kohort.client.fetching.track import Track
from kohort.client.metadata import KnownTopic, Metadata
from kohort.errors import ApiError, ErrorCode, api_error
from kohort.terms import PartitionIndex, TopicPartition
from kohort.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

logger = logging.getLogger(__name__)

PAUSE_S = 0.1
NONE = "none"


class Finding:
    """Asks the cluster of `metadata`, whose connections are not those of long fetches."""

    def __init__(self, metadata: Metadata, settings: FetchSettings) -> None:
        self._metadata = metadata
        self._settings = settings
        self._timeout_s = min(10.0, settings.request_timeout_ms / 1000)

    async def look(self, tracks: Iterable[Track]) -> None:
        """Find out what is missing of these, as far as the cluster answers. Raises nothing that
        concerns one of them alone: that is looked for again after a pause.
        """
        every = list(tracks)
        await self._leaders([one for one in every if one.leader is None])
        await self._places([one for one in every if one.reset is not None])
        await self._checks([one for one in every if one.leader and one.has_to_be_checked])

    # Leaders

    async def _leaders(self, tracks: Sequence[Track]) -> None:
        if not tracks:
            return
        names = {one.partition.topic for one in tracks}
        for name in names:
            self._metadata.outdated(name)
        topics = await self._metadata.topics(names, self._deadline())
        later = asyncio.get_running_loop().time() + PAUSE_S
        for track in tracks:
            topic = topics[track.partition.topic]
            known = None
            if isinstance(topic, KnownTopic):
                known = topic.partitions.get(PartitionIndex(track.partition.partition))
                track.topic_id = topic.id
            elif not topic.code.retriable:
                track.error = topic
            if known is None or known.leader is None:
                track.not_before = later
            else:
                track.leader, track.leader_epoch = known.leader, known.leader_epoch

    # Places

    async def _places(self, tracks: Sequence[Track]) -> None:
        asked: dict[tuple[str, int], When] = {}
        for track in tracks:
            if track.reset == NONE:
                track.error = ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{track.partition} has no committed offset, and auto_offset_reset is none",
                )
                track.reset = None
            elif track.reset is not None:
                asked[track.partition] = self._time(track.reset)
        if not asked:
            return
        found = await list_offsets(
            self._metadata.cluster,
            asked,
            read_committed=self._settings.reads_committed,
            deadline=self._deadline(),
        )
        outcomes = dict(found.items())
        missing = []
        for track in tracks:
            when = asked.get(track.partition)
            outcome = outcomes.get(track.partition)
            if when is None or track.reset is None or self._time_differs(track.reset, when):
                continue  # somebody has sought meanwhile
            if isinstance(outcome, ApiError) or outcome is None:
                track.not_before = asyncio.get_running_loop().time() + PAUSE_S
                if outcome is not None and not outcome.code.retriable:
                    track.error = outcome
                logger.info("%s: no offset yet: %s", track.partition, outcome)
            elif outcome.offset is None:
                missing.append(track)
            else:
                epoch = -1 if outcome.leader_epoch is None else outcome.leader_epoch
                track.go_to(Place(outcome.offset, epoch))
                track.checked_epoch = track.leader_epoch
        for track in missing:  # every record is older than that
            track.reset = "latest"

    def _time(self, reset: str) -> When:
        if reset.startswith(DURATION):
            return datetime.now(UTC) - duration_of(reset)
        return reset

    def _time_differs(self, reset: str, when: When) -> bool:
        return isinstance(when, str) and reset != when

    # What was read before

    async def _checks(self, tracks: Sequence[Track]) -> None:
        """A leader of a newer epoch may never have had what was read of the former (KIP-320)."""
        places = {
            track.partition: track.buffer.fetch_from for track in tracks if track.buffer is not None
        }
        if not places:
            return
        epochs = {track.partition: track.leader_epoch for track in tracks}

        async def ask(
            node: Node, keys: Sequence[TopicPartition], deadline: float
        ) -> dict[TopicPartition, EpochEndOffset | ApiError]:
            topics: dict[str, list[OffsetForLeaderPartition]] = {}
            for key in keys:
                topics.setdefault(key.topic, []).append(
                    OffsetForLeaderPartition(
                        partition=key.partition,
                        current_leader_epoch=epochs[key],
                        leader_epoch=places[key].leader_epoch,
                    )
                )
            request = OffsetForLeaderEpochRequest(
                replica_id=-1,
                topics=[
                    OffsetForLeaderTopic(topic=name, partitions=some)
                    for name, some in topics.items()
                ],
            )
            answer: OffsetForLeaderEpochResponse = await self._metadata.cluster.ask(
                node, request, deadline=deadline
            )
            return {
                TopicPartition(topic.topic, one.partition): api_error(one.error_code)
                if one.error_code
                else one
                for topic in answer.topics
                for one in topic.partitions
            }

        cluster = self._metadata.cluster
        outcomes = await settle(cluster, places, leaders(cluster), ask, deadline=self._deadline())
        for track in tracks:
            if track.buffer is None or places.get(track.partition) != track.buffer.fetch_from:
                continue
            outcome = outcomes[track.partition]
            if isinstance(outcome, ApiError):
                if outcome.code is ErrorCode.UNSUPPORTED_VERSION:
                    track.checked_epoch = epochs[track.partition]
                else:
                    track.look_up(asyncio.get_running_loop().time() + PAUSE_S)
            else:
                self._judge(track, outcome, epochs[track.partition])

    def _judge(self, track: Track, end: EpochEndOffset, epoch: int) -> None:
        assert track.buffer is not None
        place = track.buffer.fetch_from
        unknown = end.leader_epoch < 0 or end.end_offset < 0
        if not unknown and end.end_offset >= place.offset:
            track.checked_epoch = epoch
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


def out_of_range(track: Track, policy: str, log_start: int | None) -> None:
    """The leader has no record at the place where the partition goes on."""
    assert track.buffer is not None
    offset = track.buffer.fetch_from.offset
    known = [("it begins at", log_start), ("it ends at", track.high_watermark)]
    shown = ", ".join(f"{text} {one}" for text, one in known if one is not None and one >= 0)
    if policy == NONE:
        text = f"{track.partition} has no offset {offset}" + (f": {shown}" if shown else "")
        track.error = ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
    else:
        logger.warning("%s has no offset %d (%s): to %s", track.partition, offset, shown, policy)
        track.go_to(None)
