# SPDX-License-Identifier: Apache-2.0
"""A fetch session with one broker (KIP-227): only what is new is said, in both directions.

The broker remembers what a session asks for. A request names the partitions that are new or have
another place, and those that it wants no more; an answer names those with news.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kohort.errors import ErrorCode
from kohort.terms import NO_TOPIC_ID, TopicId, TopicPartition
from kohort.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

NO_SESSION, FIRST_EPOCH, LAST_EPOCH = 0, 0, 2**31 - 1
OUTSIDE = -1  # the epoch of a request that belongs to no session

BROKEN = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class PartitionFetch(NamedTuple):
    """What is asked of one partition. `topic_id` is NO_TOPIC_ID where ids are not known."""

    offset: int
    current_epoch: int  # of the leader, as the client knows it
    last_epoch: int  # of the record before
    max_bytes: int
    topic_id: TopicId = NO_TOPIC_ID


class FetchRequestData(NamedTuple):
    """The part of a request that belongs to the session."""

    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


def everything(wanted: Mapping[TopicPartition, PartitionFetch]) -> FetchRequestData:
    """The part of a request outside of any session: the broker remembers nothing of it."""
    return FetchRequestData(NO_SESSION, OUTSIDE, _topics(wanted), [])


class Session:
    """One request is under way at a time: `ask`, then `answered` or `broke`."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._said: dict[TopicPartition, PartitionFetch] = {}

    def ask(self, wanted: Mapping[TopicPartition, PartitionFetch]) -> FetchRequestData:
        """The part of the next request. After this the broker is taken to know all of it."""
        if any(
            partition in self._said and self._said[partition].topic_id != asked.topic_id
            for partition, asked in wanted.items()
        ):
            self.broke()  # a topic was made anew
        gone = [partition for partition in self._said if partition not in wanted]
        news = {
            partition: asked
            for partition, asked in wanted.items()
            if self._said.get(partition) != asked
        }
        forgotten = _forgotten({partition: self._said[partition] for partition in gone})
        self._said = dict(wanted)
        return FetchRequestData(self._id, self._epoch, _topics(news), forgotten)

    def answered(self, session_id: int) -> None:
        """The request has succeeded; 0 is the id where the broker keeps no session."""
        if session_id == NO_SESSION:
            self.broke()
            return
        if self._epoch == FIRST_EPOCH:
            self._id = session_id
        self._epoch = 1 if self._epoch == LAST_EPOCH else self._epoch + 1

    def broke(self) -> None:
        """Nothing is known to the broker any more: the next request says everything."""
        self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        self._said = {}


def _topics(wanted: Mapping[TopicPartition, PartitionFetch]) -> list[FetchTopic]:
    topics: dict[tuple[str, TopicId], FetchTopic] = {}
    for (name, index), asked in wanted.items():
        topic = topics.get((name, asked.topic_id))
        if topic is None:
            topic = FetchTopic(topic=name, topic_id=asked.topic_id, partitions=[])
            topics[name, asked.topic_id] = topic
        topic.partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=asked.current_epoch,
                fetch_offset=asked.offset,
                last_fetched_epoch=-1,
                partition_max_bytes=asked.max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(said: Mapping[TopicPartition, PartitionFetch]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, TopicId], ForgottenTopic] = {}
    for (name, index), asked in said.items():
        topic = topics.get((name, asked.topic_id))
        if topic is None:
            topic = ForgottenTopic(topic=name, topic_id=asked.topic_id, partitions=[])
            topics[name, asked.topic_id] = topic
        topic.partitions.append(index)
    return list(topics.values())
