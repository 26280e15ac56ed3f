# SPDX-License-Identifier: Apache-2.0
"""Why a member is gone.

The log has the same tombstones, or the same absence, for a member that left, was removed by an
administrator, or did not answer in time. The last sign of life rules some of these out. The rhythm
of its commits makes one of the others likely.
"""

from typing import NamedTuple

from kohort.history import outages
from kohort.history.commits import LONGEST_US, per_us, unusual_us, usual_us
from kohort.history.rows import (
    LEAVE,
    LEFT_AT_WORK,
    REBALANCE_TIMEOUT,
    SESSION_TIMEOUT,
    Likely,
    MemberRow,
    Who,
    seconds,
)
from kohort.history.state import FormerOwner, Progress, Removal, Rest
from kohort.history.story import SESSION_TIMEOUT_MS, Story

TOLERANCE_S = 1.0
"""How much closer in time two records may be than the coordinator's two decisions were: records
have the time at which their batch was begun.
"""
GRACE_S = 5.0
"""How late a timer may fire and still be what removed a member."""
MINUTE_US = 60_000_000
SEPARATOR = "; "
"""What stands between the evidence of removals, and all else that is said of a rebalance. Tables
have that text and no more, so what `would_be_decided` looks for in it is written by these.
"""
_IS_GONE = " is gone: "
_SIGN_OF_LIFE = "last sign of life "
_SESSION = "session timeout "
_ASSUMED = " assumed"
_BETWEEN_FACTS = ", "
OF_SESSION = 2 / 3
"""The last heartbeat of a member that commits may have been a third of its session before: commits
do not prolong the session of a member that speaks the consumer protocol.
"""
AT_WORK, AT_WORK_S = 1.5, 0.2
"""Who is at work has committed within this many times the usual distance, and so much."""


class Gone(NamedTuple):
    """A member that is gone, and what the log tells about its end."""

    who: Who
    at: int | None
    lost_at: int | None
    """When it lost what it had: not long after `at`, if that is not the same."""
    offset: int
    seen_at: int | None
    """When its session was last known to begin anew; None for unknown."""
    session_ms: int
    assumed: bool
    """Whether that is only the usual value."""
    rebalance_timeout_ms: int
    commits_prolong: bool = False
    """Whether a commit begins the session anew too."""
    waits_since: int | None = None
    """The earliest time at which its rebalance timeout may have begun to run; None: it did not run.
    """
    waits_exactly: bool = False
    """Whether it is known to have begun then."""
    away: bool = False
    """A static member that has left for a while: only its session keeps it."""


def gone_with(story: Story, row: MemberRow) -> Gone:
    """The member of a row that has ended with its group."""
    known = story.inputs.session_timeout_ms
    usual = SESSION_TIMEOUT_MS if known is None else known
    session_ms = row.session_timeout_ms
    return Gone(
        Who(row.member_id, row.client_id, row.group_instance_id, row.client_host),
        row.valid_to,
        row.valid_to,
        row.to_offset or 0,
        None,
        usual if session_ms is None else session_ms,
        session_ms is None and known is None,
        row.rebalance_timeout_ms,
    )


def last_commit(story: Story, gone: Gone) -> int | None:
    """When a partition that the member owned was last committed, no further back than its session
    reaches.
    """
    return max((at for at, _ in _commits(story, gone)), default=None)


def _commits(story: Story, gone: Gone) -> list[tuple[int, int]]:
    """When these were handled, and how long each may have waited for that."""
    if gone.at is None:
        return []
    reach_us = min(gone.session_ms * 1000, LONGEST_US)
    since = gone.at - reach_us
    return [
        (lost.committed_at, lost.waited_us)
        for lost in story.state.parted.get(gone.who.member_id, ())
        if lost.to_offset <= gone.offset
        and lost.until is not None
        and lost.until >= since
        and lost.committed_at is not None
        and lost.committed_at >= since // MINUTE_US * MINUTE_US
    ]


