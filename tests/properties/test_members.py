# SPDX-License-Identifier: Apache-2.0
"""Machines of members at a real shard: whatever is lost, late or repeated, whoever crashes or falls
silent, no partition has two owners, and when it is over each has one.

What a network may not do is let an older request of a member overtake a newer one: the protocol
cannot tell them apart. A request that was given up arrives before the next, or never.
"""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, note, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.client.members.player import Player
from tests.coordinator.desk import Desk, set_topic, topic_id

from kohort.client.members.heartbeat import MemberConfig
from kohort.client.members.membership import Heartbeat, Stage
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.errors import ErrorCode
from kohort.machines.topics import Topic, Topics
from kohort.terms import GroupState, TopicId
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

NAMES = ["t", "u"]
MEMBERS = ["a", "b", "c"]
STATIC = "c"
SESSION_MS = 45_000
REBALANCE_MS = 20_000
INTERVAL_MS = 5000

members = st.sampled_from(MEMBERS)
topic_names = st.sampled_from([("t",), ("t",), ("t",), ("t", "u"), ("t", "u"), ("u",), ()])
later = st.sampled_from(
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ]
)


fates = st.sampled_from(["well", "well", "well", "well", "twice", "unheard", "lost"])


class Line(Player):
    """A player with a network in between: every request and every answer arrives when it does."""

    def __init__(
        self, desk: Desk, name: str, config: MemberConfig, instance_id: str | None = None
    ) -> None:
        backoff = RetryBackoff(jitter_permille=37 * ord(name[0]) % 200)
        super().__init__(desk, name, config, backoff=backoff, instance_id=instance_id)
        self.answer: ConsumerGroupHeartbeatResponse | None = None
        self.given_up: Heartbeat | None = None
        self.heard: tuple[Heartbeat, ConsumerGroupHeartbeatResponse] | None = None

    def speak(self) -> None:
        if self.under_way is None and self.send() is not None:
            self.given_up = None

    def reach(self, *, twice: bool = False) -> None:
        """What is under way reaches the coordinator, and its answer waits."""
        if self.under_way is not None and self.answer is None:
            self.answer = self.arrive(self.under_way)
            if twice:
                self.arrive(self.under_way)

    def refuse(self, code: ErrorCode) -> None:
        if self.under_way is not None and self.answer is None:
            self.answer = ConsumerGroupHeartbeatResponse(error_code=code)

    def listen(self) -> None:
        if self.under_way is not None and self.answer is not None:
            self.heard = self.under_way, self.answer
            self.answer = None
            self.hear(*self.heard)

    def listen_again(self) -> None:
        if self.heard is not None:
            assert self.hear(*self.heard) == []

    def break_off(self) -> None:
        if self.under_way is not None:
            self.given_up = None if self.answer is not None else self.under_way
            self.answer = None
            self.lose()

    def reach_late(self) -> None:
        if self.given_up is not None:
            self.arrive(self.given_up)
            self.given_up = None

    def release_one(self) -> None:
        if self.to_release:
            one = min(self.to_release)
            self.to_release.remove(one)
            self.held.remove(one)
            self.take(self.machine.released(frozenset({one})))

    def release_late(self) -> None:
        """Say once more what may have been said before, of what has come back since."""
        late = frozenset(self.held - self.to_release)
        owned = self.machine.owned
        assert self.take(self.machine.released(late)) == []
        assert self.machine.owned == owned


turns = st.tuples(members, fates, st.booleans())

Step = Callable[[Line], object]
steps: st.SearchStrategy[Step] = st.sampled_from(
    [
        Line.speak,
        Line.speak,
        Line.reach,
        Line.reach,
        Line.listen,
        Line.listen,
        Line.listen_again,
        Line.break_off,
        Line.reach_late,
        Line.release_one,
        Line.release_late,
        Line.release,
    ]
)


