# SPDX-License-Identifier: Apache-2.0
"""Who owns which partition, from when to when, which rebalance gave and took it, and what happened
to the partition in between.

A partition that is being revoked still has its owner: two owners would be worse than none.
"""

from copy import copy
from typing import NamedTuple

from kohort.history.commits import FIRST_OWNER, LONGEST_US, MISSING, begin_silence
from kohort.history.rows import AssignmentRow, Move, seconds
from kohort.history.state import (
    FormerOwner,
    Gap,
    Holding,
    Owner,
    Place,
    Progress,
    Rebalance,
    Rhythm,
    Silence,
    State,
)
from kohort.history.story import Story


class Holds(NamedTuple):
    """What a member has, as a record says."""

    member_id: str
    places: dict[Place, bool]
    """Partition, as the record names it -> whether it is to be given up."""
    epoch: int
    away: bool = False


class Moment(NamedTuple):
    """The record that says so, and the rebalances that gave and took what is new in it."""

    group_type: str
    at: int | None
    offset: int
    given_by: int | None
    taken_by: int | None
    longest_us: int = LONGEST_US
    """How long the owner may have been silent before it was removed."""


def change(story: Story, moment: Moment, holds: Holds) -> None:
    """Take over what a member has from here on: first what it loses, then what it gains."""
    lose(story, moment, holds)
    gain(story, moment, holds)


def lose(story: Story, moment: Moment, holds: Holds) -> None:
    """End what a member no longer has. The rows of what it keeps go on."""
    holdings = _of_type(story, moment.group_type)
    mine = holdings.get(holds.member_id)
    if mine is None:
        return
    for place, holding in list(mine.items()):
        if place in holds.places and holding.away == holds.away:
            _go_on(holding.row, moment, holds, revoking=holds.places[place])
        else:
            del mine[place]
            _close(story, moment, place, holding)
    if not mine:
        del holdings[holds.member_id]


def gain(story: Story, moment: Moment, holds: Holds) -> None:
    """Begin what a member has now and had not before."""
    mine = _of_type(story, moment.group_type).get(holds.member_id, {})
    for place, revoking in holds.places.items():
        if place not in mine:
            _open(story, moment, holds, place, revoking=revoking)


def _of_type(story: Story, group_type: str) -> dict[str, dict[Place, Holding]]:
    return story.state.holdings if group_type == "consumer" else story.state.classic_holdings


def _go_on(row: AssignmentRow, moment: Moment, holds: Holds, *, revoking: bool) -> None:
    row.last_epoch = max(row.last_epoch, holds.epoch)
    if holds.epoch > 0 and (row.epoch <= 0 or holds.epoch < row.epoch):
        row.epoch = holds.epoch
    elif row.epoch <= 0:
        row.epoch = min(row.epoch, holds.epoch)
    if moment.at is not None and (row.valid_from is None or moment.at < row.valid_from):
        row.valid_from = moment.at
    if revoking and row.revoked_at is None:
        row.revoked_at = moment.at


def _open(story: Story, moment: Moment, holds: Holds, place: Place, *, revoking: bool) -> None:
    state, names = story.state, story.inputs.names
    topic, index = place
    if moment.group_type == "consumer":
        topic_id: str | None = topic
        name = names.name(topic)
    else:
        topic_id, name = names.id(topic), topic
    row = AssignmentRow(
        moment.group_type,
        holds.member_id,
        topic_id,
        name,
        index,
        holds.epoch,
        holds.epoch,
        moment.at,
        moment.offset,
        revoked_at=moment.at if revoking else None,
        gained_by=moment.given_by,
    )
    mine = _of_type(story, moment.group_type).setdefault(holds.member_id, {})
    mine[place] = Holding(row, holds.away)
    if name is not None:
        state.held.setdefault((name, index), []).append((moment.group_type, holds.member_id, place))
        state.progress.setdefault((name, index), Progress()).rhythm = Rhythm()
    key = _key(row)
    before = state.owners.get(key)
    state.owners[key] = Owner(holds.member_id, moment.offset)
    if before is not None and before.gap is not None:
        _close_gap(story, before.gap, moment)
    if moment.given_by is not None:
        rebalance = story.rebalance(moment.given_by, moment.group_type)
        rebalance.involved[holds.member_id] = True
        from_member = None if before is None else before.member_id
        rebalance.moves.append(Move(topic_id, name, index, from_member, holds.member_id))
        if before is None and state.topics.get(key[0], moment.offset) < rebalance.offset:
            rebalance.silences.append(_before_first_owner(story, moment, rebalance, row))
    state.topics.setdefault(key[0], moment.offset)