def judged(story: Story, gone: Gone, committed_at: int | None) -> Removal:
    """The removal with the causes that nothing rules out, the likelier ones first."""
    if outages.is_behind(story.state, gone.lost_at):
        gone, committed_at = gone._replace(seen_at=None), None
    silent = seconds(gone.seen_at, gone.at)
    sent_at = committed_at
    if sent_at is not None and not gone.commits_prolong:
        sent_at = max((at - waited for at, waited in _commits(story, gone)), default=sent_at)
    since_commit = seconds(sent_at, gone.at)
    session = gone.session_ms / 1000
    of_commits = session if gone.commits_prolong else session * OF_SESSION
    session_over = (
        (session if silent is None else silent) >= session - TOLERANCE_S
        and (of_commits if since_commit is None else since_commit) >= of_commits - TOLERANCE_S
    ) or gone.away
    waited = seconds(gone.waits_since, gone.at)
    timeout = gone.rebalance_timeout_ms / 1000
    overdue = waited is not None and waited >= timeout - TOLERANCE_S and timeout >= 0
    if overdue and gone.waits_exactly and waited is not None and waited <= timeout + GRACE_S:
        possible = [REBALANCE_TIMEOUT]
    else:
        possible = [SESSION_TIMEOUT] if session_over else []
        possible += [REBALANCE_TIMEOUT] if overdue else []
        possible.append(LEAVE)
        possible += [SESSION_TIMEOUT] if gone.assumed and not session_over else []
    removal = Removal(
        gone.who,
        possible,
        _evidence(gone, committed_at, sent_at),
        Likely(gone.who.member_id, gone.who.client_id, gone.who.client_host, None, None, None),
        gone.at,
        max((at for at in (gone.seen_at, committed_at) if at is not None), default=None),
    )
    _guess(story, gone, removal)
    return removal


def would_be_decided(evidence: str | None) -> bool:
    """Whether the cause of a rebalance may follow from the session timeout of the cluster, by its
    `evidence`: only the usual one was assumed, and a member has shown a sign of life that tells how
    much of its session was over.
    """
    for removal in (evidence or "").split(SEPARATOR):
        _, is_gone, words = removal.rpartition(_IS_GONE)  # before it stand names that clients chose
        facts = words.split(_BETWEEN_FACTS) if is_gone else []
        shown = any(fact.startswith(_SIGN_OF_LIFE) for fact in facts)
        if shown and any(fact.startswith(_SESSION) and fact.endswith(_ASSUMED) for fact in facts):
            return True
    return False


def _evidence(gone: Gone, committed_at: int | None, sent_at: int | None) -> str:
    facts = []
    if (silent := _between(gone.seen_at, gone.at)) is not None:
        facts.append(f"{_SIGN_OF_LIFE}{silent} s before")
    if (since_commit := _between(committed_at, gone.at)) is not None:
        facts.append(f"last commit of its partitions {since_commit} s before")
        if sent_at != committed_at:
            facts.append(f"which may have been sent {_between(sent_at, gone.at)} s before")
    assumed = _ASSUMED if gone.assumed else ""
    facts.append(f"{_SESSION}{tenths(gone.session_ms * 1000)} s{assumed}")
    if gone.waits_since is not None:
        waited = _between(gone.waits_since, gone.at)
        if gone.waits_exactly and waited is not None:
            facts.append(f"had partitions to give up for {waited} s")
        facts.append(f"rebalance timeout {tenths(gone.rebalance_timeout_ms * 1000)} s")
    if gone.away:
        facts.append("static, had left for a while")
    return f"{gone.who.in_words}{_IS_GONE}{_BETWEEN_FACTS.join(facts)}"


def _between(begin: int | None, end: int | None) -> str | None:
    return None if begin is None or end is None else tenths(end - begin)


def tenths(micros: int) -> str:
    """Seconds with one decimal place, halves away from zero."""
    whole = (abs(micros) + 50_000) // 100_000
    return f"{'-' if micros < 0 and whole else ''}{whole // 10}.{whole % 10}"


