# SPDX-License-Identifier: Apache-2.0
"""Markers on their way: to logs, to machines of groups, and back to who has asked for them."""

import errno

from tests.server.desk import Desk
from tests.server.transactional import FIRST, Producing, committed, seen

from kohort.errors import Broken
from kohort.server.coordinators.marker_sender import AT_ONCE
from kohort.server.partitions.partition import Partition
from kohort.server.scheduler import MACHINES_NS
from kohort.sim.disk import SimulatedFiles
from kohort.wire.batch import walk
from kohort.wire.messages.end_txn import EndTxnRequest


def markers(log):
    return [
        header for data in log.read(0, 1 << 62) for _, header in walk(data) if header.is_control
    ]


def test_every_partition_of_a_transaction_gets_one_marker():
    desk = Desk()
    desk.create(partitions=2)
    one = Producing(desk)
    one.write(b"a")
    one.write(b"b", partition=1)
    one.commit_offsets(5)
    one.end()

    cluster = desk.cluster
    logs = [cluster.partition("orders", index).log for index in (0, 1)]
    logs.append(cluster.drivers[cluster.placement.shard_of("g")].log)
    for log in logs:
        (marker,) = markers(log)
        assert (marker.producer_id, marker.producer_epoch) == (one.id, one.epoch)


def test_a_log_that_fails_while_it_is_synced_holds_up_its_own_transaction():
    """The decision stands; the other partitions have their markers."""
    desk = Desk()
    desk.create(partitions=2)
    one = Producing(desk)
    one.write(b"a")
    one.write(b"b", partition=1)
    failed = desk.cluster.partition("orders", 1)
    failed.lost(Broken("EIO"))
    one.end()

    assert one.state() == "PrepareCommit"
    assert seen(desk) == [b"a"]
    told = [text for text in desk.told.warnings if "cannot be ended" in text]
    assert len(told) == 1
    assert "could not be synced" in told[0]
    desk.wait(2000)
    assert one.state() == "PrepareCommit"
    assert [text for text in desk.told.warnings if "cannot be ended" in text] == told


def test_a_fault_of_ours_concerns_one_marker(monkeypatch):
    """It is told, and tried again."""
    desk = Desk()
    desk.create(partitions=2)
    one = Producing(desk)
    one.write(b"a")
    one.write(b"b", partition=1)
    faulty = desk.cluster.partition("orders", 0)
    write = Partition.end_transaction

    def end(self, *place, **more):
        if self is faulty:
            raise ZeroDivisionError("nobody thought of it")
        write(self, *place, **more)

    monkeypatch.setattr(Partition, "end_transaction", end)
    assert one.end() == 0
    assert (one.state(), seen(desk, partition=1)) == ("PrepareCommit", [b"b"])
    assert "nobody thought of it" in desk.told.warnings[-1]
    monkeypatch.undo()
    desk.wait(500)
    assert (one.state(), seen(desk)) == ("CompleteCommit", [b"a"])


def test_groups_that_move_to_another_node_keep_what_is_pending():
    """The shard is read anew from its log, and the marker finds it there."""
    desk = Desk(nodes=2)
    desk.create()
    one = Producing(desk)
    groups = [f"g{number}" for number in range(6)]
    for group in groups:
        node = desk.cluster.placement.coordinator_of(group)
        assert one.add_offsets(group) == 0
        assert one.commit_offsets(5, group=group, node=node) == 0
    desk.rearrange(lambda placement: placement.leave(1 - one.node))
    assert one.end() == 0
    desk.wait(1000)

    assert one.state() == "CompleteCommit"
    assert {committed(desk, group, node=one.node) for group in groups} == {5}


def test_a_decision_that_may_not_be_durable_sends_no_markers():
    """Its log could not be synced, so nobody knows what is on the disk. Whoever reads the decision
    there after a start carries it out.
    """
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    one = Producing(desk)
    one.write(b"a")
    files.faults["sync", "/data/__transaction_state-"] = errno.EIO
    request = EndTxnRequest(
        transactional_id=one.name,
        producer_id=one.id,
        producer_epoch=one.epoch,
        committed=True,
    )
    asked = desk.send(request, 5)
    desk.settle()
    desk.wait(2000)

    assert asked.answer is None
    assert desk.connections[0].error is not None  # it is told nothing, rather than something wrong
    assert any("could not be synced" in line for line in desk.told.errors)
    assert markers(desk.cluster.partition("orders", 0).log) == []
    files.faults.clear()
    desk.cluster.close()
    again = Desk(files=files, now=desk.now + 1000)
    again.wait(1000)
    (marker,) = markers(again.cluster.partition("orders", 0).log)
    assert marker.producer_id == one.id
    assert seen(again) == [b"a"]


def test_others_come_in_between_the_markers_of_a_large_transaction():
    count = 3 * AT_ONCE
    desk = Desk(max_partitions="1000")
    desk.create(partitions=count)
    one = Producing(desk, kind=FIRST)
    assert set(one.add(*(("orders", index) for index in range(count)))) == {0}
    desk.step_ns = MACHINES_NS
    answered = desk.send(
        EndTxnRequest(
            transactional_id="t", producer_id=one.id, producer_epoch=one.epoch, committed=True
        ),
        4,
    )
    written = []
    while desk.step():
        logs = [desk.cluster.partition("orders", index).log for index in range(count)]
        written.append(sum(log.end > log.start for log in logs))
    desk.step_ns = 0
    desk.settle()
    assert answered.answer.error_code == 0
    assert written[-1] == count
    assert len(set(written)) > count - 2 * AT_ONCE
    assert one.state() == "CompleteCommit"
