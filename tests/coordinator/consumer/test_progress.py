# SPDX-License-Identifier: Apache-2.0
"""What follows when a member says something, whatever its protocol."""

from tests.coordinator.classics import QUICK, join
from tests.coordinator.consumers import Consumer, beat, kinds, settled
from tests.coordinator.desk import Desk, topics
from tests.coordinator.mixed import mixed_group, subscribed

from kohort.coordinator.consumer import progress
from kohort.coordinator.consumer.timers import REVOCATION
from kohort.machines.effects import Client
from kohort.records.causes import Cause

CLIENT = Client("app", "/127.0.0.1")


def test_a_member_that_says_nothing_new_writes_nothing():
    desk = Desk()
    settled(desk, "a")
    group = desk.shard.groups.consumer("g")
    member = group.members["a"]
    effects, moved, _ = progress.step(
        desk.shard, group, member, member, owned=None, client=CLIENT, now=desk.now, joins=False
    )
    assert (effects.records, effects.events, moved) == ([], [], member)


def test_records_come_in_the_order_of_replay():
    desk = Desk()
    Consumer(desk, "a").join()
    assert kinds(desk.written()) == ["member", "epoch", "target", "target epoch", "current"]


def test_topics_that_have_changed_raise_the_epoch_and_say_so():
    desk = Desk()
    settled(desk, "a")
    group = desk.shard.groups.consumer("g")
    assert progress.look_at_topics(desk.shard, group).records == []
    desk.topics_changed(topics(orders=5, payments=2))
    effects = progress.look_at_topics(desk.shard, group)
    assert kinds(effects.records) == ["epoch"]
    assert [event.cause for event in effects.events] == [Cause.TOPICS]


def test_topics_that_only_seem_to_have_changed_do_not():
    desk = Desk()
    settled(desk, "a")
    group = desk.shard.groups.consumer("g")
    group.metadata_stale = True
    assert progress.look_at_topics(desk.shard, group).records == []
    assert not group.metadata_stale


def test_who_changes_the_protocol_while_it_gives_up_has_a_deadline_for_that():
    """Its revocation began in the protocol that has none."""
    desk = Desk(**QUICK)
    (classic,), _ = mixed_group(desk, 1, eager=False)
    beat(desk, "newer", 0)
    protocols = {"range": subscribed(owned=classic.owned)}
    assert join(desk, classic.id, protocols=protocols).answer.generation_id == 2
    assert (REVOCATION, "g", classic.id) not in desk.shard.deadlines
    assert beat(desk, classic.id, 2).error_code == 0
    assert (REVOCATION, "g", classic.id) in desk.shard.deadlines
