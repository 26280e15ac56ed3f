# SPDX-License-Identifier: Apache-2.0
"""What every member of a group should have: computed for all, written where it has changed.

The assignors of Kohort compute it in the heartbeat that needs it. Those of others are an
task: heartbeats go on meanwhile with the target that there is.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kohort.assignors import Assign, Assignment, AssignorError, Plan, Subscription, assign_by
from kohort.coordinator.consumer import rights
from kohort.coordinator.consumer.client_side.selection import Choice
from kohort.coordinator.consumer.group import ConsumerGroup, FailedPlan
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.consumer.records import target_epoch_record, target_record
from kohort.coordinator.consumer.target import NOTHING, Target
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.java import hash_order, text_hash, timeline_order
from kohort.machines.effects import BackgroundTask, Effects
from kohort.machines.topics import Topics
from kohort.records.codec import Record
from kohort.records.schemas import Computation
from kohort.terms import GroupId, MemberId, Millis, TopicId

Each = TypeVar("Each")

PLAN = "consumer plan"
AGAIN_MS = 5000  # from the failure of a plugin assignor to its next attempt at the same epoch


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a background task is about: a group by its id and number, the instance ids of its static
    members, and `why` the broker computes although members offer assignors.
    """

    group_id: GroupId
    number: int
    assignor: str
    epoch: int
    instances: dict[MemberId, str]
    why: str


@dataclass(frozen=True, slots=True)
class NewTargets:
    """The targets of an epoch: the target of the member that asked, and the records that publish
    all of them.
    """

    epoch: int
    of_member: Target
    records: tuple[Record, ...]


def plan(
    state: State, group: ConsumerGroup, member: Member, epoch: int, now: Millis, why: str = ""
) -> NewTargets | None:
    """The targets of an epoch, with `member` as this heartbeat leaves it. None when the present
    targets stand: they are of that epoch, or were computed a moment ago (KIP-1263). `why`
    says why no member computes, where that follows from more than what they offer.

    Raises ApiError where the assignor has no plan.
    """
    if not is_due(group, epoch, now):
        return None
    name, _, why_so = _choice(group, member)
    if name in state.plugin_assignors:
        return None
    given = assignor_input(state, group, member)
    try:
        assigned = state.assignors[name](given.members, given.partitions)
    except AssignorError as error:
        raise _no_plan(group, name, error) from error
    records, targets = _changes(group, assigned, epoch, now, _by_broker(name, why or why_so))
    return NewTargets(epoch, targets[member.id], tuple(records))


def asked(
    state: State, group: ConsumerGroup, member: Member, epoch: int, now: Millis, why: str = ""
) -> list[BackgroundTask]:
    """What a heartbeat asks for that leaves the group at `epoch`: the plan of a plugin assignor.

    Raises ApiError for a member without a target, if the assignor has failed a moment ago.
    """
    if not state.plugin_assignors or not is_due(group, epoch, now):
        return []
    name, _, why_so = _choice(group, member)
    if name not in state.plugin_assignors:
        return []
    failed = _failed(group, epoch, now)
    if failed is not None:
        if member.id not in group.targets:
            raise _no_plan(group, name, failed.why)
        return []
    number = group.number or state.groups.made + 1  # of the group that this heartbeat makes
    key = (PLAN, group.id, number)
    if key in state.running_tasks:  # known before anybody walks over the group
        return []
    given = assignor_input(state, group, member)
    instances = instances_of(given)
    work = _working(state.plugin_assignors[name], given)
    about = PlanRequest(group.id, number, name, epoch, instances, why or why_so)
    return [BackgroundTask(key, work, about, plugin=name)]