def _guess(story: Story, gone: Gone, removal: Removal) -> None:
    """What is likely, where the member had partitions to its end and committed one in a rhythm.
    Commits that may be missing lead to no conclusion, nor does one that may have waited for the
    coordinator, or a silence that all have shared.
    """
    found = _latest(story, gone)
    if outages.is_behind(story.state, gone.lost_at):
        return
    if found is None or gone.at is None or not story.inputs.is_complete(found.rhythm.last_offset):
        return
    usual, rate = usual_us(found.rhythm), per_us(found.rhythm)
    last_at, committed = found.rhythm.last_at, found.rhythm.last_committed
    assert usual is not None
    assert last_at is not None
    silent_s, usual_s = (gone.at - last_at) / 1e6, usual / 1e6
    removal.likely = removal.likely._replace(silent_seconds=silent_s, usual_seconds=usual_s)
    session_s = gone.session_ms / 1000
    least_s = session_s if gone.commits_prolong else session_s * OF_SESSION
    timeout_s = gone.rebalance_timeout_ms / 1000
    put_out_s = least_s if timeout_s < 0 else min(least_s, timeout_s)
    within_rhythm = silent_s < _at_work_us(usual) / 1e6
    at_work = within_rhythm and silent_s < least_s - TOLERANCE_S
    long_enough = silent_s >= put_out_s - TOLERANCE_S
    if found.rhythm.waited_us > unusual_us(usual):
        return
    if at_work:
        removal.likely = removal.likely._replace(likely=LEFT_AT_WORK)
        return
    if outages.has_changed_since(story.state, last_at):
        return
    for_a_session = (long_enough and not gone.assumed and not within_rhythm) and _went_on(
        story, gone, last_at + usual
    )
    for_unusually_long = (
        silent_s > unusual_us(usual) / 1e6
        and (long_enough or gone.assumed)
        and not _is_shared(story, gone, last_at, unusual_us(usual))
    )
    if (for_a_session or for_unusually_long) and committed is not None and rate:
        removal.waits_for = found.named
        removal.last_commit, removal.per_us = (last_at, committed), rate


def _at_work_us(usual: float) -> float:
    """Who is at work has committed within this time."""
    return AT_WORK * usual + AT_WORK_S * 1e6


def _went_on(story: Story, gone: Gone, since: float) -> bool:
    """Whether another partition was committed in its rhythm until the member was removed: then its
    owner has found the coordinator at work, and a silence of a whole session is the member's own,
    also where that is short beside the rhythm of its commits.

    A coordinator that stands still for less than two thirds of a session puts nobody out: of who is
    there a heartbeat waits for it.
    """
    assert gone.at is not None
    harmless_us = (gone.session_ms / 1000 * OF_SESSION - TOLERANCE_S) * 1e6
    rest = story.state.rest
    if rest is not None and _puts_out(rest, gone, harmless_us):
        return False
    for progress in _others(story, gone):
        usual = usual_us(progress.rhythm)
        if usual is None or progress.last_at is None:
            continue
        sent_at = progress.last_at
        if progress.waited_us >= harmless_us:
            sent_at -= progress.waited_us
        if sent_at > since and gone.at - sent_at <= _at_work_us(usual):
            return True
    return False


def _puts_out(rest: Rest, gone: Gone, harmless_us: float) -> bool:
    """Whether a rest of the coordinator may be what removed the member."""
    assert gone.at is not None
    right_behind = rest.until <= gone.at <= rest.until + outages.BEHIND_REST_US
    return right_behind and rest.until - rest.since >= harmless_us


def _others(story: Story, gone: Gone) -> list[Progress]:
    """The progress of partitions that the member did not have at its end."""
    own = {
        lost.named
        for lost in story.state.parted.get(gone.who.member_id, ())
        if lost.until == gone.lost_at
    }
    return [progress for named, progress in story.state.progress.items() if named not in own]


def _is_shared(story: Story, gone: Gone, last_at: int, unusual: float) -> bool:
    """Whether the others who were at work with the member have fallen silent with it. Then nobody
    has seen the coordinator at work since, and it may have been away itself.
    """
    others = [
        progress.last_at - progress.waited_us
        for progress in _others(story, gone)
        if progress.last_at is not None and progress.last_at >= last_at - unusual
    ]
    return bool(others) and max(others) <= last_at + unusual


def _latest(story: Story, gone: Gone) -> FormerOwner | None:
    """Of the partitions that the member lost by being removed, the one that it committed last."""
    found = [
        lost
        for lost in story.state.parted.get(gone.who.member_id, ())
        if lost.until == gone.lost_at and usual_us(lost.rhythm) is not None
    ]
    return max(found, key=lambda lost: lost.rhythm.last_at or 0, default=None)
