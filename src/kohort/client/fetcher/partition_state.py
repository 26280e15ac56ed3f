# SPDX-License-Identifier: Apache-2.0
"""All that a fetcher knows of one partition: whom to ask, from where on, and what came of it."""

from kohort.client.fetcher.buffer import Buffer
from kohort.client.fetcher.record import AnyRecord, OffsetAndEpoch
from kohort.client.fetcher.session import PartitionFetch
from kohort.client.fetcher.settings import FetchSettings
from kohort.client.network.cluster import Node
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.terms import NO_TOPIC_ID, TopicId, TopicPartition

NOBODY = -1
NONE, EARLIEST, LATEST = "none", "earliest", "latest"
Reset = str  # "earliest", "latest", or a value of auto_offset_reset


class TopicPartitionState:
    """`buffer` is None while it is not known where to begin: then `reset` says how to find out, or
    `error` why nobody can.

    `leader` is None while it has to be looked up, and `replica` the broker to read from in place of
    the leader (KIP-392). `is_sought` says that the leader is being asked for what is missing.
    `checked_epoch` is the newest epoch of leaders whose log is known to have what was read
    (KIP-320).

    `topic_id` is the topic that `position` is a place of: one of the same name that was made anew
    has another one. A track `is_bound` when it was given for this topic alone: the group speaks of
    topics by id (KIP-848).
    """

    def __init__(self, partition: TopicPartition, settings: FetchSettings) -> None:
        self.partition = partition
        self.buffer: Buffer | None = None
        self.reset: Reset | None = None
        self.error: KohortError | None = None
        self.paused = False
        self.leader: Node | None = None
        self.leader_epoch = NOBODY
        self.is_sought = False
        self.topic_id: TopicId = NO_TOPIC_ID
        self.is_bound = False
        self.replica: Node | None = None
        self.replica_until = 0.0
        self.checked_epoch = NOBODY
        self.not_before = 0.0
        self.log_start: int | None = None
        self.high_watermark: int | None = None
        self.last_stable: int | None = None
        self._settings = settings

    # Places

    def go_to(self, where: OffsetAndEpoch | Reset | None) -> None:
        """Begin there; what is buffered is dropped. None is where the settings say."""
        self.error = None
        if isinstance(where, OffsetAndEpoch):
            self.buffer = Buffer(self.partition, where, self._settings)
            self.reset = None
            self.checked_epoch = NOBODY
        else:
            self.buffer = None
            self.reset = self._settings.auto_offset_reset if where is None else where

    def topic_recreated(self, topic_id: TopicId) -> None:
        """Its topic was deleted, and this one has its name: what was known was of the former."""
        self.topic_id = topic_id
        self.leader = self.replica = None
        self.leader_epoch = self.checked_epoch = NOBODY
        self.log_start = self.high_watermark = self.last_stable = None
        if self._settings.auto_offset_reset == NONE:
            self.buffer, self.reset = None, None
            text = f"{self.partition}: the topic was made anew, and auto_offset_reset is none"
            self.error = ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        else:  # all of its records came after those that were read
            self.go_to(EARLIEST)

    @property
    def position(self) -> OffsetAndEpoch | None:
        """The next record to hand out; None while it is looked up."""
        return None if self.buffer is None else self.buffer.take_from

    # Records

    @property
    def is_ready(self) -> bool:
        """Whether there may be something to hand out."""
        if self.paused:
            return False
        return self.error is not None or (self.buffer is not None and self.buffer.has_something)

    @property
    def trouble(self) -> KohortError | None:
        """Why there will be nothing to hand out before somebody seeks."""
        if self.error is not None or self.buffer is None:
            return self.error
        return self.buffer.error

    def take(self, most: int) -> list[AnyRecord]:
        """Up to so many records."""
        return [] if self.paused or self.buffer is None else self.buffer.take(most)

    # Asking

    @property
    def node(self) -> Node | None:
        """Whom to ask for records."""
        return self.leader if self.replica is None else self.replica

    @property
    def has_to_be_checked(self) -> bool:
        """Whether the leader is a new one, and may not have the record before the next one."""
        return (
            self.buffer is not None
            and self.buffer.fetch_from.leader_epoch >= 0
            and self.leader_epoch > self.checked_epoch
        )

    def wanted(self, now: float) -> PartitionFetch | None:
        """What to ask for now, if anything: not more than a share is kept ready."""
        buffer = self.buffer
        share = self._settings.max_partition_fetch_bytes
        if buffer is None or self.paused or self.trouble is not None or self.node is None:
            return None
        if now < self.not_before or self.has_to_be_checked or buffer.bytes >= share:
            return None
        place = buffer.fetch_from
        return PartitionFetch(
            place.offset, self.leader_epoch, place.leader_epoch, share, self.topic_id
        )

    def look_up(self, not_before: float) -> None:
        """Its leader is another one, or cannot be reached."""
        self.leader = self.replica = None
        self.not_before = not_before

    def refused(self, error: ApiError, not_before: float) -> None:
        """Ask again where it may be another broker, or another time; else it stays an error."""
        if error.code.retriable or error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            self.look_up(not_before)
        else:
            self.error = ApiError(error.code, f"{self.partition}: {error.message or 'refused'}")
