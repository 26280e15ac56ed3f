# SPDX-License-Identifier: Apache-2.0
"""Clients that lie, of both protocols and of none, beside members that mean well.

They speak for others, at epochs that are past or never were, own what is not theirs, and deliver
assignments that nobody has asked for. Whatever they say, the group keeps its promises, and goes on
once they are gone. What is refused changes nothing, also where the log has no room for it.
"""

from random import Random
from typing import Any

import pytest
from tests.coordinator.assigning import Assigner, offer, part, share
from tests.coordinator.classics import QUICK, commit_request, join_request, leave, sync_request
from tests.coordinator.consumers import Consumer, request
from tests.coordinator.desk import Desk, Recorded, topic_id, topics
from tests.coordinator.mixed import Classic, assigned, owners, subscribed

from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import AWAY
from kohort.errors import ErrorCode, WireError
from kohort.sim.checkers.replay import differences
from kohort.terms import GroupState
from kohort.wire.messages.consumer_group_heartbeat import ClientAssignor
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

REFUSED = frozenset(ErrorCode) - {
    ErrorCode.NONE,
    ErrorCode.COMPUTE_ASSIGNMENT,
    ErrorCode.MEMBER_ID_REQUIRED,
}
GROUPS = ["g", "g", "g", "g", "h"]
INSTANCES = [None, None, "i", "j"]
STEPS = 50
LONGEST_MS = 60_000


class BrokenPromiseError(Exception):
    """Not an AssertionError: members that mean well give up at those, and begin anew."""


class Watched(Desk):
    """Whatever fails inside is a broken promise. The log takes batches up to a limit."""

    limit = 1 << 20

    def _new_shard(self) -> Recorded:
        shard = super()._new_shard()
        shard.record_limit = lambda: self.limit
        return shard

    def restart(self) -> None:
        super().restart()
        self.driver.limit_bytes = lambda: self.limit

    def _step(self) -> None:
        try:
            super()._step()
        except AssertionError as error:
            raise BrokenPromiseError(str(error)) from error


def kept(shard: Recorded) -> Any:
    """What a shard knows beside its log and the time."""
    classic = {
        group.id: (
            *(group.state, group.generation, group.leader, group.protocol, group.said),
            *(dict(group.pending), dict(group.pending_sync), dict(group.instances)),
            [(one.id, one.protocols, one.assignment) for one in group.members.values()],
        )
        for group in shard.groups.all_classic()
    }
    consumer = {
        group.id: (group.number, dict(group.members), group.metadata_stale, group.has_asked)
        for group in shard.groups.all_consumer()
    }
    return classic, consumer, dict(shard.computations)


