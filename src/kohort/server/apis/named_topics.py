"""Topics that requests about offsets name. The broker knows which topics exist and the coordinator
does not: unknown ones are answered here, and the rest is passed on.
"""

from collections.abc import Callable
from typing import Any

from kohort.coordinator.topics import Topics
from kohort.terms import NO_TOPIC_ID, TopicId

TOPIC_IDS_FROM = 10  # the version of OffsetCommit and OffsetFetch that names topics by id


def name_topics(requested: list[Any], topics: Topics) -> None:
    """Replace topic ids by names. Version 10 names topics by id; the coordinator
    keeps offsets by name.
    """
    for topic in requested:
        known = topics.by_id.get(TopicId(topic.topic_id))
        topic.name = known.name if known is not None else ""


def take_unknown(
    requested: list[Any], topics: Topics, refusal: Callable[[Any, list[int]], Any]
) -> tuple[list[Any], list[Any]]:
    """The topics that exist, with those of their partitions that exist, and the answers to all
    others, one for each topic. A topic without partitions is answered only when it does not exist.
    """
    accepted: list[Any] = []
    refused: dict[tuple[str, bytes], Any] = {}
    for topic in requested:
        known = topics.by_name.get(topic.name)
        count = known.partitions if known is not None else 0
        good = [one for one in topic.partitions if 0 <= one.partition_index < count]
        bad = [
            one.partition_index for one in topic.partitions if not 0 <= one.partition_index < count
        ]
        if bad or known is None:
            answer = refusal(topic, bad)
            earlier = refused.setdefault(_identity(topic), answer)
            if earlier is not answer:
                earlier.partitions += answer.partitions
        if good:
            topic.partitions = good
            accepted.append(topic)
    return accepted, list(refused.values())


def put_back(refused: list[Any], response: Any) -> Any:
    """Merge the answers by topic: what was refused here comes first."""
    if not refused:
        return response
    merged = {_identity(topic): topic for topic in refused}
    for topic in response.topics:
        known = merged.setdefault(_identity(topic), topic)
        if known is not topic:
            known.partitions += topic.partitions
    response.topics = list(merged.values())
    return response


def _identity(topic: Any) -> tuple[str, bytes]:
    """The fields that name a topic. An unknown id has no name, and OffsetDelete has no ids."""
    return topic.name, bytes(getattr(topic, "topic_id", NO_TOPIC_ID))