def finished(state: State, task: BackgroundTask, outcome: Plan | Exception, now: Millis) -> Effects:
    """Write the plan of a plugin assignor, if it is for this very group and fits its members.

    Who has left meanwhile is left out of it, and the successor of a static member gets what was
    meant for that. Who has joined since then gets something by the next plan, since a join raises
    the epoch. A plan of the present epoch without one of the members would be the last one: it is
    dropped, and the next heartbeat asks again.
    """
    wanted: PlanRequest = task.about
    group = state.groups.consumer(wanted.group_id)
    if group is None or group.number != wanted.number or wanted.epoch <= group.target_epoch:
        return Effects()
    if isinstance(outcome, Exception):
        group.failed_plan = FailedPlan(wanted.epoch, now, outcome)
        text = f"assignor {wanted.assignor} has failed, members keep what they have: {outcome}"
        return Effects(warnings=[f"group {group.id}: {text}"])
    present = of_present(group, wanted.instances, outcome)
    if wanted.epoch == group.group_epoch and not present.keys() >= group.members.keys():
        return Effects()
    by = _by_broker(wanted.assignor, wanted.why)
    records, _ = _changes(group, present, wanted.epoch, now, by)
    return Effects(records)


def of_present(
    group: ConsumerGroup, instances: Mapping[MemberId, str], outcome: Mapping[MemberId, Each]
) -> dict[MemberId, Each]:
    """What is meant for members of the group; the successor of a static one gets its part.
    `instances` has the instance ids of when it was asked for.
    """
    present = {}
    for member_id, given in outcome.items():
        instance_id = instances.get(member_id)
        if member_id in group.members:
            present[member_id] = given
        elif instance_id is not None:
            successor = group.instances.get(instance_id)
            if successor is not None and successor not in outcome:
                present[successor] = given
    return present


def is_due(group: ConsumerGroup, epoch: int, now: Millis) -> bool:
    """Whether a group that a heartbeat leaves at this epoch needs another target by now."""
    interval_ms = group.settings.assignment_interval_ms
    if epoch <= group.target_epoch:
        return False
    # A time ahead of the clock is none: the clock was set back, or the log is from elsewhere.
    return not (group.target_time and 0 <= now - group.target_time < interval_ms)


def is_awaited(state: State, group: ConsumerGroup, now: Millis) -> bool:
    """Whether a plugin assignor has been asked and has not answered yet, or has failed a moment
    ago, so that no heartbeat and no join brings a newer target now. Client-side assignors aside.
    """
    if not state.plugin_assignors or _of_broker(group, group.choice) not in state.plugin_assignors:
        return False
    key = (PLAN, group.id, group.number)
    return key in state.running_tasks or _failed(group, group.group_epoch, now) is not None


def _failed(group: ConsumerGroup, epoch: int, now: Millis) -> FailedPlan | None:
    """The failure of a plugin assignor that is too recent to ask it again about this epoch."""
    failed = group.failed_plan
    if failed is not None and failed.epoch == epoch and 0 <= now - failed.at < AGAIN_MS:
        return failed
    return None


def _choice(group: ConsumerGroup, member: Member) -> Choice:
    before = group.members.get(member.id)
    choice = group.choice_with((before,) if before else (), (member,))
    return Choice(_of_broker(group, choice), why=choice.why)


def _of_broker(group: ConsumerGroup, choice: Choice) -> str:
    """The assignor of the broker that a choice comes down to. Where no member can compute by what
    the members offer, the broker does by its own default.
    """
    return choice.name if choice.version is None else group.settings.assignors[0]


def _by_broker(assignor: str, why: str) -> Computation | None:
    """How targets came about that the broker has computed, where members offer assignors."""
    if not why:
        return None
    return Computation(assignor=assignor, member_id=None, reason=0, error=0, took_ms=0, why=why)


def instances_of(given: "AssignorInput") -> dict[MemberId, str]:
    """The instance ids of static members."""
    return {
        member_id: member.instance_id
        for member_id, member in given.members.items()
        if member.instance_id is not None
    }


def _no_plan(group: ConsumerGroup, name: str, error: Exception) -> ApiError:
    return ApiError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"assignor {name} has no assignment for group {group.id}: {error}",
    )


def _working(assign: Assign, given: "AssignorInput") -> Callable[[], Generator[None, None, Plan]]:
    def work() -> Generator[None, None, Plan]:
        yield from ()
        return assign_by(assign, given.members, given.partitions)

    return work


