# SPDX-License-Identifier: Apache-2.0
"""Any sequence of joins, syncs, heartbeats, departures and silences keeps
a classic group's promises.
"""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.coordinator.classics import (
    SUBSCRIBED,
    commit,
    heartbeat,
    join,
    join_request,
    leave,
    sync,
)
from tests.coordinator.desk import Asked, Desk

from kohort.terms import GroupId, GroupState

PROTOCOLS = st.sampled_from(
    [
        {"range": SUBSCRIBED},
        {"range": b"\0\0\x7f\xff\xff\xff"},
        {"range": SUBSCRIBED, "sticky": b""},
        {"sticky": b"", "range": SUBSCRIBED},
    ]
)
WHO = st.integers(0, 5)
REBALANCE_MS = 60_000


class ClassicGroups(RuleBasedStateMachine):
    """The clients are careless: they send anything at any time, and forget what they were told."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(group_initial_rebalance_delay_ms=500, group_max_size=4)
        self.members: list[str] = []
        self.parked: list[Asked] = []

    @property
    def group(self):
        return self.desk.shard.groups.classic(GroupId("g"))

    @property
    def generation(self) -> int:
        return self.group.generation if self.group else 0

    def member(self, who: int) -> str:
        return self.members[-1 - who % len(self.members)] if self.members else "nobody"

    @rule(protocols=PROTOCOLS)
    def ask_for_an_id(self, protocols):
        answer = join(self.desk, protocols=protocols).answer
        if answer.member_id:
            self.members.append(answer.member_id)

    @rule(protocols=PROTOCOLS)
    def join_the_old_way(self, protocols):
        self.parked.append(self.desk.ask(join_request(protocols=protocols), 3))

    @rule(who=WHO, protocols=PROTOCOLS)
    def join(self, who, protocols):
        self.parked.append(join(self.desk, self.member(who), protocols=protocols))

    @rule(who=WHO, protocols=PROTOCOLS, version=st.sampled_from([5, 8, 9]))
    def join_as_an_instance(self, who, protocols, version):
        """A new client of an instance id, whether the old one is there or not."""
        instance_id = f"i{who % 2}"
        fields = {"group_instance_id": instance_id, "protocols": protocols}
        asked = join(self.desk, version=version, **fields)
        self.parked.append(asked)
        owner = self.group.instances.get(instance_id)
        if owner is not None and (asked.answer is None or not asked.answer.error_code):
            self.members.append(owner)

    @rule(who=WHO, other=WHO)
    def claim_an_instance(self, who, other):
        """What a client says about itself may be true or not."""
        fields = {"group_instance_id": f"i{other % 2}"}
        member_id = self.member(who)
        self.parked.append(join(self.desk, member_id, **fields))
        heartbeat(self.desk, member_id, self.generation, **fields)
        leave(self.desk, (member_id, f"i{other % 2}"), ("", f"i{other % 3}"))

    @rule(who=WHO)
    def sync(self, who):
        named = {"protocol_name": self.group.protocol} if self.group else {}
        assignments = {one: one.encode() for one in self.members}
        fields = {name: value for name, value in named.items() if value}
        asked = sync(self.desk, self.member(who), self.generation, assignments, **fields)
        self.parked.append(asked)

    @rule(leader_only=st.booleans())
    def settle(self, leader_only):
        """For once everybody does what is asked of him."""
        if self.group is None:
            return
        for member_id in list(self.group.members) + list(self.group.pending):
            self.parked.append(join(self.desk, member_id))
        self.desk.wait(600)
        if self.group.state is GroupState.COMPLETING_REBALANCE:
            leader = self.group.leader
            following = [one for one in self.group.members if one != leader]
            named = {"protocol_name": self.group.protocol}
            for one in [] if leader_only else following[:1]:
                self.parked.append(sync(self.desk, one, self.generation, **named))
            given = {one: one.encode() for one in self.group.members}
            self.parked.append(sync(self.desk, leader, self.generation, given, **named))
            for one in [] if leader_only else following[1:]:
                self.parked.append(sync(self.desk, one, self.generation, **named))

    @rule(who=WHO)
    def heartbeat(self, who):
        heartbeat(self.desk, self.member(who), self.generation)

    @rule(who=WHO)
    def commit(self, who):
        caller = {"member_id": self.member(who), "generation_id_or_member_epoch": self.generation}
        commit(self.desk, {("orders", who): self.desk.now}, **caller)

    @rule(who=st.lists(WHO, max_size=3))
    def leave(self, who):
        leave(self.desk, *(self.member(one) for one in who))

    @rule(milliseconds=st.sampled_from([100, 600, 9_000, REBALANCE_MS]))
    def wait(self, milliseconds):
        self.desk.wait(milliseconds)

    @rule()
    def restart(self):
        self.desk.restart()
        self.parked.clear()  # their connections are gone

    @invariant()
    def the_books_are_right(self):
        group = self.group
        if group is None:
            return
        members = group.members.values()
        assert group.parked_joins == sum(one.join is not None for one in members)
        assert (group.state is GroupState.EMPTY) <= (not group.members)
        assert (group.leader in group.members) == bool(group.members)
        assert not set(group.pending) & set(group.members)
        assert len(group.members) <= 4 + 4  # those who wait, and those who were there before
        counted: dict[str, int] = {}
        for one in members:
            for name in one.protocols:
                counted[name] = counted.get(name, 0) + 1
        assert group._supported == counted
        instances = {one.instance_id: one.id for one in members if one.instance_id is not None}
        assert group.instances == instances
        assert len(instances) == sum(one.instance_id is not None for one in members)
        assert set(group.pending_sync) <= set(group.members)

    @invariant()
    def calls_are_parked_only_where_somebody_waits_for_them(self):
        group = self.group
        waiting = sum(asked.answer is None for asked in self.parked)
        if group is None:
            assert waiting == 0
            return
        parked = [(one.join, one.sync) for one in group.members.values()]
        assert waiting == sum(call is not None for pair in parked for call in pair)
        if group.state is not GroupState.PREPARING_REBALANCE:
            assert all(joining is None for joining, _ in parked)
        if group.state is not GroupState.COMPLETING_REBALANCE:
            assert all(syncing is None for _, syncing in parked)

    @invariant()
    def a_group_at_rest_is_what_the_log_says(self):
        group = self.group
        if group is None or group.state not in (GroupState.STABLE, GroupState.EMPTY):
            return
        told = self.desk.beside(group_max_size=100).shard.groups.classic(GroupId("g"))
        assert told.state is group.state
        assert told.generation == group.generation
        assert told.topics == group.topics or not group.generation
        assert [(one.id, one.assignment, one.client) for one in told.members.values()] == [
            (one.id, one.assignment, one.client) for one in group.members.values()
        ]
        assert (told.protocol, told.leader) == (group.protocol, group.leader)

    def teardown(self):
        """Whoever waits is answered in the end, and a group left alone becomes empty."""
        self.desk.wait(10 * REBALANCE_MS)
        assert all(asked.answer is not None for asked in self.parked)
        assert self.group is None or self.group.state is GroupState.EMPTY


TestClassicGroups = ClassicGroups.TestCase
TestClassicGroups.settings = settings(max_examples=60, stateful_step_count=40)
