# SPDX-License-Identifier: Apache-2.0
"""What a deletion destroys: a line for each group or topic, read by a person who is then asked.

With `--yes` nobody is asked, so nothing is looked up. What cannot be found out is said, and is no
reason to stop: the cluster refuses the deletion where it must.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from kohort.cli.command import reason
from kohort.cli.lags import ends_of, group_lag
from kohort.cli.render import name_text
from kohort.errors import ApiError, ErrorCode
from kohort.figures import counted, duration

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, TopicDescription

MOST = 10  # lines; the others are counted
COMMITS_S = 2.0

_NOT_THERE = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def of_groups(admin: "AdminClient", ids: Sequence[str]) -> list[str]:
    """State, members, committed offsets and lag of the first groups; nothing where none of the
    groups is there.
    """
    looked_at = ids[:MOST]
    described = dict((await admin.describe_groups(looked_at)).items())
    if len(ids) <= MOST and _nothing_is_there(described.values()):
        return []
    found = await admin.list_group_offsets(looked_at)
    offsets, ends = dict(found.items()), await ends_of(admin, found)
    commits = await _last_commits(admin, [one for one in looked_at if _has_offsets(offsets[one])])
    lines = [_group(one, described[one], offsets[one], ends, commits) for one in looked_at]
    return lines + _others(len(ids))


def _has_offsets(found: Any) -> bool:
    return bool(found) and not isinstance(found, ApiError)


async def _last_commits(admin: "AdminClient", ids: Sequence[str]) -> dict[str, str]:
    """`last commit 3 d 4 h ago`, or why that is not known. The log of groups may be long: nobody
    waits for more than a moment of reading.
    """
    import time

    if not ids:
        return {}
    try:
        found = dict((await admin.commit_times(ids, timeout=COMMITS_S)).items())
    except ApiError as error:
        found = dict.fromkeys(ids, error)
    now_ms = time.time_ns() // 1_000_000
    return {
        one: f"last commit not known: {reason(at_ms)}"
        if isinstance(at_ms, ApiError)
        else "last commit not known: it is not in the log of groups"
        if at_ms is None
        else f"last commit {duration(max(0, now_ms - at_ms) / 1000)} ago"
        for one, at_ms in found.items()
    }


def _group(
    group_id: str,
    group: Any,
    offsets: Any,
    ends: Mapping[Any, Any],
    commits: Mapping[str, str],
) -> str:
    if isinstance(group, ApiError):
        return f"group {name_text(group_id)}: {reason(group)}"
    parts = [str(group.state), counted(len(group.members), "member")]
    if isinstance(offsets, ApiError):
        parts.append(f"committed offsets: {reason(offsets)}")
    elif not offsets:
        parts.append("no committed offsets")
    else:
        parts.append(f"committed offsets of {counted(len(offsets), 'partition')}")
        parts.append(group_lag(offsets, ends).sentence)
        parts.append(commits[group_id])
    return f"group {name_text(group_id)}: {', '.join(parts)}"


async def of_topics(
    admin: "AdminClient", found: "Mapping[str, TopicDescription | ApiError]"
) -> list[str]:
    """Partitions and records of the first of these topics; nothing where none of them is there."""
    if _nothing_is_there(found.values()):
        return []
    described = dict(islice(found.items(), MOST))
    partitions = [
        (name, one.partition)
        for name, topic in described.items()
        if not isinstance(topic, ApiError)
        for one in topic.partitions
    ]
    first: dict[Any, Any] = dict(
        (await admin.list_offsets(dict.fromkeys(partitions, "earliest"))).items()
    )
    ends: dict[Any, Any] = dict(
        (await admin.list_offsets(dict.fromkeys(partitions, "latest"))).items()
    )
    lines = []
    for name, topic in described.items():
        if isinstance(topic, ApiError):
            lines.append(f"topic {name}: {reason(topic)}")
            continue
        known = [
            ends[place].offset - first[place].offset
            for place in partitions
            if place[0] == name
            and not isinstance(first[place], ApiError)
            and not isinstance(ends[place], ApiError)
        ]
        count = len(topic.partitions)
        bound = "" if len(known) == count else "at least "
        records = f"{bound}{counted(sum(known), 'offset')} of records"
        lines.append(f"topic {name}: {counted(count, 'partition')}, {records}")
    return lines + _others(len(found))


def _nothing_is_there(described: Iterable[Any]) -> bool:
    return all(isinstance(one, ApiError) and one.code in _NOT_THERE for one in described)


def _others(count: int) -> list[str]:
    return [f"and {count - MOST:,} more"] if count > MOST else []


def which(names: Iterable[str], thing: str) -> str:
    """`group billing`, or `3 groups`."""
    found = list(names)
    return f"{thing} {name_text(found[0])}" if len(found) == 1 else counted(len(found), thing)
