# SPDX-License-Identifier: Apache-2.0
"""Incremental fetch sessions (KIP-227): both sides send only what has changed.

A session is soft state. A client whose session is gone is told so and sends everything once. So all
sessions together have a bound in bytes, and those that were used least recently go.
"""

from collections.abc import Callable, Iterator

from kohort.errors import ApiError, ErrorCode
from kohort.server.requests.fetch_purgatory import DelayedFetch
from kohort.terms import TopicId
from kohort.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    PartitionData,
)

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
_LAST_EPOCH = 2**31 - 1

BYTES_MAX = 1 << 27  # of all sessions: a thousand consumers of 400 partitions each have room
SESSION_BYTES_MAX = 1 << 25  # of one: a hundred thousand partitions, which each fetch looks at
PARTITION_BYTES = 300  # measured, with its place in the dict

# A topic as the request names it: by name up to v12, by id from v13 on.
TopicKey = tuple[str, TopicId]


class _CachedPartition:
    """One partition of a session: what the client wants, and what it was told last."""

    __slots__ = ("high_watermark", "log_start_offset", "wanted")

    def __init__(self, wanted: FetchPartition) -> None:
        self.wanted = wanted
        self.high_watermark = -1
        self.log_start_offset = -1


class FetchSession:
    """What one client reads. Its next request must have the `epoch`."""

    __slots__ = ("epoch", "parked", "partitions", "session_id", "size_bytes", "uses_ids")

    def __init__(self, session_id: int, *, uses_ids: bool) -> None:
        self.session_id = session_id
        self.epoch = 1
        self.parked: DelayedFetch | None = None  # the last fetch that has waited
        self.uses_ids = uses_ids
        self.size_bytes = 0  # about what it takes
        self.partitions: dict[TopicKey, dict[int, _CachedPartition]] = {}

    def update(self, request: FetchRequest) -> None:
        """Take what the client now reads, and drop what it no longer does."""
        for topic in request.topics:
            if not topic.partitions:
                continue
            key = (topic.topic, TopicId(topic.topic_id))
            watched = self.partitions.get(key)
            if watched is None:
                watched = self.partitions[key] = {}
                self.size_bytes += _size(key)
            before = len(watched)
            for wanted in topic.partitions:
                known = watched.get(wanted.partition)
                if known is None:
                    watched[wanted.partition] = _CachedPartition(wanted)
                else:
                    known.wanted = wanted
            self.size_bytes += PARTITION_BYTES * (len(watched) - before)
        for forgotten in request.forgotten_topics_data:
            key = (forgotten.topic, TopicId(forgotten.topic_id))
            left = self.partitions.get(key, {})
            before = len(left)
            for partition in forgotten.partitions:
                left.pop(partition, None)
            self.size_bytes -= PARTITION_BYTES * (before - len(left))
            if not left and self.partitions.pop(key, None) is not None:
                self.size_bytes -= _size(key)

    def wanted(self) -> Iterator[tuple[TopicKey, list[FetchPartition]]]:
        """Everything that the client reads, topic by topic."""
        for key, partitions in self.partitions.items():
            yield key, [watched.wanted for watched in partitions.values()]

    def changes(
        self, responses: list[FetchableTopicResponse], *, everything: bool
    ) -> list[FetchableTopicResponse]:
        """What is new in an answer: records, errors, and offsets that have moved."""
        told = []
        for topic in responses:
            watched = self.partitions.get((topic.topic, TopicId(topic.topic_id)), {})
            partitions = [
                data
                for data in topic.partitions
                if self._has_changed(watched.get(data.partition_index), data) or everything
            ]
            if any(data.records for data in partitions):
                self._served(topic, partitions)
            if partitions:
                told.append(
                    FetchableTopicResponse(
                        topic=topic.topic, topic_id=topic.topic_id, partitions=partitions
                    )
                )
        return told

    def _served(self, topic: FetchableTopicResponse, partitions: list[PartitionData]) -> None:
        """Partitions that got records come last next time: limits must not starve the others."""
        key = topic.topic, TopicId(topic.topic_id)
        watched = self.partitions.pop(key, None)
        if watched is None:  # forgotten while the fetch was parked
            return
        self.partitions[key] = watched
        for data in partitions:
            watch = watched.pop(data.partition_index, None) if data.records else None
            if watch is not None:
                watched[data.partition_index] = watch

    def _has_changed(self, watched: _CachedPartition | None, data: PartitionData) -> bool:
        if watched is None:
            return True
        changed = (
            bool(data.records)
            or data.error_code != 0
            or data.diverging_epoch.epoch >= 0
            or watched.high_watermark != data.high_watermark
            or watched.log_start_offset != data.log_start_offset
        )
        watched.high_watermark = -1 if data.error_code else data.high_watermark
        watched.log_start_offset = data.log_start_offset
        return changed


def _size(key: TopicKey) -> int:
    return PARTITION_BYTES + 4 * len(key[0])


class FetchSessions:
    """The sessions of one node. When there are too many, or they are too large together, the least
    recently used goes. One that is too large alone is none: its client says everything each time.
    """

    def __init__(
        self,
        slots: int,
        new_uuid: Callable[[], bytes],
        evicted: Callable[[FetchSession], None] = lambda _: None,
    ) -> None:
        """`evicted` is told of each session that gives way to another one."""
        self._slots = slots
        self._new_uuid = new_uuid
        self._evicted = evicted
        self._sessions: dict[int, FetchSession] = {}  # the least recently used first
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def known(self, session_id: int) -> FetchSession | None:
        """A session as it is, without using it."""
        return self._sessions.get(session_id)

    def session_of(self, request: FetchRequest, *, uses_ids: bool) -> FetchSession | None:
        """The session of a request, brought up to date; None for a request that stands alone.

        Raises ApiError when the client names a session that does not exist or has moved on.
        """
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._close(request.session_id)
            if request.session_epoch == FINAL_EPOCH or not self._slots:
                return None
            return self._opened(request, uses_ids=uses_ids)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                f"fetch session {request.session_id} does not exist",
            )
        if session.epoch != request.session_epoch:
            raise ApiError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {request.session_id} is at epoch {session.epoch}, "
                f"request says {request.session_epoch}",
            )
        if session.uses_ids != uses_ids:
            raise ApiError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"fetch session {request.session_id} names topics "
                f"by {'id' if session.uses_ids else 'name'}, the request does not",
            )
        self._close(session.session_id)
        session.parked = None
        session.update(request)
        if not session.partitions:
            return None
        if not self._keep(session):
            raise ApiError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                f"fetch session {session.session_id} has become too large: "
                f"{session.size_bytes} bytes",
            )
        session.epoch = 1 if session.epoch == _LAST_EPOCH else session.epoch + 1
        return session

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._size_bytes -= session.size_bytes

    def _keep(self, session: FetchSession) -> bool:
        """Make room for a session as the one that was used last; False where it is too large."""
        if session.size_bytes > SESSION_BYTES_MAX:
            return False
        while (
            len(self._sessions) >= self._slots or self._size_bytes + session.size_bytes > BYTES_MAX
        ):
            oldest = next(iter(self._sessions))
            evicted = self._sessions[oldest]
            self._close(oldest)
            self._evicted(evicted)
        self._sessions[session.session_id] = session
        self._size_bytes += session.size_bytes
        return True

    def _opened(self, request: FetchRequest, *, uses_ids: bool) -> FetchSession | None:
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = int.from_bytes(self._new_uuid()[:4]) & 0x7FFFFFFF
        session = FetchSession(session_id, uses_ids=uses_ids)
        session.update(request)
        return session if self._keep(session) else None
