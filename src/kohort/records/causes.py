# SPDX-License-Identifier: Apache-2.0
"""Why something has happened to a group, as headers of the records that tell what has happened.

Apache Kafka writes no headers here and skips those that it finds, as every tool does. So does a
load of ours: no state depends on them.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from kohort.terms import MemberId

CAUSE, MEMBER, REASON = "kohort.cause", "kohort.member", "kohort.reason"
LONGEST_REASON = 255  # characters, as upstream's clients keep to (KIP-800)
MOST = 8  # causes that one record names

Headers = list[tuple[str, bytes | None]]


class Cause(StrEnum):
    """What has led to a record."""

    JOIN = "join"
    LEAVE = "leave"
    KICKED = "removed by an administrator"
    SESSION = "session timeout"
    REBALANCE = "rebalance timeout"
    SUBSCRIPTION = "subscription change"  # or other metadata of a classic member
    ASSIGNOR = "assignor change"
    TOPICS = "metadata change"
    REPLACED = "static replacement"
    REJOIN = "rejoin"  # of the leader of a classic group at rest, with the same metadata
    MIGRATION = "migration"  # to the other protocol, of a group or of a member
    SIZE = "group.max.size"
    DELETED = "group deletion"
    EXPIRY = "offset expiry"


class Because(NamedTuple):
    """A cause, the member whose it is, and what that has given as its reason."""

    cause: str
    member_id: MemberId | None = None
    reason: str | None = None


def headers_of(causes: Iterable[Because]) -> Headers:
    """The headers of a record: for each cause its name, then its member and its reason, if any."""
    headers: Headers = []
    for cause in list(dict.fromkeys(causes))[:MOST]:
        headers.append((CAUSE, cause.cause.encode()))
        if cause.member_id is not None:
            headers.append((MEMBER, cause.member_id.encode("utf-8", "replace")))
        if cause.reason:
            reason = cause.reason[:LONGEST_REASON]
            headers.append((REASON, reason.encode("utf-8", "replace")))
    return headers


def causes_in(headers: Iterable[tuple[str, bytes | None]]) -> list[Because]:
    """The causes that a record names. Headers of others, and those without sense, are skipped."""
    found: list[Because] = []
    for name, value in headers:
        text = (value or b"").decode("utf-8", "replace")
        if name == CAUSE:
            found.append(Because(text))
        elif name == MEMBER and found:
            found[-1] = found[-1]._replace(member_id=MemberId(text))
        elif name == REASON and found:
            found[-1] = found[-1]._replace(reason=text)
    return found