class World:
    """A desk, what has been said on it, and what was true of its groups before."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.more = Random(f"more {seed}")  # what was added later leaves the rest as it was
        self.settings = {
            **QUICK,
            "group_consumer_migration_policy": random.choice(
                ["bidirectional", "bidirectional", "upgrade", "downgrade", "disabled"]
            ),
            "group_consumer_assignment_interval_ms": random.choice([0, 0, 1000]),
            "group_min_session_timeout_ms": 10,
        }
        self.desk = Watched(known=topics(orders=6, payments=2), **self.settings)
        self.desk.limit = self.more.choice([1 << 20, 2000])
        self.computing = random.random() < 0.6  # nearly everybody offers the assignor x
        self.eager = random.random() < 0.5
        self.honest: list[Classic | Consumer] = []
        self.made = 0
        self.epochs: dict[tuple[str, int], tuple[int, int]] = {}
        self.parked: list[Any] = []
        self.told: list[int] = []  # by what was delivered

    # --- those who mean well

    def newcomer(self) -> Classic | Consumer:
        self.made += 1
        kind = self.random.choice(["classic", "consumer", "assigner"])
        if self.computing:
            kind = self.random.choice(["classic", "assigner", "assigner"])
        if kind == "classic":
            return Classic(self.desk, "x" if self.computing else "range", eager=self.eager)
        if kind == "consumer":
            return Consumer(self.desk, f"m{self.made}", rebalance_timeout_ms=5000)
        return Assigner(self.desk, f"m{self.made}", offer(), rebalance_timeout_ms=5000)

    def goes_on(self, member: Classic | Consumer) -> None:
        """A client that is refused begins anew, as an application that is restarted."""
        try:
            if isinstance(member, Consumer) and member.epoch == 0:
                member.join()
            else:
                member.beat()
            if isinstance(member, Assigner) and member.asked and self.random.random() < 0.7:
                prepared = member.prepare()
                if prepared.error_code == 0:
                    member.install(prepared.group_epoch, *share(prepared))
        except (AssertionError, WireError):  # a leader reads what liars say about themselves
            member.owned = {}
            if isinstance(member, Consumer):
                member.epoch = 0
            else:
                member.id, member.generation = "", -1
                member.joining = member.syncing = None

    # --- those who lie

    def lie(self) -> None:
        kinds = [self.beats, self.beats, self.joins, self.syncs, self.looks, self.leaves]
        kinds += [self.commits, self.prepares, self.installs, self.installs]
        request, version = self.random.choice(kinds)()
        self.desk.wait(0)
        before, end = kept(self.desk.shard), self.desk.driver.log.end
        asked = self.desk.ask(request, version)
        self.parked.append(asked)
        code = getattr(asked.answer, "error_code", 0)
        if code not in REFUSED:
            return
        if self.desk.driver.log.end > end:
            if not isinstance(request, JoinGroupRequest):  # that makes its group in any case
                raise BrokenPromiseError(f"{code} for {request}, which is in the log")
        elif (after := kept(self.desk.shard)) != before:
            raise BrokenPromiseError(f"{code} for {request} has made {after} of {before}")

    def compute(self) -> None:
        """Deliver for the member that is asked, nearly as it should be: once, late, or again."""
        known = self.desk.shard.computations.get("g")
        group = self.desk.shard.groups.consumer("g")
        if known is None or group is None or known.member_id not in group.members:
            return
        asked = Assigner(self.desk, known.member_id)
        asked.epoch = group.members[known.member_id].epoch
        prepared = asked.prepare()
        members = share(prepared, self.random.choice([b"", b"x"]))
        for one in members:
            if self.random.random() < 0.3:
                one.metadata_version = self.random.choice([-2, -1, 0, 1, 32767])
            if self.random.random() < 0.3:
                one.member_id = self.member_id()
            for given in one.partitions:
                if self.random.random() < 0.3:
                    given.partitions = [*given.partitions, self.random.randrange(-1, 8)]
                if self.random.random() < 0.1:
                    given.topic_id = topic_id("payments")
        if self.random.random() < 0.3:
            self.lie()  # the group may move on meanwhile
        epoch = prepared.group_epoch + self.random.choice([0, 0, 0, 0, -1, 1])
        for _ in range(self.random.choice([1, 1, 2])):
            answer = asked.install(epoch, *members, error=self.random.choice([0] * 9 + [1]))
            self.told.append(answer.error_code)

    def group_id(self) -> str:
        return self.random.choice(GROUPS)

    def member_id(self) -> str:
        group = self.desk.shard.groups.get("g")
        ids = [*getattr(group, "members", ()), *getattr(group, "pending", ())]
        return self.random.choice([*ids, *ids, "liar-1", "liar-2", "", "m1"])

    def epoch(self) -> int:
        group = self.desk.shard.groups.get("g")
        now = getattr(group, "group_epoch", getattr(group, "generation", 0))
        near = [now - 1, now, now, now, now + 1]
        return self.random.choice([*near, -3, -2, -1, 0, 0, (1 << 31) - 1])

    def partitions(self) -> dict[str, list[int]]:
        indexes = self.random.choices(range(-1, 8), k=self.random.randrange(4))
        named = [{}, {"orders": indexes}, {"nowhere": indexes}, {"payments": [0]}]
        return self.random.choice(named)

    def offers(self) -> list[ClientAssignor] | None:
        low, high, version = (self.random.choice([-2, -1, 0, 1, 2, 32767]) for _ in range(3))
        if self.computing and self.random.random() < 0.9:
            return self.random.choice([None, [offer()], [offer("x", -1, 1, version=0)]])
        named = self.random.choice(["x", "x", "y", "range", ""])
        one = offer(named, low, high, version=version, reason=self.random.choice([0, 1, -1, 127]))
        return self.random.choice([None, None, [], [offer()], [offer(), one], [one], [one, one]])

    def beats(self) -> tuple[Any, int]:
        fields: dict[str, Any] = {
            "group_id": self.group_id(),
            "instance_id": self.random.choice(INSTANCES),
            "client_assignors": self.offers(),
            "owned": self.random.choice([None, self.partitions()]),
            "server_assignor": self.random.choice(
                [None] * (30 if self.computing else 3) + ["range", "uniform", "none"]
            ),
            "rebalance_timeout_ms": self.random.choice([-1, 0, 1, 5000]),
        }
        if self.random.random() < 0.5:
            fields["names"] = self.random.choice([[], ["orders"], ["orders", "payments"]])
        member_id, epoch = self.member_id(), self.epoch()
        if epoch == 0 and self.random.random() < 0.7:  # one that may be let in
            fields.update(names=["orders"], owned={}, rebalance_timeout_ms=5000)
            if self.computing:
                fields["client_assignors"] = [offer()]
        if self.more.random() < 0.2:
            fields["names"] = ["t" * 200 + str(number) for number in range(20)]
        return request(member_id, epoch, **fields), self.random.choice([0, 1])

    def joins(self) -> tuple[Any, int]:
        data = self.random.choice(
            [
                subscribed("orders", owned=self.partitions()),
                subscribed("orders", "payments", owned=self.partitions(), user_data=b"\x00\x05x"),
                subscribed("orders", version=0),
                b"",
                b"\x00\x01\xff",
            ]
        )
        names = self.random.sample(["range", "x", "cooperative-sticky"], self.random.randint(1, 3))
        names = ["x"] if self.computing else names
        return join_request(
            self.member_id(),
            self.group_id(),
            protocols=dict.fromkeys(names, data),
            protocol_type=self.random.choice(["consumer"] * 5 + ["connect", ""]),
            group_instance_id=self.random.choice(INSTANCES),
            session_timeout_ms=self.random.choice([10, 6000, 30_000]),
            rebalance_timeout_ms=self.random.choice([-1, 10, 6000]),
        ), self.random.choice([3, 5, 9])

    def syncs(self) -> tuple[Any, int]:
        given = {self.member_id(): self.random.choice([b"", b"\x00", assigned({"orders": [0]})])}
        fields = {"protocol_name": self.random.choice([None, "range", "x"])}
        return sync_request(
            self.member_id(),
            self.epoch(),
            given,
            group_id=self.group_id(),
            group_instance_id=self.random.choice(INSTANCES),
            **fields,
        ), 5

    def looks(self) -> tuple[Any, int]:
        return HeartbeatRequest(
            group_id=self.group_id(),
            member_id=self.member_id(),
            generation_id=self.epoch(),
            group_instance_id=self.random.choice(INSTANCES),
        ), 4

    def leaves(self) -> tuple[Any, int]:
        who = MemberIdentity(
            member_id=self.member_id(), group_instance_id=self.random.choice(INSTANCES)
        )
        return LeaveGroupRequest(group_id=self.group_id(), members=[who, who]), 5

    def commits(self) -> tuple[Any, int]:
        return commit_request(
            {("orders", self.random.randrange(6)): self.random.randrange(9)},
            group_id=self.group_id(),
            member_id=self.member_id(),
            generation_id_or_member_epoch=self.epoch(),
            group_instance_id=self.random.choice(INSTANCES),
        ), 9

    def prepares(self) -> tuple[Any, int]:
        return ConsumerGroupPrepareAssignmentRequest(
            group_id=self.group_id(), member_id=self.member_id(), member_epoch=self.epoch()
        ), 0

    def installs(self) -> tuple[Any, int]:
        version = self.random.choice([-2, -1, 0, 1, 32767])
        members = [
            part(self.member_id(), self.partitions(), self.random.choice([b"", b"x"]), version)
            for _ in range(self.random.randrange(4))
        ]
        return ConsumerGroupInstallAssignmentRequest(
            group_id=self.group_id(),
            member_id=self.member_id(),
            member_epoch=self.epoch(),
            group_epoch=self.epoch(),
            error=self.random.choice([0, 0, 0, 1, -1, 127]),
            members=members,
        ), 0

    # --- what always holds

    def look(self) -> None:
        for asked in self.parked:
            code = getattr(asked.answer, "error_code", 0)
            text = getattr(asked.answer, "error_message", None) or ""
            if code == ErrorCode.UNKNOWN_SERVER_ERROR and text and "cannot be read" not in text:
                raise BrokenPromiseError(f"an answer to a lie: {text}")
        self.parked = [asked for asked in self.parked if asked.answer is None]
        for group in self.desk.shard.groups:
            if isinstance(group, ConsumerGroup):
                self._look_at(group)
        fresh = self.desk.beside(**self.settings).shard
        found = list(differences(self.desk.shard, fresh))
        if found:
            raise BrokenPromiseError(f"a restart would tell otherwise: {found}")

    def _look_at(self, group: ConsumerGroup) -> None:
        owned: dict[Any, str] = {}
        for member in group.members.values():
            for held in (member.assigned, member.revoking):
                for topic, indexes in held.items():
                    for index in indexes:
                        other = owned.setdefault((topic, index), member.id)
                        if other != member.id:
                            raise BrokenPromiseError(f"{index} has {other} and {member.id}")
            if not (member.epoch == AWAY or 0 <= member.epoch <= group.group_epoch):
                raise BrokenPromiseError(f"{member.id} is at {member.epoch} of {group.group_epoch}")
        given = [
            (topic, index)
            for target in group.targets.values()
            for topic, indexes in target.partitions.items()
            for index in indexes
        ]
        if len(given) != len(set(given)):
            raise BrokenPromiseError(f"a partition has two targets: {sorted(given)}")
        now = group.group_epoch, group.target_epoch
        before = self.epochs.get((group.id, group.number), (0, 0))
        if not (now[0] >= now[1] and now[0] >= before[0] and now[1] >= before[1]):
            raise BrokenPromiseError(f"epochs went from {before} to {now}")
        self.epochs[group.id, group.number] = now


def attack(world: World) -> None:
    """With few lies or many, so that groups come to something in between."""
    random = world.random
    most = random.choice([2, 3, 5])
    for _ in range(STEPS):
        if len(world.honest) < 4 and random.random() < 0.2:
            world.honest.append(world.newcomer())
        for _ in range(random.randrange(most)):
            world.lie()
        if random.random() < 0.5:
            world.compute()
        for member in world.honest:
            if random.random() < 0.6:
                world.goes_on(member)
        world.desk.wait(random.choice([0, 0, 10, 1000, 6000]))
        world.look()
        if random.random() < 0.05:
            world.desk.restart()
            world.parked.clear()
            for member in world.honest:
                if isinstance(member, Classic):
                    member.joining = member.syncing = None


@pytest.mark.parametrize("seed", [*range(30), 5123])
def test_a_group_keeps_its_promises_to_those_who_mean_well(seed: int) -> None:
    world = World(seed)
    attack(world)
    desk = world.desk
    desk.limit = 1 << 20

    desk.wait(2 * LONGEST_MS)  # everybody is gone by then, the honest too
    world.look()
    for group_id in ("g", "h"):
        group = desk.shard.groups.get(group_id)
        assert group is None or group.state is GroupState.EMPTY, group.state
    classic = world.random.random() < 0.5 and world.settings["group_consumer_migration_policy"] in (
        "bidirectional",
        "downgrade",
    )
    members: list[Classic | Consumer] = []
    for number in range(3):
        if classic:
            members.append(Classic(desk, eager=world.eager))
        elif number == 1:
            members.append(Assigner(desk, f"late-{number}", offer()))
        else:
            members.append(Consumer(desk, f"late-{number}"))
    for _ in range(40):
        for member in members:
            world.goes_on(member)
        desk.wait(1000)
        world.look()
    read = owners(members)
    assert sorted(index for topic, index in read if topic == "orders") == list(range(6))
    group = desk.shard.groups.get("g")
    assert group.state == GroupState.STABLE
    assert len(group.members) == len(members)

    for member in members:
        assert leave(desk, member.id).members[0].error_code == 0
    world.look()
    answer = desk.told(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert answer.results[0].error_code == 0