class MembersMachine(RuleBasedStateMachine):
    """One group, three members, one of them static, two topics."""

    @initialize(interval_ms=st.sampled_from([0, 0, 3000]), beginners=st.sets(members, min_size=2))
    def begin(self, interval_ms: int, beginners: set[str]) -> None:
        self.topics = {"t": Topic(topic_id("t"), "t", 4)}
        self.desk = Desk(
            known=Topics(self.topics.values()),
            group_consumer_assignment_interval_ms=interval_ms,
        )
        self.lines: dict[str, Line] = {}
        self.made = 0
        for name in sorted(beginners):
            self.start(name, ("t",), None)
            self.lines[name].talk()

    @property
    def group(self) -> ConsumerGroup | None:
        return self.desk.shard.groups.consumer("g")

    # -- what may happen

    @rule(name=members, names=topic_names, assignor=st.sampled_from([None, "range", "uniform"]))
    def start(self, name: str, names: tuple[str, ...], assignor: str | None) -> None:
        """A process starts; one that ran under this name was killed, and had another id."""
        self.made += 1
        config = MemberConfig(names, rebalance_timeout_ms=REBALANCE_MS, server_assignor=assignor)
        instance_id = "i" if name == STATIC else None
        self.lines[name] = Line(self.desk, f"{name}{self.made}", config, instance_id)
        self.lines[name].join()

    @rule(name=members, fate=fates)
    def talk(self, name: str, fate: str) -> None:
        """A whole turn of a member, as most of them go: it waits until its heartbeat is due."""
        for line in self.of(name):
            wake = line.machine.wake_at()
            if wake is not None:
                self.desk.wait(max(0, wake - self.desk.now))
            self._turn(line, fate)

    @rule(rounds=st.lists(st.lists(turns, min_size=2, max_size=5), min_size=2, max_size=6))
    def go_on(self, rounds: list[list[tuple[str, str, bool]]]) -> None:
        """Intervals pass, and members talk; some let go of what they are to give up."""
        for those in rounds:
            self.desk.wait(INTERVAL_MS)
            for name, fate, releases in those:
                for line in self.of(name):
                    self._turn(line, fate)
                    if releases:
                        line.release()
                        self._turn(line, fate)
                self.nobody_has_what_another_has()

    def _turn(self, line: Line, fate: str) -> None:
        line.speak()
        if fate == "lost":
            line.break_off()
        line.reach(twice=fate == "twice")
        if fate == "unheard":
            line.break_off()
        line.listen()

    @rule(those=st.lists(st.tuples(members, steps), min_size=3, max_size=9))
    def move(self, those: list[tuple[str, Step]]) -> None:
        """Requests, answers and releases, in any order."""
        for name, step in those:
            for line in self.of(name):
                step(line)

    @rule(name=members, code=later)
    def refuse(self, name: str, code: ErrorCode) -> None:
        for line in self.of(name):
            line.speak()
            line.refuse(code)
            line.listen()

    @rule(name=members, for_good=st.booleans())
    def leave_or_come_back(self, name: str, for_good: bool) -> None:  # noqa: FBT001
        for line in self.of(name):
            if line.machine.stage is Stage.OUTSIDE:
                line.join()
            else:
                line.leave(for_good=for_good)

    @rule()
    def restart(self) -> None:
        """In good order: a static member has what it had, and nobody else moves (K848-108)."""
        line = self.lines.get(STATIC)
        if line is None:
            return
        self._go_well()
        group, machine, before = self.group, line.machine, frozenset(line.held)
        if group is None or machine.member_id not in group.members or group.metadata_stale:
            return
        known = group.members[machine.member_id]
        if not group.at_rest(known) or set(known.subscribed_names) != set(machine.config.names):
            return
        epoch = group.group_epoch
        line.leave()
        self._go_well()
        if machine.stage is not Stage.OUTSIDE:
            return
        self.start(STATIC, machine.config.names, known.server_assignor)
        self.lines[STATIC].talk()
        assert group.group_epoch == epoch
        assert self.lines[STATIC].held == before

    @rule(name=members, names=topic_names)
    def want(self, name: str, names: tuple[str, ...]) -> None:
        for line in self.of(name):
            line.machine.want(line.machine.config._replace(names=names))

    @rule(name=st.sampled_from(NAMES), partitions=st.integers(0, 5), renewed=st.booleans())
    def change_topic(self, name: str, partitions: int, renewed: bool) -> None:  # noqa: FBT001
        """A topic is made, grows, is deleted, or is deleted and made anew under another id."""
        new_id = topic_id(f"{name}{self.made + 1}")
        self.made += set_topic(self.topics, name, partitions, new_id, renewed=renewed)
        self.desk.topics_changed(Topics(self.topics.values()))

    @rule(milliseconds=st.sampled_from([100, 1000, INTERVAL_MS, REBALANCE_MS, SESSION_MS]))
    def wait(self, milliseconds: int) -> None:
        self.desk.wait(milliseconds)

    @rule()
    def crash_and_reload(self) -> None:
        self.desk.restart()

    @rule()
    def settle(self) -> None:
        """K848-085: losses stop, and within three sessions each partition has its one owner."""
        for _ in range(3 * SESSION_MS // INTERVAL_MS):
            self._go_well()
            self.desk.wait(INTERVAL_MS)
        self._go_well()
        self._everything_is_in_its_place()
        written = len(self.desk.log)
        self.desk.wait(INTERVAL_MS)
        for line in self.lines.values():
            heartbeat = line.send()
            if heartbeat is not None:
                request = heartbeat.request
                assert request.subscribed_topic_names is None
                assert request.topic_partitions is None
        self._go_well()
        assert len(self.desk.log) == written

    def of(self, name: str) -> list[Line]:
        return [self.lines[name]] if name in self.lines else []

    def _go_well(self) -> None:
        """Everybody says and does all that is due."""
        for line in self.lines.values():
            line.given_up = None
            line.reach()
            line.listen()
            line.talk()
            line.release()
            line.talk()

    def _everything_is_in_its_place(self) -> None:
        group = self.group
        inside = {
            line.machine.member_id: line.machine
            for line in self.lines.values()
            if line.machine.stage is not Stage.OUTSIDE
        }
        assert all(machine.stage is Stage.MEMBER for machine in inside.values())
        assert set(group.members if group else ()) == set(inside)
        if group is None or not inside:
            return
        note(str({one.id: (one.epoch, one.assigned) for one in group.members.values()}))
        assert group.state is GroupState.STABLE
        consumed = [place for machine in inside.values() for place in machine.consumable]
        assert len(consumed) == len(set(consumed))
        assert set(consumed) == {
            (topic.id, index)
            for name, topic in self.topics.items()
            for index in range(topic.partitions)
            if group.subscribes_to(name)
        }
        for member_id, machine in inside.items():
            assert machine.epoch == group.target_epoch
            assert machine.owned == machine.consumable == set(places(group, member_id, "assigned"))

    # -- what always holds

    @invariant()
    def nobody_has_what_another_has(self) -> None:
        """Of those whose epoch still counts, no two have the same, not even one that lets it go.

        Holds K848-040, K848-085.
        """
        owners: dict[Any, str] = {}
        for line in getattr(self, "lines", {}).values():
            machine = line.machine
            assert machine.owned == line.held
            assert machine.consumable == (
                line.held - line.to_release if machine.stage is Stage.MEMBER else set()
            )
            if not self._counts(line):
                continue
            for place in line.held:
                other = owners.setdefault(place, machine.member_id)
                assert other == machine.member_id, f"{place}: {other} and {machine.member_id}"

    @invariant()
    def the_coordinator_keeps_what_a_member_has(self) -> None:
        """What an unfenced member has is its own in the coordinator's eyes too."""
        for line in getattr(self, "lines", {}).values():
            if self._counts(line):
                group = self.group
                assert group is not None
                member_id = line.machine.member_id
                known = set(places(group, member_id, "assigned"))
                assert line.held <= known | set(places(group, member_id, "revoking"))

    def _counts(self, line: Line) -> bool:
        """Whether the coordinator would still take the member's epoch."""
        machine, group = line.machine, self.group
        member = group.members.get(machine.member_id) if group else None
        if member is None or group is None or machine.commits_as is None:
            return False
        return machine.epoch == member.epoch or (
            machine.epoch == member.previous_epoch
            and line.held <= set(places(group, member.id, "assigned"))
        )


def places(group: ConsumerGroup, member_id: str, kind: str) -> list[tuple[TopicId, int]]:
    """What the coordinator has as `assigned` to a member, or as `revoking`."""
    by_topic = getattr(group.members[member_id], kind)  # type: ignore[index]
    return [(topic, index) for topic, ones in by_topic.items() for index in ones]


MembersMachine.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestMembers = MembersMachine.TestCase
