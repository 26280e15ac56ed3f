"""Markers on their way: to logs, to machines of groups, and back to who has asked for them."""

from tests.server.desk import Desk
from tests.server.transactional import Producing, committed, seen

from kohort.errors import Broken
from kohort.server.outbox import Nobody, Outbox
from kohort.server.partitions import Partition
from kohort.wire.batch import walk


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
    assert "could not be synced" in desk.told.warnings[-1]
    desk.wait(2000)
    assert one.state() == "PrepareCommit"


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
        node = desk.cluster.placement.coordinator_of(group).id
        assert one.add_offsets(group) == 0
        assert one.commit_offsets(5, group=group, node=node) == 0
    desk.cluster.rearrange(lambda placement: placement.leave(1 - one.node))
    desk.settle()
    while desk.cluster.load_some(desk.now):
        desk.settle()
    desk.settle()
    assert one.end() == 0
    desk.wait(1000)

    assert one.state() == "CompleteCommit"
    assert {committed(desk, group, node=one.node) for group in groups} == {5}


def test_who_is_not_told_needs_no_answer():
    Nobody().answer(1)
    Nobody().fail(Broken("x"))
    Outbox(None, lambda: None).fail(Broken("x"))
