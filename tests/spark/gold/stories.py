# SPDX-License-Identifier: Apache-2.0
"""Lives of groups, lived by the coordinator itself under the clock of a test: every record at a
time that the script knows.

Each story is a partition of the log, since the helpers call every group `g`.
"""

from functools import cache

import pyarrow as pa
from tests.coordinator import classics
from tests.coordinator.consumers import Consumer, beat, settled
from tests.coordinator.desk import Desk, topics
from tests.spark import rows

from kohort.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode,
)
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity


class Story(Desk):
    """A desk that notes when each record was written; `at` is in seconds since the begin."""

    def __init__(self, **settings):
        self.times = []
        super().__init__(**settings)
        self.began = self.now

    def _step(self):
        super()._step()
        self.times += [self.now] * (len(self.log) - len(self.times))

    @property
    def at(self):
        return (self.now - self.began) / 1000

    def grow(self, **partitions):
        self.topics_changed(topics(**partitions))

    def rows(self, partition):
        return rows.raw(list(zip(self.times, self.log, strict=True)), partition)


def ticking(desk, seconds, *consumers):
    """Let time pass in which these consumers, and nobody else, send a heartbeat each second."""
    for _ in range(seconds):
        desk.wait(1000)
        for consumer in consumers:
            consumer.beat()


def lives():
    """Two join, one leaves, another falls silent, the last one leaves just after a commit."""
    desk = Story(group_consumer_assignment_interval_ms=0)
    a = Consumer(desk, "a").join()
    ticking(desk, 5, a)
    b = Consumer(desk, "b").join()  # 5 s
    ticking(desk, 3, a, b)  # told at 6 s to give two up, has done so at 7 s; b has them then
    beat(desk, "b", -1)  # 8 s
    ticking(desk, 2, a)
    Consumer(desk, "c").join()  # 10 s
    ticking(desk, 50, a)  # c is silent and goes at 55 s
    classics.commit(desk, {("orders", 0): 7}, member_id="a", generation_id_or_member_epoch=a.epoch)
    desk.wait(500)
    beat(desk, "a", -1)  # 60.5 s
    return desk


def stalls():
    """One does not give up what another is to have, until its rebalance timeout ends."""
    desk = Story(group_consumer_assignment_interval_ms=0)
    a = Consumer(desk, "a", rebalance_timeout_ms=10_000).join()
    desk.wait(1000)
    b = Consumer(desk, "b").join()  # 1 s
    kept = dict(a.owned)
    for _ in range(10):  # told at 2 s, put out at 12 s
        desk.wait(1000)
        if "a" in desk.shard.groups.consumer("g").members:
            beat(desk, "a", a.epoch, owned=kept)
        b.beat()
    ticking(desk, 2, b)
    return desk


def changes():
    """A subscription, then the topics, then the assignor; in the end both are removed at once."""
    desk = Story(group_consumer_assignment_interval_ms=0)
    a, b = settled(desk, "a", "b")
    desk.wait(1000)
    a.beat(names=["orders", "payments"])  # 1 s
    ticking(desk, 3, a, b)
    desk.grow(orders=6, payments=2)
    ticking(desk, 3, b, a)  # b notices at 5 s
    for one in (a, b):
        one.beat(server_assignor="range")  # 7 s: with the first vote, range has the most
    ticking(desk, 3, a, b)
    desk.told(
        LeaveGroupRequest(
            group_id="g", members=[MemberIdentity(member_id="a"), MemberIdentity(member_id="b")]
        ),
        5,
    )
    return desk


def overtaken():
    """A second one joins before the first rebalance is over."""
    desk = Story(group_consumer_assignment_interval_ms=0)
    a = Consumer(desk, "a").join()
    desk.wait(1000)
    b = Consumer(desk, "b").join()  # 1 s
    desk.wait(1000)
    c = Consumer(desk, "c").join()  # 2 s
    ticking(desk, 4, a, b, c)
    return desk


def subscribed(*names, owned=()):
    return encode(
        ConsumerProtocolSubscription(topics=list(names), owned_partitions=_partitions(owned))
    )


def _partitions(pairs):
    by_topic = {}
    for topic, index in pairs:
        by_topic.setdefault(topic, []).append(index)
    return [TopicPartition(topic=topic, partitions=found) for topic, found in by_topic.items()]


def assigned(*pairs):
    return encode(ConsumerProtocolAssignment(assigned_partitions=_partitions(pairs)))


def orders(*indexes):
    return [("orders", index) for index in indexes]


def share(desk, plan):
    """All sync, the leader with the plan: member -> partitions."""
    group = desk.shard.groups.classic("g")
    name = group.protocol
    given = {one: assigned(*pairs) for one, pairs in plan.items()}
    classics.sync(desk, group.leader, group.generation, given, protocol_name=name)
    for member in plan:
        if member != group.leader:
            classics.sync(desk, member, group.generation, protocol_name=name)


