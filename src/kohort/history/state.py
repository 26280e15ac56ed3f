# SPDX-License-Identifier: Apache-2.0
"""Everything known of a group's history that may still matter: plain data, which can be kept as
bytes between two readings of the log.

Nothing here grows with the log. What is over leaves as a row.
"""

from msgspec import Struct, field

from kohort.history.events import Event, Expression, Generation, Member
from kohort.history.rows import AssignmentComputation, AssignmentRow, Likely, MemberRow, Move, Who
from kohort.records.causes import Because

VERSION = 8
"""The version of the state's layout and of the rules behind it: a state of another version is
useless.
"""

Place = tuple[str, int]
"""A partition: the id of the topic where that is known, else its name, and the number."""
NamedPlace = tuple[str, int]
"""A partition by the name of its topic, as commits have it."""


class Backlog(Struct, array_like=True):
    """Records that may have waited while nobody read a partition, which later commits may show."""

    committed: int
    """By the last commit before the silence."""
    per_us: float
    """How fast records were read then."""
    silent_us: int
    """From that commit to the first one behind the silence."""
    first_at: int
    first_committed: int
    """Of the first commit behind the silence."""
    until: int
    """Up to when commits are looked at."""


class Removal(Struct, array_like=True):
    """A member that is gone, and what may have become of it."""

    who: Who
    possible: list[str]
    evidence: str
    likely: Likely
    removed_at: int | None = None
    seen_at: int | None = None
    """The last sign of life that the log has."""
    waits_for: NamedPlace | None = None
    """The partition whose next commit shows whether there was work while the member was silent."""
    last_commit: tuple[int, int] | None = None
    """The time of its last commit of that partition, and the offset."""
    per_us: float | None = None
    """How fast it had read."""
    backlog: Backlog | None = None
    """The next commit was there and has shown nothing: later ones may."""
    settled: bool = False
    """Its cause is written somewhere, so nothing has to be concluded."""


class Gap(Struct, array_like=True):
    """A partition that lost its owner by a rebalance."""

    topic_id: str | None
    topic: str | None
    topic_partition: int
    at: int | None
    offset: int
    ongoing: bool = True
    handed_over: bool = False
    """The same record has the next owner."""
    seconds: float | None = None


class Silence(Struct, array_like=True):
    """A partition that lost its owner by a rebalance, from the last commit before on; or one that
    has got its first owner, until then.
    """

    topic_id: str | None
    topic: str | None
    topic_partition: int
    lost_at: int | None
    last_at: int | None = None
    committed: int | None = None
    usual_us: float | None = None
    """How far the owner's commits were apart."""
    per_us: float | None = None
    """How far its commits went ahead."""
    unknown: str | None = None
    ongoing: bool = False
    """A commit may still tell more."""
    since: int | None = None
    until: int | None = None
    """When it ended, whether or not anything waited."""
    backlog: Backlog | None = None
    """It has ended with a commit that has shown no work: later ones may."""


class Resolution(Struct, array_like=True):
    """A regular expression that had no topics before, and the member that brought it."""

    expression: str
    topics: int | None
    who: Who | None = None
    comes: bool = False
    told_at: int | None = None
    """The offset of the record in which the member brought it."""


class Number(Struct, array_like=True):
    """The record that raises an epoch: what it says, and what is known from there on."""

    at: int | None
    epoch: int
    hash: int | None
    hash_before: int | None
    known_before: bool
    size: int


class Rebalance(Struct, array_like=True):
    """A rebalance that may still change."""

    offset: int
    group_type: str
    number: Number | None = None
    ends: bool = False
    assigned_at: int | None = None
    done_at: int | None = None
    arrived: int = 0
    upgrades: bool = False
    succeeds_classic: bool = False
    matches_others: bool = False
    other_topics: bool = False
    came: list[Who] = []
    resubscribed: list[Who] = []
    revoted: list[Who] = []
    resolved: list[Resolution] = []
    awaits: list[int] = []
    """Offsets of records of members that may turn out to be new."""
    removals: list[Removal] = []
    written: list[str] = []
    """Triggers that the coordinator itself has written."""
    said: list[str] = []
    """The same with members and reasons, as evidence."""
    moves: list[Move] = []
    gaps: list[Gap] = []
    silences: list[Silence] = []
    involved: dict[str, bool] = {}
    """Members that got or lost partitions."""
    compared: "ClassicGeneration | None" = None
    computed: AssignmentComputation | None = None


class ClassicGeneration(Struct, array_like=True):
    """A generation of a classic group, compared with the one before."""

    generation: int
    members: int
    at: int | None
    after: int | None
    joined_by: int | None
    proven: list[str]
    facts: list[str]
    joined: list[Who]
    changed: list[Who]


class ConsumerMember(Struct, array_like=True):
    """A member of a consumer group that is there."""

    value: Member
    seen_at: int | None


class Seat(Struct, array_like=True):
    """The last thing said about what a member of a consumer group has."""

    at: int | None
    member_epoch: int
    state: str | None
    there: bool = True


class Coming(Struct, array_like=True):
    """A member that was not there before: its next record shows whether it is new."""

    offset: int
    who: Who
    rebalance: int | None


class Subscriber(Struct, array_like=True):
    """The member that last spoke of a regular expression."""

    who: Who
    expression: str
    told_at: int
    comes: bool = False


class Life(Struct, array_like=True):
    """The life of a group since a classic group of its id has ended."""

    ended: int = 0
    described: int = 0
    classic: int = 0
    epochs: int = 0
    begins_at: int | None = None
    begun: bool = False
    converted: bool = False


