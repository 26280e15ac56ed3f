# SPDX-License-Identifier: Apache-2.0
"""For how long a history says that nobody read a partition, held against the clients' own polls.

The measure is the rhythm of a client: it commits what it has polled within an interval of its
commits, and polls again within one of its polls. Commits can tell no more exactly than that.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.spark.downtime.checks import AFTER_MS, removed_at
from tests.spark.downtime.replay import Polled, Story

from kohort.history import RebalanceRow
from kohort.history.commits import (
    EARLIER,
    FEW_COMMITS,
    IDLE,
    NO_COMMIT_SINCE,
    NO_COMMITS,
    PERHAPS_AWAY,
)

GAPS = 2
"""A true gap is longer by so many rhythms at most: one at its begin, and one at its end."""


class Unread(NamedTuple):
    """An interval that a history tells, in milliseconds, and the polls around it."""

    group: str
    partition: int
    since: float
    until: float
    before: Polled
    after: Polled
    inside: list[Polled]
    """Polls well within the interval."""

    @property
    def longer_ms(self) -> float:
        """By how much the clients saw a longer gap."""
        return self.after.at - self.before.at - (self.until - self.since)

    def __str__(self) -> str:
        place = f"{self.group} {self.partition}"
        told = f"unread from {self.since:.0f} to {self.until:.0f}"
        return f"{place} is {told}, polled by {self.before} and by {self.after}"


def rhythm_ms(story: Story) -> float:
    return float(story.truth["commit_s"] + story.truth["poll_s"]) * 1000


def measured(
    story: Story, group: str, rows: list[RebalanceRow], slack_ms: float = 0
) -> list[Unread]:
    """Every interval that has a length."""
    least = rhythm_ms(story) + slack_ms
    found = []
    for part in (part for row in rows for part in row.unread):
        if part.since is None or part.until is None:
            continue
        since, until = part.since / 1000, part.until / 1000
        polls = story.polled[group, part.topic_partition]
        earlier = [number for number, poll in enumerate(polls) if poll.at <= since + least]
        number = earlier[-1] if earlier else 0
        inside = [poll for poll in polls[number:] if since + least < poll.at < until - least]
        found.append(
            Unread(
                group,
                part.topic_partition,
                since,
                until,
                polls[number],
                polls[number + 1],
                [poll for poll in inside if not _is_read_again(poll, polls)],
            )
        )
    return found


def _is_read_again(poll: Polled, polls: list[Polled]) -> bool:
    """Whether the same records were read later: then nobody could acknowledge them before, as where
    a client reads on that is no member any more.
    """
    return any(other.at > poll.at and other.first <= poll.last for other in polls)


def wrong_lengths(
    story: Story, group: str, rows: list[RebalanceRow], slack_ms: float = 0
) -> Iterator[str]:
    """Nobody read within, and what the clients saw was not much longer."""
    most = GAPS * rhythm_ms(story) + slack_ms
    for one in measured(story, group, rows, slack_ms):
        if one.inside:
            yield f"{one}, and meanwhile by {one.inside[0]}"
        if one.longer_ms > most:
            yield f"{one}: {one.longer_ms:.0f} ms longer"


def wrong_reasons(
    story: Story, group: str, rows: list[RebalanceRow], slack_ms: float = 0
) -> Iterator[str]:
    """What has no length has a reason, which fits what the clients saw."""
    for row in rows:
        at = removed_at(row)
        for part in row.unread:
            fits = part.since is not None
            if not fits and part.unknown is not None:
                fits = _fits(story, (group, part.topic_partition), part.unknown, at, slack_ms)
            if not fits or (part.since is None) != (part.until is None):
                yield f"{group} {part.topic_partition} at {at:.0f}: {part}"


def _fits(story: Story, place: tuple[str, int], why: str, at: float, slack_ms: float) -> bool:
    least = rhythm_ms(story) + slack_ms
    commits = story.committed.get(place, [])
    polls = story.polled.get(place, [])
    if why == NO_COMMITS:
        return all(one.at > at - least for one in commits)
    if why == NO_COMMIT_SINCE:
        return all(one.at < at + least for one in commits)
    if why == IDLE:  # little was waiting, so that nobody waited for long
        before = [one.at for one in polls if one.at <= at + least]
        after = [one.at for one in polls if one.at > at + least]
        return bool(before and after) and after[0] - before[-1] <= GAPS * least
    if why == PERHAPS_AWAY:
        return any(one.at <= at <= one.until + AFTER_MS for one in story.outages)
    return why in {FEW_COMMITS, EARLIER}
