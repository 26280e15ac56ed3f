# SPDX-License-Identifier: Apache-2.0
"""Known differences where a request that reads names something twice (docs/skipped.md): Kafka
answers as often as it is named, Kohort once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tests.prove.differential.comparing import ordered
from tests.prove.differential.occasions import Explanation, Occasion, codes


def _once(value: Any) -> Any:
    """An answer in which entries of one name are one entry, with what all of them list."""
    if isinstance(value, dict):
        return {key: _once(one) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    merged: list[Any] = []
    for one in value:
        known = next((each for each in merged if _same_name(each, one)), None)
        if known is None:
            merged.append(dict(one) if isinstance(one, dict) else one)
        elif isinstance(one, dict):
            known.update({key: known[key] + each for key, each in one.items() if _is_list(each)})
    return [_once(one) for one in merged]


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _same_name(one: Any, other: Any) -> bool:
    """Whether two entries are about one thing: they differ in nothing but in what they list."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return bool(one == other)
    return all(_is_list(each) or each == other.get(key) for key, each in one.items())


def _answered_again(one: Occasion) -> bool:
    """The lists differ by nothing but repetition."""
    kafka, kohort = codes(one)
    return (
        isinstance(kafka, list)
        and isinstance(kohort, list)
        and len(kafka) > len(kohort)
        and ordered(_once(kafka)) == ordered(_once(kohort))
    )


def _places(groups: Sequence[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """The partitions of an answer to OffsetFetch, with all that is said of each."""
    for group in groups:
        for topic in group["topics"]:
            name = topic.get("name"), topic.get("topic_id")
            for place in topic["partitions"]:
                yield name, place["partition_index"], repr(place)


def _asked_as_several(one: Occasion) -> bool:
    """A group is named as several members: the first of them is who asks for all. It is refused, or
    told what Kafka tells at least one of them; the groups that are named once are told alike.
    """
    named = Counter(group["group_id"] for group in one.request["groups"])
    for group_id in named:
        kafka, kohort = (
            [group for group in groups if group["group_id"] == group_id] for groups in codes(one)
        )
        told = {group["error_code"] for group in kafka}
        if len(told) == 1:
            if ordered(_once(kafka)) != ordered(_once(kohort)):
                return False
            continue
        refused = {group["error_code"] for group in kohort}
        if not refused or not told >= refused:
            return False
        if 0 in refused and not {*_places(kohort)} >= {*_places(kafka)}:
            return False
    return len(codes(one)[0]) > len(codes(one)[1])


REPEATS: tuple[Explanation, ...] = (
    Explanation(
        "what is named again",
        "Kafka answers a request that reads as often as it names something, Kohort once",
        (
            *("DescribeConfigs", "DescribeGroups", "ConsumerGroupDescribe", "OffsetFetch"),
            *("DescribeProducers", "DescribeTransactions", "FindCoordinator"),
        ),
        (),
        _answered_again,
        goes_on=True,
    ),
    Explanation(
        "group named as several members",
        "where an OffsetFetch names a group as several members, the first of them is who asks;"
        " Kafka refuses each that is none",
        ("OffsetFetch",),
        ("groups[]",),
        _asked_as_several,
        goes_on=True,
    ),
)
