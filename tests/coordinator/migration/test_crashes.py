# SPDX-License-Identifier: Apache-2.0
"""A group on its way from one protocol to the other, and a broker that is killed there."""

from copy import deepcopy
from itertools import count
from random import Random

import pytest
from tests.coordinator.classics import QUICK, leave
from tests.coordinator.consumers import Consumer, beat, request
from tests.coordinator.desk import Asked, Desk, topics
from tests.coordinator.mixed import (
    Classic,
    classic_group,
    go_on,
    leaves,
    mixed_group,
    owners,
    together,
)

from kohort.coordinator.consumer.member import MemberState
from kohort.errors import ErrorCode, StorageError
from kohort.machines.effects import Call, Client
from kohort.sim.checkers.replay import differences, shard_state
from kohort.storage.memory import MemoryLog
from kohort.terms import GroupState


def classic_stable(desk):
    return classic_group(desk, 2)


def classic_preparing(desk):
    members = classic_group(desk, 2)
    late = Classic(desk).join()
    assert state_of(desk) is GroupState.PREPARING_REBALANCE
    return [*members, late]


def classic_completing(desk):
    members = classic_group(desk, 2)
    leave(desk, members.pop().id)
    members += [Classic(desk).join(), Classic(desk).join()]
    members[0].beat()
    assert state_of(desk) in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
    return members


def upgraded(desk):
    return [*classic_group(desk, 2), Consumer(desk, "new").join()]


def upgraded_while_preparing(desk):
    return [*classic_preparing(desk), Consumer(desk, "new").join()]


def classic_must_revoke(desk):
    members = [*classic_group(desk, 1, eager=False), Consumer(desk, "new").join()]
    members[0].beat()
    group = desk.shard.groups.consumer("g")
    assert group.members[members[0].id].state is not MemberState.UNRELEASED_PARTITIONS
    return members


def classic_waits(desk):
    consumer = Consumer(desk, "new").join()
    classic = Classic(desk).join()
    group = desk.shard.groups.consumer("g")
    assert group.members[classic.id].state is MemberState.UNRELEASED_PARTITIONS
    return [consumer, classic]


def consumer_must_revoke(desk):
    consumer, classic = classic_waits(desk)
    consumer.beat()
    assert desk.shard.groups.consumer("g").members["new"].state is MemberState.UNREVOKED_PARTITIONS
    return [consumer, classic]


def mixed(desk):
    classics, consumer = mixed_group(desk, 2)
    return [*classics, consumer]


def mixed_with_a_static_member_away(desk):
    classics, _ = mixed_group(desk, 2)
    static = Consumer(desk, "s", instance_id="i").join()
    together(desk, *classics, Consumer(desk, "new").join(), static)
    beat(desk, "s", -2, instance_id="i")
    return [*classics, Consumer(desk, "new").join(), Classic(desk, group_instance_id="i").join()]


def static_that_was_away_and_had_more_to_come(desk):
    """The only other consumer left meanwhile; a classic member takes over what both had."""
    classic = Classic(desk).join()
    consumer = Consumer(desk, "new").join()
    static = Consumer(desk, "s", instance_id="i").join()
    together(desk, classic, consumer, static)
    beat(desk, "s", -2, instance_id="i")
    leaves(desk, consumer)
    go_on([classic])
    members = [classic, Classic(desk, group_instance_id="i").join()]
    together(desk, *members)
    return members


def static_taken_over_by_a_classic_one(desk):
    classics, consumer = mixed_group(desk, 1)
    Consumer(desk, "s", instance_id="i").join()
    return [*classics, consumer, Classic(desk, group_instance_id="i").join()]


def downgraded(desk):
    classics, consumer = mixed_group(desk, 2)
    leaves(desk, consumer)
    assert state_of(desk) is GroupState.PREPARING_REBALANCE
    return classics


def downgraded_and_joining(desk):
    classics = downgraded(desk)
    classics[0].beat()
    return classics


def downgraded_at_rest(desk):
    (classic,) = classic_group(desk, 1)
    static = Consumer(desk, "s", instance_id="i").join()
    together(desk, classic, static)
    members = [classic, Classic(desk, group_instance_id="i").join()]
    assert state_of(desk) is GroupState.STABLE
    return members


def downgraded_and_upgraded_again(desk):
    return [*downgraded(desk), Consumer(desk, "newer").join()]


STATES = [
    classic_stable,
    classic_preparing,
    classic_completing,
    upgraded,
    upgraded_while_preparing,
    classic_must_revoke,
    classic_waits,
    consumer_must_revoke,
    mixed,
    mixed_with_a_static_member_away,
    static_that_was_away_and_had_more_to_come,
    static_taken_over_by_a_classic_one,
    downgraded,
    downgraded_and_joining,
    downgraded_at_rest,
    downgraded_and_upgraded_again,
]


def state_of(desk):
    return desk.shard.groups.get("g").state


def settle(desk, members):
    """Everybody goes on, in a time in which those that are gone are found out."""
    for _ in range(8):
        go_on(members, 2)
        desk.wait(900)
    together(desk, *members)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("then", ["goes on", "upgrades", "downgrades"])
