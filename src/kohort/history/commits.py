# SPDX-License-Identifier: Apache-2.0
"""Commits of partitions: they show that an owner was alive, and what was read when.

The rhythm of an owner is how far its commits are apart. Commits come folded, so the rhythm is a
mean. Fewer than three commits have no rhythm.
"""

from kohort.history import backlog, outages
from kohort.history.events import Commits
from kohort.history.rows import WENT_SILENT, seconds
from kohort.history.state import (
    Backlog,
    Holding,
    NamedPlace,
    Progress,
    Rebalance,
    Removal,
    Rhythm,
    Silence,
)
from kohort.history.story import Story

FEWEST = 3
LONGEST_US = 1_800_000_000
"""How far back commits are looked for, and how long one is awaited, whatever the sessions are."""
SILENT, SILENT_S = 3.0, 0.5
"""Silence is longer than this many times the usual distance of commits, and by so much."""
LATE_US = 10_000_000
"""How long after it has lost a partition a member commits it at most: it hears of the loss with its
next heartbeat.
"""

NO_NAME = "the name of the topic is not known"
NO_COMMITS = "no commit before"
FEW_COMMITS = "too few commits before"
EARLIER = "unread since an earlier rebalance"
IDLE = "idle"
PERHAPS_AWAY = "idle, or the coordinator was away"
"""Silent for longer than a member stays that nobody hears of, or until a commit that may have
waited for the coordinator."""
SET = "somebody else has committed meanwhile"
OTHER_CLOCK = "the clock has gone back"
MISSING = "commits may be missing"
NO_COMMIT_SINCE = "no commit since"
FIRST_OWNER = "since when it was there is not known, nobody had it before"


def usual_us(rhythm: Rhythm) -> float | None:
    """How far the commits are apart, in microseconds; None where there are too few of them."""
    if rhythm.count < FEWEST or rhythm.first_at is None or rhythm.last_at is None:
        return None
    return (rhythm.last_at - rhythm.first_at) / (rhythm.count - 1)


def unusual_us(usual: float) -> float:
    """Without commits for longer than this, somebody is silent."""
    return SILENT * usual + SILENT_S * 1e6


def per_us(rhythm: Rhythm) -> float | None:
    """How many records were read in a microsecond; None where that is unknown."""
    if usual_us(rhythm) is None or None in (rhythm.first_committed, rhythm.last_committed):
        return None
    assert rhythm.first_at is not None
    assert rhythm.last_at is not None
    assert rhythm.first_committed is not None
    assert rhythm.last_committed is not None
    length = rhythm.last_at - rhythm.first_at
    return (rhythm.last_committed - rhythm.first_committed) / length if length > 0 else None


def on_commits(story: Story, event: Commits) -> None:
    """A run of commits of one partition."""
    state = story.state
    named = (event.topic, event.topic_partition)
    progress = state.progress.setdefault(named, Progress())
    is_owned = named in state.held
    _end_silences(story, progress, event, is_owned=is_owned)
    _judge_removals(story, progress, event, is_owned=is_owned)
    if story.inputs.is_complete(event.offset) and not story.inputs.is_complete(
        progress.last_offset
    ):
        progress.rhythm = Rhythm()  # over a hole there is none
    waited_us = outages.waited_us(story, event)
    _add(progress, event, waited_us)
    _judge_so_far(story, progress)
    outages.on_commit(state, event.leader_epoch, event.first_at)
    if event.plain and event.at is not None:
        for group_type, member_id, place in state.held.get(named, ()):
            holding = _holding(story, group_type, member_id, place)
            if holding.committed_at is None or event.at >= holding.committed_at:
                holding.committed_at, holding.waited_us = event.at, waited_us


def _holding(story: Story, group_type: str, member_id: str, place: NamedPlace) -> Holding:
    state = story.state
    holdings = state.holdings if group_type == "consumer" else state.classic_holdings
    return holdings[member_id][place]