class ConsumerGroup(Struct, array_like=True):
    """A consumer group."""

    members: dict[str, ConsumerMember] = field(default_factory=dict)
    seats: dict[str, Seat] = field(default_factory=dict)
    rows: dict[str, MemberRow] = field(default_factory=dict)
    expressions: dict[str, Expression] = field(default_factory=dict)
    coming: dict[str, list[Coming]] = field(default_factory=dict)
    subscriber: Subscriber | None = None
    life: Life = field(default_factory=Life)
    begun: int | None = None
    """The offset of the rebalance that was the last to begin; null once the group has ended."""
    epoch_known: bool = False
    hash: int | None = None
    after_classic: bool = False
    """The last group of this id, or the present one, is a classic one."""


class EndedMember(Struct, array_like=True):
    """A row of a member of a consumer group that has just ended."""

    row: MemberRow
    committed_at: int | None
    causes: list[Because] = field(default_factory=list)
    """What the record of its end names."""


class ClassicGroup(Struct, array_like=True):
    """A classic group: its last generation, or its end."""

    offset: int | None = None
    at: int | None = None
    value: Generation | None = None
    ends_consumer: bool = False
    starts_over: bool = False
    leader_epoch: int | None = None
    rows: dict[str, MemberRow] = field(default_factory=dict)
    ended: list[EndedMember] = field(default_factory=list)


class Rhythm(Struct, array_like=True):
    """How a partition was committed by its owner."""

    count: int = 0
    first_at: int | None = None
    last_at: int | None = None
    first_committed: int | None = None
    last_committed: int | None = None
    last_offset: int = -1
    """Where the last commits stand in the log."""
    waited_us: int = 0
    """How long the last one may have waited until the coordinator handled it."""


class Progress(Struct, array_like=True):
    """Commits of a partition: by its present owner, and the last ones of any owner."""

    rhythm: Rhythm = field(default_factory=Rhythm)
    last_at: int | None = None
    last_committed: int | None = None
    last_offset: int = -1
    waited_us: int = 0
    silences: list[tuple[int, int]] = field(default_factory=list)
    """What the next commit ends: rebalance, and the number of the silence in it."""
    removals: list[tuple[int, int]] = field(default_factory=list)
    """What the next commit helps to judge: rebalance, and the number of the removal in it."""


class Holding(Struct, array_like=True):
    """A partition that somebody has."""

    row: AssignmentRow
    away: bool = False
    committed_at: int | None = None
    waited_us: int = 0
    """How long that commit may have waited until the coordinator handled it."""


class FormerOwner(Struct, array_like=True):
    """A partition that a member had until lately."""

    to_offset: int
    until: int | None
    named: NamedPlace
    committed_at: int | None
    rhythm: Rhythm
    waited_us: int = 0


class Owner(Struct, array_like=True):
    """The last owner that a partition got."""

    member_id: str
    from_offset: int
    gap: tuple[int, int] | None = None
    """The rebalance that took it, and the number of the gap there, while it has no other owner."""


class Outage(Struct, array_like=True):
    """The members that were there when another coordinator took over, or the same one anew, until
    one of them shows a sign of life.
    """

    leader_epoch: int | None = None
    changed_at: int | None = None
    """The first time at which anything was written under the present leader epoch; null where no
    change of it was seen."""
    silent: list[str] = field(default_factory=list)
    """The members that are still there."""
    out: list[tuple[int, int]] = field(default_factory=list)
    """The members that have gone since: rebalance, and the number of the removal in it."""


class Rest(Struct, array_like=True):
    """A time in which nothing was written about the group."""

    since: int
    until: int


class SettledRemoval(Struct, array_like=True):
    """A removal that a line of a log file has settled by its clock alone."""

    rebalance: int
    number: int
    clock_us: int
    at: int
    possible: list[str]
    """The causes that were possible without the line."""


class Clocks(Struct, array_like=True):
    """What lines of brokers' log files reveal of their clocks."""

    zones: list[int] = field(default_factory=list)
    """By how many quarters of an hour they were ahead of UTC, where an epoch or a generation said
    which removal a line is about."""
    highest: int = -1
    """The highest epoch or generation: one that is not higher belongs to a group that began again.
    """
    taken: dict[str, SettledRemoval] = field(default_factory=dict)
    """The last such removal of a member."""


class State(Struct, array_like=True):
    """All of it."""

    version: int = VERSION
    consumer: ConsumerGroup = field(default_factory=ConsumerGroup)
    classic: ClassicGroup = field(default_factory=ClassicGroup)
    holdings: dict[str, dict[Place, Holding]] = field(default_factory=dict)
    classic_holdings: dict[str, dict[Place, Holding]] = field(default_factory=dict)
    owners: dict[Place, Owner] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    """The topics of which somebody has had a partition: where in the log the first one got it."""
    held: dict[NamedPlace, list[tuple[str, str, Place]]] = field(default_factory=dict)
    """The holder of a partition of that name: type of the group, member, partition as it holds it.
    """
    parted: dict[str, list[FormerOwner]] = field(default_factory=dict)
    progress: dict[NamedPlace, Progress] = field(default_factory=dict)
    rebalances: dict[int, Rebalance] = field(default_factory=dict)
    outage: Outage = field(default_factory=Outage)
    rest: Rest | None = None
    """The last one, which may have been a rest of the coordinator itself."""
    clocks: Clocks = field(default_factory=Clocks)
    now: int | None = None
    """The time of the last event."""
    is_over: bool = False
    """The group has ended, and none of its id has begun since."""
    over_at: int | None = None
    """When it was the last time."""
    pending: list[Event] = field(default_factory=list)
    """The last write, whose other records may still come."""