def _changes(
    group: ConsumerGroup, assigned: Plan, epoch: int, now: Millis, by: Computation | None
) -> tuple[list[Record], dict[MemberId, Target]]:
    """The records that publish a plan of the broker, and the target of each member."""
    targets = {}
    for member_id, assignment in assigned.items():
        known = group.targets.get(member_id)
        same = known is not None and _is_as(known, assignment)
        targets[member_id] = known if known is not None and same else Target(assignment)
    return target_records(group, targets, epoch, now, by), targets


def target_records(
    group: ConsumerGroup,
    targets: Mapping[MemberId, Target],
    epoch: int,
    now: Millis,
    by: Computation | None,
) -> list[Record]:
    """The records that make these the targets of an epoch, and tell how they came about. The first
    target of a member is written even when there is nothing in it.
    """
    records = []
    for member_id, target in targets.items():
        known = group.targets.get(member_id)
        if known is not target and known != target:
            records.append(target_record(group.id, member_id, target))
    records.append(target_epoch_record(group.id, epoch, now, by))
    return records


def _is_as(known: Target, assignment: Assignment) -> bool:
    """Whether a target is what a server-side assignor would give with this assignment."""
    same = known.partitions is assignment or known.partitions == assignment
    return same and known.attachment is None


@dataclass(frozen=True, slots=True)
class AssignorInput:
    """What an assignor is given."""

    members: dict[MemberId, Subscription]
    partitions: dict[TopicId, int]


def assignor_input(state: State, group: ConsumerGroup, member: Member) -> AssignorInput:
    """What an assignor is given, with `member` as a heartbeat leaves it."""
    topics_of: dict[tuple[str, ...], tuple[TopicId, ...]] = {}
    subscriptions = {}
    members = {**group.members, member.id: member}
    # An assignor's result depends on the order of members, so the order is upstream's: those of the
    # group are put into a hash table, and the one that joins comes last.
    in_order = [*timeline_order(group.members, text_hash), member.id]
    for member_id in hash_order(dict.fromkeys(in_order), text_hash):
        known = members[member_id]
        names = rights.names_of(state, group, known)
        if state.rights is not None and known.subscribed_regex and known.id not in group.heard:
            group.planned_blindly = True
        topics = topics_of.get(names)
        if topics is None:  # members that read the same share one tuple
            topics = topics_of[names] = topic_ids(names, state.topics)
        previous = _existing(group.targets.get(member_id, NOTHING).partitions, state.topics)
        subscriptions[member_id] = Subscription(topics, previous, known.instance_id, known.rack_id)
    if not _are_alike(topics_of):
        for subscription in subscriptions.values():
            subscription.alike = False
    by_id = state.topics.by_id
    partitions = {
        topic: by_id[topic].partitions for topics in topics_of.values() for topic in topics
    }
    return AssignorInput(subscriptions, partitions)


def _are_alike(subscriptions: Iterable[tuple[str, ...]]) -> bool:
    """Whether all of them have the same names, of which there may be very many. Two that differ are
    found soon.
    """
    every = iter(subscriptions)
    first = frozenset(next(every, ()))
    return all(first.issuperset(names) and len(first) == len(set(names)) for names in every)


def _existing(previous: Assignment, topics: Topics) -> Assignment:
    """A previous target without partitions that the cluster does not have. A log may come from
    another cluster, where the topic was larger, and an assignor must not fail on it.
    """
    by_id = topics.by_id
    gone = [
        topic
        for topic, indexes in previous.items()
        if topic in by_id and indexes and indexes[-1] >= by_id[topic].partitions
    ]
    if not gone:
        return previous
    return {
        topic: tuple(
            index for index in indexes if topic not in gone or index < by_id[topic].partitions
        )
        for topic, indexes in previous.items()
    }


def topic_ids(names: tuple[str, ...], topics: Topics) -> tuple[TopicId, ...]:
    """The ids of those topics that exist, each once."""
    by_name = topics.by_name
    return tuple(dict.fromkeys(by_name[name].id for name in names if name in by_name))