def _add(progress: Progress, event: Commits, waited_us: int) -> None:
    rhythm = progress.rhythm
    rhythm.count += event.count
    rhythm.last_offset = progress.last_offset = event.offset
    if event.first_at is not None and (rhythm.first_at is None or event.first_at < rhythm.first_at):
        rhythm.first_at, rhythm.first_committed = event.first_at, event.first_committed
    if event.at is not None:
        if rhythm.last_at is None or event.at >= rhythm.last_at:
            rhythm.last_at, rhythm.last_committed = event.at, event.last_committed
            rhythm.waited_us = waited_us
        if progress.last_at is None or event.at >= progress.last_at:
            progress.last_at, progress.last_committed = event.at, event.last_committed
            progress.waited_us = waited_us


def _end_silences(story: Story, progress: Progress, event: Commits, *, is_owned: bool) -> None:
    for silence in _silences(story, progress).values():
        if not is_owned:
            _note_ownerless(silence, event)
        elif silence.backlog is None:
            _end_silence(silence, event)
        else:
            _go_on_with(silence, silence.backlog, progress, event)
    progress.silences = list(_silences(story, progress))


def _silences(story: Story, progress: Progress) -> dict[tuple[int, int], Silence]:
    """Those about which commits may still tell more, by offset of the rebalance and number."""
    rebalances = story.state.rebalances
    return {
        (offset, number): silence
        for offset, number in progress.silences
        if offset in rebalances and (silence := rebalances[offset].silences[number]).ongoing
    }


def _go_on_with(silence: Silence, waits: Backlog, progress: Progress, event: Commits) -> None:
    verdict = backlog.judge(waits, progress, event)
    if verdict is not None:
        silence.unknown, silence.ongoing = None if verdict else IDLE, False


def _judge_so_far(story: Story, progress: Progress) -> None:
    """What the last commit shows counts until a later one decides."""
    for silence in _silences(story, progress).values():
        if silence.backlog is not None:
            silence.unknown = None if backlog.shows(silence.backlog, progress) else IDLE
    for removal in _removals(story, progress).values():
        if removal.backlog is not None:
            _guess_silent(removal, is_so=backlog.shows(removal.backlog, progress))


def _note_ownerless(silence: Silence, event: Commits) -> None:
    """A commit while nobody has the partition may be the last one of who had it: cooperative
    members commit what they give up after it was taken from them (KIP-429). Later it is of somebody
    else, who sets the offsets: then nobody knows what there was to read, beyond what the next owner
    has shown before.
    """
    if silence.backlog is not None:
        silence.ongoing = False
    elif silence.lost_at is None or event.at is None or event.at > silence.lost_at + LATE_US:
        too_late = not _waits(silence, event.first_at)
        silence.ongoing, silence.unknown = False, NO_COMMIT_SINCE if too_late else SET
    elif silence.last_at is None or event.at >= silence.last_at:
        silence.last_at, silence.committed = event.at, event.last_committed


def _end_silence(silence: Silence, event: Commits) -> None:
    silence.ongoing = False
    if None in (silence.last_at, silence.lost_at, silence.usual_us, event.first_at):
        silence.unknown = NO_COMMIT_SINCE
        return
    assert silence.last_at is not None
    assert silence.lost_at is not None
    assert silence.usual_us is not None
    assert event.first_at is not None
    if event.first_at < silence.lost_at - outages.SHORTEST_REST_US:
        silence.unknown = OTHER_CLOCK
        return
    if event.first_at - silence.lost_at > LONGEST_US:
        silence.unknown = NO_COMMIT_SINCE
        return
    since = silence.last_at + round(silence.usual_us)
    silence.since, silence.until = min(since, event.first_at), event.first_at
    silent = event.first_at > since
    if silent and silence.committed is not None and event.first_committed is not None:
        ahead = event.first_committed - silence.committed
        if ahead <= 0 or ahead < (silence.per_us or 0.0) * silence.usual_us * backlog.HALF:
            before = (silence.last_at, silence.committed)
            latest = silence.lost_at + LONGEST_US
            silence.unknown = IDLE
            silence.backlog = backlog.begin(before, silence.per_us, event, latest)
            silence.ongoing = silence.backlog is not None


def add_removal(story: Story, rebalance: Rebalance, removal: Removal) -> None:
    """A rebalance removes a member. The next commit may tell why."""
    number = len(rebalance.removals)
    rebalance.removals.append(removal)
    outages.gone(story.state, removal.who.member_id, rebalance.offset, number)
    if removal.waits_for is not None:
        progress = story.state.progress.setdefault(removal.waits_for, Progress())
        progress.removals.append((rebalance.offset, number))