def test_a_crash_in_any_state_is_gone_on_from(state, then):
    """K848-116: the members that there are read everything, whichever way they go afterwards."""
    desk = Desk(**QUICK)
    members = state(desk)
    assert list(differences(desk.shard, desk.beside(**QUICK).shard)) == []
    desk.restart()
    for member in members:
        if isinstance(member, Classic):
            member.reconnect()
    settle(desk, members)
    eager = state is not classic_must_revoke
    if then == "goes on":
        return
    for number, member in enumerate(list(members)):
        if isinstance(member, Consumer) is (then == "downgrades"):
            members.remove(member)
            leave(desk, member.id)
            new = (
                Consumer(desk, f"then-{number}")
                if then == "upgrades"
                else Classic(desk, eager=eager)
            )
            members.append(new.join())
            settle(desk, members)
    kind = desk.shard.groups.classic if then == "downgrades" else desk.shard.groups.consumer
    assert len(kind("g").members) == len(members)


def test_every_prefix_of_the_log_is_a_group_that_goes_on():
    """What a kill leaves behind is a number of whole batches; each conversion is one."""
    desk = Desk(**QUICK)
    classics, consumer = mixed_group(desk, 2)
    static = Consumer(desk, "s", instance_id="i").join()
    together(desk, *classics, consumer, static)
    leaves(desk, consumer)
    classics.append(Classic(desk, group_instance_id="i").join())
    together(desk, *classics)
    batches = list(desk._batches.read(desk._batches.start, 1 << 30))
    assert len(batches) > 12
    for size in range(len(batches) + 1):
        for new in (Classic, Consumer):
            other = Desk(**QUICK)
            other._uuids = count(1 << 20)  # not those of the members in the log
            other._batches = MemoryLog()
            for data in batches[:size]:
                other._batches.append(data, int.from_bytes(data[57:61]))
            other.restart()
            member = Classic(other) if new is Classic else Consumer(other, "latest")
            member.join()
            for _ in range(25):  # the sessions of the others end meanwhile
                other.wait(3_000)
                member.beat()
            together(other, member)


@pytest.mark.parametrize("which", ["upgrade", "downgrade"])
def test_a_conversion_that_the_disk_refuses_has_not_happened(which, monkeypatch):
    desk = Desk(**QUICK)
    if which == "upgrade":
        members = classic_group(desk, 2)
    else:
        classics, consumer = mixed_group(desk, 2)
        members = [*classics, consumer]
    before = deepcopy(shard_state(desk.shard))
    asked = Asked()
    leaves_or_joins = request("new", 0 if which == "upgrade" else -1)
    desk.driver.submit(Call(asked, leaves_or_joins, 1, Client("app", "/127.0.0.1")))
    with monkeypatch.context() as patched:
        patched.setattr(desk._batches, "append", refuse)
        desk.driver.turn(desk.now)
    (reply,) = desk.driver.synced(desk._batches.end)
    assert reply.response.error_code == ErrorCode.NOT_COORDINATOR
    desk.told_lines.errors.clear()
    desk.restart()
    assert shard_state(desk.shard) == before
    settle(desk, members)


def refuse(*_):
    raise StorageError("no space is left")


@pytest.mark.parametrize("seed", [*range(40), 244, 421, 2775])
def test_whatever_members_do_the_log_brings_it_back_and_nothing_has_two_readers(seed):
    """Members of both kinds come, go, are killed and restart under their instance ids."""
    random = Random(seed)
    eager = random.random() < 0.5
    policy = random.choice(["bidirectional", "bidirectional", "upgrade", "downgrade"])
    settings = {**QUICK, "group_consumer_migration_policy": policy}
    desk = Desk(known=topics(orders=6), **settings)
    members = []
    for number in range(60):
        act(desk, random, members, number, eager=eager)
        for member in members:
            if random.random() < 0.7:
                member.beat()
            owners(members)
        desk.wait(random.choice([0, 100, 1000]))
        if random.random() < 0.1:
            desk.restart()
            for member in members:
                if isinstance(member, Classic):
                    member.reconnect()
        found = list(differences(desk.shard, desk.beside(**settings).shard))
        assert found == []
    if not members:
        members.append(Classic(desk, eager=eager).join())
    for _ in range(60):
        go_on(members, 1)
        desk.wait(1000)
    together(desk, *members)


def act(desk, random, members, number, *, eager):
    """One member joins, leaves, goes away for a while, or dies."""
    what = random.choice(["join", "join", "leave", "away", "die", "none", "none"])
    if what == "join" and len(members) < 5:
        used = {getattr(member, "instance", None) for member in members}
        used |= {member.fields.get("instance_id") for member in members}
        free = [one for one in ("i", "j") if one not in used]
        instance = random.choice(free) if free and random.random() < 0.6 else None
        if random.random() < 0.5:
            fields = {} if instance is None else {"group_instance_id": instance}
            members.append(Classic(desk, eager=eager, **fields).join())
        else:
            fields = {} if instance is None else {"instance_id": instance}
            consumer = Consumer(desk, f"m{number}", **fields)
            answer = beat(desk, consumer.id, 0, **fields)
            if answer.error_code == ErrorCode.NONE:  # else its old self is still there
                members.append(consumer.take(answer))
    elif what in ("leave", "away", "die") and members:
        member = members.pop(random.randrange(len(members)))
        static = member.fields.get("instance_id")
        if what == "leave" and member.id:
            leave(desk, member.id)
        elif what == "away" and static is not None:
            beat(desk, member.id, -2, instance_id=static)