def _before_first_owner(
    story: Story, moment: Moment, rebalance: Rebalance, row: AssignmentRow
) -> Silence:
    """A partition of a topic that the group has had before, while nobody had this one: as a topic
    grows. It was there when the rebalance began, and nobody can have read it before it had an
    owner; since when records wait in it no group's log tells.
    """
    silence = Silence(row.topic_id, row.topic, row.topic_partition, None, unknown=FIRST_OWNER)
    began = moment.at if rebalance.number is None else rebalance.number.at
    if not story.inputs.is_complete(rebalance.offset):
        silence.unknown = MISSING  # an owner before may be
    elif began is not None and moment.at is not None:
        silence.since, silence.until = min(began, moment.at), moment.at
    return silence


def _key(row: AssignmentRow) -> Place:
    """By id where that is known: the next owner may come after a change of the protocol."""
    return (row.topic_id or row.topic or "", row.topic_partition)


def _close_gap(story: Story, where: tuple[int, int], moment: Moment) -> None:
    offset, number = where
    rebalance = story.state.rebalances.get(offset)
    if rebalance is None:
        return
    gap = rebalance.gaps[number]
    gap.ongoing = False
    gap.handed_over = moment.offset <= gap.offset
    gap.seconds = seconds(gap.at, moment.at)


def _close(story: Story, moment: Moment, place: Place, holding: Holding) -> None:
    state, row = story.state, holding.row
    row.valid_to, row.to_offset, row.lost_by = moment.at, moment.offset, moment.taken_by
    story.closed.append(row)
    if row.topic is not None:
        named = (row.topic, row.topic_partition)
        held = state.held[named]
        held.remove((moment.group_type, row.member_id, place))
        if not held:
            del state.held[named]
        rhythm = copy(state.progress[named].rhythm)
        parted = FormerOwner(
            moment.offset, moment.at, named, holding.committed_at, rhythm, holding.waited_us
        )
        state.parted.setdefault(row.member_id, []).append(parted)
    if moment.taken_by is None:
        return
    rebalance = story.rebalance(moment.taken_by, moment.group_type)
    rebalance.involved[row.member_id] = True
    owner = state.owners.get(_key(row))
    if owner is None or (owner.member_id, owner.from_offset) != (row.member_id, row.from_offset):
        return  # somebody else has it already, or the group is over
    of_partition = (row.topic_id, row.topic, row.topic_partition)
    owner.gap = (rebalance.offset, len(rebalance.gaps))
    rebalance.gaps.append(Gap(*of_partition, moment.at, moment.offset))
    silence = Silence(*of_partition, moment.at)
    number = len(rebalance.silences)
    rebalance.silences.append(silence)
    begin_silence(story, silence, rebalance.offset, number, moment.longest_us)


def end_life(state: State) -> None:
    """A group of the same id begins, after one that was deleted: it takes nothing from the members
    of that, and nobody gets the partitions that were left without an owner.
    """
    for owner in state.owners.values():
        rebalance = None if owner.gap is None else state.rebalances.get(owner.gap[0])
        if rebalance is not None and owner.gap is not None:
            rebalance.gaps[owner.gap[1]].ongoing = False
    state.owners.clear()
    state.topics.clear()


def forget(story: Story) -> None:
    """Forget partitions that members lost so long ago that they tell nothing any more."""
    state = story.state
    if state.now is None:
        return
    since = state.now - 2 * LONGEST_US  # clocks of brokers may differ
    for member_id, parted in list(state.parted.items()):
        kept = [lost for lost in parted if lost.until is not None and lost.until >= since]
        if kept:
            state.parted[member_id] = kept
        else:
            del state.parted[member_id]