def _judge_removals(story: Story, progress: Progress, event: Commits, *, is_owned: bool) -> None:
    for removal in _removals(story, progress).values():
        if not is_owned:  # somebody sets the offset: that tells nothing of what there was to read
            removal.waits_for = None
        elif removal.backlog is None:
            _judge_removal(removal, progress, event)
        else:
            verdict = backlog.judge(removal.backlog, progress, event)
            if verdict is not None:
                removal.waits_for = None
                _guess_silent(removal, is_so=verdict)
    progress.removals = list(_removals(story, progress))


def _removals(story: Story, progress: Progress) -> dict[tuple[int, int], Removal]:
    """Those that commits may still help to judge, by offset of the rebalance and number."""
    rebalances = story.state.rebalances
    return {
        (offset, number): removal
        for offset, number in progress.removals
        if offset in rebalances
        and (removal := rebalances[offset].removals[number]).waits_for is not None
    }


def _judge_removal(removal: Removal, progress: Progress, event: Commits) -> None:
    """Silence counts only where there was work all the while: the records that have been waiting
    since the last commit must be about as many as the member would have read.
    """
    waits_for, removal.waits_for = removal.waits_for, None
    before, rate = removal.last_commit, removal.per_us
    late = seconds(removal.removed_at, event.first_at)
    if before is None or rate is None or late is None or late > LONGEST_US / 1e6:
        return
    at, committed = before
    assert event.first_at is not None
    assert removal.removed_at is not None
    if progress.last_at != at or event.first_committed is None:
        return
    ahead = event.first_committed - committed
    if ahead >= max(1.0, backlog.HALF * rate * (event.first_at - at)):
        _guess_silent(removal, is_so=True)
        return
    removal.backlog = backlog.begin(before, rate, event, removal.removed_at + LONGEST_US)
    removal.waits_for = None if removal.backlog is None else waits_for


def _guess_silent(removal: Removal, *, is_so: bool) -> None:
    removal.likely = removal.likely._replace(likely=WENT_SILENT if is_so else None)


def begin_silence(
    story: Story, silence: Silence, offset: int, number: int, longest_us: int
) -> None:
    """A partition has lost its owner, which may have been silent for as long as the moment says."""
    state = story.state
    if silence.topic is None:
        silence.unknown = NO_NAME
        return
    progress = state.progress.get((silence.topic, silence.topic_partition))
    if progress is None or progress.last_at is None:
        silence.unknown = NO_COMMITS
        return
    earlier = _silences(story, progress).values()
    for one in earlier:  # who has read up to here reads no more
        one.ongoing = one.backlog is None
    open_before = any(_waits(one, state.now) for one in earlier)
    silence.usual_us, silence.per_us = usual_us(progress.rhythm), per_us(progress.rhythm)
    silence.last_at, silence.committed = progress.last_at, progress.last_committed
    if open_before:
        silence.unknown = EARLIER
    elif not story.inputs.is_complete(progress.last_offset):
        silence.unknown = MISSING
    elif outages.is_behind(state, silence.lost_at):
        silence.unknown = OTHER_CLOCK
    elif silence.usual_us is None:
        silence.unknown = FEW_COMMITS
    elif (
        silence.lost_at is None
        or silence.lost_at - progress.last_at > longest_us
        or progress.waited_us > unusual_us(silence.usual_us)
    ):
        silence.unknown = PERHAPS_AWAY
    else:
        silence.ongoing = True
        progress.silences.append((offset, number))


def waits_for_commits(rebalance: Rebalance, now: int | None) -> bool:
    """Whether a commit may still tell more about this rebalance."""
    return any(_waits(silence, now) for silence in rebalance.silences) or any(
        removal.waits_for is not None and _is_lately(removal.removed_at, now)
        for removal in rebalance.removals
    )


def _waits(silence: Silence, now: int | None) -> bool:
    """Whether a commit may still end the silence. A silence that no commit may end is over, whether
    or not somebody has looked meanwhile.
    """
    return silence.ongoing and _is_lately(silence.lost_at, now)


def _is_lately(since: int | None, now: int | None) -> bool:
    return since is not None and now is not None and now - since <= LONGEST_US
