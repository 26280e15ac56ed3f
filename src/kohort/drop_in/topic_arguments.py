# SPDX-License-Identifier: Apache-2.0
"""The values of `--topic`: a topic, or some of its partitions as `topic:0,1`."""

from collections.abc import Iterable

from kohort.drop_in.running import UsageError
from kohort.terms import TopicPartition

_INT32 = 1 << 31


def split(given: Iterable[str]) -> tuple[list[str], list[str]]:
    """Those that name partitions, and those that are names of topics."""
    texts = list(given)
    return [text for text in texts if ":" in text], [text for text in texts if ":" not in text]


def partitions_in(text: str) -> list[TopicPartition]:
    """The partitions of `topic:0,1`. Raises UsageError."""
    topic, *rest = text.split(":")
    while rest and not rest[-1]:
        rest.pop()
    if len(rest) != 1:
        raise UsageError(f"Invalid topic arg '{text}', expected topic name and partitions")
    indexes = rest[0].split(",")
    while indexes and not indexes[-1]:
        indexes.pop()
    return [TopicPartition(topic, _index(index, text)) for index in indexes]


def _index(index: str, text: str) -> int:
    digits = index[1:] if index[:1] in ("-", "+") else index
    if digits.isdecimal() and len(digits) < 20 and -_INT32 <= int(index) < _INT32:
        return int(index)
    raise UsageError(f"Invalid partition '{index}' specified in topic arg '{text}''")
