# SPDX-License-Identifier: Apache-2.0
"""Makes the row of a rebalance from what is known of it.

Causes that the log proves are named. Where it only tells that a member is gone, the trigger is
unknown, and all causes are listed that nothing rules out.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kohort.history.commits import FIRST_OWNER, NO_COMMIT_SINCE
from kohort.history.removals import SEPARATOR, would_be_decided
from kohort.history.rows import (
    ASSIGNOR_CHANGE,
    JOIN,
    LEAVE,
    METADATA_CHANGE,
    MIGRATION,
    SUBSCRIPTION_CHANGE,
    TRIGGERS,
    UNKNOWN,
    OwnershipGap,
    RebalanceRow,
    Unread,
    Who,
    distinct,
    null_first,
    seconds,
)
from kohort.history.state import Number, Rebalance, Removal, Resolution, Silence
from kohort.history.story import HistoryInputs


class RebalanceExplanation(NamedTuple):
    """What a rebalance was about, of either kind of group."""

    epoch: int
    members: int
    times: tuple[int | None, int | None, int | None]
    """When it started, and the times after and before which it started."""
    assigned_at: int | None
    ended_at: int | None
    proven: list[str]
    facts: list[str]
    joined: list[Who]
    changed: list[Who]
    removals: list[Removal]
    by_hash_alone: bool = False


def undecided_or_none(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """What decides the causes of rebalances that are unknown for want of the session timeout, and
    how many they are; None where there are none. A row has `trigger` and `evidence`.
    """
    count = sum(row["trigger"] == UNKNOWN and would_be_decided(row["evidence"]) for row in rows)
    if not count:
        return None
    what = f"{count:,} unknown causes rest" if count > 1 else "1 unknown cause rests"
    return (
        f"{what} on an assumed session timeout: `--session-timeout` with the cluster's "
        "group.consumer.session.timeout.ms (45s by default) decides those whose member had shown "
        "a sign of life within it"
    )


def row_of(rebalance: Rebalance, inputs: HistoryInputs) -> RebalanceRow | None:
    """The row of a rebalance; None where the record that names it is not there."""
    if rebalance.group_type == "classic":
        found = _of_generation(rebalance)
    else:
        found = None if rebalance.number is None else _of_epoch(rebalance, rebalance.number)
    return None if found is None else _row(rebalance, found, inputs)


def _of_generation(rebalance: Rebalance) -> RebalanceExplanation | None:
    compared = rebalance.compared
    if compared is None:
        return None
    return RebalanceExplanation(
        compared.generation,
        compared.members,
        (None, compared.after, compared.joined_by),
        compared.at,
        compared.at,
        compared.proven,
        compared.facts,
        compared.joined,
        compared.changed,
        _in_order(rebalance.removals),
    )


def _in_order(removals: list[Removal]) -> list[Removal]:
    return sorted(
        removals, key=lambda removal: (null_first(removal.who), removal.possible, removal.evidence)
    )


class _Facts(NamedTuple):
    """What led to an epoch, without members that only took the place of another."""

    joined: list[Who]
    left: list[Removal]
    resubscribed: list[Who]
    revoted: list[Who]
    resolved: list[Resolution]
    brought: list[Resolution]
    rewritten: list[Resolution]


def _of_epoch(rebalance: Rebalance, number: Number) -> RebalanceExplanation:
    facts = _facts(rebalance)
    named = bool(
        rebalance.upgrades
        or facts.joined
        or facts.left
        or facts.resubscribed
        or facts.resolved
        or rebalance.matches_others
    )
    hashes = (number.hash_before, number.hash)
    comparable = number.known_before and None not in hashes
    same_hash = comparable and hashes[0] == hashes[1]
    alone = not named and not rebalance.other_topics
    by_hash = alone and comparable and not same_hash
    by_vote = alone and bool(facts.revoted) and same_hash
    only_epoch = not named and same_hash and not by_vote
    migrates = rebalance.upgrades or rebalance.succeeds_classic
    proven = {
        MIGRATION: migrates,
        SUBSCRIPTION_CHANGE: facts.resubscribed or facts.rewritten,
        ASSIGNOR_CHANGE: by_vote,
        JOIN: facts.joined or facts.brought,
        # Nothing but an epoch, and topics that are not what they were, is a change of topics.
        METADATA_CHANGE: rebalance.matches_others
        or by_hash
        or (not named and rebalance.other_topics),
    }
    voters = facts.revoted if by_vote else []
    left = facts.left
    if len(left) > 1:  # one epoch for several that are gone: only a request can remove them at once
        left = [_as_left(removal) for removal in left]
    started = number.at
    return RebalanceExplanation(
        number.epoch,
        number.size,
        (started, started, started),
        rebalance.assigned_at,
        number.at if number.size == 0 else rebalance.done_at,
        [name for name, is_so in proven.items() if is_so],
        _words(rebalance, facts, by_hash=by_hash, only_epoch=only_epoch),
        distinct([*facts.joined, *_subscribers(facts.brought)]),
        distinct([*facts.resubscribed, *voters, *_subscribers(facts.rewritten)]),
        left,
        by_hash,
    )


def _subscribers(resolved: list[Resolution]) -> list[Who]:
    return [resolution.who for resolution in resolved if resolution.who is not None]


def _facts(rebalance: Rebalance) -> _Facts:
    came = _sorted(rebalance.came)
    gone = _instances([removal.who for removal in rebalance.removals])
    new = _instances(came)
    resolved = sorted(
        rebalance.resolved,
        key=lambda resolution: null_first(
            (resolution.expression, resolution.topics, resolution.who, resolution.comes)
        ),
    )
    return _Facts(
        [member for member in came if member.group_instance_id not in gone],
        [
            removal
            for removal in _in_order(rebalance.removals)
            if removal.who.group_instance_id not in new
        ],
        _sorted(rebalance.resubscribed),
        _sorted(rebalance.revoted),
        resolved,
        [resolution for resolution in resolved if resolution.comes],
        [resolution for resolution in resolved if not resolution.comes],
    )


def _sorted(members: list[Who]) -> list[Who]:
    return sorted(distinct(members), key=null_first)


def _instances(members: list[Who]) -> set[str]:
    return {member.group_instance_id for member in members if member.group_instance_id is not None}


def _as_left(removal: Removal) -> Removal:
    possible = removal.possible if removal.settled else [LEAVE]
    return Removal(removal.who, possible, removal.evidence, removal.likely)


def _words(rebalance: Rebalance, facts: _Facts, *, by_hash: bool, only_epoch: bool) -> list[str]:
    resolutions = "; ".join(
        f"{resolution.expression} was resolved for the first time, to {resolution.topics} topics"
        for resolution in facts.resolved
    )
    converted = ""
    if rebalance.upgrades:
        converted = "a classic group was converted"
    elif rebalance.succeeds_classic:
        converted = "an empty classic group was converted"
    words = {
        f"{_names(facts.joined)} joined": facts.joined,
        f"{_names(facts.resubscribed)} changed the subscription": facts.resubscribed,
        f"{_names(facts.revoted)} asks for another assignor": facts.revoted,
        resolutions: facts.resolved,
        "a regular expression matches other topics": rebalance.matches_others,
        converted: converted,
        "only the metadata hash is another": by_hash,
        "only the epoch is another, not the metadata hash": only_epoch,
    }
    return [text for text, is_so in words.items() if is_so]


def _names(members: list[Who]) -> str:
    return ", ".join(member.in_words for member in members)


def _row(rebalance: Rebalance, found: RebalanceExplanation, inputs: HistoryInputs) -> RebalanceRow:
    started, after, before = found.times
    ended = found.ended_at
    is_superseded = rebalance.ends and rebalance.group_type == "consumer"
    triggers = _triggers(rebalance, found, inputs)
    uncertain = [removal.possible for removal in found.removals if len(removal.possible) > 1]
    moves = sorted(rebalance.moves, key=null_first)
    unread = sorted((_unread(silence) for silence in rebalance.silences), key=null_first)
    known = [lasted for lasted in map(_least, unread) if lasted is not None]
    return RebalanceRow(
        rebalance.group_type,
        found.epoch,
        rebalance.offset,
        started,
        after,
        before,
        found.assigned_at,
        ended,
        seconds(started, ended),
        seconds(before, ended),
        seconds(after, ended),
        "completed" if ended is not None else "superseded" if is_superseded else "open",
        triggers[0],
        triggers,
        list(dict.fromkeys(cause for possible in uncertain for cause in possible)),
        [removal.likely for removal in found.removals],
        SEPARATOR.join(
            [*found.facts, *(removal.evidence for removal in found.removals), *rebalance.said]
        ),
        found.joined,
        [removal.who for removal in found.removals],
        found.changed,
        found.members,
        len(rebalance.involved),
        sum(move.from_member_id not in {None, move.to_member_id} for move in moves),
        moves,
        _unowned(rebalance),
        unread,
        sum(known) if known else None,
        max(known) if known else None,
        rebalance.computed,
    )


def _triggers(
    rebalance: Rebalance, found: RebalanceExplanation, inputs: HistoryInputs
) -> list[str]:
    """The triggers in their order; the first one names the rebalance. If nothing was written beside
    the epoch, that proves something only where nothing can be hidden.
    """
    complete = inputs.complete_offset
    is_sound = not found.by_hash_alone or (complete is not None and rebalance.offset >= complete)
    causes = {cause for cause in found.proven if is_sound or cause != METADATA_CHANGE}
    causes |= {
        removal.possible[0] if len(removal.possible) == 1 else UNKNOWN for removal in found.removals
    }
    causes |= {*rebalance.written}
    return [trigger for trigger in TRIGGERS if trigger in causes] or [UNKNOWN]


def _unowned(rebalance: Rebalance) -> list[OwnershipGap]:
    gaps = [
        OwnershipGap(gap.topic_id, gap.topic, gap.topic_partition, gap.seconds)
        for gap in rebalance.gaps
        if not gap.handed_over
    ]
    return sorted(gaps, key=null_first)


def _unread(silence: Silence) -> Unread:
    of_partition = (silence.topic_id, silence.topic, silence.topic_partition)
    lasted = seconds(silence.since, silence.until)
    if silence.unknown == FIRST_OWNER:
        return Unread(*of_partition, None, silence.since, silence.until, FIRST_OWNER, None)
    if silence.unknown is not None or lasted is None:
        return Unread(*of_partition, None, None, None, silence.unknown or NO_COMMIT_SINCE, None)
    error = None if silence.usual_us is None else silence.usual_us / 1e6
    return Unread(*of_partition, lasted, silence.since, silence.until, None, error)


def _least(unread: Unread) -> float | None:
    """For how long nobody read a partition at least; null where that says nothing."""
    least = seconds(unread.since, unread.until) if unread.seconds is None else unread.seconds
    return least or unread.seconds
