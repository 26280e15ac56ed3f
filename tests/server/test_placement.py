# SPDX-License-Identifier: Apache-2.0
"""Which partition has a group, and which node has the partition."""

import sys

import pytest
from tests.observer import RecordingObserver
from tests.server.desk import Desk

from kohort.java import coordinator_partition, text_hash
from kohort.server import placement
from kohort.server.catalog import Catalog, MemoryStore, Topic
from kohort.server.placement import NOBODY, Endpoint, Placement
from kohort.sim.disk import SimulatedFiles
from kohort.terms import TopicId
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

SMALLEST = "polygenelubricants"  # its hash has no absolute value


@pytest.mark.parametrize(
    ("group_id", "partitions", "partition"),
    [
        ("", 50, 0),
        ("a", 50, 97 % 50),
        ("hello", 50, 99162322 % 50),
        ("hello", 1, 0),
        ("gr\u00f6\u00dfe \u2603", 50, 38),
        (SMALLEST, 50, 0),
    ],
)
def test_a_group_lives_where_kafka_looks_for_it(group_id, partitions, partition):
    assert coordinator_partition(group_id, partitions) == partition


def test_the_smallest_hash_is_counted_as_zero():
    assert text_hash(SMALLEST) == -(2**31)


def placed(nodes, racks=()):
    catalog = Catalog(MemoryStore(), lambda: "c", RecordingObserver())
    topic = Topic("t", TopicId(b"t" * 16), 6, 2)
    catalog.create(topic)
    racks = racks or [None] * nodes
    brokers = [Endpoint(10 + index, "h", 9092 + index, rack) for index, rack in enumerate(racks)]
    return Placement(catalog, brokers), topic


def test_what_a_node_that_leaves_has_led_goes_to_others_and_comes_back():
    placement, topic = placed(3)
    planned = [placement.replicas(topic, index) for index in range(6)]
    assert [one[0] for one in planned] == [placement.leader(topic, index) for index in range(6)]
    placement.leave(11)
    assert [one.id for one in placement.brokers] == [10, 12]
    for index, before in enumerate(planned):
        assert placement.replicas(topic, index) == before
        assert placement.leader(topic, index) == next(one for one in before if one != 11)
    placement.leave(10)
    assert {placement.leader(topic, index) for index in range(6)} == {12}
    assert placement.controller_id == 12
    placement.join(11)
    placement.join(10)
    assert [one.id for one in placement.brokers] == [10, 11, 12]
    assert [placement.replicas(topic, index) for index in range(6)] == planned


def test_a_partition_that_was_given_to_a_node_stays_there_while_it_serves():
    placement, topic = placed(3)
    planned = placement.replicas(topic, 0)
    (other,) = {10, 11, 12} - set(planned)
    placement.move(topic, 0, other)
    assert placement.replicas(topic, 0) == [other, *planned]
    placement.leave(other)
    assert placement.leader(topic, 0) == planned[0]
    placement.join(other)
    assert placement.leader(topic, 0) == other
    assert placement.leader(topic, 1) == topic.leader(1, [10, 11, 12])


def test_what_only_its_replicas_may_lead_is_led_by_nobody_while_they_are_away():
    placement, topic = placed(3)
    planned = [placement.replicas(topic, index) for index in range(6)]
    placement.leave(11, replaced=False)
    placement.leave(10, replaced=False)
    for index, before in enumerate(planned):
        assert placement.replicas(topic, index) == before
        assert placement.leader(topic, index) == (12 if 12 in before else NOBODY)
    placement.join(10)
    placement.leave(10)
    for index, before in enumerate(planned):
        assert placement.leader(topic, index) == 12
        assert set(placement.replicas(topic, index)) == {*before, 12}
    placement.join(11)
    placement.join(10)
    assert [placement.leader(topic, index) for index in range(6)] == [one[0] for one in planned]


def test_racks_are_those_of_the_nodes_that_were_planned():
    placement, topic = placed(3, ["a", None, "b"])
    by_node = {10: ["a"], 11: [], 12: ["b"]}
    expected = tuple(
        tuple(rack for node in topic.replicas(index, (10, 11, 12)) for rack in by_node[node])
        for index in range(6)
    )
    assert {len(racks) for racks in expected} == {1, 2}
    assert placement.racks(topic) == expected
    placement.leave(10)
    placement.move(topic, 0, 12)
    assert placement.racks(topic) == expected, "groups would rebalance each time"
    assert placed(3)[0].racks(topic) == ()


def test_a_group_looks_again_where_racks_have_changed_over_a_restart():
    """As Kafka's hash of topics has it. The same racks, or none as before, change nothing."""
    files = SimulatedFiles()

    def epoch_after(epoch, **settings):
        desk = Desk(files=files, group_initial_rebalance_delay_ms="0", **settings)
        if not epoch:
            desk.create()
        joining = epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if joining else -1,
            subscribed_topic_names=["orders"] if joining else None,
            topic_partitions=[] if joining else None,
        )
        answer = desk.ask(request, 1)
        assert answer.error_code == 0
        desk.cluster.close()
        return answer.member_epoch

    first = epoch_after(0)
    assert epoch_after(first) == first
    second = epoch_after(first, broker_rack="east")
    assert second > first
    assert epoch_after(second, broker_rack="east") == second
    assert epoch_after(second, broker_rack="west") > second


def test_a_long_id_is_not_remembered():
    """A client could fill the memory with ids of 32 KiB, of which it sends thousands."""
    known = Desk().cluster.placement
    long = "g" * 30_000 + str(len(__name__))
    before = sys.getrefcount(long)
    assert known.shard_of(long) == known.shard_of(long)
    assert sys.getrefcount(long) == before


def test_what_is_remembered_of_short_ids_has_a_bound(monkeypatch):
    monkeypatch.setattr(placement, "_REMEMBERED", 10)
    known = Desk().cluster.placement
    shards = [known.shard_of(str(number)) for number in range(100)]
    assert shards == [known.shard_of(str(number)) for number in range(100)]
    assert len(known._known) <= 10