def classic_lives():
    """Two join, one commits and leaves, one falls silent."""
    desk = Story(**classics.QUICK)
    a, _ = classics.newcomer(desk)
    desk.names = {a: "a"}
    share(desk, {a: orders(0, 1, 2, 3)})  # generation 1 at 0 s
    desk.wait(4000)
    b, _ = classics.newcomer(desk)
    desk.wait(1000)
    classics.join(desk, a)
    desk.wait(500)
    share(desk, {a: orders(0, 1), b: orders(2, 3)})  # generation 2: joined at 5, ended at 5.5 s
    desk.names[b] = "b"
    for _ in range(6):
        desk.wait(3000)
        assert classics.heartbeat(desk, a, 2) == classics.heartbeat(desk, b, 2) == 0
    classics.commit(desk, dict.fromkeys(orders(2), 5), member_id=b, generation_id_or_member_epoch=2)
    desk.wait(500)
    classics.leave(desk, b)  # 24 s
    desk.wait(500)
    classics.join(desk, a)
    share(desk, {a: orders(0, 1, 2, 3)})  # generation 3 at 24.5 s
    c, _ = classics.newcomer(desk)
    classics.join(desk, a)
    share(desk, {a: orders(0, 1), c: orders(2, 3)})  # generation 4 at 24.5 s
    desk.names[c] = "c"
    for _ in range(5):
        desk.wait(3000)
        classics.heartbeat(desk, a, 4)  # c is silent and goes at 34.5 s
    classics.join(desk, a)
    share(desk, {a: orders(0, 1, 2, 3)})  # generation 5 at 39.5 s
    return desk


def classic_changes():
    """More partitions, another topic, another assignor, and a leader who only asks again."""
    desk = Story(**classics.QUICK)
    a, _ = classics.newcomer(desk)
    desk.names = {a: "a"}
    share(desk, {a: orders(0, 1)})
    for plan in ([*orders(0, 1, 2)], [*orders(0, 1, 2)]):
        desk.wait(1000)
        classics.join(desk, a)
        share(desk, {a: plan})  # generations 2 and 3
    desk.wait(1000)
    both = subscribed("orders", "payments")
    for names in (("range", "sticky"), ("sticky", "range")):
        classics.join(desk, a, protocols=dict.fromkeys(names, both))
        share(desk, {a: [*orders(0, 1, 2), ("payments", 0)]})  # generations 4 and 5
        desk.wait(1000)
    classics.join(desk, a, protocols={"sticky": both, "range": both})
    share(desk, {a: orders(0, 1, 2)})  # generation 6: payments is not there any more
    return desk


def cooperative():
    """KIP-429: what is to move is withheld in one generation, and given in the next."""
    desk = Story(**classics.QUICK)

    def offer(*owned):
        return {"protocols": {"cooperative-sticky": subscribed("orders", owned=orders(*owned))}}

    a, _ = classics.newcomer(desk, **offer())
    share(desk, {a: orders(0, 1)})
    desk.wait(1000)
    b, _ = classics.newcomer(desk, **offer())
    classics.join(desk, a, **offer(0, 1))
    share(desk, {a: orders(0), b: []})  # generation 2 at 1 s
    desk.names = {a: "a", b: "b"}
    desk.wait(2000)
    classics.join(desk, a, **offer(0))
    classics.join(desk, b, **offer())
    share(desk, {a: orders(0), b: orders(1)})  # generation 3 at 3 s
    return desk


def backlog():
    """A member falls silent amid work; who has its partition then commits after each record that
    has waited.
    """
    desk = Story(**classics.QUICK)
    offer = {"protocols": {"range": subscribed("orders")}}
    a, _ = classics.newcomer(desk, **offer)
    share(desk, {a: orders(0)})
    b, _ = classics.newcomer(desk, **offer)
    classics.join(desk, a, **offer)
    share(desk, {a: orders(0), b: orders(1)})  # generation 2 at 0 s

    def commit(member_id, partition, committed):
        epoch = desk.shard.groups.classic("g").generation
        given = {"member_id": member_id, "generation_id_or_member_epoch": epoch}
        classics.commit(desk, {("orders", partition): committed}, **given)

    for second in range(1, 20):  # a is silent from 10 s on and goes at 20 s
        desk.wait(1000)
        for member_id, partition in ((a, 0), (b, 1)):
            if member_id == b or second <= 10:
                commit(member_id, partition, 10 * second)
    desk.wait(1000)
    classics.join(desk, b, **offer)
    share(desk, {b: orders(0, 1)})  # generation 3
    for number in range(400):
        desk.wait(10 * (number % 2))  # some have the same time
        commit(b, 0, 101 + number)
    desk.names = {a: "a", b: "b"}
    return desk


STORIES = (
    lives,
    stalls,
    changes,
    overtaken,
    classic_lives,
    classic_changes,
    cooperative,
    backlog,
)


@cache
def story(script):
    return script()


def all_rows():
    """The raw rows of all stories: partition n of the log is the n-th."""
    batches = [story(script).rows(number) for number, script in enumerate(STORIES)]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def seconds(script, time):
    """A time of a table in seconds since the story began."""
    return None if time is None else round(time.timestamp() - story(script).began / 1000, 6)


def named(script, member_id):
    """The script's name of a member."""
    return getattr(story(script), "names", {}).get(member_id, member_id)
