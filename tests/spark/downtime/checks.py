# SPDX-License-Identifier: Apache-2.0
"""What a history says, held against what was done and what the clients saw: a sentence for each
thing that is wrong.

Causes are judged by what was done. Of two grades: a trigger is a proof, `likely` is none, and both
are null or unknown rather than wrong.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.spark.downtime.replay import Done, Story

from kohort.history import RebalanceRow
from kohort.history.rows import (
    COORDINATOR_AWAY,
    LEAVE,
    LEFT_AT_WORK,
    REBALANCE_TIMEOUT,
    SESSION_TIMEOUT,
    UNKNOWN,
    WENT_SILENT,
)

LIKELY = {
    "kill": WENT_SILENT,
    "stop": WENT_SILENT,
    "hang": WENT_SILENT,
    "leave": LEFT_AT_WORK,
    "pause": COORDINATOR_AWAY,
    "crash": COORDINATOR_AWAY,
}
"""What may be said about a member of whom no more is known than what it committed."""
_TIMERS = {SESSION_TIMEOUT, REBALANCE_TIMEOUT}
PROVEN = {
    "kill": _TIMERS,
    "stop": _TIMERS,
    "hang": {*_TIMERS, LEAVE},  # who has hung for too long leaves by itself
    "leave": {LEAVE},
    "pause": {*_TIMERS, LEAVE},  # as does who hears of no coordinator any more
    "crash": {*_TIMERS, LEAVE},
}
FINAL = {"kill", "leave"}
OF_REMOVALS = {SESSION_TIMEOUT, REBALANCE_TIMEOUT, LEAVE, UNKNOWN}
AFTER_MS = 15_000
"""How long after an outage a member may still be removed by it: its session, and a rebalance."""
SLACK_MS = 700
"""How late a process may notice on a loaded machine what is there."""


def removed_at(row: RebalanceRow) -> float:
    """In milliseconds."""
    at = row.started_at if row.started_at is not None else row.started_before
    assert at is not None
    return at / 1000


def reasons(story: Story, client: str, at: float) -> list[Done]:
    """All that was done and may have removed a member of the client by then."""
    own = [one for one in story.done_to(client) if one.at <= at + SLACK_MS][-1:]
    lasting = [one for one in own if one.what in FINAL or one.until + AFTER_MS >= at]
    return lasting + [one for one in story.outages if one.at <= at <= one.until + AFTER_MS]


class Removed(NamedTuple):
    """A member that is gone, as the history tells it, and why it may have gone."""

    row: RebalanceRow
    client: str
    likely: str | None
    reasons: list[Done]


def removals(story: Story, rows: list[RebalanceRow]) -> list[Removed]:
    return [
        Removed(row, one.client_id or "", one.likely, reasons(story, one.client_id or "", at))
        for row in rows
        for at in [removed_at(row)]
        for one in row.likely
    ]


def wrong_guesses(story: Story, rows: list[RebalanceRow]) -> Iterator[str]:
    """`likely` names what was done, or nothing."""
    for one in removals(story, rows):
        allowed = {LIKELY[reason.what] for reason in one.reasons}
        if one.likely is not None and one.likely not in allowed:
            yield f"{_named(story, one)} is said to have {one.likely}"


def wrong_proofs(story: Story, rows: list[RebalanceRow]) -> Iterator[str]:
    """A trigger names how members went, which follows from what was done to them."""
    for row in rows:
        gone = [one for one in removals(story, rows) if one.row is row]
        allowed = {UNKNOWN}.union(*(PROVEN[reason.what] for one in gone for reason in one.reasons))
        said = {*row.triggers} & OF_REMOVALS
        if gone and not said <= allowed:
            names = ", ".join(_named(story, one) for one in gone)
            yield f"the trigger {sorted(said)} is proven for {names}"


def contradictions(told: list[RebalanceRow], proven: list[RebalanceRow]) -> Iterator[str]:
    """What follows from keys and values alone is what the coordinator has said, or unknown."""
    for row, other in zip(told, proven, strict=True):
        said = {*row.triggers} & (OF_REMOVALS - {UNKNOWN})
        known = {*other.triggers} & OF_REMOVALS
        if UNKNOWN not in known and not said <= known:
            yield f"epoch {row.epoch}: {sorted(said)}, where the coordinator said {sorted(known)}"
        if UNKNOWN in {*row.triggers} and UNKNOWN not in known and not known <= {*row.possible}:
            yield f"epoch {row.epoch}: {row.possible}, where the coordinator said {sorted(known)}"


def _named(story: Story, one: Removed) -> str:
    began = story.done[0].at
    done = ", ".join(
        f"{reason.what} {reason.who} at {(reason.at - began) / 1000:.1f}" for reason in one.reasons
    )
    at = (removed_at(one.row) - began) / 1000
    return f"{one.client}, gone at {at:.1f} s in epoch {one.row.epoch} ({done or 'nothing done'}),"
